/* Thousands of timers for the price of a list: every entry of a queue waits equally long, so the
 * queue is in order of expiry by itself. Arming, re-arming and clearing are O(1).
 *
 * Each time limit of the daemon (client head, client idle, upstream first byte, ...) is one queue;
 * the shell's tick runs them, so a limit is kept to the tick's 50 ms. The first entry of each queue
 * says when a tick is needed. Being in order of arming, a queue is also a list of those that wait,
 * the longest first.
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

/* Arms or re-arms; an entry sits in one queue at a time. */
void deadline_set(struct deadline_queue *q, struct deadline *d, uint64_t now_ms);
/* The same for one that has waited for `waited_ms` before. Takes time in proportion to those that
 * have waited for longer. */
void deadline_resume(struct deadline_queue *q, struct deadline *d, uint64_t waited_ms,
                     uint64_t now_ms);
void deadline_clear(struct deadline *d);

/* Gives all entries that wait `by_ms` more. */
void deadline_shift(struct deadline_queue *q, uint64_t by_ms);

/* Another limit from now on, also for those that wait: what they have waited counts. With 0 nothing
 * waits any more. */
void deadline_queue_limit(struct deadline_queue *q, uint64_t wait_ms);

/* The one that has waited longest, and the one behind it; NULL: there is none. */
static inline struct deadline *deadline_first(const struct deadline_queue *q)
{
    return q->head.next != &q->head ? q->head.next : NULL;
}
static inline struct deadline *deadline_behind(const struct deadline_queue *q,
                                               const struct deadline *d)
{
    return d->next != &q->head ? d->next : NULL;
}

/* Calls `expired` of all that are due; each is cleared first and may be armed again. */
void deadline_run(struct deadline_queue *q, uint64_t now_ms);

#endif
