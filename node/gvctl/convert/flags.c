/* The flags of vLLM Router, of the SGLang router and SMG, and of production-stack. */
#include <stddef.h>

#include "node/gvctl/convert/table_internal.h"

#define NOTE_TRACE   "no spans are sent"
#define NOTE_COST    "what is cached, what waits and what would be pushed out are weighed in seconds"
#define NOTE_BACKEND "what an engine is, is found out"
#define NOTE_DP      "data-parallel ranks are found by themselves"
#define NOTE_HEADER  "session-header names the header"
#define NOTE_HISTORY                                                                               \
    "responses are stored by the engine that made them; the router sends what follows there"
#define NOTE_NAMES   "models have the names that engines give them (vLLM: --served-model-name)"
#define NOTE_DYNAMIC "convert that file, too, and name it with config"
#define NOTE_POLICY  "no such policy is known here: cache_aware is used"

/* What came of the SGLang router has these in common. */
static const struct convert_row fork[] = {
    ROW("host=", HOST, "listen", NULL),
    ROW("port=", PORT, "listen", NULL),
    ROW("worker-urls=...", URLS, "replica", NULL),
    ROW("policy cache_aware", FIXED, "policy: cache_aware", NULL),
    ROW("policy round_robin", FIXED, "policy: round_robin", NULL),
    ROW("policy random", FIXED, "policy: random", NULL),
    ROW("policy power_of_two", FIXED, "policy: power_of_two", NULL),
    ROW("policy=", MISSING, "policy", NOTE_POLICY),
    MISSING("prefill-policy=, decode-policy=, prefill=..., decode=, prefill-selector=..., "
            "decode-selector=..., mini-lb",
            NOTE_PD),
    NEEDLESS("worker-startup-timeout-secs=", "an engine waits for its health check"),
    NEEDLESS("worker-startup-check-interval=", "health-interval holds from the start on"),
    NEEDLESS("cache-threshold=, balance-abs-threshold=, balance-rel-threshold=", NOTE_COST),
    NEEDLESS("max-tree-size=", "index-bytes bounds the index, in bytes of memory"),
    ROW("max-payload-size=", NUMBER, "body-bytes-max", NULL),
    NEEDLESS("enable-igw", "models are routed by what each engine lists"),
    ROW("api-key=", BY_HAND, "replica-api-key-file",
        "write the key, one line, into a file and name it: replica-api-key-file: FILE"),
    NEEDLESS("log-dir=", "the log goes to standard error: systemd or the container keeps it"),
    LEVELS("log-level"),
    ROW("service-discovery", KUBERNETES, "replica-kubernetes", NULL),
    ROW("selector=...", SELECTOR, "replica-kubernetes", NULL),
    ROW("service-discovery-port=", KUBERNETES_PORT, "replica-kubernetes", NULL),
    ROW("service-discovery-namespace=", NAMESPACE, "replica-kubernetes", NULL),
    ROW("prometheus-port=", ADMIN_PORT, "admin-listen", NULL),
    ROW("prometheus-host=", ADMIN_HOST, "admin-listen", NULL),
    MISSING("request-id-headers=...", "x-request-id is read and answered, no other header"),
    ROW("request-timeout-secs=", SECONDS, "request-timeout", NULL),
    ROW("max-concurrent-requests=", NUMBER, "requests-max", "requests in flight: more wait"),
    ROW("cors-allowed-origins=...", BY_HAND, "cors-allow-origin",
        "`*` is the default; name the origins, separated by commas. It is said in the router's "
        "own answers; engines say it in theirs (vLLM: --allowed-origins)"),
    ROW("retry-max-retries=", NUMBER, "retries-max", NULL),
    NEEDLESS("retry-initial-backoff-ms=, retry-max-backoff-ms=, retry-backoff-multiplier=, "
             "retry-jitter-factor=",
             "another replica is tried at once, within retry-budget"),
    ROW("disable-retries", FIXED, "retries-max: 0", NULL),
    NEEDLESS("cb-failure-threshold=, cb-success-threshold=, cb-timeout-duration-secs=, "
             "cb-window-duration-secs=",
             "a failing replica is ejected, with a back-off, at all routers"),
    MISSING("disable-circuit-breaker", "that a failing replica is avoided cannot be turned off"),
    ROW("health-failure-threshold=", NUMBER, "health-failures", NULL),
    NEEDLESS("health-success-threshold=", "one good check brings a replica back"),
    ROW("health-check-timeout-secs=", SECONDS, "health-timeout", NULL),
    ROW("health-check-interval-secs=", SECONDS, "health-interval", NULL),
    ROW("health-check-endpoint=", TEXT, "health-path", NULL),
    ROW("queue-size=", NUMBER, "queue-max", NULL),
    ROW("queue-timeout-secs=", SECONDS, "queue-timeout", NULL),
    MISSING("rate-limit-tokens-per-second=", "requests-max limits how many there are, not a rate"),
    NEEDLESS("eviction-interval-secs=, eviction-interval=",
             "prefixes go by what each engine's cache holds"),
    MISSING("enable-trace, otlp-traces-endpoint=", NOTE_TRACE),
    NEEDLESS("backend=, runtime=", NOTE_BACKEND),
    MISSING("history-backend=", NOTE_HISTORY),
    {0},
};

/* The binary, and the launcher in Python. */
static const struct convert_row vllm[] = {
    MISSING("vllm-pd-disaggregation, vllm-discovery-address=, kv-connector=", NOTE_PD),
    NEEDLESS("intra-node-data-parallel-size=", NOTE_DP),
    MISSING("profile", "engines are profiled by calls to them"),
    MISSING("enable-program-scheduling, program-scheduling-config-json=",
            "requests are not grouped to programs"),
    MISSING("otel-sampling-ratio=, otel-excluded-paths=...", NOTE_TRACE),
    MISSING("api-key-validation-urls=...", "client-keys-file lists the keys"),
    MISSING("wasm-middleware=, wasm-middleware-sha256=, wasm-middleware-route=", NOTE_CODE),
    ROW("policy consistent_hash, policy rendezvous_hash, policy sticky_least_loaded, "
        "policy sticky_round_robin",
        FIXED, "policy: session", NOTE_HEADER),
    {0},
};

const struct convert_router convert_vllm = {
    .name = "vllm-router",
    .title = "vLLM Router",
    .source = "vllm-project/router (cli_reference, router_args)",
    .programs = "vllm_router.launch_router",
    .tables = {fork, vllm},
    .host = "127.0.0.1",
    .port = "30000",
    .body_bytes = "512MiB",
};

#define NOTE_TOKENIZER "prompts are compared without a tokenizer"
#define NOTE_CONTROL                                                                               \
    "changes need the token in admin-token-file; there are no roles beyond reading and changing"
#define NOTE_STICKY "a session's replica follows from its key alone"

/* SGLang router, and SMG that came of it: sgl-model-gateway in between. Their flags are one table:
 * they have most in common, and releases of both differ more than they do. Both launchers, that in
 * Python and that in Rust. */
static const struct convert_row gateway[] = {
    MISSING("pd-disaggregation, bucket-adjust-interval-secs=, e-disaggregation, "
            "epd-disaggregation, encode=..., encode-policy=, encode-selector=..., "
            "bootstrap-port-annotation=, policy bucket",
            NOTE_PD),
    NEEDLESS("dp-aware", NOTE_DP),
    NEEDLESS("model-path=, tokenizer-path=, chat-template=, tokenizer-cache-enable-l0, "
             "tokenizer-cache-l0-max-entries=, tokenizer-cache-enable-l1, "
             "tokenizer-cache-l1-max-memory=, model=",
             NOTE_TOKENIZER),
    NEEDLESS("reasoning-parser=, tool-call-parser=", "engines parse what they generate"),
    MISSING("mcp-config-path=", "the router calls no tools"),
    MISSING("oracle-wallet-path=, oracle-tns-alias=, oracle-connect-descriptor=, "
            "oracle-username=, oracle-password=, oracle-pool-min=, oracle-pool-max=, "
            "oracle-pool-timeout-secs=, oracle-external-auth, oracle-dsn=, oracle-user=, "
            "postgres-db-url=, postgres-pool-max=, postgres-pool-max-size=, redis-url=, "
            "redis-pool-max=, redis-pool-max-size=, redis-retention-days=",
            NOTE_HISTORY),
    ROW("client-cert-path=", TEXT, "replica-cert", NULL),
    ROW("client-key-path=", TEXT, "replica-key", NULL),
    ROW("ca-cert-paths=...", TEXT, "replica-ca-file", "one file: put several CAs into it"),
    ROW("load-monitor-interval=", SECONDS, "scrape-interval", NULL),
    NEEDLESS("max-idle-secs=, assignment-mode=, redis-key-prefix=", NOTE_STICKY),
    ROW("log-json", FIXED, "log-format: json", NULL),
    NEEDLESS("prometheus-duration-buckets=...", "buckets are fixed"),
    ROW("shutdown-grace-period-secs=", SECONDS, "drain-timeout", NULL),
    MISSING("disable-health-check", "health is always checked"),
    MISSING("served-model-name=", NOTE_NAMES),
    MISSING("storage-hook-wasm-path=", NOTE_CODE),
    ROW("tls-cert-path=", TEXT, "tls-cert", NULL),
    ROW("tls-key-path=", TEXT, "tls-key", NULL),
    ROW("control-plane-api-keys=...", BY_HAND, "admin-token-file", NOTE_CONTROL),
    NEEDLESS("control-plane-audit-enabled", "the log has each change"),
    MISSING("disable-audit-logging", "the log has each change"),
    MISSING("jwt-issuer=, jwt-audience=, jwt-jwks-uri=, jwt-role-mapping=..., jwt-role-claim=",
            NOTE_CONTROL),
    ROW("enable-mesh", MESH, "cluster-key-file",
        "make a key with gvctl keygen --out FILE, copy it to all routers, and set "
        "cluster-key-file: FILE at each"),
    ROW("mesh-server-name=", MESH_NAME, "node-name", NULL),
    ROW("mesh-host=", MESH_HOST, "gossip-listen", NULL),
    ROW("mesh-port=", MESH_PORT, "gossip-listen", "of UDP and TCP: theirs is of TCP alone"),
    ROW("mesh-advertise-host=", MESH_ADVERTISE, "gossip-advertise", NULL),
    ROW("mesh-peer-urls=...", MESH_PEERS, "join", "all of them are tried: theirs only the first"),
    ROW("router-selector=...", MESH_PODS, "join",
        "make a headless Service of the routers (clusterIP: None) and set join: NAME:PORT, with "
        "the port of gossip-listen"),
    NEEDLESS("router-mesh-port-annotation=", "join names the port"),
    ROW("policy least_load", FIXED, "policy: least_tokens", NULL),
    MISSING("policy passthrough", "there is no policy that always takes the first replica"),
    ROW("policy manual", FIXED, "policy: session",
        "session-header names the header; theirs is x-smg-routing-key"),
    ROW("policy consistent_hashing", FIXED, "policy: session", NOTE_HEADER),
    ROW("policy prefix_hash", FIXED, "policy: prefix_hash", NULL),
    {0},
};

const struct convert_router convert_sglang = {
    .name = "sglang-router",
    .title = "SGLang router",
    .source = "sgl-project/sglang (router_args of sgl-router)",
    .programs = "sglang_router.launch_router sglang_router.launch_server sglang-router sgl-router "
                "sglang_router",
    .tables = {fork, gateway},
    .host = "0.0.0.0",
    .port = "30000",
    .body_bytes = "512MiB",
};

const struct convert_router convert_smg = {
    .name = "smg",
    .title = "SMG (Shepherd Model Gateway, SGLang Model Gateway)",
    .source = "lightseekorg/smg (router_args)",
    .programs = "sgl-model-gateway smg.launch_router smg amg",
    .tables = {fork, gateway},
    .host = "0.0.0.0",
    .port = "30000",
    .body_bytes = "512MiB",
};

static const struct convert_row stack[] = {
    ROW("host=", HOST, "listen", NULL),
    ROW("port=", PORT, "listen", NULL),
    ROW("service-discovery k8s", KUBERNETES, "replica-kubernetes", NULL),
    NEEDLESS("service-discovery static", "static-backends lists them"),
    ROW("service-discovery=", MISSING, "replica-kubernetes", "k8s and static are known here"),
    NEEDLESS("k8s-service-discovery-type=", "pods are used, not their services"),
    ROW("static-backends=", URLS, "replica", NULL),
    NEEDLESS("static-models=, static-model-types=", "which models an engine serves is asked of it"),
    MISSING("static-aliases=", NOTE_NAMES),
    MISSING("static-model-labels=, prefill-model-labels=, decode-model-labels=, "
            "routing-logic disaggregated_prefill",
            NOTE_PD),
    NEEDLESS("static-backend-health-checks", "health is always checked"),
    ROW("k8s-port=", KUBERNETES_PORT, "replica-kubernetes", NULL),
    ROW("k8s-namespace=", NAMESPACE, "replica-kubernetes", NULL),
    ROW("k8s-label-selector=", SELECTOR, "replica-kubernetes", NULL),
    NEEDLESS("k8s-watcher-timeout-seconds=", "a watch that ends is begun again"),
    ROW("backend-health-check-timeout-seconds=", SECONDS, "health-timeout", NULL),
    ROW("routing-logic roundrobin", FIXED, "policy: round_robin", NULL),
    ROW("routing-logic session", FIXED, "policy: session", NULL),
    ROW("routing-logic prefixaware", FIXED, "policy: cache_aware", NULL),
    ROW("routing-logic kvaware", FIXED, "policy: cache_aware",
        "caches are followed by the traffic, without LMCache"),
    MISSING("routing-logic priority", "no priority of requests: all wait in one line"),
    ROW("routing-logic=", MISSING, "policy", NOTE_POLICY),
    ROW("session-key=", TEXT, "session-header", NULL),
    NEEDLESS("lmcache-controller-port=, lmcache-health-check-interval=, lmcache-worker-timeout=",
             "caches are followed by the traffic, without LMCache"),
    NEEDLESS("kv-aware-threshold=", NOTE_COST),
    MISSING("callbacks=", NOTE_CODE),
    MISSING("request-rewriter=", "requests are sent on as they are"),
    MISSING("enable-batch-api, file-storage-class=, file-storage-path=, batch-processor=",
            "the batch and files APIs go to engines that have them"),
    ROW("engine-stats-interval=", SECONDS, "scrape-interval", NULL),
    NEEDLESS("request-stats-window=", "/metrics has counters: Prometheus has windows"),
    NEEDLESS("log-stats, log-stats-interval=", "/metrics has them; gvctl top shows them"),
    ROW("dynamic-config-yaml=, dynamic-config-json=", BY_HAND, "config", NOTE_DYNAMIC),
    MISSING("feature-gates=", "there are none"),
    MISSING("semantic-cache-model=, semantic-cache-dir=, semantic-cache-threshold=",
            "answers are not cached"),
    LEVELS("log-level"),
    ROW("log-format=", TEXT, "log-format", NULL),
    MISSING("sentry-dsn=, sentry-traces-sample-rate=, sentry-profile-session-sample-rate=",
            "errors are in the log and in /metrics"),
    MISSING("otel-endpoint=, otel-service-name=, otel-secure", NOTE_TRACE),
    {0},
};

const struct convert_router convert_production_stack = {
    .name = "production-stack",
    .title = "vLLM production-stack router",
    .source = "vllm-project/production-stack (parser of vllm_router)",
    .programs = "vllm_router.app",
    .tables = {stack},
    .host = "0.0.0.0",
    .port = "8001",
};
