/* How many requests may be sent again: a share of the traffic, so that an outage of all replicas
 * is not made worse by the routers. A bucket: each request adds `share`, each retry takes 1. It
 * holds BUDGET_BURST with one router, half of that with two, BUDGET_BURST_LEAST each with three
 * or more. Two kinds move also where it is empty (attempt.c): what was under way at a replica
 * that died, once in BUDGET_SPARED_MS for each replica; and what a full replica turned away,
 * where another one is well and not full. */
#ifndef NODE_ADMISSION_BUDGET_H
#define NODE_ADMISSION_BUDGET_H

#include <stdbool.h>

enum {
    BUDGET_BURST = 20,
    BUDGET_BURST_LEAST = 7, /* of a router: it finds out that a replica fails */
    BUDGET_SPARED_MS = 60000,
};

struct budget {
    double share; /* of requests; 0: nothing is sent again */
    double level;
    double burst; /* its part of BUDGET_BURST */
};

static inline void budget_init(struct budget *b, double share)
{
    b->share = share;
    b->level = share > 0 ? BUDGET_BURST : 0;
    b->burst = BUDGET_BURST;
}

/* Another share; what was put by stays. */
static inline void budget_share(struct budget *b, double share)
{
    if (b->share == 0 || share == 0)
        b->level = share > 0 ? b->burst : 0;
    b->share = share;
}

/* So many routers share the traffic. */
static inline void budget_part(struct budget *b, unsigned routers)
{
    double part = (double)BUDGET_BURST / routers;
    b->burst = part > BUDGET_BURST_LEAST ? part : BUDGET_BURST_LEAST;
    b->level = b->level < b->burst ? b->level : b->burst;
}

/* A new request came. */
static inline void budget_fill(struct budget *b)
{
    double level = b->level + b->share;
    b->level = level < b->burst ? level : b->burst;
}

static inline bool budget_has(const struct budget *b)
{
    return b->level >= 1;
}

/* Enough that what only may be worth it takes nothing from replicas that fail. */
static inline bool budget_has_half(const struct budget *b)
{
    return budget_has(b) && b->level >= b->burst / 2;
}

static inline void budget_take(struct budget *b)
{
    if (budget_has(b))
        b->level -= 1;
}

#endif
