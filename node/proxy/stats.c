#include "node/proxy/stats.h"

const char *proxy_refusal_name(enum proxy_refusal refusal)
{
    static const char *const names[PROXY_REFUSALS] = {
        [PROXY_REFUSED_MALFORMED] = "malformed",
        [PROXY_REFUSED_BODY_LIMIT] = "body_limit",
        [PROXY_REFUSED_CODING] = "coding",
        [PROXY_REFUSED_PATH] = "path",
        [PROXY_REFUSED_UPGRADE] = "upgrade",
        [PROXY_REFUSED_ORIGIN] = "origin",
        [PROXY_REFUSED_ENGINE_FIELD] = "engine_field",
        [PROXY_REFUSED_MODEL] = "model",
        [PROXY_REFUSED_API_KEY] = "api_key",
        [PROXY_REFUSED_CLIENT_KEY] = "client_key",
        [PROXY_REFUSED_KEY_MODEL] = "key_model",
        [PROXY_REFUSED_KEY_LIMIT] = "key_limit",
        [PROXY_REFUSED_KEY_RESPONSE] = "key_response",
        [PROXY_REFUSED_CONTROL] = "control",
        [PROXY_REFUSED_NO_REPLICA] = "no_replica",
        [PROXY_REFUSED_MEMORY] = "memory",
        [PROXY_REFUSED_TIMEOUT] = "timeout",
        [PROXY_REFUSED_BAD_GATEWAY] = "bad_gateway",
        [PROXY_REFUSED_RETRY_BUDGET] = "retry_budget",
        [PROXY_REFUSED_BY_ENGINE] = "engine",
        [PROXY_REFUSED_POISON] = "poison",
        [PROXY_REFUSED_SUSPECT] = "suspect",
        [PROXY_REFUSED_LOOP] = "loop",
        [PROXY_REFUSED_INTERNAL] = "internal",
        [PROXY_REFUSED_CONNECTIONS] = "connections",
        [PROXY_REFUSED_CLIENT_CONNECTIONS] = "client_connections",
        [PROXY_REFUSED_SLOW_UPLOAD] = "slow_upload",
        [PROXY_REFUSED_QUEUE_FULL] = "queue_full",
        [PROXY_REFUSED_QUEUE_TIMEOUT] = "queue_timeout",
        [PROXY_REFUSED_STOPPING] = "stopping",
        [PROXY_REFUSED_CONNECT] = "connect",
        [PROXY_REFUSED_FIRST_TOKEN] = "first_token",
        [PROXY_REFUSED_IDLE] = "idle",
        [PROXY_REFUSED_WHOLE_ANSWER] = "whole_answer",
        [PROXY_REFUSED_REQUEST_TIMEOUT] = "request_timeout",
    };
    return names[refusal];
}

const char *client_end_name(enum client_end why)
{
    static const char *const names[CLIENT_ENDS] = {
        [CLIENT_END_DONE] = "whole",          [CLIENT_END_GONE] = "client_gone",
        [CLIENT_END_SLOW] = "client_slow",    [CLIENT_END_ENGINE] = "engine_failed",
        [CLIENT_END_NO_MEMORY] = "no_memory", [CLIENT_END_REFUSED] = "refused",
        [CLIENT_END_STOPPED] = "stopped",     [CLIENT_END_LATE] = "request_timeout",
    };
    return names[why];
}
