/* Blocks that an engine stored one behind the other: what requests computed.
 *
 * A *run* begins where a block is stored behind one that ends no run, and goes on with each block
 * that is stored behind its last one. So it begins where a request left what was cached, and the
 * request's answer ends it; but the next turn of a conversation goes on behind that, maybe before
 * anybody told of the answer. So a run remembers the last KV_STOPS_MAX times that it went on, and
 * what a request has taken of it is cut off. Where there is no more room, the run that did not go
 * on for longest is forgotten.
 */
#ifndef NODE_KV_RUNS_H
#define NODE_KV_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/kv/told.h"

enum {
    KV_RUNS_MAX = 1024, /* of requests under way at one rank, and those of the last seconds */
    KV_STOPS_MAX = 6,
};

/* The run ended there for a while. */
struct kv_stop {
    uint64_t chain; /* of the last block */
    uint64_t at_ms; /* when it was stored */
    uint32_t end;   /* blocks with it */
};

struct kv_run {
    uint64_t tip;          /* the engine's hash of its last block */
    uint64_t first_ms;     /* when it began */
    uint32_t begin;        /* blocks in front of it */
    uint32_t by_tip;       /* the next one in the same place of a table */
    uint32_t older, newer; /* in the order of their last stops */
    uint8_t stops;         /* kept, the last ones; at least one */
    bool taken;            /* all of it is some request's: it does not go on */
    struct kv_stop stop[KV_STOPS_MAX];
};

struct kv_runs {
    uint64_t salt; /* of the caller: engines choose their hashes, and not where these stand here */
    uint32_t count, newest, oldest;
    uint32_t by_tip[KV_RUNS_MAX];
    struct kv_run run[KV_RUNS_MAX];
};

void kv_runs_clear(struct kv_runs *r);
/* Blocks behind the one of that hash (`begin` 0: behind none) were stored, up to `tip`. */
void kv_runs_stored(struct kv_runs *r, uint64_t parent, uint32_t begin, uint64_t tip,
                    uint64_t chain, uint32_t end, uint64_t now_ms);
/* The run that went on last; and the one that did before `run`. NULL: there is none. */
struct kv_run *kv_runs_newest(struct kv_runs *r);
struct kv_run *kv_runs_older(struct kv_runs *r, const struct kv_run *run);
uint64_t kv_run_last_ms(const struct kv_run *run);
/* A request took the run up to that stop: what follows is another's, and a run of its own. */
void kv_runs_take(struct kv_runs *r, struct kv_run *run, unsigned stop);

/* The place among its stops where the run ended when that answer did, of an engine whose blocks
 * have `block` tokens; -1: it is not of that answer. */
MUST_USE int kv_run_stop(const struct kv_run *run, const struct kv_told *told, uint32_t block);

#endif
