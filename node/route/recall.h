/* Saves what a router learned of replicas, models and prompts over a restart
 * (node/cluster/keep.h). */
#ifndef NODE_ROUTE_RECALL_H
#define NODE_ROUTE_RECALL_H

#include "base/buf.h"
#include "base/err.h"
#include "crdt/learned.h"
#include "node/route/router.h"

/* The learned figures of a replica; false: not in use. */
bool node_router_learned(const struct node_router *r, unsigned replica, struct crdt_learned *out);
/* Restores a replica's figures from an earlier life. Once the replica is in use, they count as
 * another router's report. */
void node_router_recall(struct node_router *r, unsigned replica,
                        const struct crdt_learned *learned);

/* Appends the next piece of the figures about models and prompts learned from answers. `at` starts
 * as zeroes. Returns 1; or 0 at the end, with nothing appended. ERR_NOMEM. */
MUST_USE int node_router_told(struct node_router *r, unsigned at[2], struct buf *out);
/* Restores a piece written by node_router_told() in an earlier life. Answers of this life take
 * precedence. */
void node_router_told_recall(struct node_router *r, struct slice told);

#endif
