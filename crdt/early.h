/* This router's observations of caches before the engine reported its start time: a ring that drops
 * the oldest when it is full.
 *
 * A start time is part of a cache's name (crdt/registry.h), so learning the time renames the cache.
 * The observations under the old name are then forgotten, like those of a lost cache. But the cache
 * is not lost if the engine's process started before the observations. So this router repeats its
 * own observations under the new name. Observations from before the start time or within
 * CRDT_EARLY_SKEW_MS after it are left out, because the start time comes from the engine's clock.
 * Repeating is a change of its own, not a part of joining. Each router repeats its own
 * observations, and its deltas bring them to the others.
 *
 * Times are cluster time, and move with it (crdt_early_moved): a router that starts with a wrong
 * clock judges again when the clock is set. If a cache was lost without a new start time
 * (`raises`), nothing says when, and its observations are forgotten.
 */
#ifndef CRDT_EARLY_H
#define CRDT_EARLY_H

#include <stdint.h>

#include "base/err.h"

struct crdt_early_point {
    uint64_t point; /* crdt_point() */
    uint64_t at_ms;
    uint32_t generation;
    uint32_t rkey; /* 0: the place is free */
    uint16_t slot;
};

struct crdt_early {
    struct crdt_early_point *ring; /* CRDT_EARLY_MAX */
    unsigned next;
    unsigned used;  /* places from 0 on that are or were taken */
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
