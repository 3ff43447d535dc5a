/* Flags that routers have in common which come from the SGLang router: vLLM Router, SGLang router,
 * SMG. */
#ifndef NODE_GVCTL_CONVERT_FORK_INTERNAL_H
#define NODE_GVCTL_CONVERT_FORK_INTERNAL_H

#include "node/gvctl/convert/convert_internal.h"

#define ROW(flag, arity, as, setting, note)                                                        \
    {                                                                                              \
        flag, CONVERT_##arity, CONVERT_##as, setting, note, NULL                                   \
    }

#define NOTE_PD                                                                                    \
    "prefill and decode on engines of their own are not supported: each engine does both"
#define NOTE_COST    "what is cached, what waits and what would be pushed out are weighed in seconds"
#define NOTE_BACKOFF "another replica is tried at once, within retry-budget"
#define NOTE_BREAKER                                                                               \
    "a replica whose answers fail is avoided by itself, with a back-off, and so at all routers"
#define NOTE_TOKENIZER "prompts are compared without a tokenizer"
#define NOTE_PARSER    "engines parse what they generate"
#define NOTE_HISTORY                                                                               \
    "responses are stored by the engine that made them; the router sends what follows there"
#define NOTE_TRACE    "no spans are sent"
#define NOTE_EVICTION "prefixes go by what each engine's cache holds, and after ttl"
#define NOTE_BACKEND  "what an engine is, is found out"
#define NOTE_DP       "data-parallel ranks are found by themselves"

#define FORK_ROWS                                                                                  \
    ROW("host", ONE, HOST, NULL, NULL), ROW("port", ONE, PORT, NULL, NULL),                        \
        ROW("worker-urls", MANY, URLS, "replica", NULL),                                           \
        ROW("policy", ONE, POLICY, "policy", NULL),                                                \
        ROW("prefill-policy", ONE, MISSING, NULL, NOTE_PD),                                        \
        ROW("decode-policy", ONE, MISSING, NULL, NOTE_PD),                                         \
        ROW("prefill", MANY, MISSING, NULL, NOTE_PD), ROW("decode", ONE, MISSING, NULL, NOTE_PD),  \
        ROW("worker-startup-timeout-secs", ONE, NEEDLESS, NULL,                                    \
            "an engine gets requests when its health check succeeds, however long that takes"),    \
        ROW("worker-startup-check-interval", ONE, NEEDLESS, NULL,                                  \
            "health-interval holds from the start on"),                                            \
        ROW("cache-threshold", ONE, NEEDLESS, NULL, NOTE_COST),                                    \
        ROW("balance-abs-threshold", ONE, NEEDLESS, NULL, NOTE_COST),                              \
        ROW("balance-rel-threshold", ONE, NEEDLESS, NULL, NOTE_COST),                              \
        ROW("max-tree-size", ONE, NEEDLESS, NULL,                                                  \
            "index-bytes bounds the index, in bytes of memory"),                                   \
        ROW("max-payload-size", ONE, NUMBER, "body-bytes-max", NULL),                              \
        ROW("enable-igw", SWITCH, NEEDLESS, NULL, "models are routed by what each engine lists"),  \
        ROW("api-key", ONE, BY_HAND, "replica-api-key-file",                                       \
            "write the key, one line, into a file and name it: replica-api-key-file: FILE"),       \
        ROW("log-dir", ONE, NEEDLESS, NULL,                                                        \
            "the log goes to standard error: systemd or the container "                            \
            "keeps it"),                                                                           \
        ROW("log-level", ONE, LEVEL, "log-level", NULL),                                           \
        ROW("service-discovery", SWITCH, KUBERNETES, NULL, NULL),                                  \
        ROW("selector", MANY, KUBERNETES_SELECTOR, NULL, NULL),                                    \
        ROW("service-discovery-port", ONE, KUBERNETES_PORT, NULL, NULL),                           \
        ROW("service-discovery-namespace", ONE, KUBERNETES_NAMESPACE, NULL, NULL),                 \
        ROW("prefill-selector", MANY, MISSING, NULL, NOTE_PD),                                     \
        ROW("decode-selector", MANY, MISSING, NULL, NOTE_PD),                                      \
        ROW("prometheus-port", ONE, ADMIN_PORT, NULL, NULL),                                       \
        ROW("prometheus-host", ONE, ADMIN_HOST, NULL, NULL),                                       \
        ROW("request-id-headers", MANY, MISSING, NULL,                                             \
            "x-request-id is read and answered, no other header"),                                 \
        ROW("request-timeout-secs", ONE, SECONDS, "request-timeout", NULL),                        \
        ROW("max-concurrent-requests", ONE, NUMBER, "requests-max",                                \
            "a true limit of requests in flight: more wait"),                                      \
        ROW("cors-allowed-origins", MANY, BY_HAND, "cors-allow-origin",                            \
            "`*` is the default; name the origins, separated by commas. It is said in the "        \
            "router's own answers; engines say it in theirs (vLLM: --allowed-origins)"),           \
        ROW("retry-max-retries", ONE, NUMBER, "retries-max", NULL),                                \
        ROW("retry-initial-backoff-ms", ONE, NEEDLESS, NULL, NOTE_BACKOFF),                        \
        ROW("retry-max-backoff-ms", ONE, NEEDLESS, NULL, NOTE_BACKOFF),                            \
        ROW("retry-backoff-multiplier", ONE, NEEDLESS, NULL, NOTE_BACKOFF),                        \
        ROW("retry-jitter-factor", ONE, NEEDLESS, NULL, NOTE_BACKOFF),                             \
        {"disable-retries", CONVERT_SWITCH, CONVERT_FIXED, "retries-max", NULL, "0"},              \
        ROW("cb-failure-threshold", ONE, NEEDLESS, NULL, NOTE_BREAKER),                            \
        ROW("cb-success-threshold", ONE, NEEDLESS, NULL, NOTE_BREAKER),                            \
        ROW("cb-timeout-duration-secs", ONE, NEEDLESS, NULL, NOTE_BREAKER),                        \
        ROW("cb-window-duration-secs", ONE, NEEDLESS, NULL, NOTE_BREAKER),                         \
        ROW("disable-circuit-breaker", SWITCH, MISSING, NULL,                                      \
            "that a failing replica is avoided cannot be turned off"),                             \
        ROW("health-failure-threshold", ONE, NUMBER, "health-failures", NULL),                     \
        ROW("health-success-threshold", ONE, NEEDLESS, NULL,                                       \
            "one good check brings a replica back"),                                               \
        ROW("health-check-timeout-secs", ONE, SECONDS, "health-timeout", NULL),                    \
        ROW("health-check-interval-secs", ONE, SECONDS, "health-interval", NULL),                  \
        ROW("health-check-endpoint", ONE, TEXT, "health-path", NULL),                              \
        ROW("queue-size", ONE, NUMBER, "queue-max", NULL),                                         \
        ROW("queue-timeout-secs", ONE, SECONDS, "queue-timeout", NULL),                            \
        ROW("rate-limit-tokens-per-second", ONE, MISSING, NULL,                                    \
            "no rate of requests is limited; requests-max and queue-max limit how many there "     \
            "are"),                                                                                \
        ROW("eviction-interval-secs", ONE, NEEDLESS, NULL, NOTE_EVICTION),                         \
        ROW("eviction-interval", ONE, NEEDLESS, NULL, NOTE_EVICTION),                              \
        ROW("enable-trace", SWITCH, MISSING, NULL, NOTE_TRACE),                                    \
        ROW("otlp-traces-endpoint", ONE, MISSING, NULL, NOTE_TRACE)

#define FORK_POLICIES                                                                              \
    {"cache_aware", "cache_aware", NULL}, {"round_robin", "round_robin", NULL},                    \
        {"random", "random", NULL},                                                                \
    {                                                                                              \
        "power_of_two", "power_of_two", NULL                                                       \
    }

#endif
