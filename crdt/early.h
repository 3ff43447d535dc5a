/* This router's observations of caches whose engine has not reported a start time yet: a ring. When
 * full, it drops the oldest.
 *
 * A start time is part of a cache's name (crdt/registry.h), so learning the time renames the cache.
 * The observations under the old name are then forgotten, like those of a lost cache. But the cache
 * is not lost if the engine's process started before the observations. So each router repeats,
 * under the new name, the observations that it made itself. Observations from before the start time
 * or within CRDT_EARLY_SKEW_MS after it are left out, because the start time comes from the
 * engine's clock. A repeated observation is a new change, not a part of joining: deltas carry it to
 * the other routers.
 *
 * Times are cluster time, and move when the clock is set (crdt_early_moved). So a router started
 * with a wrong clock judges the observations again with the right time. If a cache was lost without
 * a new start time (`raises`), the time of the loss is unknown, and the observations are forgotten.
 */
#ifndef CRDT_EARLY_H
#define CRDT_EARLY_H

#include <stdint.h>

#include "base/err.h"

struct crdt_early_point {
    uint64_t point; /* crdt_point() */
    uint64_t at_ms;
    uint32_t generation;
    uint32_t rkey; /* the cache; 0: the place is free */
    uint16_t slot;
};

struct crdt_early {
    struct crdt_early_point *ring; /* CRDT_EARLY_MAX */
    unsigned next;
    unsigned used;  /* places below this number are or were taken */
    unsigned count; /* places that are taken */
};

/* ERR_NOMEM. */
MUST_USE int crdt_early_init(struct crdt_early *e);
void crdt_early_free(struct crdt_early *e);
void crdt_early_copy(struct crdt_early *e, const struct crdt_early *from);

void crdt_early_push(struct crdt_early *e, const struct crdt_early_point *p);
void crdt_early_forget(struct crdt_early *e, unsigned slot);
/* The clock was set: moves the times of all observations by `by_ms`. */
void crdt_early_moved(struct crdt_early *e, int64_t by_ms, uint32_t generation_ms);
/* Removes the point at place `at`, which is below `used`, if there is one. */
void crdt_early_clear(struct crdt_early *e, unsigned at);

#endif
