/* The router of vLLM's production-stack. */
#include <string.h>

#include "base/check.h"
#include "node/gvctl/convert/fork_internal.h"

#define NOTE_LMCACHE "caches are followed by the traffic, without LMCache's controller"
#define NOTE_FILES   "the batch and files APIs go to engines that have them"
#define NOTE_MODELS  "which models an engine serves is asked of it"
#define NOTE_SENTRY  "errors are in the log and in /metrics"
#define NOTE_DYNAMIC "convert that file, too, and name it with config"
#define NOTE_CACHE   "answers are not cached"

static void special(struct convert_state *c, const struct convert_row *row, const json_t *values)
{
    const char *value = json_string_value(json_array_get(values, 0));
    (void)row;
    c->kubernetes = value != NULL && strcmp(value, "k8s") == 0;
}

static const struct convert_row rows[] = {
    ROW("host", ONE, HOST, NULL, NULL),
    ROW("port", ONE, PORT, NULL, NULL),
    ROW("service-discovery", ONE, SPECIAL, "replica-kubernetes", NULL),
    ROW("k8s-service-discovery-type", ONE, NEEDLESS, NULL, "pods are used, not their services"),
    ROW("static-backends", ONE, URLS, "replica", NULL),
    ROW("static-models", ONE, NEEDLESS, NULL, NOTE_MODELS),
    ROW("static-aliases", ONE, MISSING, NULL,
        "models have the names that engines give them (vLLM: --served-model-name)"),
    ROW("static-model-types", ONE, NEEDLESS, NULL, NOTE_MODELS),
    ROW("static-model-labels", ONE, MISSING, NULL, NOTE_PD),
    ROW("static-backend-health-checks", SWITCH, NEEDLESS, NULL,
        "health is always checked, and a replica that stands still is noticed"),
    ROW("k8s-port", ONE, KUBERNETES_PORT, NULL, NULL),
    ROW("k8s-namespace", ONE, KUBERNETES_NAMESPACE, NULL, NULL),
    ROW("k8s-label-selector", ONE, KUBERNETES_SELECTOR, NULL, NULL),
    ROW("k8s-watcher-timeout-seconds", ONE, NEEDLESS, NULL, "a watch that ends is begun again"),
    ROW("backend-health-check-timeout-seconds", ONE, SECONDS, "health-timeout", NULL),
    ROW("routing-logic", ONE, POLICY, "policy", NULL),
    ROW("session-key", ONE, TEXT, "session-header", NULL),
    ROW("lmcache-controller-port", ONE, NEEDLESS, NULL, NOTE_LMCACHE),
    ROW("lmcache-health-check-interval", ONE, NEEDLESS, NULL, NOTE_LMCACHE),
    ROW("lmcache-worker-timeout", ONE, NEEDLESS, NULL, NOTE_LMCACHE),
    ROW("kv-aware-threshold", ONE, NEEDLESS, NULL, NOTE_COST),
    ROW("callbacks", ONE, MISSING, NULL, "the router runs no code of others"),
    ROW("request-rewriter", ONE, MISSING, NULL, "requests are sent on as they are"),
    ROW("enable-batch-api", SWITCH, MISSING, NULL, NOTE_FILES),
    ROW("file-storage-class", ONE, MISSING, NULL, NOTE_FILES),
    ROW("file-storage-path", ONE, MISSING, NULL, NOTE_FILES),
    ROW("batch-processor", ONE, MISSING, NULL, NOTE_FILES),
    ROW("engine-stats-interval", ONE, SECONDS, "scrape-interval", NULL),
    ROW("request-stats-window", ONE, NEEDLESS, NULL,
        "/metrics has counters: Prometheus has windows"),
    ROW("log-stats", SWITCH, NEEDLESS, NULL, "/metrics has them; gvctl top shows them"),
    ROW("log-stats-interval", ONE, NEEDLESS, NULL, "/metrics has them; gvctl top shows them"),
    ROW("dynamic-config-yaml", ONE, BY_HAND, "config", NOTE_DYNAMIC),
    ROW("dynamic-config-json", ONE, BY_HAND, "config", NOTE_DYNAMIC),
    ROW("feature-gates", ONE, MISSING, NULL, "there are none"),
    ROW("semantic-cache-model", ONE, MISSING, NULL, NOTE_CACHE),
    ROW("semantic-cache-dir", ONE, MISSING, NULL, NOTE_CACHE),
    ROW("semantic-cache-threshold", ONE, MISSING, NULL, NOTE_CACHE),
    ROW("log-level", ONE, LEVEL, "log-level", NULL),
    ROW("log-format", ONE, TEXT, "log-format", NULL),
    ROW("sentry-dsn", ONE, MISSING, NULL, NOTE_SENTRY),
    ROW("sentry-traces-sample-rate", ONE, MISSING, NULL, NOTE_SENTRY),
    ROW("sentry-profile-session-sample-rate", ONE, MISSING, NULL, NOTE_SENTRY),
    ROW("otel-endpoint", ONE, MISSING, NULL, NOTE_TRACE),
    ROW("otel-service-name", ONE, MISSING, NULL, NOTE_TRACE),
    ROW("otel-secure", SWITCH, MISSING, NULL, NOTE_TRACE),
    ROW("prefill-model-labels", ONE, MISSING, NULL, NOTE_PD),
    ROW("decode-model-labels", ONE, MISSING, NULL, NOTE_PD),
};

static const struct convert_policy policies[] = {
    {"roundrobin", "round_robin", NULL},
    {"session", "session", NULL},
    {"prefixaware", "cache_aware", NULL},
    {"kvaware", "cache_aware", "caches are followed by the traffic, without LMCache"},
    {"disaggregated_prefill", NULL, NOTE_PD},
    {"priority", NULL, "no priority of requests: all wait in one line"},
    {NULL, NULL, NULL}};

const struct convert_router convert_production_stack = {
    .name = "production-stack",
    .title = "vLLM production-stack router",
    .source = "vllm-project/production-stack (parser of vllm_router)",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .policies = policies,
    .host = "0.0.0.0",
    .port = "8001",
    .special = special,
};
