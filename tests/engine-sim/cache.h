/* A prefix cache of blocks, as vLLM keeps one: exact LRU, blocks of running requests pinned. Pure.
 * It can evict by other rules, too: sim_cache_evicts().
 *
 * A block is free (in the free list, oldest first) or held by one or more requests. A block that
 * was filled has a name, the chained hash of everything up to its end; a free block keeps its name
 * and can be found by it until it is handed out again.
 *
 * Invariants (sim_cache_check):
 *   1. A block is in the free list exactly while nobody holds it.
 *   2. A name stands in the table once, at a block that carries it.
 *   3. used + free = all.
 */
#ifndef TESTS_ENGINE_SIM_CACHE_H
#define TESTS_ENGINE_SIM_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_cache;

enum { SIM_EVICT_AMONG = 1024 };

/* Which free block is used next. A nameless one always is before all others. */
enum sim_evict {
    SIM_EVICT_LRU,    /* the one that is free for longest */
    SIM_EVICT_LFU,    /* of the SIM_EVICT_AMONG oldest the one that fewest requests held */
    SIM_EVICT_RANDOM, /* any: the same ones in each run */
};

struct sim_cache *sim_cache_create(uint32_t blocks);
void sim_cache_destroy(struct sim_cache *c);
void sim_cache_check(const struct sim_cache *c);
/* While nothing is held. */
void sim_cache_evicts(struct sim_cache *c, enum sim_evict rule);

uint32_t sim_cache_blocks(const struct sim_cache *c);
uint32_t sim_cache_used(const struct sim_cache *c);  /* held by somebody */
uint32_t sim_cache_named(const struct sim_cache *c); /* findable */

/* How many of the leading `names` are there. */
size_t sim_cache_match(const struct sim_cache *c, const uint64_t *names, size_t count);

/* Holds the first `hits` named blocks (which must be there) and `fresh` nameless ones behind them,
 * evicting free blocks, by default the oldest. Writes hits + fresh block numbers. ERR_FULL changes
 * nothing. */
int sim_cache_take(struct sim_cache *c, const uint64_t *names, size_t hits, size_t fresh,
                   uint32_t *blocks);

/* A held block is full now. If another block carries the name already, this one stays nameless.
 * Whether it has it now and had not before. */
bool sim_cache_name(struct sim_cache *c, uint32_t block, uint64_t name);

/* Lets go of blocks, the last one first, so that tails are evicted before heads. Nameless blocks
 * are worth nothing and go to the front of the free list. */
void sim_cache_release(struct sim_cache *c, const uint32_t *blocks, size_t count);

/* What time it is, for the last use of blocks: the time of their release. */
void sim_cache_clock(struct sim_cache *c, uint64_t now_ns);
/* What of the cache taking `fresh` blocks would evict, by LRU, beside the first `hits` names, which
 * would be held: the blocks' sum, each weighed by e^(-age / horizon). It changes nothing that can
 * be seen. */
double sim_cache_displaced(struct sim_cache *c, const uint64_t *names, size_t hits, size_t fresh,
                           double horizon_ns);

/* Hears of each name that a block loses because it is used for something else; `removed` and its
 * context are borrowed. With `copies` a block is named whatever others are, as vLLM does for
 * requests that compute the same at once: each is stored, and removed, by itself (2. does not hold
 * then). */
void sim_cache_watch(struct sim_cache *c, void (*removed)(void *context, uint64_t name),
                     void *context, bool copies);

/* Forgets all names; what is held stays held. Nobody hears of these. */
void sim_cache_reset(struct sim_cache *c);

#endif
