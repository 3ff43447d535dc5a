#include "node/replica/fleet.h"

#include <math.h>

#include "base/number.h"
#include "node/replica/ablation.h"

typedef const struct node_speed *figure_of(const struct node_replica *k);

static const struct node_speed *rate_of(const struct node_replica *k)
{
    return &k->rate;
}

static const struct node_speed *pace_of(const struct node_replica *k)
{
    return &k->pace;
}

static bool counts(const struct node_replica *k, uint64_t fleet)
{
    return k->fleet == fleet && !k->absent;
}

/* Of the pace the prior has no vote beside so many. Where half of the replicas are of an older
 * generation it was the median, and all were alike. */
static const double pace_prior_max = 8;

/* What a fleet shows, and the best that any of it has shown. That is hoped of one that has shown
 * nothing: where most are slow the median would keep the twin of the fastest idle for ever. */
struct fleet_figure {
    double median, best;
};

/* `votes_max`: beside so many votes of replicas the prior has none. */
static struct fleet_figure fleet_figure(const struct node_replica *replicas, unsigned count,
                                        uint64_t fleet, figure_of *figure, double prior,
                                        double votes_max, struct node_vote *votes)
{
    unsigned used = 0;
    double samples = 0, best = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_speed *s = figure(&replicas[i]);
        if (!counts(&replicas[i], fleet) || s->samples == 0)
            continue;
        double few = number_min((double)s->samples, NODE_FLEET_REPLICA_VOTES_MAX);
        votes[used++] = (struct node_vote){s->value, few};
        samples += few;
        if (s->samples > NODE_FLEET_FEW)
            best = number_max(best, s->value);
    }
    if (samples < votes_max)
        votes[used++] = (struct node_vote){prior, 1};
    double median = node_votes_median(votes, used);
    return (struct fleet_figure){median, number_max(best, median)};
}

/* How far one sample is off, in logarithms. */
static const double sample_noise = 0.6;

/* How far two equal replicas may seem apart, in logarithms. */
static double alike(unsigned samples)
{
    return 0.1 + sample_noise / sqrt(samples);
}

/* The variance of the replicas' rates, in logarithms, beyond what chance makes of equal ones. */
static double spread_of(const struct node_replica *replicas, unsigned count, uint64_t fleet)
{
    double seen = 0, sum = 0, squares = 0, noise = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_speed *s = &replicas[i].rate;
        if (!counts(&replicas[i], fleet) || s->samples == 0)
            continue;
        double own = log(s->value);
        seen++;
        sum += own;
        squares += own * own;
        noise +=
            sample_noise * sample_noise / number_min((double)s->samples, NODE_SPEED_RECENT_MAX);
    }
    if (seen < 2)
        return 0;
    return number_max((squares - sum * sum / seen) / (seen - 1) - noise / seen, 0);
}

/* Few samples count as much as the fleet's replicas differ, against their own noise (shrinkage;
 * James and Stein, 1961). */
static double shrunk(double own, unsigned samples, double fleet, double spread)
{
    if (LEFT_OUT(SHRUNK))
        return own;
    return fleet * pow(own / fleet, spread / (spread + sample_noise * sample_noise / samples));
}

/* The fleet's where it is alike, its own from twice that on, with a steady transition. */
static double apart(double own, unsigned samples, double fleet)
{
    double off = log(own / fleet), step = alike(samples);
    if (LEFT_OUT(APART))
        return own;
    if (fabs(off) < step)
        return fleet;
    return fleet * exp(fabs(off) < 2 * step ? 2 * (off - copysign(step, off)) : off);
}

/* Of a replica that is busy, and of one where nothing is under way: where few samples are fresh
 * that one is tried as if it were like the fleet. */
struct figure {
    double busy, idle;
};

static struct figure replica_figure(const struct node_speed *s, double fleet, double spread,
                                    uint64_t now_ms)
{
    unsigned fresh = node_speed_fresh(s, now_ms);
    if (fresh > NODE_FLEET_FEW) {
        double own = apart(node_speed_third(s, fleet, now_ms), fresh, fleet);
        return (struct figure){own, own};
    }
    double own = fleet;
    if (s->samples > NODE_FLEET_FEW)
        own =
            apart(s->value, (unsigned)number_min((double)s->samples, NODE_SPEED_RECENT_MAX), fleet);
    else if (fresh > 0)
        own = apart(shrunk(node_speed_third(s, 0, now_ms), fresh, fleet, spread), fresh, fleet);
    return (struct figure){own, number_max(own, fleet)};
}

/* The first samples of one that proves as fast do not count against the fleet yet. */
static double hoped(const struct node_speed *s, double best)
{
    if (s->samples == 0)
        return best;
    return s->samples <= NODE_FLEET_FEW ? s->value : 0;
}

/* A step that is not measured any more says how the engine was. While nothing runs there it is
 * tried as if it were like the best, but seldom: a slow answer lasts longer than a slow prefill. So
 * long after its last one, and when so many have ended that this router sent to the fleet. */
static const uint64_t pace_holds_ms = 120000;
static const uint32_t pace_holds_answers = 100;
/* The last answer shows that it is over: the next tries it, too. */
static const double rises = 1.1;

static double tried_pace(struct node_replica *k, double own, double best, uint32_t ended,
                         uint64_t now_ms)
{
    struct node_pace_last *last = &k->pace_last;
    if (k->pace.samples != last->samples || ended < last->ended)
        *last =
            (struct node_pace_last){.samples = k->pace.samples,
                                    .ended = ended,
                                    .value = k->pace.value,
                                    .rose = last->value > 0 && k->pace.value > rises * last->value};
    uint64_t last_ms = k->pace.at_ms > k->pace.heard_ms ? k->pace.at_ms : k->pace.heard_ms;
    bool long_ago = now_ms >= last_ms + pace_holds_ms && ended - last->ended >= pace_holds_answers;
    return number_max(own, last->rose || long_ago ? best : hoped(&k->pace, best));
}

/* How much a step grows with the context is a matter of the model more than of the replica: where
 * none was measured it is that of the replica that was measured best. */
static double fleet_growth(const struct node_replica *replicas, unsigned count, uint64_t fleet,
                           double believed)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_replica *k = &replicas[i];
        if (counts(k, fleet) && k->pace.samples > most) {
            most = k->pace.samples;
            believed = k->step_growth;
        }
    }
    return believed;
}

static bool is_told_whole(const struct node_replica *k, uint64_t fleet)
{
    return counts(k, fleet) && k->whole.count > 0;
}

/* Explains the whole answers of all of them together, each as if it were as fast as they are on
 * average. */
static void explain_whole(struct node_replica *replicas, unsigned count, uint64_t fleet)
{
    struct node_whole all = {0};
    double logs = 0, answers = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct node_whole *w = &replicas[i].whole;
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
        const struct node_whole *w = &replicas[i].whole;
        if (is_told_whole(&replicas[i], fleet))
            node_whole_pool(&all, w, node_whole_factor(w, all.base) / average);
    }
    all.base = node_whole_explain_fleet(&all);
    for (unsigned i = 0; i < count; i++) {
        if (replicas[i].fleet == fleet)
            replicas[i].whole.base = all.base;
    }
}

/* While load rises for the first time the most that ran is no limit: until so many answers have
 * ended, as a share of the most that ran at each, added up. */
static const double turned_over = 0.25;
/* So many requests run at once at any engine, with contexts like those that ran. */
static const double few = 8;

static uint32_t rooms_compare(struct node_replica *replicas, unsigned count, uint64_t fleet,
                              uint64_t now_ms)
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
    if (LEFT_OUT(RAN_ANYWHERE) || ended < number_max(turned_over * places, 1) || most.requests <= 0)
        most = (struct node_room_amount){0};
    else if (most.requests < few)
        most = (struct node_room_amount){few, most.tokens * few / most.requests};
    for (unsigned i = 0; i < count; i++) {
        if (replicas[i].fleet != fleet)
            continue;
        replicas[i].room.most = node_room_own(&replicas[i].room, now_ms);
        replicas[i].room.ran_anywhere = most;
    }
    return ended;
}

/* Those that serve the same model as replica `first`. */
static void fleet_believe(struct node_replica *replicas, unsigned count, unsigned first,
                          const struct node_replica_config *config, struct node_vote *scratch,
                          uint64_t now_ms)
{
    uint64_t fleet = replicas[first].fleet;
    explain_whole(replicas, count, fleet);
    uint32_t ended = rooms_compare(replicas, count, fleet, now_ms);
    struct fleet_figure rate = fleet_figure(replicas, count, fleet, rate_of,
                                            config->prefill_tokens_per_s, INFINITY, scratch);
    struct fleet_figure pace = fleet_figure(replicas, count, fleet, pace_of,
                                            1000 / config->decode_step_ms, pace_prior_max, scratch);
    double spread = spread_of(replicas, count, fleet);
    double growth = fleet_growth(replicas, count, fleet, replicas[first].step_growth);
    for (unsigned i = first; i < count; i++) {
        struct node_replica *k = &replicas[i];
        if (k->fleet != fleet)
            continue;
        /* Few whole answers say too little of one replica, and few samples of its pace: who is
         * thought to decode slowly is not tried. */
        bool timed = k->streamed_ms != 0 || k->told_ms != 0;
        struct figure own = replica_figure(&k->rate, rate.median, timed ? spread : 0, now_ms);
        k->tokens_per_s = own.busy;
        k->tried_tokens_per_s = own.idle;
        k->hoped_tokens_per_s = hoped(&k->rate, rate.best);
        double own_pace = replica_figure(&k->pace, pace.median, 0, now_ms).busy;
        k->step_base_s = 1 / own_pace;
        k->tried_step_base_s = 1 / tried_pace(k, own_pace, pace.best, ended, now_ms);
        k->step_context_s = (k->pace.samples > 0 ? k->step_growth : growth) * k->step_base_s;
    }
}

static bool is_first(const struct node_replica *replicas, unsigned at)
{
    for (unsigned i = 0; i < at; i++) {
        if (replicas[i].fleet == replicas[at].fleet)
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
