#include "node/replica/belief.h"

#include <math.h>

static const double factor_min = 0.25, factor_max = 1.5;
static const double correction_gain = 0.25; /* of the error, in units of the cache */
static const double correction_grain = 1.0 / 16;
static const double recovery_s = 1800;

void node_decay_fill(struct node_decay *d, uint32_t generation_ms, uint32_t horizon_ms)
{
    for (unsigned age = 0; age < NODE_DECAY_MAX; age++)
        d->by_age[age] = (float)exp(-(double)age * generation_ms / horizon_ms);
}

void node_belief_init(struct node_belief *b)
{
    *b = (struct node_belief){.factor = 1, .stale = true};
}

/* The newest generations that fill `size_blocks`. Returns what they hold of it. */
static double newest_that_fit(const struct crdt_index_ring *ring, double size_blocks,
                              uint32_t *floor, double *floor_share)
{
    double sum = 0;
    uint64_t seen = 0;
    uint32_t generation = ring->newest;
    double share = 1;
    for (;; generation--) {
        double count = crdt_index_ring_at(ring, generation);
        seen += crdt_index_ring_at(ring, generation);
        double room = size_blocks - sum;
        if (count > room)
            share = room / count;
        sum += share * count;
        if (generation == ring->oldest || sum >= size_blocks)
            break;
        if (seen == ring->total) { /* older ones are empty */
            generation = ring->oldest;
            break;
        }
    }
    *floor = generation;
    *floor_share = share;
    return sum < size_blocks ? sum : size_blocks;
}

void node_belief_refresh(struct node_belief *b, const struct crdt_index_ring *ring,
                         double size_blocks)
{
    b->size_blocks = size_blocks * b->factor;
    b->present_blocks = newest_that_fit(ring, b->size_blocks, &b->floor, &b->floor_share);
    b->near_floor = 0;
    b->near_share = 1;
    if (b->near_blocks > 0 && b->near_blocks < b->size_blocks)
        (void)newest_that_fit(ring, b->near_blocks, &b->near_floor, &b->near_share);
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
    /* The index may have dropped generations since the last count, and its ring has no others. */
    uint32_t first = b->floor > ring->oldest ? b->floor : ring->oldest;
    for (uint32_t g = first; need > 0 && g <= ring->newest; g++) {
        double count = crdt_index_ring_at(ring, g) * (g == b->floor ? b->floor_share : 1);
        if (g == held_generation)
            count = count > held_blocks ? count - held_blocks : 0;
        double go = count < need ? count : need;
        uint32_t age = ring->newest - g;
        wanted += go * (double)decay->by_age[age < NODE_DECAY_MAX ? age : NODE_DECAY_MAX - 1];
        need -= go;
    }
    return wanted;
}

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

void node_belief_follow(struct node_belief *b, double step)
{
    b->factor = clamp(b->factor * exp(step), factor_min, factor_max);
    b->stale = true;
}

double node_belief_correct(struct node_belief *b, double prompt, double predicted, double actual,
                           double size_tokens)
{
    double error = actual - predicted;
    double grain = prompt * correction_grain;
    if (!(size_tokens > 0) || fabs(error) <= grain)
        return 0;
    error -= error > 0 ? grain : -grain;
    if (error > 0 && b->present_blocks < 0.95 * b->size_blocks)
        return 0;
    double step = clamp(correction_gain * error / size_tokens, -0.2, 0.2);
    node_belief_follow(b, step);
    return step;
}

void node_belief_factor_set(struct node_belief *b, double factor)
{
    b->factor = clamp(factor, factor_min, factor_max);
    b->stale = true;
}

void node_belief_recover(struct node_belief *b, double seconds)
{
    b->factor = exp(log(b->factor) * exp(-seconds / recovery_s));
}
