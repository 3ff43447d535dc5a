/* Several routers reading an engine's KV-cache events, in virtual time. */
#ifndef TESTS_UNIT_ROUTE_KV_EVENTS_WORLD_H
#define TESTS_UNIT_ROUTE_KV_EVENTS_WORLD_H

#include "node/route/kv_events.h"
#include "tests/lib/world/use.h"

enum { S = 1000000, ROUTERS = 3 }; /* S: microseconds */

static inline struct node_router *router_at(struct world *w, unsigned router)
{
    return w->nodes[router].node->router;
}

static inline void all_hear(struct world *w, unsigned routers)
{
    for (unsigned n = 0; n < routers; n++)
        world_touch(&w->nodes[n]);
    world_run(w, 3 * S);
}

/* Routers, each able to read the events of the only engine. */
static inline void readers_open(struct world *w, unsigned routers)
{
    world_open(w, routers, 1);
    for (unsigned n = 0; n < routers; n++)
        world_start(w, n);
    world_settle(w);
    for (unsigned n = 0; n < routers; n++) {
        assert_int_equal(world_replica(w, n, "e:8000"), 0);
        node_router_events_reads(router_at(w, n), 0, NODE_READS_TURN);
    }
    all_hear(w, routers);
}

#endif
