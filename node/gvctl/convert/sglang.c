/* SGLang router: python -m sglang_router.launch_router, launch_server with --router-*. */
#include "base/check.h"
#include "node/gvctl/convert/fork_internal.h"

static const struct convert_row rows[] = {
    FORK_ROWS,
    FORK_GATEWAY_ROWS,
    ROW("mini-lb", SWITCH, MISSING, NULL, NOTE_PD),
    ROW("e-disaggregation", SWITCH, MISSING, NULL, NOTE_PD),
    ROW("encode", ONE, MISSING, NULL, NOTE_PD),
};

static const struct convert_policy policies[] = {
    FORK_POLICIES, FORK_GATEWAY_POLICIES, {NULL, NULL, NULL}};

const struct convert_router convert_sglang = {
    .name = "sglang-router",
    .title = "SGLang router",
    .source = "sgl-project/sglang (router_args of sgl-router)",
    .rows = rows,
    .row_count = ARRAY_LEN(rows),
    .policies = policies,
    .host = "0.0.0.0",
    .port = "30000",
    .body_bytes = "512MiB",
};
