/* The replicas in few words, for who looks at all of them each second (node/admin/live.h);
 * node_router_replicas_json() has everything.
 */
#ifndef NODE_ROUTE_BRIEF_H
#define NODE_ROUTE_BRIEF_H

#include "base/json_write.h"
#include "node/route/router.h"

/* Prompt tokens as engines told them since the start, of the replicas in use, and those of them
 * that came from their caches. Of answers that told both. */
void node_router_answered(const struct node_router *r, uint64_t *prompt, uint64_t *cached);

/* An object: for each replica in use, what was counted since the start. Requests that it was chosen
 * for, attempts that went wrong there, and tokens as above. */
void node_router_counts_write(const struct node_router *r, struct json_writer *w);

struct node_router_brief {
    unsigned count; /* replicas that may be chosen */
    unsigned well;  /* of these: up, or not probed yet, and neither avoided nor asleep */
};

/* An array of the replicas that may be chosen, at most so many, in the order of their slots: where
 * there are more, those that are not well, and then as many others as there is room for. The counts
 * are of all, and the beliefs those of now. */
struct node_router_brief node_router_brief_write(struct node_router *r, unsigned most,
                                                 uint64_t now_ms, struct json_writer *w);

#endif
