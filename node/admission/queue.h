/* Requests that wait for a replica: bounded all together, first come first served in each class.
 *
 * A class is what they wait for (enum queue_class). It has lanes. Those that wait in one lane can
 * be served by the same replicas, so where the first of them may not go the others may not either,
 * and are not looked at; those of another lane may. `key` names the lane: the caller makes it of
 * all that decides which replicas can serve. There are QUEUE_LANES lanes, so that a look at the
 * queue stays short; where more keys wait at once, some share a lane, and then one may wait behind
 * another that needs another replica.
 *
 *   queue_push()    at the end of its lane, or where it was if it waited before; ERR_FULL beyond
 *                   length_max
 *   a look          whenever one may go: the first of each lane, class by class, the longest
 *                   waiting first
 *     queue_take()    it is served
 *     queue_pass()    it may not go: its lane is passed over in this look
 *   queue_remove()  its client left, or its time is up: O(1)
 *
 * Whether one may go, and how long it waits, the caller says (node/proxy/exchange/overload.c).
 */
#ifndef NODE_ADMISSION_QUEUE_H
#define NODE_ADMISSION_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/histogram.h"

/* In the order in which they are served. */
enum queue_class {
    QUEUE_ALONE, /* for a replica to itself: it may be poison (node/proxy/exchange/suspect.h) */
    QUEUE_APART, /* for one that is not kept for those */
    QUEUE_ROOM,  /* for room at any */
    QUEUE_CLASSES
};
enum { QUEUE_LANES = 64 };

/* In what waits; all zero at first. */
struct queue_waiter {
    struct queue_waiter *next, *prev; /* in its lane */
    uint64_t number; /* in order of arrival, from 1; kept for when it comes again. 0: none yet */
    bool waits;
    uint64_t since_ms;
    uint64_t key;
    uint8_t class; /* enum queue_class */
    uint8_t lane;
};

struct queue_lane {
    struct queue_waiter *first, *last;
    uint64_t key; /* of the first that came when it was empty */
};

/* Those of one class. */
struct queue_line {
    struct queue_lane lanes[QUEUE_LANES];
    uint64_t used; /* a bit for each lane with waiters */
    uint64_t length;
    uint64_t served;          /* queue_take() */
    struct histogram waited;  /* of those */
    double served_lately;     /* fades; for queue_retry_after_s() */
    uint64_t served_at_ms;    /* when that was brought up to date */
    uint64_t served_since_ms; /* when it was begun: the line was empty before */
};

struct queue {
    struct queue_line lines[QUEUE_CLASSES];
    uint64_t arrivals;
    uint64_t length;     /* of all lines together */
    uint64_t length_max; /* may change: those that wait stay, where they are more */
};

_Static_assert(QUEUE_LANES == 64, "a look has a bit for each lane");

void queue_init(struct queue *q, uint64_t length_max);
/* `w` is borrowed until it is taken or removed. ERR_FULL. */
MUST_USE int queue_push(struct queue *q, struct queue_waiter *w, enum queue_class class,
                        uint64_t key, uint64_t now_ms);
/* Served now: it does not wait any more. */
void queue_take(struct queue *q, struct queue_waiter *w, uint64_t now_ms);
/* It does not wait any more, for another reason. Does nothing if it did not wait. */
void queue_remove(struct queue *q, struct queue_waiter *w);
/* Whether `w`, which does not wait in this class, would have others with this key before it. */
bool queue_has_waiters(const struct queue *q, const struct queue_waiter *w, enum queue_class class,
                       uint64_t key);

static inline bool queue_waits(const struct queue_waiter *w)
{
    return w->waits;
}

/* Whether it waits, or could: queue_push() of one that does not is not ERR_FULL. */
static inline bool queue_has_place(const struct queue *q, const struct queue_waiter *w)
{
    return q->length - w->waits < q->length_max;
}

/* One look at the queue, all 0 at first. Those that were not taken nor passed come again. */
struct queue_look {
    uint64_t passed[QUEUE_CLASSES]; /* lanes */
};
/* NULL: there is nobody left to look at. */
struct queue_waiter *queue_look_next(const struct queue *q, const struct queue_look *look);
static inline void queue_pass(struct queue_look *look, const struct queue_waiter *w)
{
    look->passed[w->class] |= UINT64_C(1) << w->lane;
}

enum { QUEUE_RETRY_AFTER_MAX_S = 60 };
/* In how many seconds one that finds the queue full now should come again: until as many of its
 * class as wait now have been served, at the rate of the last seconds. 1 to
 * QUEUE_RETRY_AFTER_MAX_S. */
unsigned queue_retry_after_s(struct queue *q, enum queue_class class, uint64_t now_ms);

/* Asserts that the lanes hold as many as are counted, in order. */
void queue_check(const struct queue *q);

#endif
