/* The prefix index: which replica holds which prompt prefix, and when this was last observed.
 *
 * As a value it is a map
 *
 *     (id48, weight code, replica) -> generation
 *
 * The id is the low 48 bits of a checkpoint of a prompt (base/chain.h). The generation is a slice
 * of cluster time (8 s by default). Each entry is the maximum of all observations of it, so their
 * order does not matter and a repeated observation changes nothing. An entry older than the *floor*
 * is absent at once, and the floor only rises. The weight code is part of the key (honest peers
 * always give an id the same code), so no tie is ever broken.
 *
 * The index has a preallocated table of 64-byte buckets with 7 entries of 8 bytes each, and sets
 * for ids held by many replicas. Counters of blocks per replica and generation follow from the
 * entries. Nothing grows at run time. crdt/README.md explains the structure.
 *
 * Use: create; crdt_index_advance() when the generation changes; observe and match;
 * crdt_index_sweep() a few buckets at a time, so that a lap takes less than the TTL;
 * crdt_index_forget() when a replica has lost the cache.
 *
 * Invariants (crdt_index_check):
 *   1. A live entry has floor <= generation <= now + 1, and the replica's current incarnation.
 *      Everything else in the table is dead: never counted, never matched, reclaimed when met.
 *   2. No (id, code, replica) has two live entries.
 *   3. Counters equal a recount of the live entries.
 *   4. The floor and `now` never go back; generations in memory span less than 4,096.
 *   5. Memory in use never exceeds the budget. When the table is loaded to the limit, the floor
 *      rises, which drops the oldest generations. crdt_index_floor() returns the raised floor.
 *   6. Replicated: the digests equal a recount of the live entries. The sketch of each span of
 *      generations not below the floor is the XOR of the symbols of the span's entries in memory,
 *      with the dead entries of earlier caches.
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
    uint64_t bytes_max;       /* budget for everything allocated by the index */
    uint32_t replicas_max;    /* slots are 0 .. replicas_max - 1; at most CRDT_REPLICAS_MAX */
    uint32_t ttl_generations; /* 1 .. CRDT_TTL_MAX; the floor follows `now` at this distance */
    uint32_t generation;      /* the present generation at creation */
    bool replicated;          /* true: keeps digests and sketches, within the budget */
};

struct crdt_index;

/* ERR_RANGE: a setting is out of bounds. ERR_LIMIT: the budget is too small for the counters and a
 * first few buckets (crdt_index_bytes_ample()). ERR_NOMEM.
 *
 * Routers compare ids, so crdt_index_id_ranges() must be the same at all of them. */
MUST_USE int crdt_index_create(struct crdt_index **out, const struct crdt_index_config *config);
/* A budget that is never too small: 8 bytes per replica and generation (the number of generations,
 * plus 2, rounded up to a power of two), and 3 MiB. A replicated index gets twice as much, for a
 * digest per count and 34 sketches of 93 KB. */
uint64_t crdt_index_bytes_ample(unsigned replicas, uint64_t generations, bool replicated);
/* The number of bucket ranges to which ids are mapped. In a table of 65,536 buckets (4 MiB) or
 * more, it is 65,536, and ids are exact. In a smaller table it is the number of buckets, and only
 * tables of equal size have the same ids. */
uint32_t crdt_index_id_ranges(const struct crdt_index *x);
void crdt_index_destroy(struct crdt_index *x);
/* The table's whole memory, untouched before the first observation. Look-ups access it at random,
 * so a caller may ask the system for huge pages there. */
void crdt_index_memory(const struct crdt_index *x, void **at, uint64_t *bytes);
/* Walks everything. For tests, fuzzers and the simulator. */
void crdt_index_check(const struct crdt_index *x);

/* --- learning ------------------------------------------------------------------------------- */

/* Joins an observation. Returns 1 if it strictly inflated the index (new, or newer than known), 0
 * if nothing was new; ERR_STALE below the floor; ERR_RANGE beyond now + 1 (never clamped, because
 * the result would depend on the receiver's clock); ERR_FULL: no room. The three errors are counted
 * and change nothing else, but an attempt to make room may have raised the floor. */
MUST_USE int crdt_index_observe(struct crdt_index *x, uint64_t id, unsigned replica,
                                uint8_t weight_code, uint32_t generation);

/* Joins all points of a prompt for a replica, several times faster than point by point. Returns how
 * many strictly inflated the index, or ERR_STALE or ERR_RANGE; points that find no room are only
 * counted. `inflated`, if not NULL, has CHAIN_POINTS_MAX bits. The bits of inflating points become
 * 1, the others 0. */
MUST_USE int crdt_index_observe_chain(struct crdt_index *x, const struct chain *chain,
                                      unsigned replica, uint32_t generation, uint64_t *inflated);

/* Joins `count` observations of a single replica and generation, as a delta or a snapshot carries
 * them. Returns how many strictly inflated the index, or ERR_STALE or ERR_RANGE. `inflated`, if not
 * NULL, has (count + 63) / 64 words with a bit for each observation, 1 if it inflated the index. */
MUST_USE int crdt_index_observe_run(struct crdt_index *x, const uint64_t *ids, const uint8_t *codes,
                                    unsigned count, unsigned replica, uint32_t generation,
                                    uint64_t *inflated);

/* Asks the processor to load the memory for `id`, for callers that pass observations singly.
 * Prefetch each id about 16 ids before passing the id to crdt_index_observe(). */
void crdt_index_prefetch(const struct crdt_index *x, uint64_t id);

/* The replica's cache is empty after a restart: all entries of the replica are absent at once.
 * `rkey` names the replica's new cache (crdt/registry.h) and must never have named an earlier
 * cache. A replica's first cache gets a name the same way, before the first entry. */
void crdt_index_forget(struct crdt_index *x, unsigned replica, uint32_t rkey);

/* --- asking --------------------------------------------------------------------------------- */

/* Finds the longest known prefix of the prompt on every replica below `replicas`, in a single pass.
 * length_out[r] = 1 + the index of the last point on r with a generation of at least
 * floor_by_replica[r] (NULL: any live generation); 0: no point. generation_out (may be NULL) gets
 * the generation of that point, or 0. */
void crdt_index_match(const struct crdt_index *x, const struct chain *chain,
                      const uint32_t *floor_by_replica, unsigned replicas, uint16_t *length_out,
                      uint32_t *generation_out);

/* For a prompt in chunks (base/chain.h): finds the part held by each replica below `replicas`, at
 * any position. blocks_out[r] is the weight of the chunks on r with a generation of at least
 * floor_by_replica[r] (NULL: any live generation). generation_out[r] is the oldest generation of
 * those chunks, or 0. */
void crdt_index_cover(const struct crdt_index *x, const struct chain *chain,
                      const uint32_t *floor_by_replica, unsigned replicas, uint32_t *blocks_out,
                      uint32_t *generation_out);

/* Sets *generation_out to the generation of a live entry. ERR_NOT_FOUND. */
MUST_USE int crdt_index_get(const struct crdt_index *x, uint64_t id, unsigned replica,
                            uint8_t weight_code, uint32_t *generation_out);

/* Sets *replica_out to the replica with the newest generation of (id, code), and *generation_out to
 * this generation. Of several such replicas, takes the replica with the greatest rkey, so that all
 * routers get the same. ERR_NOT_FOUND. For bindings (CHECKPOINT_CODE_BINDING).
 */
MUST_USE int crdt_index_newest(const struct crdt_index *x, uint64_t id, uint8_t weight_code,
                               unsigned *replica_out, uint32_t *generation_out);

/* Calls `visit` for every live entry, in table order. Ids are exact from 65,536 buckets (4 MiB) on;
 * smaller tables (tests) distinguish ids only by 32 + log2(buckets) bits. */
void crdt_index_each(const struct crdt_index *x,
                     void (*visit)(void *context, uint64_t id48, uint8_t weight_code,
                                   unsigned replica, uint32_t generation),
                     void *context);

/* Blocks (of 256 bytes) that the replica was last seen using in this generation; 0 outside of floor
 * .. now + 1. */
uint64_t crdt_index_blocks(const struct crdt_index *x, unsigned replica, uint32_t generation);
/* Blocks of the replica in all generations. */
uint64_t crdt_index_blocks_total(const struct crdt_index *x, unsigned replica);

/* A replica's counters, for walking from `newest` (now + 1) down to `oldest` (the floor), both
 * included. Borrowed until the next call that is not const. */
struct crdt_index_ring {
    const uint32_t *counts;
    uint32_t mask;
    uint32_t newest;
    uint32_t oldest;
    uint64_t total; /* sum over all generations: a walk that has counted this many may end */
};
struct crdt_index_ring crdt_index_ring(const struct crdt_index *x, unsigned replica);

/* --- ids apart -------------------------------------------------------------------------------
 *
 * Hypothetical observations, such as of the caches as another policy would have filled them. They
 * are in the same map, under ids that no prompt has. The low byte of ids apart is CRDT_APART_BYTE,
 * as in 1 of 256 ordinary ids. */
enum { CRDT_APART_BYTE = 0x5a };
static inline bool crdt_index_is_apart(uint64_t id)
{
    return (id & 0xff) == CRDT_APART_BYTE;
}
static inline uint64_t crdt_index_id_apart(uint64_t id)
{
    return ((id ^ 0x3c0b5fa5d300) & ~(uint64_t)0xff) | CRDT_APART_BYTE;
}
/* From now on also counts blocks of ids apart and of all other ids separately. The counters take 8
 * bytes per replica and generation beyond the budget. The first call walks the table; later calls
 * do nothing. ERR_NOMEM. */
MUST_USE int crdt_index_split(struct crdt_index *x);
/* The counters of ids apart, or of all other ids. If crdt_index_split() did not succeed, the
 * counters of all ids. */
struct crdt_index_ring crdt_index_ring_part(const struct crdt_index *x, unsigned replica,
                                            bool apart);

static inline uint32_t crdt_index_ring_at(const struct crdt_index_ring *ring, uint32_t generation)
{
    return ring->counts[generation & ring->mask];
}

/* --- agreeing with other routers (config.replicated) ---------------------------------------- */

/* The sum modulo 2^64 of a hash of (id48, code, rkey, generation) for each live entry with a
 * generation of at least `from`. Equal sums mean equal entries, except with a chance of 2^-64. */
uint64_t crdt_index_digest(const struct crdt_index *x, uint32_t from);
/* crdt_index_digest_between(): the digest of the generations from `from` on and below `until`.
 * crdt_index_digest_at(): the digest of a single generation. */
uint64_t crdt_index_digest_between(const struct crdt_index *x, uint32_t from, uint32_t until);
uint64_t crdt_index_digest_at(const struct crdt_index *x, uint32_t generation);
/* crdt_index_entries_between(): the number of live entries of the generations from `from` on and
 * below `until`. crdt_index_entries_at(): the number of a single generation. */
uint64_t crdt_index_entries_between(const struct crdt_index *x, uint32_t from, uint32_t until);
uint64_t crdt_index_entries_at(const struct crdt_index *x, uint32_t generation);

/* Sketches (crdt/sketch.h) are kept per span of ttl / 32 generations, rounded up: routers must have
 * the same TTL. A floor may cut a span, and each router reclaims the part below at another time. So
 * the sketches of spans are compared from the first whole span at or above the higher of both
 * floors. Returns the first generation of this span. */
uint32_t crdt_index_sketch_from(const struct crdt_index *x, uint32_t floor);
/* Gives the sketch of all entries from generation `from` on. Until the sweeper removes them, the
 * sketch includes the entries of lost caches: symbols with an rkey that belongs to no replica any
 * more. Takes 0.1 ms. */
void crdt_index_sketch(const struct crdt_index *x, uint32_t from, struct crdt_sketch *out);
/* Gives only the counters of crdt_index_sketch(), which is far cheaper. */
void crdt_index_estimate(const struct crdt_index *x, uint32_t from,
                         uint8_t out[CRDT_ESTIMATE_COUNTERS]);
/* True if the sketch has at most CRDT_REMAINS_MAX symbols of lost caches. Digests never include
 * entries of lost caches. */
bool crdt_index_sketch_is_clean(const struct crdt_index *x);
/* Gives the sketch of the live entries from generation `from` up to the first whole span. Walks the
 * whole table: about 20 ms per million full buckets. False: no sketch, because the table has more
 * than CRDT_CUT_BUCKETS_MAX buckets. */
bool crdt_index_sketch_cut(const struct crdt_index *x, uint32_t from, struct crdt_sketch *out);
/* Returns the full generation of a symbol in memory. The symbol itself has only the generation
 * modulo 4,096. */
uint32_t crdt_index_generation_of(const struct crdt_index *x, uint16_t generation_mod_4096);

/* Visits the live entries of the next `buckets` buckets of the table; returns false at the table's
 * end. For snapshots: a router that joins all entries of a walk, and all observations since the
 * walk began, has everything, although entries move in the table meanwhile. The index remembers the
 * last moves (1 per KiB of the budget, at most 65,536), and a walk visits their buckets again. If
 * more moves happened between two calls, the walk starts again. A cursor starts as zeroes. */
struct crdt_index_cursor {
    uint32_t bucket;
    uint64_t moves; /* moves in the table that the walk has handled */
};
bool crdt_index_walk(const struct crdt_index *x, struct crdt_index_cursor *c, uint32_t buckets,
                     void (*visit)(void *context, uint64_t id48, uint8_t weight_code,
                                   unsigned replica, uint32_t generation),
                     void *context);

/* --- time and memory ------------------------------------------------------------------------ */

/* Moves `now` (never back) and raises the floor to now - ttl. Constant work per generation and
 * replica; only a jump of thousands of generations without a lap of the sweeper walks the table. */
void crdt_index_advance(struct crdt_index *x, uint32_t now_generation);
/* Raises the floor by hand, at most to now + 1. A `floor` below the present floor changes
 * nothing. */
void crdt_index_floor_raise(struct crdt_index *x, uint32_t floor);
uint32_t crdt_index_now(const struct crdt_index *x);
/* The oldest generation that this index keeps: now - ttl, or later under memory pressure. */
uint32_t crdt_index_floor(const struct crdt_index *x);

/* Moves the clock hand over the next buckets and reclaims the dead entries there. Returns how many
 * entries it reclaimed. A lap has crdt_index_stats.buckets buckets. While entries of a lost cache
 * are in memory (crdt_index_stats.retired), a replicated index sweeps up to 128 times as many
 * buckets, because such entries make sketches differ. */
uint32_t crdt_index_sweep(struct crdt_index *x, uint32_t buckets);

struct crdt_index_stats {
    uint64_t bytes_max;   /* the budget */
    uint64_t bytes;       /* allocated bytes, at most bytes_max, without split_bytes */
    uint64_t split_bytes; /* counters allocated by crdt_index_split(); 0: not split */
    uint64_t bytes_used;  /* part of `bytes`: fixed parts, slots and sets in use */
    uint64_t buckets;     /* buckets of the table */
    uint64_t slots;       /* places for entries, 7 per bucket */
    uint64_t slots_limit; /* the floor rises when slots_live reaches this */
    uint64_t slots_live;  /* entries in the table that are live, or not yet known to be dead */
    uint64_t entries;     /* live (id, code, replica), in the table and in sets */
    uint64_t promoted;    /* ids with a set of holders */
    uint64_t inserted;    /* since the start: entries made */
    uint64_t apart;       /* since the start: entries made under ids apart, part of `inserted` */
    uint64_t refreshed;   /* since the start: entries moved to a newer generation */
    uint64_t refused;     /* since the start: observations refused with ERR_FULL */
    uint64_t stale;       /* since the start: observations refused with ERR_STALE */
    uint64_t future;      /* since the start: observations refused with ERR_RANGE */
    uint64_t expired;     /* since the start: live entries that fell below the floor by age */
    uint64_t evicted;     /* since the start: live entries below a floor raised for memory */
    uint64_t forgotten;   /* since the start: live entries of lost caches */
    uint64_t reclaimed;   /* since the start: dead entries whose memory was freed */
    uint64_t retired;     /* now: lost caches that may still have entries in memory */
};
void crdt_index_stats(const struct crdt_index *x, struct crdt_index_stats *out);

#endif
