/* What `status` and `top` tell of: one look at a router, at its replicas, and at the other routers
 * whose admin ports can be reached from here. */
#ifndef NODE_GVCTL_SURVEY_H
#define NODE_GVCTL_SURVEY_H

#include <jansson.h>
#include <stdbool.h>

#include "node/gvctl/given.h"
#include "node/settings/address.h"

enum {
    SURVEY_ROUTERS_MAX = 16, /* whose counters are asked for; of others their state alone counts */
    SURVEY_ADMIN_BYTES = NODE_HOST_BYTES + 32,
};

struct survey_router {
    const json_t *member;           /* what /members says of it */
    const char *name, *state;       /* of it */
    bool self;                      /* the one that is asked */
    char admin[SURVEY_ADMIN_BYTES]; /* the URL of its admin port, as far as it is known */
    json_t *told;                   /* owned; its /figures; NULL: it was not reached */
    json_t *total; /* of `told`, since its start; NULL: it was not reached, or is an older one */
};

struct survey {
    double at_s;
    double unix_ms; /* by the clock of the router that is asked; 0: it does not tell */
    bool alone;     /* it runs without a cluster */
    bool ready;
    struct survey_router *routers; /* owned; the one that is asked comes first */
    unsigned router_count;
    json_t *readiness, *members, *replicas; /* owned; what these calls say */
};

/* False after printing why; `s` has nothing to free then. With `quiet` it prints nothing. */
bool survey_take(struct survey *s, const struct given *g, bool quiet);
void survey_free(struct survey *s);

/* Figures, and sums of them: JSON with the names that /figures has. The caller owns what these
 * return. */

/* Routers whose `total` is known. */
unsigned survey_counted(const struct survey *s);
/* What they counted since their starts. */
json_t *survey_sum(const struct survey *s);
/* The same of the last minute, and how many routers told. A sum of counters would fall when a
 * router dies; of this one a router that is gone has no part, as it does nothing. */
json_t *survey_minute(const struct survey *s, unsigned *told);
/* What a router counted since `before`; all of it where that is NULL, or it has started anew. */
json_t *survey_since(json_t *now, json_t *before);
/* The sum, to which each number of `more` was added so often. It takes the one that it is given. */
json_t *survey_add(json_t *sum, json_t *more, double times);
/* What failed (node/route/result.h). */
double survey_failed(const json_t *counts);
/* The share of prompts' tokens that came from caches; negative: none was reported. */
double survey_share(const json_t *counts);
/* The time to the first token that a share of streams (0.99) did not exceed, within its bucket;
 * negative: there is none. */
double survey_quantile(const json_t *counts, double share);
/* Under way at the replica, of all routers. */
double survey_in_flight(const json_t *replica);

#endif
