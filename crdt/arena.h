/* A buddy allocator over one preallocated run of 64-byte units, for the holder sets.
 *
 * The arena hands out pieces of 64 << order bytes, aligned to that size, with an order up to the
 * `top` given at the start. The number of a piece is the number of the first unit in it. Memory
 * never handed out is never touched. (Knuth, The Art of Computer Programming, volume 1, section
 * 2.5.)
 */
#ifndef CRDT_ARENA_H
#define CRDT_ARENA_H

#include <stdint.h>

#include "base/err.h"

enum {
    CRDT_UNIT_BYTES = 64,
    CRDT_ORDERS_MAX = 7, /* 64 bytes to 4 KiB */
};

#define CRDT_ARENA_NONE UINT32_MAX

struct crdt_arena {
    void *memory;   /* what to free */
    uint8_t *base;  /* 64-byte aligned */
    uint8_t *order; /* order of each piece, at the place of the piece's first unit */
    uint32_t units;
    uint32_t fresh; /* units from this number on were never handed out */
    uint32_t used;  /* units in allocated pieces */
    uint32_t top;
    uint32_t free[CRDT_ORDERS_MAX]; /* by order: head of a doubly linked list of free pieces */
};

/* Bytes allocated by an arena of `units` units. */
uint64_t crdt_arena_bytes(uint32_t units);
/* Rounds `units` down to a multiple of the largest piece, 1 << top units. ERR_NOMEM. */
MUST_USE int crdt_arena_init(struct crdt_arena *a, uint32_t units, unsigned top);
void crdt_arena_free(struct crdt_arena *a);
void crdt_arena_check(const struct crdt_arena *a);

/* Returns a piece with undefined contents, or CRDT_ARENA_NONE if the arena has no free piece of
 * this order. */
uint32_t crdt_arena_take(struct crdt_arena *a, unsigned order);
void crdt_arena_give_back(struct crdt_arena *a, uint32_t unit);

static inline unsigned crdt_arena_order(const struct crdt_arena *a, uint32_t unit)
{
    return a->order[unit];
}

static inline void *crdt_arena_at(const struct crdt_arena *a, uint32_t unit)
{
    return a->base + (uint64_t)unit * CRDT_UNIT_BYTES;
}

#endif
