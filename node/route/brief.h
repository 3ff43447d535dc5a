/* The replicas in a few words, for callers that read all of them each second (node/admin/live.h);
 * node_router_replicas_json() has everything. */
#ifndef NODE_ROUTE_BRIEF_H
#define NODE_ROUTE_BRIEF_H

#include "base/json_write.h"
#include "node/route/router.h"

/* Prompt tokens that the engines reported since the start, of the replicas in use, and the cached
 * ones among them. Only answers that reported both count. */
void node_router_answered(const struct node_router *r, uint64_t *prompt, uint64_t *cached);

/* An object with counts since the start for each replica in use: choices, failed attempts, and
 * tokens as above. */
void node_router_counts_write(const struct node_router *r, struct json_writer *w);

struct node_router_brief {
    unsigned count; /* replicas that may be chosen */
    unsigned well;  /* of these: up, or not probed yet, and neither avoided nor asleep */
};

/* An array of the replicas that may be chosen, at most so many, in the order of their slots. If
 * there are more, the ones in trouble come first, then as many others as fit. The counts include
 * all replicas, and the beliefs are the present ones. */
struct node_router_brief node_router_brief_write(struct node_router *r, unsigned most,
                                                 uint64_t now_ms, struct json_writer *w);

#endif
