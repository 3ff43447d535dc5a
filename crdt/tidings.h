/* Tidings that wait to be sent: what routers tell each other and do not keep. A bounded ring of
 * bytes; when it is full the oldest are dropped. They are no state: lost is lost, no digest has
 * them, and nobody is asked for them again.
 *
 * A tiding lies in it as its length (2 bytes), its kind (1) and its body.
 */
#ifndef CRDT_TIDINGS_H
#define CRDT_TIDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "crdt/limits.h"

struct crdt_tidings {
    uint8_t *byte; /* CRDT_TIDINGS_BYTES */
    size_t head;   /* where the oldest begins */
    size_t used;
    uint64_t dropped;
};

/* ERR_NOMEM. */
MUST_USE int crdt_tidings_init(struct crdt_tidings *t);
void crdt_tidings_free(struct crdt_tidings *t);
void crdt_tidings_check(const struct crdt_tidings *t);

/* `body` has at most CRDT_TIDING_MAX bytes. */
void crdt_tidings_push(struct crdt_tidings *t, uint8_t kind, struct slice body);

struct crdt_tiding {
    uint8_t kind;
    size_t len;
    uint8_t body[CRDT_TIDING_MAX];
};
/* The oldest; false: nothing waits. */
bool crdt_tidings_peek(const struct crdt_tidings *t, struct crdt_tiding *out);
/* The oldest is sent: drops it. */
void crdt_tidings_take(struct crdt_tidings *t);

#endif
