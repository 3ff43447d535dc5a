#include "node/replica/fleet.h"

#include <math.h>

typedef const struct node_speed *figure_of(const struct node_replica *k);

static const struct node_speed *rate_of(const struct node_replica *k)
{
    return &k->rate;
}

static const struct node_speed *pace_of(const struct node_replica *k)
{
    return &k->pace;
}

static double fleet_figure(const struct node_replica *replicas, unsigned count, figure_of *figure,
                           double prior, struct node_vote *votes)
{
    unsigned used = 0;
    votes[used++] = (struct node_vote){prior, 1};
    for (unsigned i = 0; i < count; i++) {
        const struct node_speed *s = figure(&replicas[i]);
        if (s->samples > 0 && !replicas[i].absent)
            votes[used++] = (struct node_vote){
                s->value, fmin((double)s->samples, NODE_FLEET_REPLICA_VOTES_MAX)};
    }
    return node_votes_median(votes, used);
}

/* How far two equal replicas may seem apart, in logarithms. */
static double alike(unsigned samples)
{
    return 0.1 + 0.6 / sqrt(samples);
}

/* What it shows by itself, with the fleet's votes beside its samples while these are few. */
static double replica_shows(const struct node_speed *s, unsigned fresh, double fleet)
{
    if (fresh == NODE_SPEED_RECENT_MAX)
        return s->value;
    struct node_vote votes[NODE_SPEED_RECENT_MAX] = {{fleet, NODE_FLEET_VOTES}};
    for (unsigned i = 0; i < fresh; i++)
        votes[i + 1] = (struct node_vote){s->recent[s->fresh - fresh + i], 1};
    return node_votes_median(votes, fresh + 1);
}

/* The fleet's where it is alike, its own from twice that on, with a steady transition. */
static double replica_figure(const struct node_speed *s, double fleet, uint64_t now_ms)
{
    unsigned fresh = node_speed_fresh(s, now_ms);
    if (fresh <= NODE_FLEET_VOTES)
        return fleet;
    double off = log(replica_shows(s, fresh, fleet) / fleet), step = alike(fresh);
    if (fabs(off) < step)
        return fleet;
    return fleet * exp(fabs(off) < 2 * step ? 2 * (off - copysign(step, off)) : off);
}

/* How much a step grows with the context is a matter of the model more than of the replica: where
 * none was measured it is that of the replica that was measured best. */
static double fleet_growth(const struct node_replica *replicas, unsigned count)
{
    const struct node_replica *best = &replicas[0];
    for (unsigned i = 1; i < count; i++) {
        if (best->absent || (!replicas[i].absent && replicas[i].pace.samples > best->pace.samples))
            best = &replicas[i];
    }
    return best->step_growth;
}

void node_fleet_believe(struct node_replica *replicas, unsigned count,
                        const struct node_replica_config *config, struct node_vote *scratch,
                        uint64_t now_ms)
{
    if (count == 0)
        return;
    double rate = fleet_figure(replicas, count, rate_of, config->prefill_tokens_per_s, scratch);
    double pace = fleet_figure(replicas, count, pace_of, 1000 / config->decode_step_ms, scratch);
    double growth = fleet_growth(replicas, count);
    for (unsigned i = 0; i < count; i++) {
        struct node_replica *k = &replicas[i];
        k->tokens_per_s = replica_figure(&k->rate, rate, now_ms);
        k->step_base_s = 1 / replica_figure(&k->pace, pace, now_ms);
        k->step_context_s = (k->pace.samples > 0 ? k->step_growth : growth) * k->step_base_s;
    }
}
