/* Blocks that an engine stored one behind the other: what one request computed.
 *
 * A *run* begins where a block is stored behind one that ends no run, and goes on with each block
 * that is stored behind its last one. So it begins where a request left what was cached, and ends
 * with its answer. The last KV_RUNS_MAX are kept.
 */
#ifndef NODE_KV_RUNS_H
#define NODE_KV_RUNS_H

#include <stdbool.h>
#include <stdint.h>

enum { KV_RUNS_MAX = 4096 }; /* of requests under way at one rank, and those of the last seconds */

struct kv_run {
    uint64_t tip;        /* the engine's hash of its last block, */
    uint64_t chain;      /* and its chain */
    uint32_t begin, end; /* blocks in front of it; and with it */
    uint64_t first_ms, last_ms;
    uint32_t by_tip; /* the next one in the same place of a table */
    bool taken;      /* it is some request's */
};

struct kv_runs {
    uint64_t
        count; /* that ever began; the newest are in `run`, at their numbers modulo its length */
    uint32_t by_tip[KV_RUNS_MAX];
    struct kv_run run[KV_RUNS_MAX];
};

void kv_runs_clear(struct kv_runs *r);
/* Blocks behind the one of that hash (`begin` 0: behind none) were stored, up to `tip`. */
void kv_runs_stored(struct kv_runs *r, uint64_t parent, uint32_t begin, uint64_t tip,
                    uint64_t chain, uint32_t end, uint64_t now_ms);
/* The newest first: `back` 0 is the last one that began; NULL: there are no more. */
struct kv_run *kv_runs_back(struct kv_runs *r, uint32_t back);

#endif
