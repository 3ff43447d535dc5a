/* Measures the pace of arriving bodies. Time counts only while the router reads from the client.
 *
 * All incomplete uploads are in one list, in the order of their start: the queue of
 * PROXY_CLIENT_BODY_TOTAL. A body that came whole with the head is never in the list. */
#ifndef NODE_PROXY_CLIENT_UPLOAD_H
#define NODE_PROXY_CLIENT_UPLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/deadline.h"

enum {
    UPLOAD_RATE_MS = 30000, /* the shortest time over which client-body-rate-min is averaged */
    /* The pace is measured over this time at least, and twice this time at most. */
    UPLOAD_PACE_MS = 5000,
};

/* The number of bytes received since a time. */
struct upload_window {
    uint64_t since_ms;
    uint64_t bytes;
};

struct upload {
    struct deadline total; /* in the list while armed */
    uint64_t since_ms;     /* start of the upload, moved on by the length of pauses */
    uint64_t held_ms;      /* start of the present pause; 0: none */
    uint64_t last_ms;      /* last arrival of bytes, moved on by the length of later pauses */
    struct upload_window rate;
    struct upload_window pace;
    /* The window before `pace`; the upload's pace is measured over both. */
    struct upload_window pace_before;
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
/* Counts arrived bytes. Returns false if they arrive more slowly than `rate_min` bytes a second. */
bool upload_add(struct upload *u, uint64_t bytes, uint64_t rate_min, uint64_t now_ms);
/* The router has stopped reading (`held`), or continues. */
void upload_hold(struct upload *u, bool held, uint64_t now_ms);
/* Moves all times by `by_ms`, in which the process did not run. */
void upload_shift(struct upload *u, uint64_t by_ms);
/* Returns how long this number of bytes would take at the present pace, in milliseconds. */
uint64_t upload_takes_ms(const struct upload *u, uint64_t bytes, uint64_t now_ms);

#endif
