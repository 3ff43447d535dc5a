/* Maps the id of a stored response (/v1/responses/{id}) to the replica that made it. Stored
 * responses live in the engine's memory, so requests to read, cancel or continue a response must go
 * to the same replica.
 *
 * A fixed table of the last `capacity` ids; a new entry replaces the oldest of a set of eight. An
 * id missing here may be in the shared state, if any router bound the id (node_router_bind). An
 * unknown id is no error: the caller asks the replicas in turn. Two more entries of a response
 * record the client key that made it (node/proxy/exchange/owner.c). */
#ifndef NODE_ROUTE_AFFINITY_H
#define NODE_ROUTE_AFFINITY_H

#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"
#include "node/route/router.h"

enum { NODE_AFFINITY_MAX = 65536 }; /* entries of a router: 1 MiB */

struct node_affinity;

/* Creates a table with 16 bytes for each entry; `capacity` is rounded up to a power of two.
 * ERR_NOMEM. */
MUST_USE int node_affinity_create(struct node_affinity **out, const struct hash_secret *secret,
                                  uint32_t capacity);
void node_affinity_destroy(struct node_affinity *a);
/* From now on publishes each new entry to the other routers, and finds their entries. */
void node_affinity_share(struct node_affinity *a, struct node_router *router);

void node_affinity_put(struct node_affinity *a, struct slice id, unsigned replica);

/* Number of entries replaced by newer ids so far. */
uint64_t node_affinity_evicted(const struct node_affinity *a);

/* The replica that made the response, or -1. A replica found in the shared state is stored in the
 * table. */
MUST_USE int node_affinity_get(struct node_affinity *a, struct slice id);
/* The replica that made the response, or -1. Stores nothing. */
MUST_USE int node_affinity_peek(const struct node_affinity *a, struct slice id);

#endif
