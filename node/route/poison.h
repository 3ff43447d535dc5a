/* Poison: a request after which engines die. Routers share such requests in a class of the shared
 * state (crdt/poison.h); this file defines its levels.
 *
 *   unknown  --one engine died, maybe of the request-->  SUSPECT  --another one died-->  POISON
 *      ^                                                    |                             |
 *      +-------- answered after all, forgotten by an operator, or its time is over -------+
 *
 * A request is identified by a hash of path and body, keyed with the secret for prompts. The hash
 * is the same at all routers, and reveals nothing about the prompt. */
#ifndef NODE_ROUTE_POISON_H
#define NODE_ROUTE_POISON_H

#include "base/buf.h"
#include "base/err.h"
#include "node/route/router.h"

enum node_poison {
    NODE_POISON_NONE,
    NODE_POISON_SUSPECT, /* placed alone */
    NODE_POISON_SURE,    /* refused */
};

/* Number of requests that are poison. */
unsigned node_poison_count(const struct node_router *r);
/* True if any request is a suspect or poison. If not, no request need be hashed. */
bool node_poison_any(const struct node_router *r);
enum node_poison node_poison_of(const struct node_router *r, uint64_t hash);

/* The replica died, maybe because of the request. A death counts once, with any number of requests
 * of this hash at the replica, from any router. `second`: this is known to be another death.
 * Returns the request's new level. */
enum node_poison node_poison_died(struct node_router *r, uint64_t hash, unsigned replica,
                                  bool second);
/* Before `replica`, the replica `earlier` died too, in an attempt that did not count against the
 * request then. Only records the name for operators. */
void node_poison_names(struct node_router *r, uint64_t hash, unsigned earlier, unsigned replica);
/* Writes the names of the replicas killed by the request, as far as all routers know, in order,
 * separated by commas. Empty: neither suspect nor poison. */
enum { NODE_POISON_NAMES_BYTES = 2 * NODE_NAME_MAX + 2 };
void node_poison_names_text(const struct node_router *r, uint64_t hash,
                            char out[NODE_POISON_NAMES_BYTES]);
/* The request was answered: no longer a suspect. */
void node_poison_cleared(struct node_router *r, uint64_t hash);
/* An operator forgets the request, for all routers. ERR_NOT_FOUND. */
MUST_USE int node_poison_forget(struct node_router *r, uint64_t hash);
/* The router refused the request, with status 502: counts this. */
void node_poison_refused(struct node_router *r, uint64_t hash);

/* Writes all suspect and poison requests as a JSON array. */
MUST_USE int node_poison_json(const struct node_router *r, struct buf *out);

#endif
