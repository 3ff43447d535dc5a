/* A short table of the replicas, for callers that read the whole table each second
 * (node/admin/live.h). node_router_replicas_json() has everything. */
#ifndef NODE_ROUTE_BRIEF_H
#define NODE_ROUTE_BRIEF_H

#include "base/json_write.h"
#include "node/route/router.h"

/* Sums over the replicas in use, since the start: prompt tokens, and cached tokens among them.
 * Counts only answers with both numbers in the engine's report. */
void node_router_answered(const struct node_router *r, uint64_t *prompt, uint64_t *cached);

/* Writes an object with counts since the start for each replica in use: choices, failed attempts,
 * prompt tokens and cached tokens. */
void node_router_counts_write(const struct node_router *r, struct json_writer *w);

/* The rows that the readers have, if they get all frames. Zeroed: no rows. */
struct node_brief_reader {
    unsigned next;                     /* the first slot of the next frame */
    uint16_t codes[NODE_REPLICAS_MAX]; /* each slot's standing in the last frame with the slot */
};

/* Both functions write fields into an open JSON object:
 *
 *   replicas       rows, each with its slot, at most `most`
 *   replicas_span  [from, to]: `replicas` has the rows of all slots with from <= slot < to
 *   replicas_gone  slots known to readers that have no replica now
 *   replica_count  replicas that may be chosen, whether a row shows them or not
 *   replicas_well  replicas that are up or not probed yet, and neither avoided nor asleep
 *
 * Both recount the believed cache contents first. */

/* The first frame of a reader: slots from 0 on. */
void node_router_brief_write(struct node_router *r, unsigned most, uint64_t now_ms,
                             struct json_writer *w);
/* The next frame for all readers: replicas with a changed standing since they were last written,
 * and then slots in turn. A reader with missed frames is up to date after all slots had their
 * turn. */
void node_router_brief_next_write(struct node_router *r, struct node_brief_reader *reader,
                                  unsigned most, uint64_t now_ms, struct json_writer *w);

#endif
