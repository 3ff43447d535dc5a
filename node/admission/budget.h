/* The retry budget: the share of requests that may be sent again, so that routers do not make an
 * outage of all replicas worse. The budget is a token bucket: each request adds `share`, each retry
 * takes a token. A single router has BUDGET_BURST tokens at most, each of two routers half as many,
 * each of three or more BUDGET_BURST_LEAST.
 *
 * Two kinds of retries also go if the bucket is empty (attempt.c):
 * - requests in flight at a replica when it died, once in BUDGET_SPARED_MS per replica;
 * - requests turned away by a full replica, if another replica is well and not full. */
#ifndef NODE_ADMISSION_BUDGET_H
#define NODE_ADMISSION_BUDGET_H

#include <stdbool.h>

enum {
    BUDGET_BURST = 20,
    BUDGET_BURST_LEAST = 7, /* per router: enough to notice a failing replica */
    BUDGET_SPARED_MS = 60000,
};

struct budget {
    double share; /* share of requests that may be retried; 0: no retries */
    double level;
    double burst; /* this router's part of BUDGET_BURST */
};

static inline void budget_init(struct budget *b, double share)
{
    b->share = share;
    b->level = share > 0 ? BUDGET_BURST : 0;
    b->burst = BUDGET_BURST;
}

/* Changes the share; saved tokens stay. */
static inline void budget_share(struct budget *b, double share)
{
    if (b->share == 0 || share == 0)
        b->level = share > 0 ? b->burst : 0;
    b->share = share;
}

/* Sets the number of routers with a part of the traffic. */
static inline void budget_part(struct budget *b, unsigned routers)
{
    double part = (double)BUDGET_BURST / routers;
    b->burst = part > BUDGET_BURST_LEAST ? part : BUDGET_BURST_LEAST;
    b->level = b->level < b->burst ? b->level : b->burst;
}

/* Adds the share of a new request. */
static inline void budget_fill(struct budget *b)
{
    double level = b->level + b->share;
    b->level = level < b->burst ? level : b->burst;
}

static inline bool budget_has(const struct budget *b)
{
    return b->level >= 1;
}

/* True if the budget is at least half full. Only then are retries of doubtful worth made, so that
 * they take nothing from retries for failing replicas. */
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
