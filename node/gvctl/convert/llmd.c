/* llm-d: flags of the endpoint picker, and plugins of an EndpointPickerConfig. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "node/gvctl/convert/convert_internal.h"
#include "node/gvctl/fields.h"

#define NOTE_METRICS "/metrics is on the admin port, without authentication"
#define NOTE_NAMES   "the router knows the metric names of vLLM and SGLang"
#define NOTE_WEIGHT  "no weights: " NOTE_COST
#define NOTE_FLOW    "requests wait in one queue without priorities (queue-max, queue-timeout)"
#define NOTE_PLUGIN  "no plugins: one built-in rule replaces them"
#define NOTE_READ    "the router reads all request formats of the engines"
#define NOTE_LIMITS  "the limits are replica-requests-max, requests-max and queue-max"
#define NOTE_LATENCY "the router predicts latency; requests have no latency goals"

static const struct convert_row plugins[] = {
    NEEDLESS("prefix-cache-scorer", "policy: cache_aware. " NOTE_WEIGHT),
    NEEDLESS("precise-prefix-cache-scorer",
             "the router reads KV-cache events (kv-events, kv-events-listen)"),
    NEEDLESS("no-hit-lru-scorer", "the cost includes evictions"),
    NEEDLESS("session-affinity-scorer", "a session's prefix keeps it at its replica"),
    NEEDLESS("lora-affinity-scorer", "the cost includes loading an adapter"),
    NEEDLESS("latency-scorer, predicted-latency-scorer", NOTE_LATENCY),
    MISSING("slo-headroom-tier-filter", NOTE_LATENCY),
    MISSING("header-label-affinity-scorer, topology-affinity-scorer, context-length-aware, "
            "by-label, by-label-selector, label-selector-filter, topology-affinity-filter",
            "the router does not choose by pod labels"),
    NEEDLESS("decode-filter", "each engine does prefill and decode"),
    NEEDLESS("prefix-cache-affinity-filter", "policy: cache_aware. " NOTE_COST),
    BY_HAND("session-affinity-filter", "policy",
            "policy: session and session-header keep a session at its replica"),
    NEEDLESS("data-parallel-profile-handler", "the router finds data-parallel ranks itself"),
    NEEDLESS("max-score-picker", "the router takes the least cost; near-tie decides among equals"),
    NEEDLESS("models-responder", "/v1/models merges the lists of all engines"),
    NEEDLESS("single-profile-handler, *-producer", NOTE_PLUGIN),
    NEEDLESS("*-scorer", NOTE_WEIGHT),
    NEEDLESS("*-picker", NOTE_COST),
    MISSING("prefill-filter, encode-filter, pd-profile-handler, disagg-profile-handler, "
            "prefill-header-handler, disagg-headers-handler, *-handler",
            NOTE_PD),
    MISSING("*-filter", NOTE_PLUGIN),
    NEEDLESS("*-parser", NOTE_READ),
    NEEDLESS("*-extractor, *-source", NOTE_NAMES),
    NEEDLESS("*-detector", NOTE_LIMITS),
    MISSING("*-fairness-policy, *-ordering-policy, *-admitter", NOTE_FLOW),
    BY_HAND("*-discovery", "replica-file", "use replica-file or replica-dns"),
    {0},
};

static const struct convert_row sections[] = {
    READ("apiVersion, kind, metadata, plugins, schedulingProfiles", NULL, "only plugins count"),
    NEEDLESS("featureGates", NOTE_PLUGIN),
    NEEDLESS("requestHandler, parser", NOTE_READ),
    NEEDLESS("dataLayer, data", NOTE_NAMES),
    NEEDLESS("saturationDetector", NOTE_LIMITS),
    MISSING("flowControl", NOTE_FLOW),
    SAME("flowControl.defaultRequestTTL", "queue-timeout"),
    SAME("flowControl.maxRequests", "queue-max"),
    {0},
};

/* --- an EndpointPickerConfig ----------------------------------------------------------------- */

/* Returns the object if it is an EndpointPickerConfig, else NULL. In a ConfigMap the configuration
 * is a text, which is parsed here. */
static const json_t *config_of(struct convert_state *c, json_t *object)
{
    const char *key;
    json_t *member;
    (void)c;
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
                  fields_equal(object, "kind", "EndpointPickerConfig");
    return is_one && json_is_array(json_object_get(object, "plugins")) ? object : NULL;
}

const json_t *convert_find_config(struct convert_state *c, json_t *docs)
{
    return convert_search(c, docs, config_of);
}

/* Reads the configuration from a file, or from a ConfigMap of the manifest, mounted at the file's
 * path. */
static void take_config(struct convert_state *c, const char *label, const json_t *values)
{
    const char *value = convert_word(values, 0);
    char message[IO_FILE_MESSAGE];
    buf_clear(&c->text);
    if (strstr(label, "text") != NULL)
        DISCARD(buf_append_cstr(&c->text, value));
    else
        (void)convert_file(value, &c->text, message);
    c->config = convert_find_config(c, convert_own(c, convert_yaml(buf_slice(&c->text))));
    if (c->config == NULL)
        c->config = convert_find_config(c, c->docs);
    if (c->config == NULL)
        convert_note(c, CONVERT_HAND, label,
                     "gvctl cannot read this file: pass it to gvctl convert, too");
}

/* Returns the plugins in use by profiles: name -> true if some profile gives a weight. */
static json_t *read_uses(struct convert_state *c, const json_t *profiles)
{
    json_t *uses = convert_own(c, json_object());
    const json_t *profile, *ref;
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

static bool chooses(const char *type)
{
    const char *kind = strrchr(type, '-');
    return kind != NULL && convert_is_one("-scorer -filter -picker", kind);
}

/* Plugins for the choice count only if a profile refers to them, and scorers only with a weight. */
static void take_plugins(struct convert_state *c)
{
    const json_t *profiles = json_object_get(c->config, "schedulingProfiles"), *plugin;
    json_t *uses = read_uses(c, profiles), *missing = convert_own(c, json_copy(uses)), *use;
    const char *ref;
    size_t i;
    bool cache = false;
    json_array_foreach(json_object_get(c->config, "plugins"), i, plugin)
    {
        const char *type = fields_text(plugin, "type");
        const char *name = fields_text(plugin, fields_has_text(plugin, "name") ? "name" : "type");
        bool used = json_array_size(profiles) == 0 || fields_is(uses, name);
        if (used || !chooses(type))
            convert_words(c, CONVERT_PLUGIN, convert_own(c, json_pack("[s]", type)), 0);
        else
            convert_note(c, CONVERT_NOT_NEEDED, name, "unused: %s",
                         json_object_get(uses, name) == NULL ? "no profile names it"
                                                             : "its weight is 0");
        (void)json_object_del(missing, name);
        cache = cache || (used && strstr(type, "prefix") != NULL);
    }
    json_object_foreach(missing, ref, use) /* the endpoint picker would not start with these */
    {
        convert_note(c, CONVERT_HAND, ref,
                     "a profile names this plugin, but no plugin has that name");
    }
    (void)convert_set(c, "policy", cache ? "cache_aware" : "least_tokens",
                      cache ? "prefix-cache scorers" : "no prefix-cache scorers");
}

static void take_sections(struct convert_state *c)
{
    const char *key, *member;
    json_t *section, *value;
    json_object_foreach((json_t *)c->config, key, section)
    {
        convert_words(c, CONVERT_SECTION, convert_own(c, json_pack("[s]", key)), 0);
        json_object_foreach(section, member, value)
        {
            const char *name = convert_text(c, "%s.%s", key, member);
            if (convert_find(c->router, CONVERT_SECTION, slice_of_cstr(name)).row != NULL)
                convert_words(c, CONVERT_SECTION, convert_own(c, json_pack("[s,O]", name, value)),
                              0);
        }
    }
}

/* --- surrounding documents -------------------------------------------------------------------- */

static void set_part(struct convert_state *c, const char *part, const char *value)
{
    if (value != NULL && convert_part(c, part, NULL) == NULL)
        (void)json_object_set_new(c->parts, part, json_string(value));
}

/* Takes the port, the namespace and the selector of an InferencePool. v1 has targetPorts and
 * matchLabels; earlier versions have targetPortNumber and bare labels. */
static const json_t *take_pool(struct convert_state *c, json_t *pool)
{
    const char *port = NULL, *older = NULL, *ns = NULL, *key;
    json_t *labels = NULL, *match = NULL, *value, *pairs = convert_own(c, json_array());
    if (!fields_equal(pool, "kind", "InferencePool"))
        return NULL;
    DISCARD(json_unpack(pool, "{s?{s?s},s?{s?s,s?o}}", "metadata", "namespace", &ns, "spec",
                        "targetPortNumber", &older, "selector", &labels));
    DISCARD(json_unpack(pool, "{s?{s?[{s?s}]}}", "spec", "targetPorts", "number", &port));
    DISCARD(json_unpack(labels, "{s?o}", "matchLabels", &match));
    set_part(c, "replica-kubernetes.port", port != NULL ? port : older);
    set_part(c, "replica-kubernetes.namespace", ns);
    json_object_foreach(match != NULL ? match : labels, key, value)
    {
        if (json_is_string(value))
            (void)json_array_append_new(pairs,
                                        json_sprintf("%s=%s", key, json_string_value(value)));
    }
    if (json_array_size(pairs) > 0)
        set_part(c, "replica-kubernetes.selector", convert_join(c, pairs, 0, ","));
    return pool;
}

static void finish(struct convert_state *c)
{
    if (c->config != NULL) {
        take_plugins(c);
        take_sections(c);
        set_part(c, "replica-kubernetes.on", "");
    }
    (void)convert_search(c, c->docs, take_pool);
}

static const struct convert_row flags[] = {
    NEEDLESS("grpc-port=, grpc-health-port=, grpc-max-recv-msg-size=, grpc-max-send-msg-size=, "
             "enable-grpc-stream-metrics, secure-serving, health-checking, "
             "disable-endpoint-subset-filter, cert-path=, enable-cert-reload",
             "the router proxies requests itself, without Envoy"),
    NEEDLESS("ha-enable-leader-election", "all routers serve at once (join, cluster-key-file)"),
    SAME("drain-timeout=", "drain-delay"),
    SAME("pool-name=", "replica-kubernetes.on"),
    SAME("pool-namespace=", "replica-kubernetes.namespace"),
    NEEDLESS("pool-group=", "the router uses a Service, not an InferencePool"),
    SAME("endpoint-selector=", "replica-kubernetes.selector"),
    SAME("endpoint-target-ports=", "replica-kubernetes.port"),
    SAME("refresh-metrics-interval=", "scrape-interval"),
    NEEDLESS("refresh-prometheus-metrics-interval=", NOTE_METRICS),
    NEEDLESS("metrics-staleness-threshold=", "the router counts its own requests between scrapes"),
    NEEDLESS("total-queued-requests-metric=, total-running-requests-metric=, "
             "kv-cache-usage-percentage-metric=, lora-info-metric=, cache-info-metric=",
             NOTE_NAMES),
    BY_HAND("tracing", "trace-endpoint", "set trace-endpoint: URL (OTLP over HTTP)"),
    SAME("metrics-port=", "admin-listen.port"),
    MISSING("metrics-endpoint-auth, metrics-client-ca-file=, metrics-cert-dir=", NOTE_METRICS),
    NEEDLESS("enable-pprof", "use perf or gdb"),
    NEEDLESS("model-server-metrics-port=", "the router reads metrics at the engine's port"),
    NEEDLESS("model-server-metrics-path=", "the router reads /metrics"),
    NEEDLESS("model-server-metrics-scheme=", "metrics use the replica's scheme, http or https"),
    MISSING("model-server-metrics-https-insecure-skip-verify",
            "the router always checks certificate names"),
    NEEDLESS("plugin-state-staleness-threshold=, allow-experimental-plugins", NOTE_PLUGIN),
    CALL("config-file=, config-text=", "policy", take_config, "see the plugins below"),
    BY_HAND("v=", "log-level", "above 3: set log-level: debug"),
    NEEDLESS("zap-devel", "log-format: auto writes text on a terminal, else JSON"),
    BY_HAND("zap-encoder=", "log-format", "set log-format: json, or text for console"),
    LEVELS("zap-log-level"),
    NEEDLESS("zap-stacktrace-level=", "the log has no stack traces"),
    NEEDLESS("zap-time-encoding=", "log times are RFC 3339"),
    {0},
};

const struct convert_router convert_llmd = {
    .name = "llm-d",
    .title = "llm-d (endpoint picker)",
    .source = "llm-d/llm-d-router (options of pkg/epp/server)",
    .programs = "epp llm-d-inference-scheduler llm-d-router",
    .marks = "pool-name endpoint-selector",
    .tables = {{CONVERT_FLAG, flags}, {CONVERT_PLUGIN, plugins}, {CONVERT_SECTION, sections}},
    .time = "ms",
    .finish = finish,
};
