/* vLLM Router: the binary, and the launcher in Python. */
#include "base/check.h"
#include "node/gvctl/convert/fork_internal.h"

static const struct convert_row rows[] = {
    FORK_ROWS,
    ROW("vllm-pd-disaggregation", SWITCH, MISSING, NULL, NOTE_PD),
    ROW("vllm-discovery-address", ONE, MISSING, NULL, NOTE_PD),
    ROW("kv-connector", ONE, MISSING, NULL, NOTE_PD),
    ROW("mini-lb", SWITCH, MISSING, NULL, NOTE_PD),
    ROW("intra-node-data-parallel-size", ONE, NEEDLESS, NULL, NOTE_DP),
    ROW("backend", ONE, NEEDLESS, NULL, NOTE_BACKEND),
    ROW("runtime", ONE, NEEDLESS, NULL, NOTE_BACKEND),
    ROW("history-backend", ONE, MISSING, NULL, NOTE_HISTORY),
    ROW("profile", SWITCH, MISSING, NULL, "engines are profiled by calls to them"),
    ROW("enable-program-scheduling", SWITCH, MISSING, NULL, "requests are not grouped to programs"),
    ROW("program-scheduling-config-json", ONE, MISSING, NULL,
        "requests are not grouped to programs"),
    ROW("otel-sampling-ratio", ONE, MISSING, NULL, NOTE_TRACE),
    ROW("otel-excluded-paths", MANY, MISSING, NULL, NOTE_TRACE),
    ROW("api-key-validation-urls", MANY, MISSING, NULL,
        "no service is asked for keys; client-keys-file has a list of them"),
    ROW("wasm-middleware", ONE, MISSING, NULL, "the router runs no code of others"),
    ROW("wasm-middleware-sha256", ONE, MISSING, NULL, "the router runs no code of others"),
    ROW("wasm-middleware-route", ONE, MISSING, NULL, "the router runs no code of others"),
};

static const struct convert_policy policies[] = {
    FORK_POLICIES,
    {"consistent_hash", "session", "session-header names the header"},
    {"rendezvous_hash", "session", "session-header names the header"},
    {"sticky_least_loaded", "session", "session-header names the header"},
    {"sticky_round_robin", "session", "session-header names the header"},
    {NULL, NULL, NULL}};

const struct convert_router convert_vllm = {
    .name = "vllm-router",
    .title = "vLLM Router",
    .source = "vllm-project/router (cli_reference, router_args)",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .policies = policies,
    .host = "127.0.0.1",
    .port = "30000",
    .body_bytes = "512MiB",
};
