#include "node/proxy/stats.h"

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
