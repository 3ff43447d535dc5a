/* The router's side of replication: reports to the other routers, and the use of their reports
 * (docs/replication.md).
 *
 *   own bookings, probes, estimators   --collect-->  reports of the state  -->  deltas
 *   deltas of others  -->  the state   --joined, reports-->   replicas in use, hints, beliefs
 *
 * All routers report a learned figure, with the number of samples. A router takes over another
 * router's figure and number if the other number is greater, adds new samples one by one, and
 * reports the outcome. So a figure lives as long as any router does, the busiest routers change the
 * figure most, and an echo changes nothing.
 *
 * A replica is *named* by the routers configured with it; all routers use named replicas. If all
 * namers are dead or have left, the replica stays in use until the registry forgets the name, as
 * long as probes succeed. The replica goes at once if the last namer reports that the name is gone,
 * and soon if the last namer is back without the name. A router that joins when the namers are dead
 * relies on the routers that use the replica. */
#ifndef NODE_ROUTE_SHARE_H
#define NODE_ROUTE_SHARE_H

#include "node/cluster/replication.h"
#include "node/route/router.h"

enum {
    NODE_LEARNED_INTERVAL_MS = 1000, /* shortest interval between reports of learned figures */
    NODE_LEARNED_FEW = 4,            /* a model with fewer samples at this router takes the bytes
                                      * per token of a replica with the model */
    /* If all routers that named a replica are dead, the name ends before the registry forgets
     * it: */
    NODE_NAMING_SILENT_MS = 10000, /* if the last namer has been back for this time without the
                                    * name */
    NODE_NAMING_DOWN_MS = 60000,   /* if the replica's probes have failed for this time */
};

/* Returns the calls that a replication (node/cluster/replication.h) on the same state makes into
 * the router. */
struct node_replication_user node_router_replication_user(struct node_router *r);

/* Sets the source of the routers' names and round trips. Borrowed; NULL: none. */
void node_router_names(struct node_router *r, const struct node_replication *names);

#endif
