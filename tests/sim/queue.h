/* Virtual time: what happens when. Events of the same instant happen in the order in which they
 * were put in, so a run is the same on every machine.
 */
#ifndef TESTS_SIM_QUEUE_H
#define TESTS_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_event {
    uint64_t at_us;
    uint64_t order;
    void (*happen)(void *context, struct sim_event *e);
    /* Whatever the event is about; the queue does not look into it. */
    unsigned node;
    uint64_t a, b;
    void *object;
};

struct sim_queue {
    struct sim_event *events;
    size_t count, room;
    uint64_t order;
};

void sim_queue_init(struct sim_queue *q);
void sim_queue_free(struct sim_queue *q);
void sim_queue_put(struct sim_queue *q, const struct sim_event *e);
/* False if nothing is left. */
bool sim_queue_take(struct sim_queue *q, struct sim_event *out);
uint64_t sim_queue_next_us(const struct sim_queue *q); /* UINT64_MAX if nothing is left */

#endif
