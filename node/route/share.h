/* The router's side of replication: what it reports to the others, and what it takes in of theirs.
 *
 *   own bookings, probes, estimators   --collect-->  reports of the state  -->  deltas
 *   deltas of others  -->  the state   --joined, reports-->   replicas in use, hints, beliefs
 *
 * The prefix index is the state's own, so others' observations count at once. The next choice takes
 * in the loads that they report.
 *
 * A learned figure is carried on by all routers, with the number of samples that it rests on. A
 * router takes another's figure, and its number, if that rests on more samples than its own. It
 * adds its own samples to it one by one, and reports the outcome. So:
 *   - A figure lives as long as one router does.
 *   - The busiest routers move it, and the others follow. (Routers that learn at the same time do
 *     not add up: the one ahead is followed.)
 *   - An echo changes nothing: it never rests on more samples than its original.
 */
#ifndef NODE_ROUTE_SHARE_H
#define NODE_ROUTE_SHARE_H

#include "node/cluster/replication.h"
#include "node/route/router.h"

enum {
    NODE_LEARNED_INTERVAL_MS = 1000, /* what was learned is reported at most so often */
    NODE_LEARNED_FEW = 4,            /* a model with fewer own samples takes its replicas' ratio */
};

/* What a replication calls of the router that stands beside it on the same state. */
struct node_replication_user node_router_replication_user(struct node_router *r);

/* Where the names of routers are, for showing; borrowed; NULL: nowhere (any more). */
void node_router_names(struct node_router *r, const struct node_replication *names);

#endif
