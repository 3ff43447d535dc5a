/* The prefix index: which replica holds which prompt prefix, and when was that last true?
 *
 * As a value it is a map
 *
 *     (id48, weight code, replica) -> generation
 *
 * The id is the low 48 bits of a checkpoint of a prompt (base/chain.h). The generation is a slice
 * of cluster time (8 s by default). Observing joins: each entry is the maximum of all observations,
 * so their order does not matter and repeating one changes nothing. What is older than the *floor*
 * is absent at once, and the floor only rises. The weight code is part of the key (honest peers
 * always give the same one for the same id), so no tie is ever broken.
 *
 * The index has one preallocated table of 64-byte buckets with 7 entries of 8 bytes each, and sets
 * for ids that many replicas hold. Its counters of blocks per replica and generation are derivable
 * from the entries. Nothing grows at run time. crdt/README.md explains how it is built.
 *
 * How to drive it: create; crdt_index_advance() when the generation changes; observe and match;
 * crdt_index_sweep() a few buckets at a time, so that a lap takes less than the TTL;
 * crdt_index_forget() when a replica has lost its cache.
 *
 * Invariants (crdt_index_check):
 *   1. A live entry has floor <= generation <= now + 1, and the current incarnation of its replica.
 *      Everything else in the table is dead: never counted, never matched, reclaimed when met.
 *   2. No (id, code, replica) has two live entries.
 *   3. Counters equal a recount of the live entries.
 *   4. The floor and `now` never go back; generations in memory span less than 4,096.
 *   5. Memory in use never exceeds the budget. When the table is loaded to its limit the floor
 *      rises, the oldest generations go first, and crdt_index_floor() announces it.
 *   6. Replicated: the digests equal a recount of the live entries, and the sketch of each span of
 *      generations that the floor has not passed is the XOR of the symbols of all entries with such
 *      a generation that are physically in memory, dead ones of earlier caches included.
 */
#ifndef CRDT_INDEX_H
#define CRDT_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/err.h"
#include "crdt/limits.h"
#include "crdt/sketch.h"

struct crdt_index_config {
    uint64_t bytes_max;    /* budget: everything that the index allocates */
    uint32_t replicas_max; /* replica slots are 0 .. replicas_max - 1; at most CRDT_REPLICAS_MAX */
    uint32_t ttl_generations; /* 1 .. CRDT_TTL_MAX; the floor follows `now` at this distance */
    uint32_t generation;      /* `now` at the start */
    bool replicated;          /* keeps the digest and the sketch, within the budget */
};

struct crdt_index;

/* ERR_RANGE: a setting is out of its bounds. ERR_LIMIT: the budget is too small for the counters
 * and a first few buckets (crdt_index_bytes_ample()). ERR_NOMEM.
 *
 * Routers compare ids, so crdt_index_id_ranges() of all must be equal. */
MUST_USE int crdt_index_create(struct crdt_index **out, const struct crdt_index_config *config);
/* A budget that is never too small: 8 bytes per replica and generation (their number rounded up to
 * a power of two), and 3 MiB. A replicated index keeps a digest beside each count, and 93 KB for
 * each of its 34 sketches: twice as much. */
uint64_t crdt_index_bytes_ample(unsigned replicas, uint64_t generations, bool replicated);
/* Ids are kept exactly in 65,536 ranges of buckets or more: then this is 65,536. A table with fewer
 * buckets (it is smaller than 4 MiB) has so many, and ids that no table of another size has. */
uint32_t crdt_index_id_ranges(const struct crdt_index *x);
void crdt_index_destroy(struct crdt_index *x);
/* The table's memory, all of it and untouched so far. Random access to it is what look-ups cost, so
 * a caller may ask the system for huge pages there. */
void crdt_index_memory(const struct crdt_index *x, void **at, uint64_t *bytes);
/* Walks everything. For tests, fuzzers and the simulator. */
void crdt_index_check(const struct crdt_index *x);

/* --- learning ------------------------------------------------------------------------------- */

/* Joins one observation. Returns 1 if it strictly inflated the index (new, or newer than known),
 * 0 if nothing was new; ERR_STALE below the floor; ERR_RANGE beyond now + 1 (never clamped: that
 * would depend on the receiver's clock); ERR_FULL if there is no room for it. The three errors are
 * counted and change nothing else, except that making room may have raised the floor. */
MUST_USE int crdt_index_observe(struct crdt_index *x, uint64_t id, unsigned replica,
                                uint8_t weight_code, uint32_t generation);

/* Joins all points of a prompt for one replica, several times faster than one by one. Returns how
 * many strictly inflated the index, or ERR_STALE or ERR_RANGE; points without room are only
 * counted. `inflated`, if not NULL, has CHAIN_POINTS_MAX bits, which become those points. */
MUST_USE int crdt_index_observe_chain(struct crdt_index *x, const struct chain *chain,
                                      unsigned replica, uint32_t generation, uint64_t *inflated);

/* The same for `count` observations of one replica and generation: what a delta or a snapshot
 * carries. Returns how many strictly inflated the index, or ERR_STALE or ERR_RANGE. `inflated`, if
 * not NULL, has (count + 63) / 64 words, and their bits become those observations. */
MUST_USE int crdt_index_observe_run(struct crdt_index *x, const uint64_t *ids, const uint8_t *codes,
                                    unsigned count, unsigned replica, uint32_t generation,
                                    uint64_t *inflated);

/* Asks the processor for the memory where `id` would be, for callers with a batch of their own:
 * prefetch some 16 ahead of observing. */
void crdt_index_prefetch(const struct crdt_index *x, uint64_t id);

/* The replica's cache is empty (it restarted): all its entries are absent at once. `rkey` names
 * the replica's new cache (crdt/registry.h) and was never used for an earlier one. A replica's
 * first cache gets its name the same way, before the first entry. */
void crdt_index_forget(struct crdt_index *x, unsigned replica, uint32_t rkey);

/* --- asking --------------------------------------------------------------------------------- */

/* The longest known prefix of the prompt on every replica below `replicas`, in one pass.
 * length_out[r] = 1 + the index of the last point that r holds with a generation of at least
 * floor_by_replica[r] (NULL: any live one); 0 if there is none. generation_out (may be NULL) gets
 * the generation of that point, or 0. */
void crdt_index_match(const struct crdt_index *x, const struct chain *chain,
                      const uint32_t *floor_by_replica, unsigned replicas, uint16_t *length_out,
                      uint32_t *generation_out);

/* The part of a prompt in chunks (base/chain.h), at any position, that each replica below
 * `replicas` holds. blocks_out[r] is the weight of the chunks that r holds with a generation of
 * at least floor_by_replica[r] (NULL: any live one), generation_out[r] the oldest of theirs, or
 * 0. */
void crdt_index_cover(const struct crdt_index *x, const struct chain *chain,
                      const uint32_t *floor_by_replica, unsigned replicas, uint32_t *blocks_out,
                      uint32_t *generation_out);

/* The generation of one entry; ERR_NOT_FOUND. */
MUST_USE int crdt_index_get(const struct crdt_index *x, uint64_t id, unsigned replica,
                            uint8_t weight_code, uint32_t *generation_out);

/* The replica with the newest generation of (id, code); among equals the one with the greatest
 * rkey, so that all routers name the same. ERR_NOT_FOUND. For bindings (CHECKPOINT_CODE_BINDING).
 */
MUST_USE int crdt_index_newest(const struct crdt_index *x, uint64_t id, uint8_t weight_code,
                               unsigned *replica_out, uint32_t *generation_out);

/* Calls `visit` for every live entry, in table order. Ids are exact from 65,536 buckets (4 MiB) on;
 * smaller tables (tests) tell ids apart by 32 + log2(buckets) bits only. */
void crdt_index_each(const struct crdt_index *x,
                     void (*visit)(void *context, uint64_t id48, uint8_t weight_code,
                                   unsigned replica, uint32_t generation),
                     void *context);

/* Blocks (of 256 bytes) that the replica was last seen using in that generation; 0 outside of
 * floor .. now + 1. */
uint64_t crdt_index_blocks(const struct crdt_index *x, unsigned replica, uint32_t generation);
/* The same over all generations. */
uint64_t crdt_index_blocks_total(const struct crdt_index *x, unsigned replica);

/* The counters of one replica, for walking from `newest` (now + 1) down to `oldest` (the floor),
 * both included. Borrowed until the next call that is not const. */
struct crdt_index_ring {
    const uint32_t *counts;
    uint32_t mask;
    uint32_t newest;
    uint32_t oldest;
    uint64_t total; /* of all generations: a walk may end where it has seen that much */
};
struct crdt_index_ring crdt_index_ring(const struct crdt_index *x, unsigned replica);

/* --- ids apart -------------------------------------------------------------------------------
 *
 * Observations of another world, such as of the caches that a policy would have filled: in the same
 * map, under ids that no prompt has. Their low byte marks them. Of all other ids 1 in 256 has the
 * same byte. */
enum { CRDT_APART_BYTE = 0x5a };
static inline bool crdt_index_is_apart(uint64_t id)
{
    return (id & 0xff) == CRDT_APART_BYTE;
}
static inline uint64_t crdt_index_id_apart(uint64_t id)
{
    return ((id ^ 0x3c0b5fa5d300) & ~(uint64_t)0xff) | CRDT_APART_BYTE;
}
/* Counts blocks of ids apart and of all others each by themselves from now on, beyond the budget: 8
 * bytes per replica and generation. Walks the table once; later calls do nothing. ERR_NOMEM. */
MUST_USE int crdt_index_split(struct crdt_index *x);
/* The counters of one part; of all ids if crdt_index_split() did not succeed. */
struct crdt_index_ring crdt_index_ring_part(const struct crdt_index *x, unsigned replica,
                                            bool apart);

static inline uint32_t crdt_index_ring_at(const struct crdt_index_ring *ring, uint32_t generation)
{
    return ring->counts[generation & ring->mask];
}

/* --- agreeing with other routers (config.replicated) ---------------------------------------- */

/* The sum modulo 2^64 of one hash of (id48, code, rkey, generation) for each live entry with a
 * generation of at least `from`. Equal sums mean equal entries, but for 2^-64. */
uint64_t crdt_index_digest(const struct crdt_index *x, uint32_t from);
/* The same for the generations from `from` on and below `until`, and for one generation. */
uint64_t crdt_index_digest_between(const struct crdt_index *x, uint32_t from, uint32_t until);
uint64_t crdt_index_digest_at(const struct crdt_index *x, uint32_t generation);
/* Live entries of these generations, of one generation. */
uint64_t crdt_index_entries_between(const struct crdt_index *x, uint32_t from, uint32_t until);
uint64_t crdt_index_entries_at(const struct crdt_index *x, uint32_t generation);

/* Sketches (crdt/sketch.h) are kept per span of ttl / 32 generations, rounded up: routers must have
 * the same TTL. Each router reclaims what its floor has cut of a span at another time. So the
 * sketches that are kept are compared from the first whole span at or above the higher of both
 * floors. This is its first generation. */
uint32_t crdt_index_sketch_from(const struct crdt_index *x, uint32_t floor);
/* The sketch of all entries from there on. What lost caches left behind is in it until the sweeper
 * has passed: symbols of an rkey that nobody has any more. 0.1 ms. */
void crdt_index_sketch(const struct crdt_index *x, uint32_t from, struct crdt_sketch *out);
/* Only its counters, which is far cheaper. */
void crdt_index_estimate(const struct crdt_index *x, uint32_t from,
                         uint8_t out[CRDT_ESTIMATE_COUNTERS]);
/* True if the sketch has at most CRDT_REMAINS_MAX such symbols. Digests never have any. */
bool crdt_index_sketch_is_clean(const struct crdt_index *x);
/* The sketch of the live entries from `from` up to the first whole span, made by a walk of the
 * whole table: some 20 ms a million buckets, if full. False: the table has more than
 * CRDT_CUT_BUCKETS_MAX, so none was made. */
bool crdt_index_sketch_cut(const struct crdt_index *x, uint32_t from, struct crdt_sketch *out);
/* The whole generation of a symbol, of those in memory. */
uint32_t crdt_index_generation_of(const struct crdt_index *x, uint16_t generation_mod_4096);

/* Visits the live entries of the next `buckets` buckets of the table; returns false at its end. For
 * snapshots: a router that joins what a whole walk visits, and all observations since its start,
 * has everything, though entries move in the table meanwhile. The index remembers the last moves
 * (one per KiB of its budget, at most 65,536), and a walk visits their buckets again. If more
 * happened between two calls, it begins anew. A cursor starts as zeroes. */
struct crdt_index_cursor {
    uint32_t bucket;
    uint64_t moves; /* of the table, that the walk has taken notice of */
};
bool crdt_index_walk(const struct crdt_index *x, struct crdt_index_cursor *c, uint32_t buckets,
                     void (*visit)(void *context, uint64_t id48, uint8_t weight_code,
                                   unsigned replica, uint32_t generation),
                     void *context);

/* --- time and memory ------------------------------------------------------------------------ */

/* Moves `now` (never back) and raises the floor to now - ttl. Constant work per generation and
 * replica; only a jump of thousands of generations without a lap of the sweeper walks the table. */
void crdt_index_advance(struct crdt_index *x, uint32_t now_generation);
/* Raises the floor by hand; at most to now + 1. Lower than the present one: nothing happens. */
void crdt_index_floor_raise(struct crdt_index *x, uint32_t floor);
uint32_t crdt_index_now(const struct crdt_index *x);
/* The oldest generation that this index keeps: now - ttl, or later under memory pressure. */
uint32_t crdt_index_floor(const struct crdt_index *x);

/* Moves the clock hand over the next buckets and reclaims what is dead there. Returns how many
 * entries it reclaimed. crdt_index_stats.buckets is one lap. A replicated index goes up to 128
 * times faster while a lost cache is in memory (crdt_index_stats.retired), because until then
 * sketches differ. */
uint32_t crdt_index_sweep(struct crdt_index *x, uint32_t buckets);

struct crdt_index_stats {
    uint64_t bytes_max;   /* the budget */
    uint64_t bytes;       /* allocated, all of it, at most the budget */
    uint64_t bytes_used;  /* of these: fixed parts, slots and sets in use */
    uint64_t buckets;     /* of the table */
    uint64_t slots;       /* 7 per bucket */
    uint64_t slots_limit; /* live slots that raise the floor */
    uint64_t slots_live;  /* entries in the table that are live, or not yet known to be dead */
    uint64_t entries;     /* live (id, code, replica), those in sets too */
    uint64_t promoted;    /* ids that have a set of holders */
    uint64_t inserted;    /* entries ever made; the rest counts since the start too */
    uint64_t apart;       /* of these, under ids apart */
    uint64_t refreshed;   /* entries moved to a newer generation */
    uint64_t refused;     /* ERR_FULL */
    uint64_t stale;       /* ERR_STALE */
    uint64_t future;      /* ERR_RANGE */
    uint64_t expired;     /* live entries that fell below the floor by age */
    uint64_t evicted;     /* live entries that fell below a floor raised for memory */
    uint64_t forgotten;   /* live entries of replicas that lost their cache */
    uint64_t reclaimed;   /* dead entries that gave their memory back */
    uint64_t retired;     /* lost caches that may still have entries in memory */
};
void crdt_index_stats(const struct crdt_index *x, struct crdt_index_stats *out);

#endif
