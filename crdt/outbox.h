/* Queue of this router's observations to send: a bounded ring of words. A full ring drops the
 * oldest, and anti-entropy brings the dropped observations to the other routers.
 *
 * A run in the ring is a header of two words (count | rkey, generation) and the points.
 * Neighbouring observations of the same cache and generation share a run.
 */
#ifndef CRDT_OUTBOX_H
#define CRDT_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "crdt/run.h"

struct crdt_outbox {
    uint64_t *word;
    size_t words;
    size_t head; /* offset of the oldest run */
    size_t used;
    size_t last; /* offset of the newest run, if any */
    uint64_t dropped;
};

/* ERR_NOMEM. */
MUST_USE int crdt_outbox_init(struct crdt_outbox *o, uint64_t bytes);
void crdt_outbox_free(struct crdt_outbox *o);
void crdt_outbox_check(const struct crdt_outbox *o);

void crdt_outbox_push(struct crdt_outbox *o, uint32_t rkey, uint32_t generation, uint64_t point);

/* The front of the oldest run; `count` is 0 if the queue is empty. */
struct crdt_outbox_run {
    uint32_t rkey;
    uint32_t generation;
    unsigned count; /* points copied; the run may have more */
    uint64_t points[CRDT_RUN_MAX];
};
void crdt_outbox_peek(const struct crdt_outbox *o, struct crdt_outbox_run *out);
/* The first `count` points of the oldest run are sent: drops them. */
void crdt_outbox_take(struct crdt_outbox *o, unsigned count);

#endif
