/* What each router reports of each replica: its load there, what it sees of it, what it learned.
 *
 *   (router, replica, kind) -> (epoch, number of the delta, value)
 *
 * Only the router itself writes its rows, and a number is used once, so the greatest (epoch,
 * number) wins and ties are equal values. Reports are gauges, not increments: nothing is lost when
 * one is skipped, and when a router dies its rows are dropped and its load is gone, without a
 * hand-over.
 */
#ifndef CRDT_REPORTS_H
#define CRDT_REPORTS_H

#include <stdbool.h>
#include <stdint.h>

/* In flight from one router at one replica. */
struct crdt_load {
    uint32_t requests;
    uint64_t prefill_tokens; /* uncached prompt tokens not computed yet */
    uint64_t context_tokens; /* of all requests in flight */
    uint64_t decoding_tokens;
};

struct crdt_sight {
    bool configured; /* its own configuration names this replica */
    uint8_t health;  /* enum node_health; opaque here */
    uint8_t engine;  /* enum node_engine */
    bool asleep;
};

/* What a new router starts from. Sums, so that the one with most evidence can be seen. */
struct crdt_learned {
    uint64_t cache_tokens; /* 0: not told */
    uint32_t believed_ppm; /* size of the cache by feedback, per million of that */
    uint32_t rate;         /* prefill tokens per second */
    uint32_t rate_samples;
    uint32_t step_base_ns;    /* decode pace: base + context * per token */
    uint32_t step_context_fs; /* femtoseconds a context token */
    uint32_t pace_samples;
    uint32_t bytes_per_token_milli;
};

struct crdt_reports;

/* Sum over all other routers that are alive. */
void crdt_reports_load_sum(const struct crdt_reports *r, unsigned slot, struct crdt_load *out);
/* Walks the rows of one slot, own and others': return false to stop. */
void crdt_reports_each(const struct crdt_reports *r, unsigned slot,
                       bool (*visit)(void *context, uint64_t router, const struct crdt_load *load,
                                     const struct crdt_sight *sight,
                                     const struct crdt_learned *learned),
                       void *context);
/* Moves with every change of a load, or of anything else: for pollers. */
uint64_t crdt_reports_load_version(const struct crdt_reports *r);
uint64_t crdt_reports_version(const struct crdt_reports *r);

#endif
