/* Turns: the order of routers for work that one or two do for all at a replica.
 *
 * The routers that see a replica up are ordered by the hash of router and replica. All routers
 * compute the same order, and each replica has a different one. The first routers read its metrics
 * (scraped.h). The first routers that offer to read KV-cache events read those
 * (node/proxy/engine/feeds.h); routers that the engine connected to, or that know its contents, go
 * first. When such a router dies, leaves, or no longer sees the replica up, its reports show this
 * or are dropped, and the next router moves up. */
#ifndef NODE_REPLICA_TURN_H
#define NODE_REPLICA_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

/* Part of struct node_replica. */
struct node_turn {
    unsigned others; /* other routers that see the replica up */
    unsigned ahead;  /* such routers that come before this one */
};

/* The place of a router in the order of a replica: the greatest value is the first. */
static inline uint64_t node_turn_rank(uint64_t name_hash, uint64_t router)
{
    return hash_mix(name_hash ^ hash_mix(router));
}

/* Adds another router, by its rank and its report; `self` is this router's rank. */
static inline void node_turn_add(struct node_turn *t, bool up, uint64_t rank, uint64_t self)
{
    t->others += up;
    t->ahead += up && rank > self;
}

#endif
