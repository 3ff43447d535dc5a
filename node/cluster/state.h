/* This router's copy of the state shared by all routers, and cluster time.
 *
 * The node_state owns the replicated state (crdt/state.h). Two modules borrow the replicated state.
 * The routing code (node/route) uses it for decisions and reports; the replication
 * (node/cluster/replication.h) exchanges changes with the other routers. A router without a cluster
 * also has a node_state.
 *
 * *Cluster time* is the wall clock at the start, continued by the monotonic clock: a jump of the
 * wall clock has no effect. The index's generations are slices of cluster time. Routers with
 * different wall clocks agree on cluster time (node/cluster/clock.c).
 *
 * Invariants:
 *   1. Generations never go back, except by node_state_rewind().
 *   2. The crdt_state is replaced only by node_state_rewind().
 *
 * `now_ms` is monotonic and the same clock everywhere.
 */
#ifndef NODE_CLUSTER_STATE_H
#define NODE_CLUSTER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/slice.h"

struct crdt_state;
struct crdt_index;
struct node_state;

struct node_state_config {
    struct hash_secret secret; /* for the hashes of prompts and sessions; equal in all routers */
    uint64_t self;             /* this router's id: gossip_node_id() of the name */
    bool replicated;           /* there are other routers: changes are queued for them */
    bool keeps;                /* the state is saved to a file (node/cluster/keep.h) */
    unsigned replicas_max;     /* slots: crdt_registry_slots(names_max) */
    unsigned names_max;        /* names of replicas in use at a time; 0: as many as slots allow */
    uint64_t index_bytes;      /* memory for the prefix index */
    uint32_t generation_ms;    /* length of a generation */
    uint32_t ttl_ms;           /* an observation older than this is dropped; at most CRDT_TTL_MAX
                                  generations */
    uint32_t names_ttl_s;      /* time until a name that no router lists is dropped; 0:
                                * CRDT_NAMES_TTL_S. Use 0 if routers may differ in this or in
                                * ttl_ms: otherwise some would keep a name dropped by others */
    bool (*is_name)(struct slice name); /* tests if a replica may have this name: a pure function,
                                         * the same at all routers; NULL: any name is valid */
    uint64_t wall_ms, now_ms; /* wall clock and monotonic clock now, at the same moment; 0, 0: use
                               * the monotonic clock (router without a cluster) */
};

/* ERR_NOMEM; ERR_RANGE or ERR_LIMIT for index settings refused by crdt/index.h. */
MUST_USE int node_state_create(struct node_state **out, const struct node_state_config *config);
void node_state_destroy(struct node_state *s);
void node_state_check(const struct node_state *s);

const struct node_state_config *node_state_config_of(const struct node_state *s);
/* Both are owned by `s`, and replaced by node_state_rewind(). */
struct crdt_state *node_state_crdt(const struct node_state *s);
struct crdt_index *node_state_index(const struct node_state *s);

/* The settings that must be equal in all routers. */
struct node_agreement {
    uint32_t generation_ms, ttl_ms;
    uint64_t hash;      /* identifies the secret */
    uint32_t id_ranges; /* crdt_index_id_ranges(): ids of small tables differ */
};
struct node_agreement node_state_agreement(const struct node_state *s);

/* --- cluster time --------------------------------------------------------------------------- */

/* Cluster time: milliseconds since 1970, approximately (see above). */
uint64_t node_state_cluster_ms(const struct node_state *s, uint64_t now_ms);
/* Moves the index to the current generation. Cheap if the generation has not changed. */
void node_state_clock(struct node_state *s, uint64_t now_ms);
/* Sets the current wall clock, to report the offset. Moves nothing. */
void node_state_wall(struct node_state *s, uint64_t wall_ms, uint64_t now_ms);
/* Cluster time minus wall clock, in ms; 0 before node_state_wall() was called. */
int64_t node_state_clock_off_ms(const struct node_state *s);
/* Moves cluster time by `by_ms`, back by a generation at most. The index's generation never goes
 * back: it waits until cluster time has caught up. */
void node_state_clock_move(struct node_state *s, int64_t by_ms, uint64_t now_ms);
/* Moves cluster time back, further than the current generation. Observations that are then in the
 * future move back by the same time, and all other observations are dropped. Everything else stays.
 * The caller must set the new crdt_state's epoch and live routers. ERR_NOMEM: nothing changed. */
MUST_USE int node_state_rewind(struct node_state *s, int64_t by_ms, uint64_t now_ms);
/* The number of rewinds. */
uint64_t node_state_rewinds(const struct node_state *s);

#endif
