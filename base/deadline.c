#include "base/deadline.h"

#include <stddef.h>

void deadline_queue_init(struct deadline_queue *q, uint64_t wait_ms)
{
    q->head.next = &q->head;
    q->head.prev = &q->head;
    q->wait_ms = wait_ms;
}

void deadline_clear(struct deadline *d)
{
    if (d->next == NULL)
        return;
    d->next->prev = d->prev;
    d->prev->next = d->next;
    d->next = NULL;
    d->prev = NULL;
}

void deadline_set(struct deadline_queue *q, struct deadline *d, uint64_t now_ms)
{
    deadline_clear(d);
    if (q->wait_ms == 0)
        return;
    d->at_ms = now_ms + q->wait_ms;
    d->next = &q->head;
    d->prev = q->head.prev;
    d->prev->next = d;
    q->head.prev = d;
}

void deadline_shift(struct deadline_queue *q, uint64_t by_ms)
{
    for (struct deadline *d = q->head.next; d != &q->head; d = d->next)
        d->at_ms += by_ms;
}

void deadline_run(struct deadline_queue *q, uint64_t now_ms)
{
    while (q->head.next != &q->head && q->head.next->at_ms <= now_ms) {
        struct deadline *d = q->head.next;
        deadline_clear(d);
        d->expired(d);
    }
}
