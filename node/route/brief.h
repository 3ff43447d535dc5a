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

/* Rows that readers of all frames hold. Zeroed: none. */
struct node_brief_reader {
    unsigned next;                     /* the slot that the next frame begins with */
    uint16_t codes[NODE_REPLICAS_MAX]; /* each slot's standing, as it was written last */
};

/* Both write members of an open object:
 *
 *   replicas       rows, each with its slot, at most `most`
 *   replicas_span  [from, to]: of the slots from <= slot < to, `replicas` has all rows
 *   replicas_gone  slots that readers know and that have no replica any more
 *   replica_count  replicas that may be chosen, whether a row shows them or not
 *   replicas_well  of these: up, or not probed yet, and neither avoided nor asleep
 *
 * The beliefs are the present ones. */

/* The first frame of a reader: slots from 0 on. */
void node_router_brief_write(struct node_router *r, unsigned most, uint64_t now_ms,
                             struct json_writer *w);
/* The next frame for all readers: replicas with another standing than when they were written last,
 * and then slots in turn. A reader that missed frames is up to date after one turn. */
void node_router_brief_next_write(struct node_router *r, struct node_brief_reader *reader,
                                  unsigned most, uint64_t now_ms, struct json_writer *w);

#endif
