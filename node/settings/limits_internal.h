/* The rows of the option table that limit how long a request may take, and how many there may be.
 */
#ifndef NODE_SETTINGS_LIMITS_INTERNAL_H
#define NODE_SETTINGS_LIMITS_INTERNAL_H

#define NODE_OPTION_ROWS_TIME                                                                      \
    {.name = "upstream-first-token-timeout",                                                       \
     LIVE_TIME(upstream_first_token_timeout_ms),                                                   \
     .fallback = "auto",                                                                           \
     .automatic = true,                                                                            \
     .max = DAY_MS,                                                                                \
     .group = "Replicas",                                                                          \
     .help = "of silence before the first token",                                                  \
     .more =                                                                                       \
         "Prefill and the engine's queue count: do not make it short. `auto` is ten times what "   \
         "the router predicts, by the size of the prompt and what is queued there, but 30 s "      \
         "at least, and 300 s where the replica's speed is not learned yet. It counts from the "   \
         "last sign that the engine works: while there are some, it does not run. "                \
         "A completion that is not streamed has upstream-whole-answer-timeout instead, "           \
         "other requests have 300 s until an answer begins. A time that is set here always runs. " \
         "0 turns it off. "                                                                        \
         "[What happens then](http.md#time-limits)."},                                             \
        {.name = "upstream-whole-answer-timeout",                                                  \
         LIVE_TIME(upstream_whole_answer_timeout_ms),                                              \
         .fallback = "0",                                                                          \
         .max = DAY_MS,                                                                            \
         .group = "Replicas",                                                                      \
         .help = "for one that is not streamed; 0: never",                                         \
         .more = "The first byte of such an answer comes with its last. By default its client "    \
                 "decides "                                                                        \
                 "how long to wait."},                                                             \
        {.name = "upstream-idle-timeout",                                                          \
         LIVE_TIME(upstream_idle_timeout_ms),                                                      \
         .fallback = "auto",                                                                       \
         .automatic = true,                                                                        \
         .max = DAY_MS,                                                                            \
         .group = "Replicas",                                                                      \
         .help = "between two pieces of an answer",                                                \
         .more =                                                                                   \
             "`auto` is 120 s without a sign that the engine works, and 300 s where its metrics "  \
             "do not tell single steps: it does not run while a stream is silent and the engine "  \
             "computes. A time that is set here always runs. 0 turns it off. "                     \
             "[What happens then](http.md#time-limits)."},                                                               \
    {                                                                                              \
        .name = "request-timeout", LIVE_TIME(request_timeout_ms), .fallback = "0", .max = DAY_MS,  \
        .group = "Replicas", .help = "for a request in all; 0: its client decides",                \
        .more = "From its head to the end of its answer, whatever it waits for; then 504, or the " \
                "answer is cut."                                                                   \
    }

#define NODE_OPTION_ROWS_OVERLOAD                                                                  \
    {.name = "replica-requests-max",                                                               \
     .type = NODE_TYPE_INTEGER,                                                                    \
     LIVE(replica_requests_max),                                                                   \
     .fallback = "4096",                                                                           \
     .max = 65536,                                                                                 \
     .unit = "NUMBER",                                                                             \
     .group = "Replicas",                                                                          \
     .help = "in flight at one replica; more wait",                                                \
     .more = "Of this router. 0: as many as upstream-connections-max. What an engine cannot "      \
             "compute at once waits in the engine anyway; a little more than it computes at once " \
             "(vLLM `--max-num-seqs`, SGLang `--max-running-requests`), divided by the number of " \
             "routers, lets it wait here, where another replica may take it. "                     \
             "[Overload](operations.md#overload)."},                                               \
        {.name = "requests-max",                                                                   \
         .type = NODE_TYPE_INTEGER,                                                                \
         LIVE(requests_max),                                                                       \
         .fallback = "65536",                                                                      \
         .min = 1,                                                                                 \
         .max = 65536,                                                                             \
         .unit = "NUMBER",                                                                         \
         .group = "Replicas",                                                                      \
         .help = "in flight at all replicas; more wait"},                                          \
        {.name = "queue-max",                                                                      \
         .type = NODE_TYPE_INTEGER,                                                                \
         LIVE(queue_max),                                                                          \
         .fallback = "1000",                                                                       \
         .max = 1e6,                                                                               \
         .unit = "NUMBER",                                                                         \
         .group = "Replicas",                                                                      \
         .help = "requests that wait for a replica; then 429",                                     \
         .more = "Only where every replica that could serve is at its limit. 0: nobody waits."},   \
    {                                                                                              \
        .name = "queue-timeout", LIVE_TIME(queue_timeout_ms), .fallback = "30s", .max = DAY_MS,    \
        .group = "Replicas", .help = "that one waits there, in all; then 504",                     \
        .more = "0: as long as its client."                                                        \
    }

#endif
