/* Events in virtual time. Events of the same instant happen in the order of insertion, so a run is
 * equal on every machine.
 */
#ifndef TESTS_LIB_WORLD_QUEUE_H
#define TESTS_LIB_WORLD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct world_event {
    uint64_t at_us;
    uint64_t order;
    void (*happen)(void *context, struct world_event *e);
    /* The event's data; the queue does not use them. */
    unsigned node;
    uint64_t a, b;
    void *object;
};

struct world_queue {
    struct world_event *events;
    size_t count, room;
    uint64_t order;
};

void world_queue_init(struct world_queue *q);
void world_queue_free(struct world_queue *q);
void world_queue_put(struct world_queue *q, const struct world_event *e);
/* False if nothing is left. */
bool world_queue_take(struct world_queue *q, struct world_event *out);
uint64_t world_queue_next_us(const struct world_queue *q); /* UINT64_MAX if nothing is left */

#endif
