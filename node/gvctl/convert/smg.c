/* SMG, Shepherd Model Gateway; sgl-model-gateway before. */
#include "base/check.h"
#include "node/gvctl/convert/fork_internal.h"

#define NOTE_CONTROL                                                                               \
    "changes need the token in admin-token-file; there are no roles beyond reading and changing"

static const struct convert_row rows[] = {
    FORK_ROWS,
    FORK_GATEWAY_ROWS,
    ROW("load-monitor-interval", ONE, SECONDS, "scrape-interval", NULL),
    ROW("max-idle-secs", ONE, NEEDLESS, NULL, "a session's replica follows from its key alone"),
    ROW("assignment-mode", ONE, NEEDLESS, NULL, "a session's replica follows from its key alone"),
    {"log-json", CONVERT_SWITCH, CONVERT_FIXED, "log-format", NULL, "json"},
    ROW("prometheus-duration-buckets", MANY, NEEDLESS, NULL,
        "histograms have fixed buckets, from 1 ms to 1000 s"),
    ROW("shutdown-grace-period-secs", ONE, SECONDS, "drain-timeout", NULL),
    ROW("disable-health-check", SWITCH, MISSING, NULL, "health is always checked"),
    ROW("served-model-name", ONE, MISSING, NULL,
        "models have the names that engines give them (vLLM: --served-model-name)"),
    ROW("storage-hook-wasm-path", ONE, MISSING, NULL, "the router runs no code of others"),
    ROW("oracle-external-auth", SWITCH, MISSING, NULL, NOTE_HISTORY),
    ROW("postgres-db-url", ONE, MISSING, NULL, NOTE_HISTORY),
    ROW("postgres-pool-max", ONE, MISSING, NULL, NOTE_HISTORY),
    ROW("redis-url", ONE, MISSING, NULL, NOTE_HISTORY),
    ROW("redis-pool-max", ONE, MISSING, NULL, NOTE_HISTORY),
    ROW("redis-retention-days", ONE, MISSING, NULL, NOTE_HISTORY),
    ROW("tls-cert-path", ONE, TEXT, "tls-cert", NULL),
    ROW("tls-key-path", ONE, TEXT, "tls-key", NULL),
    ROW("control-plane-api-keys", MANY, BY_HAND, "admin-token-file", NOTE_CONTROL),
    ROW("control-plane-audit-enabled", SWITCH, NEEDLESS, NULL, "the log has each change"),
    ROW("jwt-issuer", ONE, MISSING, NULL, NOTE_CONTROL),
    ROW("jwt-audience", ONE, MISSING, NULL, NOTE_CONTROL),
    ROW("jwt-jwks-uri", ONE, MISSING, NULL, NOTE_CONTROL),
    ROW("jwt-role-mapping", MANY, MISSING, NULL, NOTE_CONTROL),
};

static const struct convert_policy policies[] = {
    FORK_POLICIES, FORK_GATEWAY_POLICIES, {NULL, NULL, NULL}};

const struct convert_router convert_smg = {
    .name = "smg",
    .title = "SMG (Shepherd Model Gateway, SGLang Model Gateway)",
    .source = "lightseekorg/smg (router_args)",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .policies = policies,
    .host = "0.0.0.0",
    .port = "30000",
    .body_bytes = "512MiB",
};
