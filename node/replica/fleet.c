#include "node/replica/fleet.h"

#include <math.h>

#include "base/check.h"
#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/replica.h"

static bool is_speed(double x)
{
    return x > 0 && isfinite(x);
}

void node_believed_check(const struct node_believed *b)
{
    CHECK(is_speed(b->tokens_per_s) && is_speed(b->idle_tokens_per_s));
    CHECK(is_speed(b->step_base_s) && is_speed(b->idle_step_base_s));
}

void node_fleet_join(struct node_replica *k, const struct hash_secret *secret, struct slice model)
{
    k->believed.fleet = model.len > 0 ? hash64(secret, model.at, model.len) | 1 : 0;
}

static bool counts(const struct node_replica *k, uint64_t fleet)
{
    return k->believed.fleet == fleet && !k->absent;
}

/* A fleet's median, and the best replica's figure. A replica without samples is assumed to be like
 * the best. If it counted like the median of a mostly slow fleet, a fast replica would stay idle
 * for ever. */
struct fleet_figure {
    double median, best;
};

/* The fleet's figure of paces, or of rates. The prior has no vote if the replicas have `votes_max`
 * votes. */
static struct fleet_figure fleet_figure(const struct node_replica *replicas, unsigned count,
                                        uint64_t fleet, bool pace, double prior, double votes_max,
                                        struct node_vote *votes)
{
    unsigned used = 0;
    double samples = 0, best = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_shown *shown = &replicas[i].shown;
        const struct node_speed *s = pace ? &shown->pace : &shown->rate;
        if (!counts(&replicas[i], fleet) || s->samples == 0)
            continue;
        double few = number_min((double)s->samples, RULE(PRIOR));
        votes[used++] = (struct node_vote){s->value, few};
        samples += few;
        if (s->samples > RULE(FEW))
            best = number_max(best, s->value);
    }
    if (samples < votes_max)
        votes[used++] = (struct node_vote){prior, 1};
    double median = node_votes_median(votes, used);
    return (struct fleet_figure){median, number_max(best, median)};
}

/* Possible difference between the figures of two equal replicas, in logarithms. */
static double alike(unsigned samples)
{
    return log(RULE(SLIGHTLY)) + RULE(NOISE) / sqrt(samples);
}

/* The variance of the replicas' rates, in logarithms, less the variance that chance would cause
 * among equal replicas. */
static double spread_of(const struct node_replica *replicas, unsigned count, uint64_t fleet)
{
    double seen = 0, sum = 0, squares = 0, noise = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_speed *s = &replicas[i].shown.rate;
        if (!counts(&replicas[i], fleet) || s->samples == 0)
            continue;
        double own = log(s->value);
        seen++;
        sum += own;
        squares += own * own;
        noise += RULE(NOISE) * RULE(NOISE) / number_min((double)s->samples, NODE_SPEED_RECENT_MAX);
    }
    if (seen < 2)
        return 0;
    return number_max((squares - sum * sum / seen) / (seen - 1) - noise / seen, 0);
}

/* A replica's value from few samples, moved towards the fleet's value. The replica's samples count
 * the more, the more the fleet's replicas differ in relation to the samples' noise (shrinkage;
 * James and Stein, 1961). */
static double shrunk(double own, unsigned samples, double fleet, double spread)
{
    if (LEFT_OUT(SHRUNK))
        return own;
    return fleet * pow(own / fleet, spread / (spread + RULE(NOISE) * RULE(NOISE) / samples));
}

/* Returns the fleet's value if the replica's own value is within alike() of it, and the own value
 * at twice this distance or more. In between, the result changes steadily from one to the other. */
static double apart(double own, unsigned samples, double fleet)
{
    double off = log(own / fleet), step = alike(samples);
    if (LEFT_OUT(APART))
        return own;
    if (fabs(off) < step)
        return fleet;
    return fleet * exp(fabs(off) < 2 * step ? 2 * (off - copysign(step, off)) : off);
}

/* A replica's believed speeds, while busy and while idle. Without samples, an idle replica counts
 * as fast as the best of the fleet. With few samples, an idle replica counts at least as fast as
 * the fleet's median, and with more samples, at least as fast as `tried`. */
struct belief {
    double busy, idle;
};

static struct belief believe(const struct node_speed *s, const struct fleet_figure *fleet,
                             double spread, double tried, uint64_t now_ms)
{
    if (s->samples == 0)
        return (struct belief){fleet->median, fleet->best};
    unsigned fresh = node_speed_fresh(s, now_ms);
    if (s->samples <= RULE(FEW)) {
        double few = fresh > 0 ? shrunk(s->value, fresh, fleet->median, spread) : fleet->median;
        return (struct belief){fresh > 0 ? apart(few, fresh, fleet->median) : few,
                               number_max(s->value, fleet->median)};
    }
    double own = s->value;
    if (fresh > RULE(FEW))
        own = node_speed_third(s, fleet->median, now_ms);
    else
        fresh = (unsigned)number_min((double)s->samples, NODE_SPEED_RECENT_MAX);
    own = apart(own, fresh, fleet->median);
    return (struct belief){own, number_max(own, tried)};
}

/* True while the replica's pace is believed. A slow decode takes longer to be judged again than a
 * slow prefill, because answers last longer. So a pace is believed until PACE_HOLDS_MS have passed
 * since the last sample and PACE_HOLDS_ANSWERS answers have ended: answers to this router's
 * requests to the fleet. */
static bool pace_holds(struct node_replica *k, uint32_t ended, uint64_t now_ms)
{
    const struct node_speed *pace = &k->shown.pace;
    struct node_paced *paced = &k->believed.paced;
    if (pace->samples != paced->samples || ended < paced->ended)
        *paced = (struct node_paced){pace->samples, ended};
    uint64_t last_ms = pace->at_ms > pace->heard_ms ? pace->at_ms : pace->heard_ms;
    return (double)now_ms < (double)last_ms + RULE(PACE_HOLDS_MS) ||
           ended - paced->ended < RULE(PACE_HOLDS_ANSWERS);
}

static bool is_told_whole(const struct node_replica *k, uint64_t fleet)
{
    return counts(k, fleet) && k->shown.whole.count > 0;
}

/* Sets whole.base of the fleet's replicas: the times of a prefill token and of a decode step that
 * fit the whole answers of the whole fleet best. Each replica's answers are scaled to the fleet's
 * average speed. */
static void explain_whole(struct node_replica *replicas, unsigned count, uint64_t fleet)
{
    struct node_whole all = {0};
    double logs = 0, answers = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_whole *w = &replicas[i].shown.whole;
        if (!is_told_whole(&replicas[i], fleet))
            continue;
        if (answers == 0)
            all.base = w->base;
        logs += w->count * log(node_whole_factor(w, all.base));
        answers += w->count;
    }
    if (answers == 0)
        return;
    double average = exp(logs / answers);
    for (unsigned i = 0; i < count; i++) {
        const struct node_whole *w = &replicas[i].shown.whole;
        if (is_told_whole(&replicas[i], fleet))
            node_whole_pool(&all, w, node_whole_factor(w, all.base) / average);
    }
    all.base = node_whole_explain_fleet(&all);
    for (unsigned i = 0; i < count; i++) {
        if (replicas[i].believed.fleet == fleet)
            replicas[i].shown.whole.base = all.base;
    }
}

/* Sets room.ran_anywhere of the fleet's replicas: the most requests and tokens that ran at once at
 * any of them; 0, no limit, while load rises for the first time. Returns the number of the fleet's
 * ended answers. */
static uint32_t rooms_compare(struct node_replica *replicas, unsigned count, uint64_t fleet)
{
    struct node_room_amount most = {0};
    uint32_t ended = 0;
    double places = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_room *room = &replicas[i].room;
        if (!counts(&replicas[i], fleet))
            continue;
        ended += room->ended;
        places += room->ran.requests;
        most.requests = number_max(most.requests, room->ran.requests);
        most.tokens = number_max(most.tokens, room->ran.tokens);
    }
    if (LEFT_OUT(RAN_ANYWHERE) || ended < number_max(RULE(TURNED_OVER) * places, 1) ||
        most.requests <= 0)
        most = (struct node_room_amount){0};
    else if (most.requests < RULE(ENGINE_RUNS))
        most = (struct node_room_amount){RULE(ENGINE_RUNS),
                                         most.tokens * RULE(ENGINE_RUNS) / most.requests};
    for (unsigned i = 0; i < count; i++) {
        if (replicas[i].believed.fleet != fleet)
            continue;
        replicas[i].room.ran_anywhere = most;
    }
    return ended;
}

/* Sets the believed speeds of the replicas with the same model as replica `first`. */
static void fleet_believe(struct node_replica *replicas, unsigned count, unsigned first,
                          const struct node_replica_config *config, struct node_vote *scratch,
                          uint64_t now_ms)
{
    uint64_t fleet = replicas[first].believed.fleet;
    explain_whole(replicas, count, fleet);
    uint32_t ended = rooms_compare(replicas, count, fleet);
    struct fleet_figure rate = fleet_figure(replicas, count, fleet, false,
                                            config->prefill_tokens_per_s, INFINITY, scratch);
    struct fleet_figure pace = fleet_figure(replicas, count, fleet, true,
                                            1000 / config->decode_step_ms, RULE(PRIOR), scratch);
    double spread = spread_of(replicas, count, fleet);
    for (unsigned i = first; i < count; i++) {
        struct node_replica *k = &replicas[i];
        struct node_believed *b = &k->believed;
        const struct node_shown *s = &k->shown;
        if (b->fleet != fleet)
            continue;
        /* A spread of 0 leaves few samples without effect. A few whole answers say too little about
         * a replica's rate, and a few samples too little about the pace. */
        bool timed = s->streamed_ms != 0 || s->told_ms != 0;
        bool fresh = node_speed_fresh(&s->rate, now_ms) > RULE(FEW);
        struct belief own =
            believe(&s->rate, &rate, timed ? spread : 0, fresh ? 0 : rate.median, now_ms);
        b->tokens_per_s = own.busy;
        b->idle_tokens_per_s = own.idle;
        own = believe(&s->pace, &pace, 0, pace_holds(k, ended, now_ms) ? 0 : pace.best, now_ms);
        b->step_base_s = 1 / own.busy;
        b->idle_step_base_s = 1 / own.idle;
    }
}

static bool is_first(const struct node_replica *replicas, unsigned at)
{
    for (unsigned i = 0; i < at; i++) {
        if (replicas[i].believed.fleet == replicas[at].believed.fleet)
            return false;
    }
    return true;
}

void node_fleet_believe(struct node_replica *replicas, unsigned count,
                        const struct node_replica_config *config, struct node_vote *scratch,
                        uint64_t now_ms)
{
    for (unsigned i = 0; i < count; i++) {
        if (is_first(replicas, i))
            fleet_believe(replicas, count, i, config, scratch, now_ms);
    }
}
