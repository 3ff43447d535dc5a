/* llm-d: the flags of its endpoint picker, and the plugins of an EndpointPickerConfig. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "node/gvctl/convert/fork_internal.h"
#include "node/gvctl/fields.h"

#define NOTE_ENVOY   "the router carries requests itself: there is no Envoy to talk to"
#define NOTE_METRICS "/metrics is at the admin port, readable by whoever reaches it"
#define NOTE_NAMES   "the names of engines' metrics are known, of vLLM and SGLang"
#define NOTE_WEIGHT  "its weight has none: " NOTE_COST
#define NOTE_LABELS  "replicas are not chosen by labels of their pods"
#define NOTE_FLOW    "requests wait in one line (queue-max, queue-timeout), without priorities"
#define NOTE_PLUGIN  "there are no plugins: the one rule has what they do"
#define NOTE_READ    "requests are read in all forms that engines take"
#define NOTE_LATENCY                                                                               \
    "latency is predicted by what each replica was learned to do; no goal per request"

const json_t *convert_find_config(json_t *value, unsigned depth)
{
    const char *key;
    json_t *member;
    size_t i;
    if (depth > 32)
        return NULL;
    const char *kind = json_string_value(json_object_get(value, "kind"));
    bool plugins = json_is_array(json_object_get(value, "plugins"));
    if (plugins && (json_object_get(value, "schedulingProfiles") != NULL ||
                    (kind != NULL && strcmp(kind, "EndpointPickerConfig") == 0)))
        return value;
    json_object_foreach(json_is_object(value) ? value : NULL, key, member)
    {
        const json_t *found = convert_find_config(member, depth + 1);
        if (found != NULL)
            return found;
        /* In a ConfigMap it is a text: that replaces its parent, which keeps it. */
        const char *text = json_string_value(member);
        json_t *inner = text != NULL && strstr(text, "EndpointPickerConfig") != NULL
                            ? convert_yaml(slice_of_cstr(text))
                            : NULL;
        if (inner != NULL) {
            (void)json_object_set_new(value, key, inner);
            return convert_find_config(json_object_get(value, key), depth + 1);
        }
    }
    json_array_foreach(json_is_array(value) ? value : NULL, i, member)
    {
        const json_t *found = convert_find_config(member, depth + 1);
        if (found != NULL)
            return found;
    }
    return NULL;
}

static void take_config(struct convert_state *c, const struct convert_row *row,
                        const json_t *values)
{
    const char *value = json_string_value(json_array_get(values, 0));
    bool is_text = strcmp(row->flag, "config-text") == 0;
    struct buf text;
    buf_init(&text, 0);
    bool good = value != NULL &&
                (is_text ? buf_append_cstr(&text, value) == 0 : convert_file(value, &text));
    json_t *docs = good && text.len > 0 ? convert_yaml(buf_slice(&text)) : NULL;
    const json_t *config = docs != NULL ? convert_find_config(docs, 0) : NULL;
    if (config == NULL && c->beside != NULL) /* a ConfigMap that is mounted there */
        config = convert_find_config(c->beside, 0);
    if (config != NULL)
        convert_llmd_config(c, config);
    else
        convert_note(c, CONVERT_HAND, row->flag,
                     "it cannot be read from here: give that file to gvctl convert, too");
    json_decref(docs);
    buf_free(&text);
}

static const struct convert_row rows[] = {
    ROW("grpc-port", ONE, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("grpc-health-port", ONE, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("grpc-max-recv-msg-size", ONE, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("grpc-max-send-msg-size", ONE, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("enable-grpc-stream-metrics", SWITCH, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("secure-serving", SWITCH, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("health-checking", SWITCH, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("ha-enable-leader-election", SWITCH, NEEDLESS, NULL,
        "all routers serve at once, and share what they know (join, cluster-key-file)"),
    ROW("drain-timeout", ONE, DURATION, "drain-delay", NULL),
    ROW("pool-name", ONE, KUBERNETES, NULL, NULL),
    ROW("pool-namespace", ONE, KUBERNETES_NAMESPACE, NULL, NULL),
    ROW("pool-group", ONE, NEEDLESS, NULL,
        "replicas are found by a Service, not by an InferencePool"),
    ROW("endpoint-selector", ONE, KUBERNETES_SELECTOR, NULL, NULL),
    ROW("endpoint-target-ports", ONE, KUBERNETES_PORT, NULL, NULL),
    ROW("disable-endpoint-subset-filter", SWITCH, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("refresh-metrics-interval", ONE, DURATION, "scrape-interval", NULL),
    ROW("refresh-prometheus-metrics-interval", ONE, NEEDLESS, NULL, NOTE_METRICS),
    ROW("metrics-staleness-threshold", ONE, NEEDLESS, NULL,
        "what was read is aged by what is known to have been sent since"),
    ROW("total-queued-requests-metric", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("total-running-requests-metric", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("kv-cache-usage-percentage-metric", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("lora-info-metric", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("cache-info-metric", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("tracing", SWITCH, MISSING, NULL, NOTE_TRACE),
    ROW("metrics-port", ONE, ADMIN_PORT, NULL, NULL),
    ROW("metrics-endpoint-auth", SWITCH, MISSING, NULL, NOTE_METRICS),
    ROW("metrics-client-ca-file", ONE, MISSING, NULL, NOTE_METRICS),
    ROW("metrics-cert-dir", ONE, MISSING, NULL, NOTE_METRICS),
    ROW("enable-pprof", SWITCH, NEEDLESS, NULL, "perf and gdb know the program"),
    ROW("cert-path", ONE, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("enable-cert-reload", SWITCH, NEEDLESS, NULL, NOTE_ENVOY),
    ROW("model-server-metrics-port", ONE, NEEDLESS, NULL, "metrics are read at the engine's port"),
    ROW("model-server-metrics-path", ONE, NEEDLESS, NULL, "metrics are read at /metrics"),
    ROW("model-server-metrics-scheme", ONE, NEEDLESS, NULL, "as the replica's own: http or https"),
    ROW("model-server-metrics-https-insecure-skip-verify", SWITCH, MISSING, NULL,
        "names of certificates are always checked"),
    ROW("plugin-state-staleness-threshold", ONE, NEEDLESS, NULL, NOTE_PLUGIN),
    ROW("config-file", ONE, SPECIAL, "policy", "its plugins: below"),
    ROW("config-text", ONE, SPECIAL, "policy", "its plugins: below"),
    ROW("allow-experimental-plugins", SWITCH, NEEDLESS, NULL, NOTE_PLUGIN),
    ROW("v", ONE, BY_HAND, "log-level", "above 3 is log-level: debug"),
    ROW("zap-devel", SWITCH, NEEDLESS, NULL, "log-format: auto is text on a terminal, else JSON"),
    ROW("zap-encoder", ONE, BY_HAND, "log-format", "json is log-format: json, console is text"),
    ROW("zap-log-level", ONE, LEVEL, "log-level", NULL),
    ROW("zap-stacktrace-level", ONE, NEEDLESS, NULL, "the log has no traces of the stack"),
    ROW("zap-time-encoding", ONE, NEEDLESS, NULL, "times are RFC 3339"),
};

static const struct convert_policy policies[] = {{NULL, NULL, NULL}};

const struct convert_router convert_llmd = {
    .name = "llm-d",
    .title = "llm-d (endpoint picker)",
    .source = "llm-d/llm-d-router (options of pkg/epp/server)",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .policies = policies,
    .special = take_config,
};

/* The first that fits counts: those that end in a kind come last. */
static const struct convert_row plugins[] = {
    ROW("prefix-cache-scorer", ONE, NEEDLESS, NULL, "policy: cache_aware. " NOTE_WEIGHT),
    ROW("precise-prefix-cache-scorer", ONE, MISSING, NULL,
        "engines' KV events are not read; caches are followed by the traffic and their counters"),
    ROW("no-hit-lru-scorer", ONE, NEEDLESS, NULL,
        "a prompt that nobody holds goes where it costs least, what it pushes out included"),
    ROW("session-affinity-scorer", ONE, NEEDLESS, NULL,
        "a session's prefix is where it was; policy: session goes by a header alone"),
    ROW("lora-affinity-scorer", ONE, NEEDLESS, NULL,
        "loading an adapter is a term of the cost, in seconds"),
    ROW("latency-scorer", ONE, NEEDLESS, NULL, NOTE_LATENCY),
    ROW("predicted-latency-scorer", ONE, NEEDLESS, NULL, NOTE_LATENCY),
    ROW("header-label-affinity-scorer", ONE, MISSING, NULL, NOTE_LABELS),
    ROW("topology-affinity-scorer", ONE, MISSING, NULL, NOTE_LABELS),
    ROW("context-length-aware", ONE, MISSING, NULL, NOTE_LABELS),
    ROW("decode-filter", ONE, NEEDLESS, NULL, "each engine does both prefill and decode"),
    ROW("prefill-filter", ONE, MISSING, NULL, NOTE_PD),
    ROW("encode-filter", ONE, MISSING, NULL, NOTE_PD),
    ROW("by-label", ONE, MISSING, NULL, NOTE_LABELS),
    ROW("by-label-selector", ONE, MISSING, NULL, NOTE_LABELS),
    ROW("label-selector-filter", ONE, MISSING, NULL, NOTE_LABELS),
    ROW("topology-affinity-filter", ONE, MISSING, NULL, NOTE_LABELS),
    ROW("prefix-cache-affinity-filter", ONE, NEEDLESS, NULL, "policy: cache_aware. " NOTE_COST),
    ROW("session-affinity-filter", ONE, BY_HAND, "policy",
        "policy: session with session-header, if requests must stay where their session is"),
    ROW("slo-headroom-tier-filter", ONE, MISSING, NULL, NOTE_LATENCY),
    ROW("single-profile-handler", ONE, NEEDLESS, NULL, NOTE_PLUGIN),
    ROW("data-parallel-profile-handler", ONE, NEEDLESS, NULL, NOTE_DP),
    ROW("pd-profile-handler", ONE, MISSING, NULL, NOTE_PD),
    ROW("disagg-profile-handler", ONE, MISSING, NULL, NOTE_PD),
    ROW("prefill-header-handler", ONE, MISSING, NULL, NOTE_PD),
    ROW("disagg-headers-handler", ONE, MISSING, NULL, NOTE_PD),
    ROW("max-score-picker", ONE, NEEDLESS, NULL, "the least cost is chosen, near-tie among equals"),
    ROW("models-responder", ONE, NEEDLESS, NULL, "/v1/models merges what all engines list"),
    ROW("*-scorer", ONE, NEEDLESS, NULL, NOTE_WEIGHT),
    ROW("*-picker", ONE, NEEDLESS, NULL, NOTE_COST),
    ROW("*-handler", ONE, MISSING, NULL, NOTE_PD),
    ROW("*-filter", ONE, MISSING, NULL, NOTE_PLUGIN),
    ROW("*-parser", ONE, NEEDLESS, NULL, NOTE_READ),
    ROW("*-producer", ONE, NEEDLESS, NULL, NOTE_PLUGIN),
    ROW("*-extractor", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("*-source", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("*-detector", ONE, NEEDLESS, NULL,
        "replica-requests-max, requests-max and queue-max limit"),
    ROW("*-fairness-policy", ONE, MISSING, NULL, NOTE_FLOW),
    ROW("*-ordering-policy", ONE, MISSING, NULL, NOTE_FLOW),
    ROW("*-admitter", ONE, MISSING, NULL, NOTE_FLOW),
    ROW("*-discovery", ONE, BY_HAND, "replica-file", "replica-file or replica-dns lists replicas"),
    /* Sections of the configuration. */
    ROW("featureGates", MANY, NEEDLESS, NULL, NOTE_PLUGIN),
    ROW("flowControl", ONE, MISSING, NULL, NOTE_FLOW),
    ROW("saturationDetector", ONE, NEEDLESS, NULL,
        "replica-requests-max, requests-max and queue-max limit"),
    ROW("requestHandler", ONE, NEEDLESS, NULL, NOTE_READ),
    ROW("parser", ONE, NEEDLESS, NULL, NOTE_READ),
    ROW("dataLayer", ONE, NEEDLESS, NULL, NOTE_NAMES),
    ROW("data", ONE, NEEDLESS, NULL, NOTE_NAMES),
};

const struct convert_router convert_llmd_plugins = {
    .name = "llm-d plugins",
    .title = "llm-d: EndpointPickerConfig",
    .source = "llm-d/llm-d-router (runner)",
    .rows = plugins,
    .row_count = ARRAY_LEN(plugins),
    .policies = policies,
    .is_config = true,
};

static void take_plugin(struct convert_state *c, const char *type)
{
    const struct convert_row *row = convert_find(&convert_llmd_plugins, slice_of_cstr(type));
    enum convert_kind kind = row == NULL                   ? CONVERT_NONE
                             : row->as == CONVERT_NEEDLESS ? CONVERT_NOT_NEEDED
                             : row->as == CONVERT_MISSING  ? CONVERT_NONE
                                                           : CONVERT_HAND;
    convert_note(c, kind, type, row != NULL ? row->note : "this plugin is not known here");
}

static const char *name_of(const json_t *plugin)
{
    return fields_text(plugin, fields_has_text(plugin, "name") ? "name" : "type");
}

enum use { USE_UNKNOWN /* there are no profiles */, USE_NONE, USE_WITHOUT_WEIGHT, USE_FULL };

/* How profiles use the plugin of that name: those that choose count only where a profile refers to
 * them, and scorers only with a weight. */
static enum use use_of(const json_t *config, const char *name)
{
    const json_t *profiles = json_object_get(config, "schedulingProfiles"), *profile, *ref;
    enum use use = json_array_size(profiles) > 0 ? USE_NONE : USE_UNKNOWN;
    size_t i, k;
    json_array_foreach(profiles, i, profile)
    {
        json_array_foreach(json_object_get(profile, "plugins"), k, ref)
        {
            const char *weight = json_string_value(json_object_get(ref, "weight"));
            bool weighs = weight == NULL || strtod(weight, NULL) != 0;
            if (fields_equal(ref, "pluginRef", name) && use != USE_FULL)
                use = weighs ? USE_FULL : USE_WITHOUT_WEIGHT;
        }
    }
    return use;
}

static bool chooses(const char *type)
{
    struct slice text = slice_of_cstr(type);
    return slice_ends_with(text, SLICE("-scorer")) || slice_ends_with(text, SLICE("-filter")) ||
           slice_ends_with(text, SLICE("-picker"));
}

/* True: it chooses by prefix caches. */
static bool take_used_plugin(struct convert_state *c, const json_t *config, const json_t *plugin)
{
    const char *type = fields_text(plugin, "type");
    enum use use = use_of(config, name_of(plugin));
    if (chooses(type) && use == USE_NONE)
        convert_note(c, CONVERT_NOT_NEEDED, name_of(plugin),
                     "no profile refers to it: it is unused");
    else if (chooses(type) && use == USE_WITHOUT_WEIGHT)
        convert_note(c, CONVERT_NOT_NEEDED, name_of(plugin), "its weight is 0: it is unused");
    else
        take_plugin(c, type);
    return strstr(type, "prefix") != NULL && (use == USE_UNKNOWN || use == USE_FULL);
}

static bool has_plugin(const json_t *config, const char *name)
{
    size_t i;
    const json_t *plugin;
    json_array_foreach(json_object_get(config, "plugins"), i, plugin)
    {
        if (strcmp(name_of(plugin), name) == 0)
            return true;
    }
    return false;
}

/* References to what is not there: the endpoint picker does not start with them. */
static void check_references(struct convert_state *c, const json_t *config)
{
    size_t i, k;
    const json_t *profile, *ref;
    json_array_foreach(json_object_get(config, "schedulingProfiles"), i, profile)
    {
        json_array_foreach(json_object_get(profile, "plugins"), k, ref)
        {
            const char *name = fields_text(ref, "pluginRef");
            if (!has_plugin(config, name))
                convert_note(c, CONVERT_HAND, name,
                             "a profile refers to it, and no plugin is called so");
        }
    }
}

static void take_flow(struct convert_state *c, const json_t *flow)
{
    const char *ttl = json_string_value(json_object_get(flow, "defaultRequestTTL"));
    const char *most = json_string_value(json_object_get(flow, "maxRequests"));
    char time[64];
    if (ttl != NULL && convert_duration(slice_of_cstr(ttl), time, sizeof time))
        convert_set(c, "queue-timeout", time, "flowControl: defaultRequestTTL");
    if (most != NULL)
        convert_set(c, "queue-max", most, "flowControl: maxRequests");
}

void convert_llmd_config(struct convert_state *c, const json_t *config)
{
    static const char *const sections[] = {
        "featureGates", "flowControl", "saturationDetector", "requestHandler", "parser",
        "dataLayer",    "data"};
    size_t i;
    const json_t *plugin;
    bool cache = false;
    json_array_foreach(json_object_get(config, "plugins"), i, plugin)
    {
        cache |= take_used_plugin(c, config, plugin);
    }
    check_references(c, config);
    for (i = 0; i < ARRAY_LEN(sections); i++) {
        if (json_object_get(config, sections[i]) != NULL)
            take_plugin(c, sections[i]);
    }
    take_flow(c, json_object_get(config, "flowControl"));
    convert_set(c, "policy", cache ? "cache_aware" : "least_tokens",
                cache ? "its scorers of prefix caches" : "its scorers: none is of prefix caches");
    c->kubernetes = true;
}

/* --- what stands beside it ------------------------------------------------------------------- */

static void take_selector(struct convert_state *c, const json_t *labels)
{
    const char *key;
    json_t *value;
    size_t len = 0;
    json_object_foreach((json_t *)labels, key, value)
    {
        if (json_is_string(value) && len < sizeof c->selector)
            len += (size_t)snprintf(c->selector + len, sizeof c->selector - len, "%s%s=%s",
                                    len > 0 ? "," : "", key, json_string_value(value));
    }
}

/* v1 has targetPorts and matchLabels; before, targetPortNumber and the labels themselves. */
static void take_pool(struct convert_state *c, const json_t *pool)
{
    const json_t *spec = json_object_get(pool, "spec");
    const json_t *selector = json_object_get(spec, "selector");
    const json_t *labels = json_object_get(selector, "matchLabels");
    const json_t *first = json_array_get(json_object_get(spec, "targetPorts"), 0);
    const char *port = json_string_value(json_object_get(first, "number"));
    const char *ns =
        json_string_value(json_object_get(json_object_get(pool, "metadata"), "namespace"));
    if (port == NULL)
        port = json_string_value(json_object_get(spec, "targetPortNumber"));
    if (port != NULL && c->kubernetes_port[0] == '\0')
        (void)snprintf(c->kubernetes_port, sizeof c->kubernetes_port, "%s", port);
    if (ns != NULL && c->ns[0] == '\0')
        (void)snprintf(c->ns, sizeof c->ns, "%s", ns);
    if (c->selector[0] == '\0')
        take_selector(c, labels != NULL ? labels : selector);
}

void convert_llmd_pool(struct convert_state *c, json_t *docs)
{
    size_t i;
    const json_t *doc;
    json_array_foreach(docs, i, doc)
    {
        if (fields_equal(doc, "kind", "InferencePool")) {
            take_pool(c, doc);
            return;
        }
    }
}
