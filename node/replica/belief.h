/* The believed contents of a replica's cache, derived from the index's counters.
 *
 * The index knows in which generation each block was last used at a replica, but not the engine's
 * evictions since. Engines evict the least recently used blocks first. So the newest generations
 * are present, as many as fill the cache, and older generations are gone. The boundary is the
 * belief's *floor*. A new prompt would evict the oldest present blocks.
 *
 *       gone          | present                              | room
 *       ... g-9 g-8   | g-7   g-6   g-5   ...   g-1   g       |
 *                    floor            <- counted down from the newest until the cache is full
 *
 * An engine may have cache tiers beyond the GPU (host memory, a disk). The size is then the sum of
 * all tiers. Blocks too old for the GPU have to be loaded from a tier first.
 *
 * The cache size is the engine's or the configured figure, times a learned factor
 * (node/replica/evidence.h). Sizes here are blocks of 256 bytes; the caller converts tokens. */
#ifndef NODE_REPLICA_BELIEF_H
#define NODE_REPLICA_BELIEF_H

#include <stdbool.h>
#include <stdint.h>

#include "crdt/index.h"

/* Blocks recorded in a generation, but never in the cache: the engine rejected the prompt, or the
 * request ended before the prompt was computed. The index still counts such blocks. */
enum { NODE_VOIDS_MAX = 8 };
struct node_void {
    uint64_t id; /* the prompt's id; 0: several prompts */
    uint32_t generation;
    uint32_t blocks;
};

struct node_belief {
    double factor;         /* learned factor of the cache size; 1 at first */
    double size_blocks;    /* believed size, the factor included */
    double present_blocks; /* blocks believed present */
    uint32_t floor;        /* oldest generation believed present, at least in part */
    double floor_share;    /* present share of the floor's generation, 0..1 */
    uint32_t first;        /* oldest generation with any block; the floor, unless everything fits */
    uint32_t near_floor;   /* the floor of the engine's own memory, if there are more tiers; if not,
                            * 0 */
    double near_share;
    bool stale; /* the index's counters have changed since the last count */
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
/* Notes that the index's counters have changed. */
static inline void node_belief_moved(struct node_belief *b)
{
    b->stale = true;
}

/* Counts the contents again. `size_blocks` is without the factor; `near_blocks` is the size of the
 * engine's own memory. */
void node_belief_refresh(struct node_belief *b, const struct crdt_index_ring *ring,
                         double size_blocks, double near_blocks);

/* Share of a generation's blocks that is in the engine's own memory, not in a further tier;
 * 0..1. */
double node_belief_near(const struct node_belief *b, uint32_t generation);

/* Number of blocks that `new_blocks` new blocks would evict, each weighted with the chance that a
 * request still needs the block. The request's own `held_blocks`, last used in `held_generation`,
 * are used again now and are not evicted. */
double node_belief_displaced(const struct node_belief *b, const struct crdt_index_ring *ring,
                             const struct node_decay *decay, double new_blocks, double held_blocks,
                             uint32_t held_generation);

/* Sets *newer to the number of blocks last used after the generation, and *among to the number last
 * used in that generation. */
void node_belief_depth(const struct node_belief *b, const struct crdt_index_ring *ring,
                       uint32_t generation, double *newer, double *among);

/* Number of blocks last used within the last `generations`. The present generation is the ring's
 * last but one; `begun` is the share of the present generation that has passed. */
double node_belief_within(const struct node_belief *b, const struct crdt_index_ring *ring,
                          double generations, double begun);

/* The prompt is not in the cache, but the index recorded `blocks` new blocks of it in this
 * generation. If the prompt was void before, the entry moves to this generation. */
void node_belief_void(struct node_belief *b, uint64_t id, uint32_t generation, uint32_t blocks);
/* The prompt was computed after all: its blocks count again. */
void node_belief_void_end(struct node_belief *b, uint64_t id);
/* Moves the believed factor one step towards `factor`, so that a single answer never changes the
 * belief about a whole cache by much. */
void node_belief_approach(struct node_belief *b, double factor);

#endif
