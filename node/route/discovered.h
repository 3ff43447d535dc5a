/* The router's side of discovery: what node/discover calls when a source's list of replicas
 * changes. */
#ifndef NODE_ROUTE_DISCOVERED_H
#define NODE_ROUTE_DISCOVERED_H

#include "node/discover/discover.h"
#include "node/route/router.h"

/* Returns the calls with which node/discover names, drains and forgets replicas of `r`. `r` is
 * borrowed as long as the calls are used. */
struct discover_host node_router_discover_host(struct node_router *r);

/* The sources are borrowed until the router is destroyed. They use node_router_discover_host().
 * When a name gets a slot, perhaps long after a source listed it, the router asks the sources for
 * the labels. For display, the router also asks which source listed a replica. */
void node_router_sources(struct node_router *r, const struct discover *sources);

#endif
