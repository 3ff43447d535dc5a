/* How fast a replica is believed to be: like the fleet, until its own samples outvote that
 * (docs/adr/0010, docs/adr/0042, docs/adr/0070).
 *
 *   fleet     the replicas that serve the same model. Its figure is the upper median of what they
 *             show, with one vote for the configured prior
 *   replica   what a third of its own samples reach, among which the fleet's figure is one; with
 *             one or two timed prompts between its own and the fleet's
 *   nearly equal is equal: small differences, and those that rest on few samples, are ignored.
 *
 * Samples fade when no new ones come (learn.h). So there is a second belief, for a replica that is
 * idle: one that has shown nothing is hoped to be like the best of its fleet, one whose prompts
 * were not timed lately is as fast as the fleet at least, and one whose pace was not seen for two
 * minutes and a hundred answers is like the best. So a replica that was judged slow is tried again,
 * by one request at a time.
 */
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
    uint64_t fleet;           /* which replicas it is like: a key of its model; 0: unknown */
    double tokens_per_s;      /* of prefill */
    double idle_tokens_per_s; /* the same while nothing is under way there */
    double step_base_s;       /* of a decode step without context */
    double idle_step_base_s;
    struct node_paced { /* when the last sample of its pace came */
        uint64_t samples;
        uint32_t ended; /* answers of all like it, sent from here */
    } paced;
};

/* Of a decode step beside so much context. */
static inline double node_believed_step_s(const struct node_believed *b, double context_tokens)
{
    return b->step_base_s * (1 + RULE(STEP_GROWTH) * context_tokens);
}

void node_believed_check(const struct node_believed *b);

/* Which fleet it is of: that of its first model; empty: none. */
void node_fleet_join(struct node_replica *k, const struct hash_secret *secret, struct slice model);

/* Sets the speeds that are believed of each replica. `scratch` has room for count + 1 votes. Costs
 * a sort of each fleet. */
void node_fleet_believe(struct node_replica *replicas, unsigned count,
                        const struct node_replica_config *config, struct node_vote *scratch,
                        uint64_t now_ms);

#endif
