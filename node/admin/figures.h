/* A router's figures for each of the last seconds: requests, their results, retries, tokens, times
 * to the first token. All are differences of the counters in /metrics, so nothing is counted
 * twice. */
#ifndef NODE_ADMIN_FIGURES_H
#define NODE_ADMIN_FIGURES_H

#include "base/histogram.h"
#include "base/json_write.h"
#include "node/proxy/proxy.h"

enum { FIGURES_SECONDS = 180, FIGURES_MINUTES = 60 };

struct admin_figures_second {
    uint64_t unix_ms;
    uint64_t ms; /* length of this second, or minute */
    uint64_t requests, answers, retries, in_flight, queued;
    uint64_t unauthorized;                 /* client errors with status 401 */
    uint64_t results[NODE_RESULTS];        /* results of ended requests */
    uint64_t hidden;                       /* requests with NODE_RESULT_OK after a failed attempt */
    uint64_t prompt_tokens, cached_tokens; /* from answers with both numbers */
    uint64_t first_tokens;                 /* first tokens of ended streams */
    float ttft_p50, ttft_p95;              /* seconds; -1: none */
};

/* The counters at the last look. */
struct admin_figures_seen {
    uint64_t requests, answers, retries, prompt_tokens, cached_tokens, hidden, unauthorized;
    uint64_t results[NODE_RESULTS];
    struct histogram first_token;
};

struct admin_figures {
    uint64_t looked_ms;
    unsigned count, at; /* number of seconds in the ring, and index of the next one */
    struct admin_figures_seen seen;
    struct admin_figures_second seconds[FIGURES_SECONDS];
    uint64_t minute_ms; /* time of the last look for the minutes */
    unsigned minute_count, minute_at;
    struct admin_figures_seen minute_seen;
    struct admin_figures_second minutes[FIGURES_MINUTES];
};

/* Called every few milliseconds; looks once a second. */
void admin_figures_tick(struct admin_figures *f, struct proxy *proxy,
                        const struct node_router *router, uint64_t now_ms, uint64_t unix_ms);
/* Sums of the last `seconds`: requests, and the results of ended requests. */
struct admin_figures_sum {
    uint64_t requests, unauthorized, results[NODE_RESULTS];
};
struct admin_figures_sum admin_figures_sum(const struct admin_figures *f, unsigned seconds);
/* Returns the fewest requests waiting at the end of any of the last `seconds`. */
uint64_t admin_figures_waited(const struct admin_figures *f, unsigned seconds);
/* Writes the last second as an object, or null. */
void admin_figures_last_write(const struct admin_figures *f, struct json_writer *w);
/* Writes all seconds as an array, oldest first. */
void admin_figures_write(const struct admin_figures *f, struct json_writer *w);
/* Writes an array: at most the last `most` seconds, then the time since the last look, so nothing
 * is missing. */
void admin_figures_now_write(const struct admin_figures *f, unsigned most, struct proxy *proxy,
                             const struct node_router *router, uint64_t now_ms, uint64_t unix_ms,
                             struct json_writer *w);
/* Writes the counters since the start as a short object, for sums over all routers. */
void admin_figures_counters_write(struct proxy *proxy, const struct node_router *router,
                                  uint64_t since_ms, uint64_t unix_ms, struct json_writer *w);
/* Writes an object with the figures of a second, but counted since the start, and with figures that
 * are only kept since the start. */
void admin_figures_total_write(struct proxy *proxy, const struct node_router *router,
                               uint64_t since_ms, uint64_t unix_ms, struct json_writer *w);

/* Writes the last hour's minutes as an array, oldest first. */
void admin_figures_minutes_write(const struct admin_figures *f, struct json_writer *w);
/* Writes the last whole minute as an object, or null. */
void admin_figures_minute_write(const struct admin_figures *f, struct json_writer *w);

#endif
