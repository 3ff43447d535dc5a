/* Which entries are alive: the present, the floor, and the incarnation of each replica.
 *
 * An entry carries a stamp of 26 bits:
 *
 *     replica 11 | incarnation 3 | generation 12
 *
 * The generation is kept modulo 4,096 and read back as an age below now + 1. The age is exact,
 * because the index never lets stamps in memory span more. The incarnation makes forgetting a
 * replica a single assignment: only a stamp with the replica's present incarnation is alive. No
 * replica gets incarnation 7, so a stamp of all ones is dead and can mark empty places.
 */
#ifndef CRDT_WINDOW_H
#define CRDT_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    CRDT_GENERATIONS = 4096,
    CRDT_GENERATION_MASK = CRDT_GENERATIONS - 1,
    CRDT_INCARNATIONS = 7,
    CRDT_INCARNATION_MASK = 7 << 12, /* bits of the incarnation in a stamp */
    CRDT_WINDOW_REPLICAS = 2048,
    CRDT_STAMP_BITS = 26,
    CRDT_STAMP_LOW_BITS = 15, /* bits below the replica number: incarnation and generation */
    CRDT_STAMP_LOW_MASK = (1 << CRDT_STAMP_LOW_BITS) - 1,
};
_Static_assert((uint64_t)CRDT_WINDOW_REPLICAS << CRDT_STAMP_LOW_BITS == 1ull << CRDT_STAMP_BITS,
               "replica 11, incarnation 3, generation 12");
_Static_assert(((int)CRDT_INCARNATION_MASK | (int)CRDT_GENERATION_MASK) == (int)CRDT_STAMP_LOW_MASK,
               "incarnation 3, generation 12");
_Static_assert(CRDT_INCARNATIONS == CRDT_INCARNATION_MASK >> 12,
               "all-ones is the incarnation of no stamp");

struct crdt_window {
    uint32_t now;
    uint32_t floor;                             /* at most now + 1, except while `now` jumps */
    uint16_t newest;                            /* (now + 1) modulo 4,096 */
    uint16_t limit;                             /* stamps below this age are alive; at most 4,095 */
    uint16_t incarnation[CRDT_WINDOW_REPLICAS]; /* already shifted to the place in a stamp */
};

void crdt_window_set(struct crdt_window *w, uint32_t now, uint32_t floor);

static inline uint32_t crdt_stamp(const struct crdt_window *w, unsigned replica,
                                  uint32_t generation)
{
    return (uint32_t)replica << CRDT_STAMP_LOW_BITS | w->incarnation[replica] |
           (generation & CRDT_GENERATION_MASK);
}

static inline unsigned crdt_stamp_replica(uint32_t stamp)
{
    return stamp >> CRDT_STAMP_LOW_BITS & (CRDT_WINDOW_REPLICAS - 1u);
}

static inline unsigned crdt_stamp_incarnation(uint32_t stamp)
{
    return (stamp & CRDT_INCARNATION_MASK) >> 12;
}

/* Age of a stamp, counted back from generation now + 1, if the stamp has the present `incarnation`.
 * Otherwise at least 4,096. `stamp`: the lower 15 bits of the stamp. */
static inline uint16_t crdt_stamp_age(uint16_t stamp, uint16_t incarnation, uint16_t newest)
{
    uint16_t x = stamp ^ incarnation;
    return (uint16_t)(((newest - x) & CRDT_GENERATION_MASK) | (x & CRDT_INCARNATION_MASK));
}

static inline bool crdt_stamp_alive(const struct crdt_window *w, uint32_t stamp)
{
    return crdt_stamp_age((uint16_t)stamp, w->incarnation[crdt_stamp_replica(stamp)], w->newest) <
           w->limit;
}

/* The generation of a stamp in memory, alive or dead. */
static inline uint32_t crdt_stamp_generation(const struct crdt_window *w, uint32_t stamp)
{
    return w->now + 1 - ((w->newest - stamp) & CRDT_GENERATION_MASK);
}

#endif
