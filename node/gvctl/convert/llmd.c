/* llm-d: the flags of its endpoint picker, and the plugins of an EndpointPickerConfig. */
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
    FILE *f = is_text || value == NULL ? NULL : fopen(value, "rb");
    char chunk[4096];
    size_t n;
    int err = is_text && value != NULL ? buf_append_cstr(&text, value) : 0;
    while (f != NULL && err == 0 && (n = fread(chunk, 1, sizeof chunk, f)) > 0)
        err = buf_append(&text, chunk, n);
    if (f != NULL)
        (void)fclose(f);
    json_t *docs = err == 0 && text.len > 0 ? convert_yaml(buf_slice(&text)) : NULL;
    const json_t *config = docs != NULL ? convert_find_config(docs, 0) : NULL;
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
        const char *type = fields_text(plugin, "type");
        cache = cache || strstr(type, "prefix") != NULL;
        take_plugin(c, type);
    }
    for (i = 0; i < ARRAY_LEN(sections); i++) {
        if (json_object_get(config, sections[i]) != NULL)
            take_plugin(c, sections[i]);
    }
    convert_set(c, "policy", cache ? "cache_aware" : "least_tokens",
                cache ? "its scorers of prefix caches" : "its scorers: none is of prefix caches");
    c->kubernetes = true;
}
