/* Several routers in one process and in virtual time: the real node_router and node_replication of
 * each, linked by a network that delivers everything after the same delay.
 *
 * For benches of routing: how much worse do N routers choose that hear of each other so much later?
 * Faults are the simulation's business (tests/sim).
 */
#ifndef TESTS_LIB_LINKED_H
#define TESTS_LIB_LINKED_H

#include "node/node.h"

enum { LINKED_MAX = 64 };

struct linked;

struct linked_config {
    unsigned routers;
    bool shared;             /* false: they do not know of each other */
    double delay_s;          /* one way */
    struct node_config node; /* of all; clocks, names and keys are set here */
};

void linked_create(struct linked **out, const struct linked_config *config);
void linked_destroy(struct linked *l);

struct node_router *linked_router(struct linked *l, unsigned number);
/* When all were ready: time begins there. */
double linked_start_s(const struct linked *l);

/* Does what is due, in order, up to that time: before anything happens then. */
void linked_run(struct linked *l, double now_s);
/* Something happened at this router: what is news leaves. */
void linked_news(struct linked *l, unsigned number);

#endif
