/* Turns: the order of routers for work at a replica, done by 1 or 2 routers for all.
 *
 * The routers that see a replica up are ordered by the hash of router and replica. All routers
 * compute the same order, which differs between replicas. The first routers read the replica's
 * metrics (scraped.h). The first routers that offer to read KV-cache events read them
 * (node/proxy/engine/feeds.h); routers with a connection from the engine, or with knowledge of the
 * cache, go first. When such a router dies, leaves, or no longer sees the replica up, the reports
 * show this or are dropped, and the next router moves up. */
#ifndef NODE_REPLICA_TURN_H
#define NODE_REPLICA_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

/* Part of struct node_replica. */
struct node_turn {
    unsigned others; /* other routers that see the replica up */
    unsigned ahead;  /* routers of `others` with a turn before this router's */
};

/* The place of a router in the order of a replica: the greatest value is the first. */
static inline uint64_t node_turn_rank(uint64_t name_hash, uint64_t router)
{
    return hash_mix(name_hash ^ hash_mix(router));
}

/* Adds another router, by rank and report; `self` is this router's rank. */
static inline void node_turn_add(struct node_turn *t, bool up, uint64_t rank, uint64_t self)
{
    t->others += up;
    t->ahead += up && rank > self;
}

#endif
