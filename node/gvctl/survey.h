/* Data for `status` and `top`: a look at a router, the replicas, and the other routers with
 * reachable admin ports. */
#ifndef NODE_GVCTL_SURVEY_H
#define NODE_GVCTL_SURVEY_H

#include <jansson.h>
#include <stdbool.h>

#include "node/gvctl/given.h"
#include "node/settings/address.h"

enum {
    SURVEY_ROUTERS_MAX = 16, /* routers asked for counters; of further routers only the state is
                              * shown */
    SURVEY_ADMIN_BYTES = NODE_HOST_BYTES + 32,
};

struct survey_router {
    const json_t *member;           /* the row in /members */
    const char *name, *state;       /* from `member` */
    bool self;                      /* the asked router */
    char admin[SURVEY_ADMIN_BYTES]; /* URL of the admin port, if known */
    json_t *told;                   /* owned; the answer of /figures; NULL: not reached */
    json_t *total; /* part of `told`: since the router's start; NULL: not reached, or an older
                    * router */
};

struct survey {
    double at_s;
    double unix_ms; /* by the asked router's clock; 0: not reported */
    bool alone;     /* runs without a cluster */
    bool ready;
    struct survey_router *routers; /* owned; the asked router comes first */
    unsigned router_count;
    json_t *readiness, *members, *replicas; /* owned; answers of /readyz, /members and /replicas */
};

/* Asks the routers and fills `s`. Returns false after printing the reason; `s` then has nothing to
 * free. Prints nothing with `quiet`. */
bool survey_take(struct survey *s, const struct given *g, bool quiet);
void survey_free(struct survey *s);

/* Figures, and sums of them: JSON with the names of /figures. The caller owns the results. */

/* Returns the number of routers with a known `total`. */
unsigned survey_counted(const struct survey *s);
/* Returns the sum of the counters since each router's start. */
json_t *survey_sum(const struct survey *s);
/* Returns the sum of the routers' last minute; `told` is the number of routers in the sum. A dead
 * router, which does nothing, is not in it. A sum of counters would fall when a router dies. */
json_t *survey_minute(const struct survey *s, unsigned *told);
/* Returns the increase since `before`; all of `now` if `before` is NULL or the router has
 * restarted. */
json_t *survey_since(json_t *now, json_t *before);
/* Adds each number of `more`, multiplied by `times`, to the sum. Consumes `sum` and returns the new
 * sum. */
json_t *survey_add(json_t *sum, json_t *more, double times);
/* Returns the number of failures (node/route/result.h). */
double survey_failed(const json_t *counts);
/* Returns the share of prompt tokens served from caches; negative: none reported. */
double survey_share(const json_t *counts);
/* Returns the quantile of times to first token at `share` (0.99), interpolated in the bucket;
 * negative: no streams. */
double survey_quantile(const json_t *counts, double share);
/* Returns the requests in flight at the replica, from all routers. */
double survey_in_flight(const json_t *replica);

#endif
