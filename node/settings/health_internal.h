/* The settings of health checks, as rows of the table (node/settings/table.c). */
#ifndef NODE_SETTINGS_HEALTH_INTERNAL_H
#define NODE_SETTINGS_HEALTH_INTERNAL_H

/* clang-format off */
#define NODE_OPTION_ROWS_HEALTH \
    {.name = "health-interval", \
     LIVE_TIME(health_interval_ms), \
     .fallback = "2s", \
     .min = 100, \
     .max = 3600e3, \
     .group = "Replicas", \
     .help = "between two health checks"}, \
    {.name = "health-timeout", \
     LIVE_TIME(health_timeout_ms), \
     .fallback = "5s", \
     .min = 10, \
     .max = 600e3, \
     .group = "Replicas", \
     .help = "for the answer to a health check"}, \
    {.name = "health-timeout-sglang", \
     LIVE_TIME(health_timeout_sglang_ms), \
     .fallback = "30s", \
     .min = 10, \
     .max = 600e3, \
     .group = "Replicas", \
     .help = "the same for SGLang", \
     .more = \
         "SGLang may answer a health check by generating a token, behind whatever it computes."}, \
    {.name = "health-failures", \
     .type = NODE_TYPE_INTEGER, \
     LIVE(health_failures), \
     .fallback = "3", \
     .min = 1, \
     .max = 100, \
     .unit = "NUMBER", \
     .group = "Replicas", \
     .help = "in a row until a replica is down", \
     .more = "A refused connection counts as down at once. A check that got no answer in time does " \
             "not count while other bytes come from the replica."}, \
    {.name = "health-path", \
     .type = NODE_TYPE_STRING, \
     LIVE(health_path), \
     .fallback = "/health", \
     .wrong = node_allowed_health_path_not, \
     .unit = "PATH", \
     .group = "Replicas", \
     .help = "what health checks ask for", \
     .more = "The [label](operations.md#labels) `health` of a replica goes before it."}, \
    {.name = "health-statuses", \
     .type = NODE_TYPE_STRING, \
     LIVE(health_statuses), \
     .fallback = "200..299", \
     .wrong = node_allowed_statuses_not, \
     .unit = "STATUSES", \
     .group = "Replicas", \
     .help = "of a replica that is well", \
     .more = "Statuses and ranges of them, such as `200..299,429`. Any other one takes the replica " \
             "out of the choice at once, and down when it comes `health-failures` times in a row."}, \
    {.name = "when-all-down", \
     .type = NODE_TYPE_CHOICE, \
     LIVE(when_all_down), \
     .fallback = "try", \
     .choices = node_allowed_when_all_down, \
     .unit = "WHAT", \
     .group = "Replicas", \
     .help = "try a replica that is down, or refuse", \
     .more = "Where all replicas that serve the model are down: `try` sends each request to one of " \
             "them all the same, the one that failed least and was tried longest ago. `refuse` " \
             "answers 503 with `Retry-After`."}, \
    {.name = "watchdog", \
     LIVE_TIME(watchdog_ms), \
     .fallback = "2s", \
     .max = 600e3, \
     .group = "Replicas", \
     .help = "until a replica that stands still is avoided", \
     .more = \
         "Beyond what the prompts there explain. [What stands still]" \
         "(operations.md#what-takes-a-replica-out-and-what-brings-it-back) gets no new requests, " \
         "and those without a token move to other replicas. 0 turns it off."}, \
    {.name = "stall-cut", \
     LIVE_TIME(stall_cut_ms), \
     .fallback = "60s", \
     .max = DAY_MS, \
     .group = "Replicas", \
     .help = "cut answers without a sign of work", \
     .more = \
         "An answer that has begun cannot move to another replica. It is cut when nothing of it came " \
         "for so long, and nothing shows that its engine works: no token of any request, no step that " \
         "the engine's metrics count, at any router. Most pauses end by themselves, so do not set it " \
         "below the longest pause of your engines. If the connection breaks or the port refuses, the " \
         "router does not wait. 0: only `upstream-idle-timeout` cuts. " \
         "[What cuts an answer](http.md#time-limits)."}
/* clang-format on */

#endif
