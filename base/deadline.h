/* Thousands of timers for the price of a list: every entry of a queue waits for the same time, so
 * the queue is in order of expiry. Arming, re-arming and clearing are O(1).
 *
 * Each time limit of the daemon (client head, client idle, upstream first byte, ...) has a queue.
 * The shell's tick runs the queues every 50 ms, which is the resolution of the limits. The first
 * entry of each queue says when a tick is needed. A queue is also a list of the waiting entries,
 * the longest wait first.
 */
#ifndef BASE_DEADLINE_H
#define BASE_DEADLINE_H

#include <stddef.h>
#include <stdint.h>

struct deadline {
    struct deadline *next; /* NULL: not armed */
    struct deadline *prev;
    uint64_t at_ms;
    void (*expired)(struct deadline *d);
};

struct deadline_queue {
    struct deadline head; /* sentinel of a ring */
    uint64_t wait_ms;     /* 0: this limit is off, arming does nothing */
};

void deadline_queue_init(struct deadline_queue *q, uint64_t wait_ms);

/* Arms or re-arms an entry. An entry is in at most one queue at a time. */
void deadline_set(struct deadline_queue *q, struct deadline *d, uint64_t now_ms);
/* Arms an entry that has already waited for `waited_ms`. Takes time in proportion to the number of
 * entries with an earlier deadline. */
void deadline_resume(struct deadline_queue *q, struct deadline *d, uint64_t waited_ms,
                     uint64_t now_ms);
void deadline_clear(struct deadline *d);

/* Gives all waiting entries `by_ms` more time. */
void deadline_shift(struct deadline_queue *q, uint64_t by_ms);

/* Changes the limit. Entries already waiting keep the time waited so far. 0 clears all entries. */
void deadline_queue_limit(struct deadline_queue *q, uint64_t wait_ms);

/* deadline_first(): the entry that expires first; deadline_behind(): the entry after `d`. NULL:
 * there is none. */
static inline struct deadline *deadline_first(const struct deadline_queue *q)
{
    return q->head.next != &q->head ? q->head.next : NULL;
}
static inline struct deadline *deadline_behind(const struct deadline_queue *q,
                                               const struct deadline *d)
{
    return d->next != &q->head ? d->next : NULL;
}

/* Calls `expired` of all due entries. Each is cleared before the call, so it may be armed again. */
void deadline_run(struct deadline_queue *q, uint64_t now_ms);

#endif
