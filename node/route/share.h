/* The router's side of replication: what it tells the others, and what it takes in of theirs.
 * Driven by node/cluster/replication.h alone.
 *
 *   own bookings, probes, estimators   --collect-->  reports of the state  -->  deltas
 *   deltas of others  -->  the state   --joined-->   replicas in use, their loads, hints, beliefs
 *
 * What was learned is one figure that is carried on by all: with it goes the number of samples that
 * it rests on, whoever took them. A router takes another's figure, and its number, if that rests on
 * more samples than its own, adds its own samples to it one by one, and reports the outcome. So a
 * figure lives as long as one router does; the busiest routers move it, and the others follow; and
 * an echo changes nothing, since it never rests on more samples than what it is an echo of.
 * (Routers that learn at the same time do not add up: the one ahead is followed.)
 */
#ifndef NODE_ROUTE_SHARE_H
#define NODE_ROUTE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct node_router;
struct crdt_state;

enum {
    NODE_LEARNED_INTERVAL_MS = 1000, /* what was learned is told at most so often */
    NODE_LEARNED_FEW = 4,            /* a model with fewer own samples is as its replicas are */
};

/* Owned by the router; another one after node_router_rewind(). */
struct crdt_state *node_router_state(struct node_router *r);
uint32_t node_router_generation_ms(const struct node_router *r);
/* The settings on which all routers must agree. */
struct node_agreement {
    uint32_t generation_ms, ttl_ms;
    uint64_t hash; /* names the secret that keys the hashes of prompts */
};
struct node_agreement node_router_agreement(const struct node_router *r);

/* Reports what changed since the last call. Cheap when nothing did. */
void node_router_collect(struct node_router *r, uint64_t now_ms);
/* Something was joined: replicas appear and go, lost caches are forgotten. */
void node_router_joined(struct node_router *r);
/* Takes in what the others report: sights and what they learned. Walks all reports if any changed,
 * so not to be called for each delta. */
void node_router_reports_take(struct node_router *r, uint64_t now_ms);

/* Moves the index to the present generation, if it has changed. */
void node_router_clock(struct node_router *r, uint64_t now_ms);
/* Cluster time - wall clock, in ms; 0 while the wall clock was not told. */
int64_t node_router_clock_off_ms(const struct node_router *r);
/* Moves cluster time; back only within the present generation (an index never goes back). */
void node_router_cluster_move(struct node_router *r, int64_t by_ms, uint64_t now_ms);
/* Moves it back for good: the observations are forgotten, the rest stays. The caller must tell the
 * new state its epoch and which routers are alive. ERR_NOMEM: nothing changed. */
int node_router_rewind(struct node_router *r, int64_t by_ms, uint64_t now_ms);

/* For showing: the name of a router, or NULL. */
void node_router_names(struct node_router *r, const char *(*name)(void *context, uint64_t router),
                       void *context);

#endif
