/* The flags of vLLM Router, of the SGLang router and SMG, and of production-stack. */
#include <stddef.h>

#include "node/gvctl/convert/convert_internal.h"

#define NOTE_TRACE   "set trace-endpoint: URL (OTLP over HTTP)"
#define NOTE_DP      "the router finds data-parallel ranks itself"
#define NOTE_HEADER  "session-header names the header"
#define NOTE_HISTORY "engines store responses"
#define NOTE_NAMES   "model-alias gives a model another name"
#define NOTE_DYNAMIC "convert that file too, and name the result with config"

/* Shared by the descendants of the SGLang router. */
#define OF_FORK                                                                                    \
    .marks = "worker-urls service-discovery", .time = "s", .port = "30000", .body_bytes = "512MiB"

static const struct convert_row fork[] = {
    SAME("host=", "listen.host"),
    SAME("port=", "listen.port"),
    SAME("worker-urls=...", "replica"),
    SAME("policy=", "policy"),
    MISSING("prefill-policy=, decode-policy=, prefill=..., decode=, prefill-selector=..., "
            "decode-selector=..., mini-lb",
            NOTE_PD),
    NEEDLESS("worker-startup-timeout-secs=", "a new engine waits for its first good health check"),
    NEEDLESS("worker-startup-check-interval=", "health-interval also applies at startup"),
    NEEDLESS("cache-threshold=, balance-abs-threshold=, balance-rel-threshold=", NOTE_COST),
    NEEDLESS("max-tree-size=", "index-bytes limits the index, in bytes of memory"),
    SAME("max-payload-size=", "body-bytes-max"),
    NEEDLESS("enable-igw", "the router routes by the models that each engine lists"),
    BY_HAND("api-key=", "replica-api-key-file",
            "write the key, one line, into a file and name it: replica-api-key-file: FILE"),
    NEEDLESS("log-dir=", "the log goes to standard error"),
    LEVELS("log-level"),
    SAME("service-discovery", "replica-kubernetes.on"),
    SAME("selector=...", "replica-kubernetes.selector"),
    SAME("service-discovery-port=", "replica-kubernetes.port"),
    SAME("service-discovery-namespace=", "replica-kubernetes.namespace"),
    SAME("prometheus-port=", "admin-listen.port"),
    SAME("prometheus-host=", "admin-listen.host"),
    MISSING("request-id-headers=...", "the router reads and returns x-request-id only"),
    SAME("request-timeout-secs=", "request-timeout"),
    NEARLY("max-concurrent-requests=", "requests-max", "more requests wait"),
    BY_HAND("cors-allowed-origins=...", "cors-allow-origin",
            "separate by commas; also applies to engines' answers"),
    SAME("retry-max-retries=", "retries-max"),
    NEEDLESS("retry-initial-backoff-ms=, retry-max-backoff-ms=, retry-backoff-multiplier=, "
             "retry-jitter-factor=",
             "the router retries within 200 ms, limited by retry-budget"),
    SAME("disable-retries", "retries-max: 0"),
    NEEDLESS("cb-failure-threshold=, cb-success-threshold=, cb-timeout-duration-secs=, "
             "cb-window-duration-secs=",
             "all routers avoid a failing replica, with a back-off"),
    MISSING("disable-circuit-breaker", "avoiding a failing replica cannot be turned off"),
    SAME("health-failure-threshold=", "health-failures"),
    NEEDLESS("health-success-threshold=", "one good health check brings a replica back"),
    SAME("health-check-timeout-secs=", "health-timeout"),
    SAME("health-check-interval-secs=", "health-interval"),
    SAME("health-check-endpoint=", "health-path"),
    SAME("queue-size=", "queue-max"),
    SAME("queue-timeout-secs=", "queue-timeout"),
    MISSING("rate-limit-tokens-per-second=", "requests-max limits concurrent requests, not a rate"),
    NEEDLESS("eviction-interval-secs=, eviction-interval=",
             "the prefix index follows each engine's cache"),
    BY_HAND("enable-trace, otlp-traces-endpoint=", "trace-endpoint", NOTE_TRACE),
    NEEDLESS("backend=, runtime=", "the router detects the kind of engine"),
    MISSING("history-backend=", NOTE_HISTORY),
    {0},
};

/* Flags of vLLM Router alone: of the binary and of the Python launcher. */
static const struct convert_row vllm[] = {
    MISSING("vllm-pd-disaggregation, vllm-discovery-address=, kv-connector=", NOTE_PD),
    NEEDLESS("intra-node-data-parallel-size=", NOTE_DP),
    MISSING("profile", "start profiling with calls to the engines"),
    MISSING("enable-program-scheduling, program-scheduling-config-json=",
            "requests are not grouped into programs"),
    BY_HAND("otel-sampling-ratio=", "trace-sample", "set trace-sample to that share"),
    MISSING("otel-excluded-paths=...", "traces have all paths but health checks"),
    MISSING("api-key-validation-urls=...", "client-keys-file lists the keys"),
    MISSING("wasm-middleware=, wasm-middleware-sha256=, wasm-middleware-route=", NOTE_CODE),
    NEARLY("policy consistent_hash, policy rendezvous_hash, policy sticky_least_loaded, "
           "policy sticky_round_robin",
           "policy: session", NOTE_HEADER),
    {0},
};

const struct convert_router convert_vllm = {
    .name = "vllm-router",
    .title = "vLLM Router",
    .source = "vllm-project/router (cli_reference, router_args)",
    .programs = "vllm-router vllm_router.launch_router",
    OF_FORK,
    .tables = {{CONVERT_FLAG, fork}, {CONVERT_FLAG, vllm}},
    .host = "127.0.0.1",
};

#define NOTE_CONTROL "admin-token-file permits changes; there are no other roles"
#define NOTE_STICKY  "the session key alone determines the replica"

/* SGLang router, later named sgl-model-gateway, and the descendant SMG. Their flags share a table:
 * most are common, and two releases of either program differ more than the programs. Covers the
 * Python and Rust launchers. */
static const struct convert_row gateway[] = {
    MISSING("pd-disaggregation, bucket-adjust-interval-secs=, e-disaggregation, "
            "epd-disaggregation, encode=..., encode-policy=, encode-selector=..., "
            "bootstrap-port-annotation=, policy bucket",
            NOTE_PD),
    NEEDLESS("dp-aware", NOTE_DP),
    NEEDLESS("model-path=, tokenizer-path=, chat-template=, tokenizer-cache-enable-l0, "
             "tokenizer-cache-l0-max-entries=, tokenizer-cache-enable-l1, "
             "tokenizer-cache-l1-max-memory=, model=",
             "the router compares prompts without a tokenizer"),
    NEEDLESS("reasoning-parser=, tool-call-parser=", "engines parse their own output"),
    MISSING("mcp-config-path=", "the router calls no tools"),
    MISSING("oracle-wallet-path=, oracle-tns-alias=, oracle-connect-descriptor=, "
            "oracle-username=, oracle-password=, oracle-pool-min=, oracle-pool-max=, "
            "oracle-pool-timeout-secs=, oracle-external-auth, oracle-dsn=, oracle-user=, "
            "postgres-db-url=, postgres-pool-max=, postgres-pool-max-size=, redis-url=, "
            "redis-pool-max=, redis-pool-max-size=, redis-retention-days=",
            NOTE_HISTORY),
    SAME("client-cert-path=", "replica-cert"),
    SAME("client-key-path=", "replica-key"),
    NEARLY("ca-cert-paths=...", "replica-ca-file", "put all CAs into one file"),
    SAME("load-monitor-interval=", "scrape-interval"),
    NEEDLESS("max-idle-secs=, assignment-mode=, redis-key-prefix=", NOTE_STICKY),
    SAME("log-json", "log-format: json"),
    NEEDLESS("prometheus-duration-buckets=...", "histogram buckets are fixed"),
    SAME("shutdown-grace-period-secs=", "drain-timeout"),
    MISSING("disable-health-check", "health is always checked"),
    BY_HAND("served-model-name=", "model-alias", NOTE_NAMES),
    MISSING("storage-hook-wasm-path=", NOTE_CODE),
    SAME("tls-cert-path=", "tls-cert"),
    SAME("tls-key-path=", "tls-key"),
    BY_HAND("control-plane-api-keys=...", "admin-token-file", NOTE_CONTROL),
    NEEDLESS("control-plane-audit-enabled", "the router logs each change"),
    MISSING("disable-audit-logging", "the router logs each change"),
    MISSING("jwt-issuer=, jwt-audience=, jwt-jwks-uri=, jwt-role-mapping=..., jwt-role-claim=",
            NOTE_CONTROL),
    BY_HAND("enable-mesh", "cluster-key-file.mesh",
            "make a key with gvctl keygen --out FILE, copy it to all routers, and set "
            "cluster-key-file: FILE at each"),
    NEEDLESS("mesh-*=...", "no effect without --enable-mesh"),
    NEEDLESS("router-mesh-port-annotation=", "join names the port"),
    SAME("policy least_load", "policy: least_tokens"),
    MISSING("policy passthrough", "no policy always takes the first replica"),
    NEARLY("policy manual", "policy: session",
           "session-header names the header (SMG's is x-smg-routing-key)"),
    NEARLY("policy consistent_hashing", "policy: session", NOTE_HEADER),
    {0},
};

/* Flags that count only with --enable-mesh. Without that flag, --router-selector is launch_server's
 * spelling of --selector. */
static const struct convert_row mesh[] = {
    SAME("mesh-server-name=", "node-name"),
    SAME("mesh-host=", "gossip-listen.host"),
    SAME("mesh-port=", "gossip-listen.port"),
    SAME("mesh-advertise-host=", "gossip-advertise.host"),
    NEARLY("mesh-peer-urls=...", "join", "the router tries all of them, not only the first"),
    BY_HAND("router-selector=...", "join",
            "create a headless Service for the routers, set join: NAME:PORT with the gossip port"),
    {0},
};

const struct convert_router convert_sglang = {
    .name = "sglang-router",
    .title = "SGLang router",
    .source = "sgl-project/sglang (router_args of sgl-router)",
    .programs = "sglang_router.launch_router sglang_router.launch_server sglang-router sgl-router "
                "sglang_router",
    OF_FORK,
    .tables = {{CONVERT_FLAG, fork}, {CONVERT_FLAG, gateway}, {CONVERT_MESH, mesh}},
    .host = "0.0.0.0",
};

const struct convert_router convert_smg = {
    .name = "smg",
    .title = "SMG (Shepherd Model Gateway, SGLang Model Gateway)",
    .source = "lightseekorg/smg (router_args)",
    .programs = "sgl-model-gateway smg.launch_router smg amg",
    OF_FORK,
    .tables = {{CONVERT_FLAG, fork}, {CONVERT_FLAG, gateway}, {CONVERT_MESH, mesh}},
    .host = "0.0.0.0",
};

static const struct convert_row stack[] = {
    SAME("host=", "listen.host"),
    SAME("port=", "listen.port"),
    SAME("service-discovery k8s", "replica-kubernetes.on"),
    NEEDLESS("service-discovery static", "static-backends lists the replicas"),
    OTHERWISE("service-discovery=", "replica-kubernetes", "only k8s and static can be converted"),
    NEEDLESS("k8s-service-discovery-type=", "the router uses pods, not services"),
    SAME("static-backends=", "replica"),
    NEEDLESS("static-models=, static-model-types=", "the router asks each engine for its models"),
    BY_HAND("static-aliases=", "model-alias", NOTE_NAMES),
    MISSING("static-model-labels=, prefill-model-labels=, decode-model-labels=, "
            "routing-logic disaggregated_prefill",
            NOTE_PD),
    NEEDLESS("static-backend-health-checks", "health is always checked"),
    SAME("k8s-port=", "replica-kubernetes.port"),
    SAME("k8s-namespace=", "replica-kubernetes.namespace"),
    SAME("k8s-label-selector=", "replica-kubernetes.selector"),
    NEEDLESS("k8s-watcher-timeout-seconds=", "the router restarts a watch that ends"),
    SAME("backend-health-check-timeout-seconds=", "health-timeout"),
    SAME("routing-logic roundrobin", "policy: round_robin"),
    SAME("routing-logic session", "policy: session"),
    SAME("routing-logic prefixaware", "policy: cache_aware"),
    NEARLY("routing-logic kvaware", "policy: cache_aware",
           "the router follows caches without LMCache"),
    MISSING("routing-logic priority", "no priorities: all requests wait in one queue"),
    OTHERWISE("routing-logic=", "policy", "unknown policy: cache_aware is used"),
    SAME("session-key=", "session-header"),
    NEEDLESS("lmcache-controller-port=, lmcache-health-check-interval=, lmcache-worker-timeout=",
             "the router follows caches without LMCache"),
    NEEDLESS("kv-aware-threshold=", NOTE_COST),
    MISSING("callbacks=", NOTE_CODE),
    MISSING("request-rewriter=", "the router does not rewrite requests"),
    MISSING("enable-batch-api, file-storage-class=, file-storage-path=, batch-processor=",
            "the router has no batch or files API of its own"),
    SAME("engine-stats-interval=", "scrape-interval"),
    NEEDLESS("request-stats-window=", "Prometheus computes windows from the counters in /metrics"),
    NEEDLESS("log-stats, log-stats-interval=", "see /metrics or gvctl top"),
    BY_HAND("dynamic-config-yaml=, dynamic-config-json=", "config", NOTE_DYNAMIC),
    MISSING("feature-gates=", "Grapevine has no feature gates"),
    MISSING("semantic-cache-model=, semantic-cache-dir=, semantic-cache-threshold=",
            "the router does not cache answers"),
    LEVELS("log-level"),
    SAME("log-format=", "log-format"),
    MISSING("sentry-dsn=, sentry-traces-sample-rate=, sentry-profile-session-sample-rate=",
            "errors are in the log and in /metrics"),
    BY_HAND("otel-endpoint=, otel-service-name=, otel-secure", "trace-endpoint", NOTE_TRACE),
    {0},
};

const struct convert_router convert_production_stack = {
    .name = "production-stack",
    .title = "vLLM production-stack router",
    .source = "vllm-project/production-stack (parser of vllm_router)",
    .programs = "vllm-router vllm_router.app",
    .marks = "static-backends k8s-port k8s-namespace k8s-label-selector routing-logic",
    .tables = {{CONVERT_FLAG, stack}},
    .time = "s",
    .host = "0.0.0.0",
    .port = "8001",
};
