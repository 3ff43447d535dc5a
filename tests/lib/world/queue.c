#include "tests/lib/world/queue.h"

#include <stdlib.h>

#include "tests/lib/world/memory.h"

void world_queue_init(struct world_queue *q)
{
    *q = (struct world_queue){0};
}

void world_queue_free(struct world_queue *q)
{
    free(q->events);
    *q = (struct world_queue){0};
}

static bool before(const struct world_event *a, const struct world_event *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order);
}

void world_queue_put(struct world_queue *q, const struct world_event *e)
{
    if (q->count == q->room) {
        q->room = q->room ? q->room * 2 : 1024;
        q->events = world_alloc(q->events, q->room * sizeof *q->events);
    }
    struct world_event added = *e;
    added.order = q->order++;
    size_t i = q->count++;
    while (i > 0) {
        size_t parent = (i - 1) / 2;
        if (before(&q->events[parent], &added))
            break;
        q->events[i] = q->events[parent];
        i = parent;
    }
    q->events[i] = added;
}

bool world_queue_take(struct world_queue *q, struct world_event *out)
{
    if (q->count == 0)
        return false;
    *out = q->events[0];
    struct world_event last = q->events[--q->count];
    size_t i = 0;
    while (2 * i + 1 < q->count) {
        size_t child = 2 * i + 1;
        if (child + 1 < q->count && before(&q->events[child + 1], &q->events[child]))
            child++;
        if (before(&last, &q->events[child]))
            break;
        q->events[i] = q->events[child];
        i = child;
    }
    q->events[i] = last;
    return true;
}

uint64_t world_queue_next_us(const struct world_queue *q)
{
    return q->count > 0 ? q->events[0].at_us : UINT64_MAX;
}
