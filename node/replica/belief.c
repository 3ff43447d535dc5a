#include "node/replica/belief.h"

#include <math.h>
#include <stddef.h>

#include "base/number.h"
#include "node/replica/constants.h"

void node_decay_fill(struct node_decay *d, uint32_t generation_ms, double horizon_s)
{
    const double least = 1e-6; /* a smaller chance counts as 0 */
    double step = exp(-(double)generation_ms / 1000 / horizon_s), left = 1;
    for (unsigned age = 0; age < NODE_DECAY_MAX; age++) {
        d->by_age[age] = (float)left;
        left = left > least ? left * step : 0;
    }
}

void node_belief_init(struct node_belief *b)
{
    *b = (struct node_belief){.factor = 1, .stale = true};
}

/* Possibly cached blocks of the generation: all but void blocks. */
static double count_at(const struct node_belief *b, const struct crdt_index_ring *ring,
                       uint32_t generation)
{
    double count = crdt_index_ring_at(ring, generation);
    for (unsigned i = 0; i < b->void_count; i++) {
        if (b->voids[i].generation == generation)
            count -= b->voids[i].blocks;
    }
    return count > 0 ? count : 0;
}

void node_belief_void(struct node_belief *b, uint64_t id, uint32_t generation, uint32_t blocks)
{
    struct node_void *v = NULL;
    for (unsigned i = 0; i < b->void_count && v == NULL; i++) {
        if (b->voids[i].id == id && (id != 0 || b->voids[i].generation == generation))
            v = &b->voids[i];
    }
    b->stale = true;
    if (v != NULL) {
        v->generation = generation;
        v->blocks += blocks;
        return;
    }
    if (blocks == 0)
        return;
    if (b->void_count < NODE_VOIDS_MAX) {
        v = &b->voids[b->void_count++];
    } else {
        v = &b->voids[0];
        for (unsigned i = 1; i < NODE_VOIDS_MAX; i++)
            v = b->voids[i].generation < v->generation ? &b->voids[i] : v;
    }
    *v = (struct node_void){.id = id, .generation = generation, .blocks = blocks};
}

void node_belief_void_end(struct node_belief *b, uint64_t id)
{
    for (unsigned i = 0; i < b->void_count; i++) {
        if (b->voids[i].id != id)
            continue;
        b->voids[i] = b->voids[--b->void_count];
        b->stale = true;
        return;
    }
}

/* Finds the newest generations that together fit in `size_blocks`, and returns the number of their
 * blocks. Sets *floor to the oldest of them, and *floor_share to the share of the floor's blocks
 * that fit. Sets *first to the floor or, if everything fits, to the oldest generation with any
 * block. */
static double newest_that_fit(const struct node_belief *b, const struct crdt_index_ring *ring,
                              double size_blocks, uint32_t *floor, double *floor_share,
                              uint32_t *first)
{
    double sum = 0;
    uint64_t seen = 0;
    uint32_t generation = ring->newest;
    double share = 1;
    *first = generation;
    for (;; generation--) {
        double count = count_at(b, ring, generation);
        seen += crdt_index_ring_at(ring, generation);
        double room = size_blocks - sum;
        if (count > room)
            share = room / count;
        sum += share * count;
        if (generation == ring->oldest || sum >= size_blocks)
            break;
        if (seen == ring->total) { /* older generations are empty */
            *first = generation;
            generation = ring->oldest;
            break;
        }
        *first = generation - 1;
    }
    *floor = generation;
    *floor_share = share;
    return sum < size_blocks ? sum : size_blocks;
}

void node_belief_refresh(struct node_belief *b, const struct crdt_index_ring *ring,
                         double size_blocks, double near_blocks)
{
    b->size_blocks = size_blocks * b->factor;
    b->present_blocks =
        newest_that_fit(b, ring, b->size_blocks, &b->floor, &b->floor_share, &b->first);
    b->near_floor = 0;
    b->near_share = 1;
    uint32_t ignored;
    if (near_blocks > 0 && near_blocks < b->size_blocks)
        (void)newest_that_fit(b, ring, near_blocks, &b->near_floor, &b->near_share, &ignored);
    b->stale = false;
}

double node_belief_near(const struct node_belief *b, uint32_t generation)
{
    return generation < b->near_floor ? 0 : generation > b->near_floor ? 1 : b->near_share;
}

double node_belief_displaced(const struct node_belief *b, const struct crdt_index_ring *ring,
                             const struct node_decay *decay, double new_blocks, double held_blocks,
                             uint32_t held_generation)
{
    double need = new_blocks - (b->size_blocks - b->present_blocks);
    double wanted = 0;
    /* The index may have dropped b->first since the last count; older generations than ring->oldest
     * do not exist. */
    uint32_t first = b->first > ring->oldest ? b->first : ring->oldest;
    for (uint32_t g = first; need > 0 && g <= ring->newest; g++) {
        double count = count_at(b, ring, g) * (g == b->floor ? b->floor_share : 1);
        if (g == held_generation)
            count = count > held_blocks ? count - held_blocks : 0;
        double go = count < need ? count : need;
        uint32_t age = ring->newest - g;
        wanted += go * (double)decay->by_age[age < NODE_DECAY_MAX ? age : NODE_DECAY_MAX - 1];
        need -= go;
    }
    return wanted;
}

void node_belief_depth(const struct node_belief *b, const struct crdt_index_ring *ring,
                       uint32_t generation, double *newer, double *among)
{
    double sum = 0;
    uint32_t first = generation > ring->oldest ? generation : ring->oldest;
    for (uint32_t g = ring->newest; g > first; g--)
        sum += count_at(b, ring, g);
    *newer = sum;
    *among = first <= ring->newest ? count_at(b, ring, first) : 0;
}

double node_belief_within(const struct node_belief *b, const struct crdt_index_ring *ring,
                          double generations, double begun)
{
    double sum = count_at(b, ring, ring->newest);
    double width = begun;
    for (uint32_t g = ring->newest - 1; g >= ring->oldest && generations > 0; g--) {
        double share = width > 0 ? number_min(generations / width, 1) : 1;
        sum += share * count_at(b, ring, g);
        generations -= width;
        width = 1;
        if (g == 0)
            break;
    }
    return sum;
}

void node_belief_approach(struct node_belief *b, double factor)
{
    double most = log(RULE(SLIGHTLY)), step = log(factor / b->factor) / 4;
    b->factor *= exp(number_max(number_min(step, most), -most));
    b->stale = true;
}
