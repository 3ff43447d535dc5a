/* This node's deltas, kept for peers that missed some: the last `bytes_max` bytes. The oldest are
 * dropped first.
 *
 * Invariant: the ring holds the deltas first .. next - 1 without a gap.
 */
#ifndef GOSSIP_RING_H
#define GOSSIP_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

struct gossip_ring {
    uint8_t *bytes; /* a delta never wraps around the end */
    uint64_t bytes_max;
    uint64_t bytes_used;
    uint64_t at; /* offset of the next delta */
    struct gossip_ring_place {
        uint32_t offset, len;
    } * places; /* delta number n is at n & (cap - 1) */
    uint64_t cap;
    uint64_t first, next;
};

/* `bytes_max` is at least GOSSIP_DELTA_MAX and below 2^32. ERR_NOMEM. */
MUST_USE int gossip_ring_init(struct gossip_ring *r, uint64_t bytes_max);
void gossip_ring_free(struct gossip_ring *r);
/* Empties the ring; the next number is 1. */
void gossip_ring_restart(struct gossip_ring *r);
/* Stores a copy of the delta under the next number. Returns this number, or 0 if out of memory. */
uint64_t gossip_ring_put(struct gossip_ring *r, struct slice delta);
/* False: the delta is no longer in the ring. `out` is borrowed until the next put. */
bool gossip_ring_get(const struct gossip_ring *r, uint64_t seq, struct slice *out);
void gossip_ring_check(const struct gossip_ring *r);

#endif
