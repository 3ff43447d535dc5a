/* Requests that wait for a replica: bounded in total, first come first served in each class.
 *
 * A class is what a request waits for (enum queue_class). Each class has lanes. The same replicas
 * can serve all requests in a lane: if the first may not go, the others may not either, and are
 * skipped. Requests of other lanes may still go. `key` selects the lane: the caller computes the
 * key from everything that decides which replicas can serve the request. There are QUEUE_LANES
 * lanes, so that a look at the queue stays short. If more keys wait at once, some share a lane;
 * then a request may wait behind a request for another replica.
 *
 *   queue_push()    at the end of the lane, or at the request's former place; ERR_FULL beyond
 *                   length_max
 *   a look          whenever a request may go: the first of each lane, class by class, the longest
 *                   waiting first
 *     queue_take()    the request is served
 *     queue_pass()    the request may not go: this look skips the lane
 *   queue_remove()  the client left, or the time is up: O(1)
 *
 * The caller decides which requests may go, and how long each waits
 * (node/proxy/exchange/overload.c).
 */
#ifndef NODE_ADMISSION_QUEUE_H
#define NODE_ADMISSION_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/histogram.h"

/* The thing that a request waits for. The classes are served in this order. */
enum queue_class {
    QUEUE_ALONE, /* a replica to itself, because the request may be poison
                  * (node/proxy/exchange/suspect.h) */
    QUEUE_APART, /* a replica not kept for suspects */
    QUEUE_ROOM,  /* room at any replica */
    QUEUE_CLASSES
};
enum { QUEUE_LANES = 64 };

/* Embedded in a waiting request; all zero at first. */
struct queue_waiter {
    struct queue_waiter *next, *prev; /* neighbours in the lane */
    uint64_t number; /* place in the order of arrival, from 1; kept if the request comes again. 0:
                      * none yet */
    bool waits;
    uint64_t since_ms;
    uint64_t key;
    uint8_t class; /* enum queue_class */
    uint8_t lane;
};

struct queue_lane {
    struct queue_waiter *first, *last;
    uint64_t key; /* key of the first request in the lane since it was empty */
};

/* The waiting requests of a class. */
struct queue_line {
    struct queue_lane lanes[QUEUE_LANES];
    uint64_t used; /* a bit for each lane with waiters */
    uint64_t length;
    uint64_t served;          /* number of calls of queue_take() */
    struct histogram waited;  /* waiting times of the served requests, in seconds */
    double served_lately;     /* decays; for queue_retry_after_s() */
    uint64_t served_at_ms;    /* when served_lately was updated */
    uint64_t served_since_ms; /* when served_lately began: the line was empty before */
};

struct queue {
    struct queue_line lines[QUEUE_CLASSES];
    uint64_t arrivals;
    uint64_t length;     /* requests in all lines together */
    uint64_t length_max; /* may change: if it falls below the length, all waiting requests stay */
};

_Static_assert(QUEUE_LANES == 64, "a look has a bit for each lane");

void queue_init(struct queue *q, uint64_t length_max);
/* `w` is borrowed until queue_take() or queue_remove(). ERR_FULL. */
MUST_USE int queue_push(struct queue *q, struct queue_waiter *w, enum queue_class class,
                        uint64_t key, uint64_t now_ms);
/* The request is served now and stops waiting. */
void queue_take(struct queue *q, struct queue_waiter *w, uint64_t now_ms);
/* The request stops waiting for another reason. Does nothing if it did not wait. */
void queue_remove(struct queue *q, struct queue_waiter *w);
/* True if `w`, which does not wait in this class, would come after other requests in the lane of
 * this key. */
bool queue_has_waiters(const struct queue *q, const struct queue_waiter *w, enum queue_class class,
                       uint64_t key);

static inline bool queue_waits(const struct queue_waiter *w)
{
    return w->waits;
}

/* True if the other waiting requests leave room for this one, which may be waiting already. */
static inline bool queue_has_place(const struct queue *q, const struct queue_waiter *w)
{
    return q->length - w->waits < q->length_max;
}

/* A look at the queue, all 0 at first. A request neither taken nor passed comes again. */
struct queue_look {
    uint64_t passed[QUEUE_CLASSES]; /* bits of the lanes to skip */
};
/* Returns the next request to try; NULL: none is left. */
struct queue_waiter *queue_look_next(const struct queue *q, const struct queue_look *look);
static inline void queue_pass(struct queue_look *look, const struct queue_waiter *w)
{
    look->passed[w->class] |= UINT64_C(1) << w->lane;
}

enum { QUEUE_RETRY_AFTER_MAX_S = 60 };
/* Returns the seconds after which a request refused by a full queue should retry, 1 to
 * QUEUE_RETRY_AFTER_MAX_S. By then all requests that wait now in this class should be served, at
 * the rate of the last seconds. */
unsigned queue_retry_after_s(struct queue *q, enum queue_class class, uint64_t now_ms);

/* Asserts that the waiters in the lanes are in order and match the counts. */
void queue_check(const struct queue *q);

#endif
