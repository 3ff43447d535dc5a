/* Series of blocks that an engine stored: the work of requests.
 *
 * A *run* begins when a block is stored behind one that ends no run, and grows with each block that
 * is stored behind its last one. So a run begins where a request left the cached blocks, and ends
 * with the request's answer. But the next turn of a conversation continues there, maybe before any
 * router reported the answer. So a run records the last KV_STOPS_MAX points at which it went on,
 * and is cut behind the part that a request took. If there is no room, the run that stopped growing
 * first is dropped.
 */
#ifndef NODE_KV_RUNS_H
#define NODE_KV_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/kv/told.h"

enum {
    KV_RUNS_MAX = 1024, /* requests in flight at one rank, plus those of the last seconds */
    KV_STOPS_MAX = 6,
};

/* A point where the run ended for a while. */
struct kv_stop {
    uint64_t chain; /* of the last block */
    uint64_t at_ms; /* when it was stored */
    uint32_t end;   /* blocks up to it */
};

struct kv_run {
    uint64_t tip;          /* the engine's hash of its last block */
    uint64_t first_ms;     /* when the run began */
    uint32_t begin;        /* blocks in front of it */
    uint32_t by_tip;       /* the next run in the same slot of a table */
    uint32_t older, newer; /* in the order of their last stops */
    uint8_t stops;         /* number stored, the latest ones; at least one */
    bool taken;            /* all of it belongs to a request: the run does not grow */
    struct kv_stop stop[KV_STOPS_MAX];
};

struct kv_runs {
    uint64_t salt; /* the caller's: engines choose their hashes, but not the slots here */
    uint32_t count, newest, oldest;
    uint32_t by_tip[KV_RUNS_MAX];
    struct kv_run run[KV_RUNS_MAX];
};

void kv_runs_clear(struct kv_runs *r);
/* Blocks behind the one with that hash (`begin` 0: behind none) were stored, up to `tip`. */
void kv_runs_stored(struct kv_runs *r, uint64_t parent, uint32_t begin, uint64_t tip,
                    uint64_t chain, uint32_t end, uint64_t now_ms);
/* The run that grew last; and the one that did before `run`. NULL: none. */
struct kv_run *kv_runs_newest(struct kv_runs *r);
struct kv_run *kv_runs_older(struct kv_runs *r, const struct kv_run *run);
uint64_t kv_run_last_ms(const struct kv_run *run);
/* A request took the run up to that stop: the rest belongs to another request, and becomes a run of
 * its own. */
void kv_runs_take(struct kv_runs *r, struct kv_run *run, unsigned stop);

/* The index of the stop where the run ended with that answer, for an engine with `block` tokens per
 * block; -1: the run is not that answer's. */
MUST_USE int kv_run_stop(const struct kv_run *run, const struct kv_told *told, uint32_t block);

#endif
