/* The router's side of replication: what it reports to the others, and what it takes in of theirs
 * (docs/replication.md).
 *
 *   own bookings, probes, estimators   --collect-->  reports of the state  -->  deltas
 *   deltas of others  -->  the state   --joined, reports-->   replicas in use, hints, beliefs
 *
 * A learned figure is carried on by all routers, with the number of samples that it rests on. A
 * router takes another's figure, and its number, if that rests on more samples than its own, adds
 * its own samples one by one, and reports the outcome. So a figure lives as long as one router
 * does, the busiest routers move it, and an echo changes nothing.
 *
 * A replica is *named* by the routers that are configured with it, and in use at all. If all that
 * named it are dead or have left, it stays in use until the registry forgets its name, as long as
 * it answers its probes. It goes at once if the one that was heard last names it no longer, and
 * soon if that one is back and does not name it. A router that joins when the namers are dead takes
 * the word of those that use it.
 */
#ifndef NODE_ROUTE_SHARE_H
#define NODE_ROUTE_SHARE_H

#include "node/cluster/replication.h"
#include "node/route/router.h"

enum {
    NODE_LEARNED_INTERVAL_MS = 1000, /* what was learned is reported at most so often */
    NODE_LEARNED_FEW = 4,            /* a model with fewer own samples takes its replicas' ratio */
    /* A name whose routers are dead goes earlier than the registry forgets it: */
    NODE_NAMING_SILENT_MS = 10000, /* if the router is back for so long and does not name it */
    NODE_NAMING_DOWN_MS = 60000,   /* if its probes have failed for so long */
};

/* What a replication calls of the router that stands beside it on the same state. */
struct node_replication_user node_router_replication_user(struct node_router *r);

/* Where the names of routers and the round trips to them are; borrowed; NULL: nowhere (any more).
 */
void node_router_names(struct node_router *r, const struct node_replication *names);

#endif
