/* What a router learned of its replicas, over a restart (node/cluster/keep.h). */
#ifndef NODE_ROUTE_RECALL_H
#define NODE_ROUTE_RECALL_H

#include "crdt/learned.h"
#include "node/route/router.h"

/* What was learned of a replica; false: it is not in use. */
bool node_router_learned(const struct node_router *r, unsigned replica, struct crdt_learned *out);
/* An earlier life of this process learned that. It counts as another router's word, from when the
 * replica is in use. */
void node_router_recall(struct node_router *r, unsigned replica,
                        const struct crdt_learned *learned);

#endif
