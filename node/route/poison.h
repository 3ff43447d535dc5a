/* Poison: a request after which engines die. What all routers hold of such requests is a class of
 * the shared state (crdt/poison.h); here is what its levels mean.
 *
 *   unknown  --one engine died, and it may be the cause-->  SUSPECT  --another one died-->  POISON
 *      ^                                                       |                             |
 *      +------------- answered after all, forgotten by an operator, or its time is over -----+
 *
 * A request is known by a hash of its path and body, keyed with the secret that hashes prompts: it
 * is the same at all routers, and says nothing of the prompt. */
#ifndef NODE_ROUTE_POISON_H
#define NODE_ROUTE_POISON_H

#include "base/buf.h"
#include "base/err.h"
#include "node/route/router.h"

enum node_poison {
    NODE_POISON_NONE,
    NODE_POISON_SUSPECT, /* it is placed alone */
    NODE_POISON_SURE,    /* it is refused */
};

/* How many requests are poison. */
unsigned node_poison_count(const struct node_router *r);
/* Whether any request is held to be something: else there is no need to hash. */
bool node_poison_any(const struct node_router *r);
enum node_poison node_poison_of(const struct node_router *r, uint64_t hash);

/* The replica died, maybe of it. One death counts once, however many requests of that hash were
 * there, at whatever router; with `second` it is known to be another one. Returns what the request
 * is now. */
enum node_poison node_poison_died(struct node_router *r, uint64_t hash, unsigned replica,
                                  bool second);
/* `earlier` died too, of an attempt that was not held against the request then: whoever looks at
 * it sees both. It changes nothing else. */
void node_poison_names(struct node_router *r, uint64_t hash, unsigned earlier, unsigned replica);
/* The replicas that died of it as far as all routers know, the first one first, with commas. Empty:
 * it is not held to be anything. */
enum { NODE_POISON_NAMES_BYTES = 2 * NODE_NAME_MAX + 2 };
void node_poison_names_text(const struct node_router *r, uint64_t hash,
                            char out[NODE_POISON_NAMES_BYTES]);
/* It was answered: a suspect is none any more. */
void node_poison_cleared(struct node_router *r, uint64_t hash);
/* An operator forgets it, for all routers. ERR_NOT_FOUND. */
MUST_USE int node_poison_forget(struct node_router *r, uint64_t hash);
/* It was answered 502. */
void node_poison_refused(struct node_router *r, uint64_t hash);

/* All that is remembered, as a JSON array. */
MUST_USE int node_poison_json(const struct node_router *r, struct buf *out);

#endif
