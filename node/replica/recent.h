/* The order in which the last prompts were used at a replica.
 *
 * The index knows the time of last use to the grain of a generation, some seconds. A cache that
 * turns over faster (a small one, or a fast engine) has held and lost many prompts in that time,
 * and which of them are there depends on their order. So for such a replica the router keeps the
 * order of its own last requests: a *use* for each, and for each checkpoint the use that touched it
 * last. It counts where nobody else uses the replica, and where all these uses are more than the
 * cache holds: then what is not among them is gone.
 *
 * A use becomes the newest when it begins and once more when it ends, as the engine has its blocks
 * in use until then. The answer is in the cache too, until a prompt goes on from there and has it
 * in it.
 *
 * Sizes are blocks of the index, of 256 bytes. Plain memory, 68 KiB, for each replica that needs
 * it.
 */
#ifndef NODE_REPLICA_RECENT_H
#define NODE_REPLICA_RECENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/chain.h"

struct node_recent;

/* NULL without memory. */
struct node_recent *node_recent_create(void);
void node_recent_destroy(struct node_recent *r);
/* The cache is empty. */
void node_recent_clear(struct node_recent *r);
void node_recent_check(const struct node_recent *r);

/* A request is sent. `more_blocks`: what it takes beyond its last checkpoint. Returns a handle,
 * which says nothing once the use is forgotten. */
uint32_t node_recent_begin(struct node_recent *r, const struct chain *chain, double more_blocks);
/* It ended, with an answer of so many blocks. */
void node_recent_end(struct node_recent *r, uint32_t use, double answer_blocks);
/* It was never computed: what it would have brought is not there. */
void node_recent_refuse(struct node_recent *r, uint32_t use);

/* Blocks of all uses. */
double node_recent_blocks(const struct node_recent *r);

/* The prompt's start as far as it is known, in parts of one use each, the newest first: the point
 * behind the last one of each, and the depth of its first and last block. Returns how many. */
struct node_recent_part {
    unsigned end;
    double from, to;
};
unsigned node_recent_parts(const struct node_recent *r, const struct chain *chain,
                           struct node_recent_part *parts, unsigned max);

#endif
