/* What a router learned of replicas, models and prompts, over a restart (node/cluster/keep.h). */
#ifndef NODE_ROUTE_RECALL_H
#define NODE_ROUTE_RECALL_H

#include "base/buf.h"
#include "base/err.h"
#include "crdt/learned.h"
#include "node/route/router.h"

/* What was learned of a replica; false: it is not in use. */
bool node_router_learned(const struct node_router *r, unsigned replica, struct crdt_learned *out);
/* An earlier life of this process learned that. It counts as another router's word, from when the
 * replica is in use. */
void node_router_recall(struct node_router *r, unsigned replica,
                        const struct crdt_learned *learned);

/* What answers told of models and of prompts. Appends the next piece; `at` begins as zeroes. 1, or
 * 0 and nothing: there is no more. ERR_NOMEM. */
MUST_USE int node_router_told(struct node_router *r, unsigned at[2], struct buf *out);
/* An earlier life was told that: what one such call appended. Own answers go before it. */
void node_router_told_recall(struct node_router *r, struct slice told);

#endif
