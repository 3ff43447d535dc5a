/* A prefix cache of blocks, like vLLM's: exact LRU, blocks of running requests pinned. Pure. Other
 * eviction rules are possible: sim_cache_evicts().
 *
 * A block is free (in the free list, oldest first) or held by one or more requests. A full block
 * has a name, the chained hash of all tokens up to the block's end. A free block keeps the name,
 * and can be found, until the cache hands out the block again.
 *
 * Invariants (sim_cache_check):
 *   1. A block is in the free list exactly while no request holds it.
 *   2. A name is in the table once, at a block of this name.
 *   3. used + free = all. */
#ifndef TESTS_ENGINE_SIM_CACHE_H
#define TESTS_ENGINE_SIM_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_cache;

enum { SIM_EVICT_AMONG = 1024 };

/* The free block to use next. Blocks without a name always come first. */
enum sim_evict {
    SIM_EVICT_LRU,    /* the block that is free for the longest time */
    SIM_EVICT_LFU,    /* the block with the fewest users so far, of the SIM_EVICT_AMONG oldest */
    SIM_EVICT_RANDOM, /* random blocks, but the same in each run */
};

struct sim_cache *sim_cache_create(uint32_t blocks);
void sim_cache_destroy(struct sim_cache *c);
void sim_cache_check(const struct sim_cache *c);
/* Sets the rule; no block may be held. */
void sim_cache_evicts(struct sim_cache *c, enum sim_evict rule);

uint32_t sim_cache_blocks(const struct sim_cache *c);
uint32_t sim_cache_used(const struct sim_cache *c);  /* held by a request */
uint32_t sim_cache_named(const struct sim_cache *c); /* findable */

/* Number of cached blocks at the beginning of `names`. */
size_t sim_cache_match(const struct sim_cache *c, const uint64_t *names, size_t count);

/* Holds the first `hits` named blocks (which must be cached) and then `fresh` nameless blocks,
 * evicting free blocks, by default the oldest. Writes hits + fresh block numbers. ERR_FULL changes
 * nothing. */
int sim_cache_take(struct sim_cache *c, const uint64_t *names, size_t hits, size_t fresh,
                   uint32_t *blocks);

/* A held block is full now. If another block has the name already, `block` stays nameless. Returns
 * true if the block got the name. */
bool sim_cache_name(struct sim_cache *c, uint32_t block, uint64_t name);

/* Releases blocks, the last first, so that tails are evicted before heads. Nameless blocks are
 * worth nothing and go to the front of the free list. */
void sim_cache_release(struct sim_cache *c, const uint32_t *blocks, size_t count);

/* Sets the time, which sim_cache_release() records as the last use of blocks. */
void sim_cache_clock(struct sim_cache *c, uint64_t now_ns);
/* The cost of evictions if the cache took `fresh` blocks now, by LRU, while the first `hits` names
 * are held: the evicted blocks, each weighted by e^(-age / horizon). Has no visible effect. */
double sim_cache_displaced(struct sim_cache *c, const uint64_t *names, size_t hits, size_t fresh,
                           double horizon_ns);

/* Reports each name lost because the block is reused; `removed` and `context` are borrowed. With
 * `copies`, several blocks may have the same name, as in vLLM when requests compute the same prompt
 * at once. Each block is then stored, and removed, separately (invariant 2 does not hold). */
void sim_cache_watch(struct sim_cache *c, void (*removed)(void *context, uint64_t name),
                     void *context, bool copies);

/* Forgets all names; held blocks stay held. These names are not reported. */
void sim_cache_reset(struct sim_cache *c);

#endif
