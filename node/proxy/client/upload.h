/* How a body arrives: its pace, so that the slow ones are known. Time in which we hold the client
 * back does not count. All uploads that are not whole stand in one list, in the order in which they
 * began: the queue of PROXY_CLIENT_BODY_TOTAL. A body that comes with its head in one read is never
 * in it.
 */
#ifndef NODE_PROXY_CLIENT_UPLOAD_H
#define NODE_PROXY_CLIENT_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"

enum {
    UPLOAD_RATE_MS = 30000, /* client-body-rate-min is averaged over so long, at least */
    UPLOAD_PACE_MS = 5000,  /* the present pace: over one or two of these */
};

/* Bytes since then. */
struct upload_window {
    uint64_t since_ms;
    uint64_t bytes;
};

struct upload {
    struct deadline total; /* in the list while it is armed */
    uint64_t since_ms;     /* when it began; moved on by the time in which it was held */
    uint64_t held_ms;      /* since when it is held back; 0: it is not */
    uint64_t last_ms;      /* when bytes came last; moved on likewise */
    struct upload_window rate;
    struct upload_window pace;
    struct upload_window pace_before; /* the one before it, both counted together */
};

static inline bool upload_listed(const struct upload *u)
{
    return u->total.next != NULL;
}

void upload_begin(struct upload *u, struct deadline_queue *list, uint64_t now_ms);
static inline void upload_end(struct upload *u)
{
    deadline_clear(&u->total);
}
/* Bytes came. False: they come more slowly than `rate_min` bytes a second. */
bool upload_add(struct upload *u, uint64_t bytes, uint64_t rate_min, uint64_t now_ms);
/* We hold it back, or go on. */
void upload_hold(struct upload *u, bool held, uint64_t now_ms);
/* Nobody ran for so long. */
void upload_shift(struct upload *u, uint64_t by_ms);
/* How long it would take at its present pace to send so many bytes, in milliseconds. */
uint64_t upload_takes_ms(const struct upload *u, uint64_t bytes, uint64_t now_ms);

#endif
