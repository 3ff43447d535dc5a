/* Tidings to be sent: short news from router to router, which no router stores. The queue is a
 * bounded ring of bytes. When full, it drops the oldest tiding. Tidings are not part of the
 * replicated state: no digest covers them, and a lost tiding is not sent again.
 *
 * A tiding in the ring is a length (2 bytes), a kind (1) and a body.
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
    size_t head;   /* offset of the oldest tiding */
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
/* Gives the oldest tiding; false: the queue is empty. */
bool crdt_tidings_peek(const struct crdt_tidings *t, struct crdt_tiding *out);
/* Drops the oldest tiding, which was sent. */
void crdt_tidings_take(struct crdt_tidings *t);

#endif
