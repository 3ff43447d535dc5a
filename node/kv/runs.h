/* Runs: series of blocks that an engine stored, each by a request.
 *
 * A stored block extends the *run* whose last block comes just before. If there is no such run, the
 * block begins a new run. So a run begins where a request's cached blocks end, and ends with the
 * request's answer. But the next turn of a conversation may continue the run before any router has
 * reported that answer. So a run records the last KV_STOPS_MAX points at which it continued, and is
 * cut after a request's part. If there are KV_RUNS_MAX runs, a new run replaces the run that
 * stopped growing first.
 */
#ifndef NODE_KV_RUNS_H
#define NODE_KV_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/kv/told.h"

enum {
    KV_RUNS_MAX = 1024, /* requests in flight at a rank, and requests of the last seconds */
    KV_STOPS_MAX = 6,
};

/* A stop: a point at which the run ended for a while. */
struct kv_stop {
    uint64_t chain; /* chain of the last block before the stop */
    uint64_t at_ms; /* time at which that block was stored */
    uint32_t end;   /* number of blocks from the prompt's beginning */
};

struct kv_run {
    uint64_t tip;          /* the engine's hash of the run's last block */
    uint64_t first_ms;     /* when the run began */
    uint32_t begin;        /* number of the prompt's blocks before the run */
    uint32_t by_tip;       /* the next run in the same slot of a table */
    uint32_t older, newer; /* neighbours in the order of the runs' last stops */
    uint8_t stops;         /* number of recorded stops, which are the run's latest; at least 1 */
    bool taken;            /* a reported request owns the whole run, which no longer grows */
    struct kv_stop stop[KV_STOPS_MAX];
};

struct kv_runs {
    uint64_t salt; /* secret, so that an engine cannot choose hashes of a single slot */
    uint32_t count, newest, oldest;
    uint32_t by_tip[KV_RUNS_MAX];
    struct kv_run run[KV_RUNS_MAX];
};

void kv_runs_clear(struct kv_runs *r);
/* Notes that the blocks after the block `parent` were stored, up to the block `tip` with the chain
 * `chain`. `begin`: number of the prompt's blocks up to `parent`; 0: these blocks begin a prompt.
 * `end`: number of blocks up to `tip`. */
void kv_runs_stored(struct kv_runs *r, uint64_t parent, uint32_t begin, uint64_t tip,
                    uint64_t chain, uint32_t end, uint64_t now_ms);
/* Go through the runs, from the latest growth to the earliest. NULL: none is left. */
struct kv_run *kv_runs_newest(struct kv_runs *r);
struct kv_run *kv_runs_older(struct kv_runs *r, const struct kv_run *run);
uint64_t kv_run_last_ms(const struct kv_run *run);
/* Assigns the run up to this stop to a request. The rest belongs to another request, and becomes a
 * separate run. */
void kv_runs_take(struct kv_runs *r, struct kv_run *run, unsigned stop);

/* Returns the index of the stop at which the answer `told` ended, for an engine with `block` tokens
 * per block; -1: the run does not belong to this answer. */
MUST_USE int kv_run_stop(const struct kv_run *run, const struct kv_told *told, uint32_t block);

#endif
