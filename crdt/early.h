/* Own observations of caches whose engine has not told its start time yet: a ring that forgets the
 * oldest when it is full.
 *
 * A start time is part of a cache's name (crdt/registry.h), so learning it renames the cache, and
 * what was observed under the old name is forgotten as that of a cache that is lost. It need not be
 * lost: the process that was used is the same one, if it began before. So what this router observed
 * it observes again under the new name, but for what is older than the process, or hardly younger
 * (CRDT_EARLY_SKEW_MS): the engine's clock tells when that began. That is a change of its own, no
 * part of joining. Each router does so with its own, and its deltas bring it to the
 * others.
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
