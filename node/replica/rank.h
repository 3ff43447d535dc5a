/* Data-parallel ranks: an engine behind a single address, with several schedulers, queues and
 * caches (vLLM --data-parallel-size, SGLang --dp-size). Each rank is a separate replica. The rank's
 * name is the address, '@' and the number from 0: "10.0.0.1:8000@3". The header NODE_RANK_HEADER
 * pins a request to a rank (vLLM from 0.11.1, SGLang).
 *
 * The row of the address keeps the state of the process: health, probes, back-offs, limits, models,
 * connections. Each rank's row keeps the state of the rank's scheduler and cache: load, belief,
 * rates, room. */
#ifndef NODE_REPLICA_RANK_H
#define NODE_REPLICA_RANK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "node/replica/limits.h"

struct node_replica;
struct node_remote_load;

#define NODE_RANK_HEADER "X-Data-Parallel-Rank"

enum { NODE_RANK_NAME_BYTES = NODE_NAME_MAX + 4 }; /* with '@', two digits and NUL */

struct node_rank_name {
    struct slice address; /* borrowed from the name */
    unsigned rank;        /* below NODE_RANKS_MAX */
};

/* Splits a rank's name into address and number. Returns false for any other name; `out` is then
 * unchanged. */
bool node_rank_name_parse(struct slice name, struct node_rank_name *out);
/* True if a number follows the '@', even a number which no rank can have. */
bool node_rank_name_meant(struct slice name);
/* Writes the rank's name to `out`, with a NUL, and returns it. `address` has at most NODE_NAME_MAX
 * bytes. */
struct slice node_rank_name_write(struct slice address, unsigned rank,
                                  char out[NODE_RANK_NAME_BYTES]);

/* Part of struct node_replica: the rank's number, or the ranks of an address. */
struct node_rank {
    bool is_one;
    uint8_t number;           /* the rank's number, if is_one */
    uint8_t ranks;            /* number of this address's ranks in use; 0: the address itself is
                               * chosen */
    uint16_t server;          /* the row of the address: the replica's own row, except for a rank */
    uint32_t requests;        /* this router's requests under way at the ranks of the address */
    uint64_t requests_remote; /* other routers' requests under way at the ranks */
};

/* Makes `k` a rank of this number; -1: not a rank. `server` is the row of the address. */
void node_rank_set(struct node_replica *k, int number, unsigned server);
/* Counts each address's ranks in use, and the other routers' requests at them. */
void node_ranks_count(struct node_replica *replicas, unsigned count);
/* Copies to each rank what belongs to its address: the labels' cache size, fleet, weight, turns and
 * engine type. Returns true if a rank's fleet changed. */
bool node_ranks_inherit(struct node_replica *replicas, unsigned count);
/* Sets the other routers' load at `k`. If `k` is a rank of `process`, also updates
 * rank.requests_remote of `process`; otherwise `process` is `k`. */
void node_rank_load_remote(struct node_replica *k, struct node_replica *process,
                           const struct node_remote_load *remote, uint64_t now_ms);

#endif
