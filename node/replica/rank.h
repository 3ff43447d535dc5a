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
#include <stdint.h>

#include "base/slice.h"
#include "node/replica/limits.h"

struct node_replica;
struct node_remote_load;

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

/* Part of struct node_replica: which rank it is, or which it has. */
struct node_rank {
    bool is_one;
    uint8_t number;           /* where it is one */
    uint8_t ranks;            /* of this address that are in use; 0: it is chosen itself */
    uint16_t server;          /* the row of its address: its own, but for a rank */
    uint32_t requests;        /* under way at its ranks, of this router, */
    uint64_t requests_remote; /* and of others */
};

/* `number` is of rank `k`, -1: it is none; and the row of its address is `server`. */
void node_rank_set(struct node_replica *k, int number, unsigned server);
/* How many ranks of each address are in use, and what others have there. */
void node_ranks_count(struct node_replica *replicas, unsigned count);
/* What settings, models and scrapes say of an address holds for its ranks. Whether one is of
 * another fleet now. */
bool node_ranks_inherit(struct node_replica *replicas, unsigned count);
/* What the others have in flight at `k`, which may be a rank of that process. */
void node_rank_load_remote(struct node_replica *k, struct node_replica *process,
                           const struct node_remote_load *remote, uint64_t now_ms);

#endif
