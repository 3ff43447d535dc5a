/* The router's side of finding replicas: what node/discover calls when the lists of sources move.
 */
#ifndef NODE_ROUTE_DISCOVERED_H
#define NODE_ROUTE_DISCOVERED_H

#include "node/discover/discover.h"
#include "node/route/router.h"

/* Names, drains and forgets replicas of `r`, which is borrowed as long as the host is used. */
struct discover_host node_router_discover_host(struct node_router *r);

/* The sources, for showing where a replica comes from: borrowed until the router is destroyed. */
void node_router_sources(struct node_router *r, const struct discover *sources);

/* What the settings say of a replica beside its address; replaces what was said before. Only this
 * router counts with it: labels are not reported to others. */
void node_router_labels(struct node_router *r, unsigned replica, const struct node_labels *labels);

#endif
