/* Problems for `status`: the asked router's attention list (node/admin/attention.h), and additions
 * from the other routers' figures. */
#ifndef NODE_GVCTL_PROBLEMS_H
#define NODE_GVCTL_PROBLEMS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "node/gvctl/given.h"
#include "node/gvctl/survey.h"

enum {
    PROBLEMS_HURT = 1,     /* exit status of `status --check`: clients get failures */
    PROBLEMS_DEGRADED = 3, /* exit status: a part is out of service, but clients are served (2 means
                            * a wrong command line) */
};

/* Returns {"worst", "more", "items"}, owned by the caller; "worst" is "unknown" for an older
 * router. `differ`: the routers have different states. */
json_t *problems_take(const struct given *g, const struct survey *s, bool differ);
/* Prints the problems, worst first, two lines each; "none" if there are none. */
void problems_print(const struct show *how, const json_t *problems, double now_ms);
/* Returns 0, PROBLEMS_HURT or PROBLEMS_DEGRADED. */
MUST_USE int problems_status(const json_t *problems);

#endif
