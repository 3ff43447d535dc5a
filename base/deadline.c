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

static void insert(struct deadline *behind, struct deadline *d)
{
    d->next = behind;
    d->prev = behind->prev;
    d->prev->next = d;
    behind->prev = d;
}

void deadline_set(struct deadline_queue *q, struct deadline *d, uint64_t now_ms)
{
    deadline_clear(d);
    if (q->wait_ms == 0)
        return;
    d->at_ms = now_ms + q->wait_ms;
    insert(&q->head, d);
}

void deadline_resume(struct deadline_queue *q, struct deadline *d, uint64_t waited_ms,
                     uint64_t now_ms)
{
    deadline_clear(d);
    if (q->wait_ms == 0)
        return;
    d->at_ms = now_ms + (waited_ms < q->wait_ms ? q->wait_ms - waited_ms : 0);
    struct deadline *behind = q->head.next;
    while (behind != &q->head && behind->at_ms <= d->at_ms)
        behind = behind->next;
    insert(behind, d);
}

void deadline_shift(struct deadline_queue *q, uint64_t by_ms)
{
    for (struct deadline *d = q->head.next; d != &q->head; d = d->next)
        d->at_ms += by_ms;
}

void deadline_queue_limit(struct deadline_queue *q, uint64_t wait_ms)
{
    uint64_t before_ms = q->wait_ms;
    q->wait_ms = wait_ms;
    while (wait_ms == 0 && q->head.next != &q->head)
        deadline_clear(q->head.next);
    for (struct deadline *d = q->head.next; d != &q->head; d = d->next)
        d->at_ms = d->at_ms + wait_ms > before_ms ? d->at_ms + wait_ms - before_ms : 0;
}

void deadline_run(struct deadline_queue *q, uint64_t now_ms)
{
    while (q->head.next != &q->head && q->head.next->at_ms <= now_ms) {
        struct deadline *d = q->head.next;
        deadline_clear(d);
        d->expired(d);
    }
}
