/* What a replica's cache is believed to hold, worked out from the counters of the index.
 *
 * The index knows in which generation each block was last used at a replica, but not what the
 * engine has evicted since. Engines evict the least recently used first. So the newest generations
 * that fill the cache are present, older ones are gone. The boundary is the belief's *floor*. A new
 * prompt would push out the oldest present ones.
 *
 *     gone          | present                              | room
 *     ... g-9 g-8   | g-7   g-6   g-5   ...   g-1   g       |
 *                  floor            <- counted down from the newest until the cache is full
 *
 * An engine may have tiers behind its own memory (that of the host, a disk). Then the whole size is
 * that of all tiers, and what is older than its own memory holds has to be brought back first.
 *
 * The size of the cache is the engine's own figure, or the configured one, times a factor that is
 * learned (node/replica/evidence.h). Sizes here are blocks of 256 bytes; the caller converts
 * tokens.
 */
#ifndef NODE_REPLICA_BELIEF_H
#define NODE_REPLICA_BELIEF_H

#include <stdbool.h>
#include <stdint.h>

#include "crdt/index.h"

/* Blocks that were recorded in a generation and never came to be in the cache: their prompt was
 * refused, or given up before it was computed. The index keeps them. */
enum { NODE_VOIDS_MAX = 8 };
struct node_void {
    uint64_t id; /* of the prompt; 0: of several */
    uint32_t generation;
    uint32_t blocks;
};

struct node_belief {
    double factor;         /* 1 at first */
    double size_blocks;    /* believed size, the factor included */
    double present_blocks; /* believed present */
    uint32_t floor;        /* oldest generation believed present, at least in part */
    double floor_share;    /* how much of that one, 0..1 */
    uint32_t first;        /* oldest one with anything; the floor, unless all fits */
    uint32_t near_floor; /* as the floor and its share, of the engine's own memory, where tiers are
                            behind it; 0 and 1 where none are */
    double near_share;
    bool stale; /* the counters have changed since */
    unsigned void_count;
    struct node_void voids[NODE_VOIDS_MAX];
};

/* exp(-age / horizon) by age in generations. */
enum { NODE_DECAY_MAX = CRDT_TTL_MAX + 2 };
struct node_decay {
    float by_age[NODE_DECAY_MAX];
};
void node_decay_fill(struct node_decay *d, uint32_t generation_ms, double horizon_s);

void node_belief_init(struct node_belief *b);
/* The counters have changed. */
static inline void node_belief_moved(struct node_belief *b)
{
    b->stale = true;
}

/* Counts again. `size_blocks` is without the factor, `near_blocks` that of the engine's own memory.
 */
void node_belief_refresh(struct node_belief *b, const struct crdt_index_ring *ring,
                         double size_blocks, double near_blocks);

/* How much of what was last used in that generation is in the engine's own memory, 0..1. */
double node_belief_near(const struct node_belief *b, uint32_t generation);

/* Blocks that `new_blocks` would push out, each weighted with the chance that a request still wants
 * it. The request's own `held_blocks`, last used in `held_generation`, are used again now and so
 * are not pushed out. */
double node_belief_displaced(const struct node_belief *b, const struct crdt_index_ring *ring,
                             const struct node_decay *decay, double new_blocks, double held_blocks,
                             uint32_t held_generation);

/* Blocks that were used after those of a generation, and those of that one. */
void node_belief_depth(const struct node_belief *b, const struct crdt_index_ring *ring,
                       uint32_t generation, double *newer, double *among);

/* Blocks that were used within so many generations; `begun` is how much of the present one, the one
 * before the ring's newest, is over. */
double node_belief_within(const struct node_belief *b, const struct crdt_index_ring *ring,
                          double generations, double begun);

/* The prompt, recorded in this generation with so many blocks that were new, is not in the cache.
 * One that was void before moved to this generation. */
void node_belief_void(struct node_belief *b, uint64_t id, uint32_t generation, uint32_t blocks);
/* It was computed after all. */
void node_belief_void_end(struct node_belief *b, uint64_t id);
/* What is known of the factor now: the belief goes there in steps, so that one answer never moves
 * what is believed of a whole cache by much. */
void node_belief_approach(struct node_belief *b, double factor);

#endif
