/* Own observations of caches before the engine reported its start time: a ring that forgets the
 * oldest when it is full.
 *
 * A start time is part of a cache's name (crdt/registry.h), so learning the time renames the cache.
 * The observations under the old name are then forgotten, like those of a lost cache. But the cache
 * is not lost if the process began before them. So this router repeats its own observations under
 * the new name. It leaves out those that are older than the process, or hardly younger
 * (CRDT_EARLY_SKEW_MS): the engine's clock says when the process began. Repeating is a change of
 * its own, no part of joining. Each router repeats its own observations, and its deltas bring them
 * to the others.
 *
 * Times are cluster time, and move with it (crdt_early_moved): a router that starts with a clock
 * that is wrong judges once more when its clock is right. Where the cache was lost otherwise
 * (raises), nothing says when, and what was observed is forgotten.
 */
#ifndef CRDT_EARLY_H
#define CRDT_EARLY_H

#include <stdint.h>

#include "base/err.h"

struct crdt_early_point {
    uint64_t point; /* crdt_point() */
    uint64_t at_ms;
    uint32_t generation;
    uint32_t rkey; /* 0: nothing is here */
    uint16_t slot;
};

struct crdt_early {
    struct crdt_early_point *ring; /* CRDT_EARLY_MAX */
    unsigned next;
    unsigned used;  /* places that are or were taken */
    unsigned count; /* that are */
};

/* ERR_NOMEM. */
MUST_USE int crdt_early_init(struct crdt_early *e);
void crdt_early_free(struct crdt_early *e);
void crdt_early_copy(struct crdt_early *e, const struct crdt_early *from);

void crdt_early_push(struct crdt_early *e, const struct crdt_early_point *p);
void crdt_early_forget(struct crdt_early *e, unsigned slot);
/* The clock was set: what was observed at a time was observed at another one. */
void crdt_early_moved(struct crdt_early *e, int64_t by_ms, uint32_t generation_ms);
/* The point at a place below `used`, where there is one, goes. */
void crdt_early_clear(struct crdt_early *e, unsigned at);

#endif
