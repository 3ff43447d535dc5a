/* What a router did in each of the last seconds: requests, how they ended, retries, tokens, times
 * to the first token. Differences of the counters that /metrics shows, so nothing is counted twice.
 */
#ifndef NODE_ADMIN_FIGURES_H
#define NODE_ADMIN_FIGURES_H

#include "base/histogram.h"
#include "base/json_write.h"
#include "node/proxy/proxy.h"

enum { FIGURES_SECONDS = 180 };

struct admin_figures_second {
    uint64_t unix_ms;
    uint64_t ms; /* how long it was */
    uint64_t requests, answers, retries, in_flight, queued;
    uint64_t results[NODE_RESULTS];        /* of requests that ended */
    uint64_t hidden;                       /* of NODE_RESULT_OK, those after a failed attempt */
    uint64_t prompt_tokens, cached_tokens; /* of answers that told both */
    uint64_t first_tokens;                 /* of streams that ended; below, in seconds: */
    float ttft_p50, ttft_p95;              /* -1: there were none */
};

/* The counters at the last look. */
struct admin_figures_seen {
    uint64_t requests, answers, retries, prompt_tokens, cached_tokens, hidden;
    uint64_t results[NODE_RESULTS];
    struct histogram first_token;
};

struct admin_figures {
    uint64_t looked_ms;
    unsigned count, at; /* the next one goes there */
    struct admin_figures_seen seen;
    struct admin_figures_second seconds[FIGURES_SECONDS];
};

/* Every few milliseconds; once a second it looks. */
void admin_figures_tick(struct admin_figures *f, struct proxy *proxy,
                        const struct node_router *router, uint64_t now_ms, uint64_t unix_ms);
/* Requests of the last `seconds`, and how those ended that did. */
struct admin_figures_sum {
    uint64_t requests, results[NODE_RESULTS];
};
struct admin_figures_sum admin_figures_sum(const struct admin_figures *f, unsigned seconds);
/* The last second as an object, or null. */
void admin_figures_last_write(const struct admin_figures *f, struct json_writer *w);
/* All of them, the oldest first. */
void admin_figures_write(const struct admin_figures *f, struct json_writer *w);
/* The last `most` of them at most, and behind them what came since the last look, so that nothing
 * is missing. */
void admin_figures_now_write(const struct admin_figures *f, unsigned most, struct proxy *proxy,
                             const struct node_router *router, uint64_t now_ms, uint64_t unix_ms,
                             struct json_writer *w);
/* In few words what was counted since the start, for others to add up: an object. */
void admin_figures_counters_write(struct proxy *proxy, const struct node_router *router,
                                  uint64_t since_ms, uint64_t unix_ms, struct json_writer *w);
/* The same of all the time since the start, and what a second does not have: an object. */
void admin_figures_total_write(struct proxy *proxy, const struct node_router *router,
                               uint64_t since_ms, uint64_t unix_ms, struct json_writer *w);

#endif
