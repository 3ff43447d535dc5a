/* What needs attention, for `status`: the list of the router that is asked
 * (node/admin/attention.h), and what the figures of the others add. */
#ifndef NODE_GVCTL_PROBLEMS_H
#define NODE_GVCTL_PROBLEMS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "node/gvctl/given.h"
#include "node/gvctl/survey.h"

enum {
    PROBLEMS_HURT = 1,     /* exit status of `status --check`: clients are hurt; */
    PROBLEMS_DEGRADED = 3, /* something is out, and clients are served (2: a wrong command line) */
};

/* The caller's: {"worst", "more", "items"}; "worst" is "unknown" where an older router is asked.
 * `differ`: the routers hold different states. */
json_t *problems_take(const struct given *g, const struct survey *s, bool differ);
/* The worst first, two lines each; "none" where there are none. */
void problems_print(const struct show *how, const json_t *problems, double now_ms);
/* 0, PROBLEMS_HURT or PROBLEMS_DEGRADED. */
MUST_USE int problems_status(const json_t *problems);

#endif
