/* A replica's believed speed: the fleet's, until the replica's own samples outvote the fleet
 * (docs/adr/0010, docs/adr/0042, docs/adr/0070).
 *
 *   fleet     the replicas of the same model. The fleet's figure is the upper median of the
 *             replicas' figures, with a vote for the configured prior
 *   replica   the value reached by a third of the replica's samples, with the fleet's figure as a
 *             further sample; with 1 or 2 timed prompts, between the replica's value and the
 *             fleet's
 *   nearly equal is equal: small differences, and differences between few samples, are ignored.
 *
 * Samples fade when no new samples come (learn.h). So an idle replica has a second, optimistic
 * belief. A replica without any sample counts as fast as the best of the fleet. A replica without
 * recently timed prompts counts at least as fast as the fleet. If a replica's pace was not seen for
 * two minutes and a hundred answers, the replica counts as fast as the best. So a replica judged
 * slow is tried again, with a single request at a time. */
#ifndef NODE_REPLICA_FLEET_H
#define NODE_REPLICA_FLEET_H

#include <stdint.h>

#include "base/hash.h"
#include "base/slice.h"
#include "node/replica/constants.h"
#include "node/replica/learn.h"

struct node_replica;
struct node_replica_config;

/* Part of struct node_replica. Speeds are numbers above 0. */
struct node_believed {
    uint64_t fleet;           /* key of the replica's model, and so of the fleet; 0: unknown */
    double tokens_per_s;      /* prefill rate */
    double idle_tokens_per_s; /* prefill rate if no request is under way at the replica */
    double step_base_s;       /* time of a decode step without context */
    double idle_step_base_s;
    struct node_paced { /* counts at the last sample of the pace */
        uint64_t samples;
        uint32_t ended; /* number of ended answers to this router's requests, at all replicas of the
                         * fleet */
    } paced;
};

/* Seconds of a decode step at this number of context tokens. */
static inline double node_believed_step_s(const struct node_believed *b, double context_tokens)
{
    return b->step_base_s * (1 + RULE(STEP_GROWTH) * context_tokens);
}

void node_believed_check(const struct node_believed *b);

/* Sets the replica's fleet. `model`: the replica's first model; empty: no fleet. */
void node_fleet_join(struct node_replica *k, const struct hash_secret *secret, struct slice model);

/* Sets the believed speeds of each replica. `scratch` has room for count + 1 votes. Costs a sort of
 * each fleet. */
void node_fleet_believe(struct node_replica *replicas, unsigned count,
                        const struct node_replica_config *config, struct node_vote *scratch,
                        uint64_t now_ms);

#endif
