/* The state that all routers share, as this one holds it, and cluster time, in which it counts.
 *
 * It owns the replicated state (crdt/state.h). Two modules borrow it: the router (node/route)
 * decides by it and reports to it; the replication (node/cluster/replication.h) carries it to the
 * other routers and brings theirs. A router alone has one too.
 *
 * *Cluster time* is the wall clock as it was at the start, carried on by the monotonic clock: a
 * wall clock that jumps moves nothing. The generations of the index are slices of it. Routers whose
 * clocks differ agree on it (node/cluster/clock.c).
 *
 * Invariants:
 *   1. Generations never go back, except by node_state_rewind().
 *   2. The crdt_state stays the same one, except over node_state_rewind().
 *
 * `now_ms` is monotonic and everywhere the same clock.
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
    struct hash_secret secret; /* of the hashes of prompts and sessions; the same everywhere */
    uint64_t self;             /* this router: gossip_node_id() of its name */
    bool replicated;           /* there are other routers: news is queued for them */
    bool keeps;                /* what is known outlives this process (node/cluster/keep.h) */
    unsigned replicas_max;     /* slots: crdt_registry_slots(names_max) */
    unsigned names_max;        /* names of replicas in use at one time; 0: as many as slots allow */
    uint64_t index_bytes;      /* memory for the prefix index */
    uint32_t generation_ms;    /* time slice of last use */
    uint32_t ttl_ms;           /* an observation older than this is forgotten; at most CRDT_TTL_MAX
                                 generations */
    uint32_t names_ttl_s;      /* a name that nobody names is forgotten after so long; 0: after
                                 CRDT_NAMES_TTL_S, as it has to be wherever routers may differ in
                                 their settings, `ttl_ms` too: others would keep what one forgets */
    bool (*is_name)(struct slice name); /* whether a replica may be called so, by its text alone and
                                           the same everywhere; NULL: any way */
    uint64_t wall_ms, now_ms; /* wall clock and monotonic clock at the same moment, now; 0, 0: the
                                 monotonic clock will do (a router alone) */
};

/* ERR_NOMEM; ERR_RANGE or ERR_LIMIT for index settings that crdt/index.h refuses. */
MUST_USE int node_state_create(struct node_state **out, const struct node_state_config *config);
void node_state_destroy(struct node_state *s);
void node_state_check(const struct node_state *s);

const struct node_state_config *node_state_config_of(const struct node_state *s);
/* Owned by `s`; other ones after node_state_rewind(). */
struct crdt_state *node_state_crdt(const struct node_state *s);
struct crdt_index *node_state_index(const struct node_state *s);

/* The settings on which all routers must agree. */
struct node_agreement {
    uint32_t generation_ms, ttl_ms;
    uint64_t hash;      /* names the secret */
    uint32_t id_ranges; /* crdt_index_id_ranges(): small tables have ids of their own */
};
struct node_agreement node_state_agreement(const struct node_state *s);

/* --- cluster time --------------------------------------------------------------------------- */

/* Milliseconds since 1970, more or less (see above). */
uint64_t node_state_cluster_ms(const struct node_state *s, uint64_t now_ms);
/* Moves the index to the present generation. Cheap when that has not changed. */
void node_state_clock(struct node_state *s, uint64_t now_ms);
/* The wall clock now, to show how far off it is. Moves nothing. */
void node_state_wall(struct node_state *s, uint64_t wall_ms, uint64_t now_ms);
/* Cluster time - wall clock, in ms; 0 before node_state_wall() was called. */
int64_t node_state_clock_off_ms(const struct node_state *s);
/* Moves cluster time; back only within the present generation. */
void node_state_clock_move(struct node_state *s, int64_t by_ms, uint64_t now_ms);
/* Moves it back, further than the present generation: of the observations those that are then of
 * the future become as much earlier, and the others are forgotten; the rest stays. The caller must
 * give the new crdt_state its epoch and the routers that are alive.
 * ERR_NOMEM: nothing changed. */
MUST_USE int node_state_rewind(struct node_state *s, int64_t by_ms, uint64_t now_ms);
/* How often that happened. */
uint64_t node_state_rewinds(const struct node_state *s);

#endif
