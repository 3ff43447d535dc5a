/* The router's side of finding replicas: what node/discover calls when the lists of sources move.
 */
#ifndef NODE_ROUTE_DISCOVERED_H
#define NODE_ROUTE_DISCOVERED_H

#include "node/discover/discover.h"
#include "node/route/router.h"

/* Names, drains and forgets replicas of `r`, which is borrowed as long as the host is used. */
struct discover_host node_router_discover_host(struct node_router *r);

/* The sources are borrowed until the router is destroyed; the host above is theirs. The router asks
 * them what they said of a name whenever the name gets a slot, which may be long after; and for a
 * replica's source, for display. */
void node_router_sources(struct node_router *r, const struct discover *sources);

#endif
