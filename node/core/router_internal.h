/* What the files of the router share: router.c (replicas, decisions), router_learn.c (what answers
 * teach), router_explain.c and router_metrics.c (what it believes). Nobody else includes this. */
#ifndef NODE_CORE_ROUTER_INTERNAL_H
#define NODE_CORE_ROUTER_INTERNAL_H

#include "crdt/index.h"
#include "node/core/booking.h"
#include "node/core/model.h"
#include "node/core/policy.h"
#include "node/core/replica.h"
#include "node/core/router.h"

struct node_router {
    struct node_router_config config;
    const struct node_policy *policy;
    struct prng prng;
    uint64_t turn;
    struct crdt_index *index;
    struct node_models *models;
    struct node_bookings *bookings;
    struct node_decay decay;
    uint64_t ticked_ms;
    uint64_t unroutable; /* first attempts without a replica */

    unsigned replica_count;
    struct node_replica *replicas; /* NODE_REPLICAS_MAX */

    /* Scratch of one decision. */
    struct node_candidate candidates[NODE_REPLICAS_MAX];
    unsigned candidate_count;
    uint32_t floors[NODE_REPLICAS_MAX];
    uint16_t lengths[NODE_REPLICAS_MAX];
    uint32_t generations[NODE_REPLICAS_MAX];
};

/* The size of a request in tokens, by what was learned of its model. */
struct node_size {
    unsigned model; /* row */
    double prompt_tokens;
    double output_tokens;
    double block_tokens; /* of this prompt */
};

/* Moves the index to the present generation. */
void node_router_clock(struct node_router *r, uint64_t now_ms);

/* Fills the candidates and what they hold of the prompt, with costs if `costs`. ERR_NOT_FOUND or
 * ERR_UNREACHABLE as node_router_choose. */
int node_router_evaluate(struct node_router *r, const struct node_request *request,
                         const uint64_t *excluded, bool costs, uint64_t now_ms,
                         struct node_size *size);
struct node_policy_input node_router_policy_input(struct node_router *r,
                                                  const struct node_request *request);

/* What an answer teaches; `complete` if it was not cut short. */
void node_router_learn(struct node_router *r, const struct node_booking_entry *e,
                       const struct node_usage *usage, bool complete, uint64_t now_ms);

const char *node_health_text(enum node_health health);
const char *node_engine_text(enum node_engine engine);

#endif
