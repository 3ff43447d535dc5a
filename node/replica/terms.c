#include "node/replica/terms.h"

#include "base/check.h"

const char *node_health_text(enum node_health health)
{
    static const char *const texts[NODE_HEALTHS] = {
        [NODE_HEALTH_UNKNOWN] = "unknown", [NODE_HEALTH_UP] = "up",
        [NODE_HEALTH_DOWN] = "down",       [NODE_HEALTH_DRAINING] = "draining",
        [NODE_HEALTH_ROUTER] = "router",
    };
    CHECK((unsigned)health < ARRAY_LEN(texts));
    return texts[health];
}

const char *node_engine_text(enum node_engine engine)
{
    static const char *const texts[] = {
        [NODE_ENGINE_AUTO] = "auto",
        [NODE_ENGINE_VLLM] = "vllm",
        [NODE_ENGINE_SGLANG] = "sglang",
        [NODE_ENGINE_OTHER] = "other",
    };
    CHECK((unsigned)engine < ARRAY_LEN(texts));
    return texts[engine];
}

const char *node_outcome_text(enum node_outcome outcome)
{
    static const char *const texts[] = {
        [NODE_OUTCOME_OK] = "ok",
        [NODE_OUTCOME_CLIENT_GONE] = "client_gone",
        [NODE_OUTCOME_ENGINE_BUSY] = "engine_busy",
        [NODE_OUTCOME_ENGINE_ERROR] = "engine_error",
        [NODE_OUTCOME_CONNECT_FAILED] = "connect_failed",
        [NODE_OUTCOME_BROKEN] = "broken",
        [NODE_OUTCOME_IN_DOUBT] = "in_doubt",
        [NODE_OUTCOME_SLOW] = "slow",
        [NODE_OUTCOME_STALLED] = "stalled",
        [NODE_OUTCOME_NOT_SENT] = "not_sent",
        [NODE_OUTCOME_REJECTED] = "rejected",
    };
    CHECK((unsigned)outcome < ARRAY_LEN(texts));
    return texts[outcome];
}

const char *node_error_text(enum node_error error)
{
    static const char *const texts[NODE_ERRORS] = {
        [NODE_ERROR_CONNECT] = "connect",   [NODE_ERROR_TIMEOUT] = "timeout",
        [NODE_ERROR_BROKEN] = "broken",     [NODE_ERROR_MALFORMED] = "malformed",
        [NODE_ERROR_STATUS] = "status_5xx", [NODE_ERROR_EVENT] = "error_event",
        [NODE_ERROR_ABORTED] = "aborted",   [NODE_ERROR_NO_TERMINAL] = "no_terminal",
    };
    CHECK((unsigned)error < ARRAY_LEN(texts));
    return texts[error];
}
