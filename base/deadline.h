/* Thousands of timers for the price of a list: every entry of a queue waits for the same time, so
 * the queue is in order of expiry. Arming, re-arming and clearing are O(1).
 *
 * Each time limit of the daemon (client head, client idle, upstream first byte, ...) is one queue;
 * the shell's tick runs them, so a limit has a resolution of the tick's 50 ms. The first entry of
 * each queue says when a tick is needed. A queue is also a list of the waiting entries, the longest
 * wait first.
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

/* Arms or re-arms an entry, which is in one queue at a time. */
void deadline_set(struct deadline_queue *q, struct deadline *d, uint64_t now_ms);
/* Arms an entry that has already waited for `waited_ms`. Takes time in proportion to the number of
 * entries that expire earlier. */
void deadline_resume(struct deadline_queue *q, struct deadline *d, uint64_t waited_ms,
                     uint64_t now_ms);
void deadline_clear(struct deadline *d);

/* Gives all waiting entries `by_ms` more time. */
void deadline_shift(struct deadline_queue *q, uint64_t by_ms);

/* Changes the limit, also for waiting entries, whose time so far counts. 0 clears all entries. */
void deadline_queue_limit(struct deadline_queue *q, uint64_t wait_ms);

/* The entry that expires first, and the entry after a given one; NULL: there is none. */
static inline struct deadline *deadline_first(const struct deadline_queue *q)
{
    return q->head.next != &q->head ? q->head.next : NULL;
}
static inline struct deadline *deadline_behind(const struct deadline_queue *q,
                                               const struct deadline *d)
{
    return d->next != &q->head ? d->next : NULL;
}

/* Calls `expired` of all entries that are due. Each is cleared before, and may be armed again. */
void deadline_run(struct deadline_queue *q, uint64_t now_ms);

#endif
