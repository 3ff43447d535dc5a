/* Whose turn it is: what one or two routers do for all at a replica.
 *
 * The routers that see a replica up stand in an order, by the hash of router and replica: the same
 * at each of them, and another one at each replica. The first ones read its metrics (scraped.h).
 * The first ones of those that read KV events read these (node/proxy/engine/feeds.h); those that
 * the engine connected to, or that know what it holds, go before the others. When one of them dies,
 * leaves, or no longer sees the replica up, its reports say so or go, and the next one moves up.
 */
#ifndef NODE_REPLICA_TURN_H
#define NODE_REPLICA_TURN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

/* Part of struct node_replica. */
struct node_turn {
    unsigned others; /* routers that see it up, */
    unsigned ahead;  /* and those that stand before this one */
};

/* The place of a router in the order of a replica: the greatest is the first. */
static inline uint64_t node_turn_rank(uint64_t name_hash, uint64_t router)
{
    return hash_mix(name_hash ^ hash_mix(router));
}

/* One of the others, by its rank and by what it reports; `self` is this router's rank. */
static inline void node_turn_add(struct node_turn *t, bool up, uint64_t rank, uint64_t self)
{
    t->others += up;
    t->ahead += up && rank > self;
}

#endif
