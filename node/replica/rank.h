/* Data-parallel ranks: one engine behind one address with as many schedulers, queues and caches
 * (vLLM --data-parallel-size, SGLang --dp-size). Each of them is a replica of its own, whose name
 * is the address, '@' and its number from 0: "10.0.0.1:8000@3". A request is pinned to its rank by
 * the header NODE_RANK_HEADER (vLLM from 0.11.1, SGLang).
 *
 * What concerns the process is kept once, in the row of the address: health, probes, back-offs,
 * limits, models, connections. What concerns a scheduler or a cache is the rank's own: load,
 * belief, rates, room. */
#ifndef NODE_REPLICA_RANK_H
#define NODE_REPLICA_RANK_H

#include <stdbool.h>

#include "base/slice.h"
#include "node/replica/limits.h"

#define NODE_RANK_HEADER "X-Data-Parallel-Rank"

enum { NODE_RANK_NAME_BYTES = NODE_NAME_MAX + 4 }; /* with '@', two digits, NUL */

struct node_rank_name {
    struct slice address; /* borrowed from the name */
    unsigned rank;        /* below NODE_RANKS_MAX */
};

/* False: it is no name of a rank. */
bool node_rank_name_parse(struct slice name, struct node_rank_name *out);
/* Whether a number stands behind its '@', though it may be none of a rank. */
bool node_rank_name_meant(struct slice name);
/* `address` has at most NODE_NAME_MAX bytes. The result is in `out`, and ends in NUL. */
struct slice node_rank_name_write(struct slice address, unsigned rank,
                                  char out[NODE_RANK_NAME_BYTES]);

#endif
