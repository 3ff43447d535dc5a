/* llm-d: the flags of its endpoint picker, and the plugins of an EndpointPickerConfig. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/gvctl/convert/table_internal.h"
#include "node/gvctl/fields.h"
#include "node/io/read_file.h"

#define NOTE_ENVOY   "the router carries requests itself: there is no Envoy to talk to"
#define NOTE_METRICS "/metrics is at the admin port, readable by whoever reaches it"
#define NOTE_NAMES   "the names of engines' metrics are known, of vLLM and SGLang"
#define NOTE_COST    "what is cached, what waits and what would be pushed out are weighed in seconds"
#define NOTE_WEIGHT  "its weight has none: " NOTE_COST
#define NOTE_LABELS  "replicas are not chosen by labels of their pods"
#define NOTE_FLOW    "requests wait in one line (queue-max, queue-timeout), without priorities"
#define NOTE_PLUGIN  "there are no plugins: the one rule has what they do"
#define NOTE_READ    "requests are read in all forms that engines take"
#define NOTE_LIMITS  "replica-requests-max, requests-max and queue-max limit"
#define NOTE_LATENCY                                                                               \
    "latency is predicted by what each replica was learned to do; no goal per request"

static const struct convert_row flags[] = {
    NEEDLESS("grpc-port=, grpc-health-port=, grpc-max-recv-msg-size=, grpc-max-send-msg-size=, "
             "enable-grpc-stream-metrics, secure-serving, health-checking, "
             "disable-endpoint-subset-filter, cert-path=, enable-cert-reload",
             NOTE_ENVOY),
    NEEDLESS("ha-enable-leader-election", "all routers serve at once (join, cluster-key-file)"),
    ROW("drain-timeout=", DURATION, "drain-delay", NULL),
    ROW("pool-name=", KUBERNETES, "replica-kubernetes", NULL),
    ROW("pool-namespace=", NAMESPACE, "replica-kubernetes", NULL),
    NEEDLESS("pool-group=", "replicas are found by a Service, not by an InferencePool"),
    ROW("endpoint-selector=", SELECTOR, "replica-kubernetes", NULL),
    ROW("endpoint-target-ports=", KUBERNETES_PORT, "replica-kubernetes", NULL),
    ROW("refresh-metrics-interval=", DURATION, "scrape-interval", NULL),
    NEEDLESS("refresh-prometheus-metrics-interval=", NOTE_METRICS),
    NEEDLESS("metrics-staleness-threshold=", "requests since the last scrape are counted"),
    NEEDLESS("total-queued-requests-metric=, total-running-requests-metric=, "
             "kv-cache-usage-percentage-metric=, lora-info-metric=, cache-info-metric=",
             NOTE_NAMES),
    MISSING("tracing", "no spans are sent"),
    ROW("metrics-port=", ADMIN_PORT, "admin-listen", NULL),
    MISSING("metrics-endpoint-auth, metrics-client-ca-file=, metrics-cert-dir=", NOTE_METRICS),
    NEEDLESS("enable-pprof", "perf and gdb know the program"),
    NEEDLESS("model-server-metrics-port=", "metrics are read at the engine's port"),
    NEEDLESS("model-server-metrics-path=", "metrics are read at /metrics"),
    NEEDLESS("model-server-metrics-scheme=", "as the replica's own: http or https"),
    MISSING("model-server-metrics-https-insecure-skip-verify", "names are always checked"),
    NEEDLESS("plugin-state-staleness-threshold=, allow-experimental-plugins", NOTE_PLUGIN),
    ROW("config-file=, config-text=", SPECIAL, "policy", "its plugins: below"),
    ROW("v=", BY_HAND, "log-level", "above 3 is log-level: debug"),
    NEEDLESS("zap-devel", "log-format: auto is text on a terminal, else JSON"),
    ROW("zap-encoder=", BY_HAND, "log-format", "json is log-format: json, console is text"),
    LEVELS("zap-log-level"),
    NEEDLESS("zap-stacktrace-level=", "the log has no traces of the stack"),
    NEEDLESS("zap-time-encoding=", "times are RFC 3339"),
    {0},
};

/* Those that end in a kind stand for all others of it. */
static const struct convert_row plugins[] = {
    NEEDLESS("prefix-cache-scorer", "policy: cache_aware. " NOTE_WEIGHT),
    MISSING("precise-prefix-cache-scorer",
            "engines' KV events are not read; caches are followed by the traffic and their "
            "counters"),
    NEEDLESS("no-hit-lru-scorer", "the cost includes what a prompt pushes out"),
    NEEDLESS("session-affinity-scorer", "a session's prefix is where it was"),
    NEEDLESS("lora-affinity-scorer", "loading an adapter is a term of the cost, in seconds"),
    NEEDLESS("latency-scorer, predicted-latency-scorer", NOTE_LATENCY),
    MISSING("slo-headroom-tier-filter", NOTE_LATENCY),
    MISSING("header-label-affinity-scorer, topology-affinity-scorer, context-length-aware, "
            "by-label, by-label-selector, label-selector-filter, topology-affinity-filter",
            NOTE_LABELS),
    NEEDLESS("decode-filter", "each engine does both prefill and decode"),
    NEEDLESS("prefix-cache-affinity-filter", "policy: cache_aware. " NOTE_COST),
    ROW("session-affinity-filter", BY_HAND, "policy",
        "policy: session with session-header, if requests must stay where their session is"),
    NEEDLESS("data-parallel-profile-handler", "data-parallel ranks are found by themselves"),
    MISSING("prefill-filter, encode-filter, pd-profile-handler, disagg-profile-handler, "
            "prefill-header-handler, disagg-headers-handler, *-handler",
            NOTE_PD),
    NEEDLESS("max-score-picker", "the least cost is chosen, near-tie among equals"),
    NEEDLESS("models-responder", "/v1/models merges what all engines list"),
    NEEDLESS("*-scorer", NOTE_WEIGHT),
    NEEDLESS("*-picker", NOTE_COST),
    MISSING("*-filter", NOTE_PLUGIN),
    NEEDLESS("single-profile-handler, *-producer, featureGates", NOTE_PLUGIN),
    NEEDLESS("*-parser, requestHandler, parser", NOTE_READ),
    NEEDLESS("*-extractor, *-source, dataLayer, data", NOTE_NAMES),
    NEEDLESS("*-detector, saturationDetector", NOTE_LIMITS),
    MISSING("*-fairness-policy, *-ordering-policy, *-admitter, flowControl", NOTE_FLOW),
    ROW("*-discovery", BY_HAND, "replica-file", "replica-file or replica-dns lists replicas"),
    ROW("flowControl.defaultRequestTTL", DURATION, "queue-timeout", NULL),
    ROW("flowControl.maxRequests", NUMBER, "queue-max", NULL),
    {0},
};

const struct convert_router convert_llmd_plugins = {
    .name = "llm-d plugins",
    .title = "llm-d: EndpointPickerConfig",
    .source = "llm-d/llm-d-router (runner)",
    .tables = {plugins},
    .is_config = true,
};

/* In a ConfigMap it is a text: that becomes what it says. */
static json_t *config_of(json_t *object)
{
    const char *key, *kind = json_string_value(json_object_get(object, "kind"));
    json_t *member;
    json_object_foreach(object, key, member)
    {
        const char *text = json_string_value(member);
        json_t *inner = text != NULL && strstr(text, "EndpointPickerConfig") != NULL
                            ? convert_yaml(slice_of_cstr(text))
                            : NULL;
        if (json_array_size(inner) > 0 && !json_is_string(json_array_get(inner, 0)))
            (void)json_object_set(object, key, inner);
        json_decref(inner);
    }
    bool is_one = json_object_get(object, "schedulingProfiles") != NULL ||
                  (kind != NULL && strcmp(kind, "EndpointPickerConfig") == 0);
    return is_one && json_is_array(json_object_get(object, "plugins")) ? json_incref(object) : NULL;
}

const json_t *convert_find_config(json_t *docs)
{
    json_t *found = convert_walk(docs, 0, config_of);
    json_decref(found); /* the documents have it */
    return found;
}

void convert_llmd_special(struct convert_state *c, const char *name, const json_t *values)
{
    const char *value = convert_word(values, 0);
    struct buf text;
    char message[IO_FILE_MESSAGE];
    buf_init(&text, 0);
    bool good = strcmp(name, "config-text") == 0 ? buf_append_cstr(&text, value) == 0
                                                 : convert_file(value, &text, message);
    json_t *docs = good && text.len > 0 ? convert_yaml(buf_slice(&text)) : NULL;
    const json_t *config = convert_find_config(docs);
    if (config == NULL) /* a ConfigMap that is mounted there */
        config = convert_find_config(c->beside);
    if (config != NULL)
        convert_llmd_config(c, config);
    else
        convert_note(c, CONVERT_HAND, name,
                     "it cannot be read from here: give that file to gvctl convert, too");
    json_decref(docs);
    buf_free(&text);
}

const struct convert_router convert_llmd = {
    .name = "llm-d",
    .title = "llm-d (endpoint picker)",
    .source = "llm-d/llm-d-router (options of pkg/epp/server)",
    .programs = "epp llm-d-inference-scheduler llm-d-router",
    .tables = {flags},
};

/* --- an EndpointPickerConfig ----------------------------------------------------------------- */

/* A plugin or a section, as `name`. */
static void take(struct convert_state *c, const char *name, const char *value, const char *unknown)
{
    struct convert_found found = convert_find(&convert_llmd_plugins, slice_of_cstr(name));
    json_t *values = json_pack("[s]", value != NULL ? value : "");
    if (found.row != NULL)
        convert_take(c, found, name, values);
    else
        convert_note(c, CONVERT_NONE, name, unknown);
    json_decref(values);
}

static bool chooses(const char *type)
{
    struct slice text = slice_of_cstr(type);
    return slice_ends_with(text, SLICE("-scorer")) || slice_ends_with(text, SLICE("-filter")) ||
           slice_ends_with(text, SLICE("-picker"));
}

/* How profiles use plugins: name -> whether one does with a weight. NULL: there are no profiles. */
static json_t *read_uses(const json_t *config)
{
    const json_t *profiles = json_object_get(config, "schedulingProfiles"), *profile, *ref;
    json_t *uses = json_array_size(profiles) > 0 ? json_object() : NULL;
    size_t i, k;
    json_array_foreach(profiles, i, profile)
    {
        json_array_foreach(json_object_get(profile, "plugins"), k, ref)
        {
            const char *weight = json_string_value(json_object_get(ref, "weight"));
            const char *name = fields_text(ref, "pluginRef");
            bool weighs = weight == NULL || strtod(weight, NULL) != 0;
            (void)json_object_set_new(uses, name, json_boolean(weighs || fields_is(uses, name)));
        }
    }
    return uses;
}

/* Those that choose count only where a profile refers to them, and scorers only with a weight.
 * True: one chooses by prefix caches. */
static bool take_plugins(struct convert_state *c, const json_t *config)
{
    json_t *uses = read_uses(config), *missing = json_copy(uses), *use;
    size_t i;
    const char *ref;
    const json_t *plugin;
    bool cache = false;
    json_array_foreach(json_object_get(config, "plugins"), i, plugin)
    {
        const char *type = fields_text(plugin, "type");
        const char *name = fields_text(plugin, fields_has_text(plugin, "name") ? "name" : "type");
        bool used = uses == NULL || fields_is(uses, name);
        (void)json_object_del(missing, name);
        if (!chooses(type) || used)
            take(c, type, "", "this plugin is not known here");
        else
            convert_note(c, CONVERT_NOT_NEEDED, name,
                         json_object_get(uses, name) == NULL
                             ? "no profile refers to it: it is unused"
                             : "its weight is 0: it is unused");
        cache = cache || (used && strstr(type, "prefix") != NULL);
    }
    json_object_foreach(missing, ref, use) /* the endpoint picker does not start with them */
    {
        convert_note(c, CONVERT_HAND, ref, "a profile refers to it, and no plugin is called so");
    }
    json_decref(missing);
    json_decref(uses);
    return cache;
}

/* What is beside the plugins; of flowControl also what is in it. */
static void take_section(struct convert_state *c, const char *key, const json_t *section)
{
    char name[160];
    const char *member;
    json_t *value;
    if (strstr(" apiVersion kind metadata plugins schedulingProfiles ", key) != NULL)
        return;
    take(c, key, "", "this section is not known here");
    json_object_foreach((json_t *)section, member, value)
    {
        (void)snprintf(name, sizeof name, "%s.%s", key, member);
        if (convert_find(&convert_llmd_plugins, slice_of_cstr(name)).row != NULL)
            take(c, name, json_string_value(value), "");
    }
}

void convert_llmd_config(struct convert_state *c, const json_t *config)
{
    const char *key;
    json_t *section;
    bool cache = take_plugins(c, config);
    json_object_foreach((json_t *)config, key, section)
    {
        take_section(c, key, section);
    }
    convert_set(c, "policy", cache ? "cache_aware" : "least_tokens",
                cache ? "its scorers of prefix caches" : "its scorers: none is of prefix caches");
    convert_keep(c, CONVERT_KUBERNETES, "");
}

/* --- what stands beside it ------------------------------------------------------------------- */

static void keep_if_none(struct convert_state *c, enum convert_as as, const char *value)
{
    if (value != NULL && c->kept[as] == NULL)
        convert_keep(c, as, value);
}

/* v1 has targetPorts and matchLabels; before, targetPortNumber and the labels themselves. */
static void take_pool(struct convert_state *c, json_t *pool)
{
    const char *port = NULL, *older = NULL, *ns = NULL, *key;
    json_t *labels = NULL, *inner = NULL, *value;
    bool none = c->kept[CONVERT_SELECTOR] == NULL;
    DISCARD(json_unpack(pool, "{s?{s?s},s?{s?s,s?o}}", "metadata", "namespace", &ns, "spec",
                        "targetPortNumber", &older, "selector", &labels));
    DISCARD(json_unpack(pool, "{s?{s?[{s?s}]}}", "spec", "targetPorts", "number", &port));
    DISCARD(json_unpack(labels, "{s?o}", "matchLabels", &inner));
    keep_if_none(c, CONVERT_KUBERNETES_PORT, port != NULL ? port : older);
    keep_if_none(c, CONVERT_NAMESPACE, ns);
    json_object_foreach(inner != NULL ? inner : labels, key, value)
    {
        char pair[256];
        (void)snprintf(pair, sizeof pair, "%s=%s", key, json_string_value(value));
        if (none && json_is_string(value))
            convert_keep(c, CONVERT_SELECTOR, pair);
    }
}

void convert_llmd_pool(struct convert_state *c, json_t *docs)
{
    for (size_t i = 0, found = 0; i < json_array_size(docs) && found == 0; i++) {
        found = fields_equal(json_array_get(docs, i), "kind", "InferencePool") ? 1 : 0;
        if (found != 0)
            take_pool(c, json_array_get(docs, i));
    }
}
