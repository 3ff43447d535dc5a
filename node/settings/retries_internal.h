/* Rows of the option table: when a request is sent to another replica. */
#ifndef NODE_SETTINGS_RETRIES_INTERNAL_H
#define NODE_SETTINGS_RETRIES_INTERNAL_H

/* clang-format off */
#define NODE_OPTION_ROWS_RETRIES \
    {.name = "retries-max", \
     .type = NODE_TYPE_INTEGER, \
     LIVE(retries_max), \
     .fallback = "2", \
     .max = 16, \
     .unit = "NUMBER", \
     .group = "Replicas", \
     .help = "other replicas tried per request", \
     .more = "Only before the first token. Those that refuse the connection count apart (8). 0: no " \
             "request is sent again."}, \
    {.name = "retry-budget", \
     .type = NODE_TYPE_FLOAT, \
     LIVE(retry_budget), \
     .fallback = "0.1", \
     .max = 1, \
     .unit = "SHARE", \
     .group = "Replicas", \
     .help = "retries for each request, on average", \
     .more = "20 more may come at once, with two routers 10 at each, with more 7. Beyond, failures go " \
             "to the client as they are. What costs the engines nothing (a refused connection) is " \
             "free. 0: no request is sent again."}, \
    {.name = "stream-hold", \
     LIVE_TIME(stream_hold_ms), \
     .fallback = "10s", \
     .max = 3600e3, \
     .group = "Replicas", \
     .help = "a stream's head waits for its first token", \
     .more = "Until then another replica may answer. At the limit, the head goes out as a sign of " \
             "life. 0: nothing waits."}, \
    {.name = "poison-retry", \
     .type = NODE_TYPE_BOOL, \
     LIVE(poison_retry), \
     .fallback = "on", \
     .unit = "on|off", \
     .group = "Replicas", \
     .help = "send a suspect on where an engine died", \
     .more = "Once, to another replica, and alone where that can be had; with `off` it is answered 502, reason " \
             "`suspect`. What merely shared the engine with it is sent on in any case. " \
             "[What poison is](operations.md#poison)."}
/* clang-format on */

#endif
