/* The router's side of replication: what it reports to the others, and what it takes in of theirs.
 *
 *   own bookings, probes, estimators   --collect-->  reports of the state  -->  deltas
 *   deltas of others  -->  the state   --joined, reports-->   replicas in use, hints, beliefs
 *
 * The prefix index is the state's own, so that what others observed counts at once. The loads that
 * they report are taken in by the next choice.
 *
 * What was learned is one figure that is carried on by all: with it goes the number of samples that
 * it rests on, whoever took them. A router takes another's figure, and its number, if that rests on
 * more samples than its own, adds its own samples to it one by one, and reports the outcome. So a
 * figure lives as long as one router does; the busiest routers move it, and the others follow; and
 * an echo changes nothing, since it never rests on more samples than what it is an echo of.
 * (Routers that learn at the same time do not add up: the one ahead is followed.)
 */
#ifndef NODE_ROUTE_SHARE_H
#define NODE_ROUTE_SHARE_H

#include "node/cluster/replication.h"
#include "node/route/router.h"

enum {
    NODE_LEARNED_INTERVAL_MS = 1000, /* what was learned is reported at most so often */
    NODE_LEARNED_FEW = 4,            /* a model with fewer own samples is as its replicas are */
};

/* What a replication calls of the router that stands beside it on the same state. */
struct node_replication_user node_router_replication_user(struct node_router *r);

/* Where the names of routers are, for showing; borrowed; NULL: nowhere (any more). */
void node_router_names(struct node_router *r, const struct node_replication *names);

#endif
