#include "node/replica/learn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "node/replica/constants.h"

struct node_ratio node_ratio_of(double value, double weight, double horizon)
{
    return (struct node_ratio){.above = value * weight, .below = weight, .horizon = horizon};
}

double node_ratio_value(const struct node_ratio *r)
{
    return r->above / r->below;
}

void node_ratio_add(struct node_ratio *r, double above, double below)
{
    if (!(below > 0) || !(above >= 0))
        return;
    double expected = node_ratio_value(r) * below;
    if (above > expected * RULE(TRUST))
        above = expected * RULE(TRUST);
    if (above < expected / RULE(TRUST))
        above = expected / RULE(TRUST);
    r->above += above;
    r->below += below;
    if (r->below > r->horizon) {
        double keep = r->horizon / r->below;
        r->above *= keep;
        r->below *= keep;
    }
}

void node_ratio_keep(const struct node_ratio *r, struct wire_writer *w)
{
    wire_write_double(w, r->above);
    wire_write_double(w, r->below);
}

bool node_ratio_recall(struct node_ratio *r, struct wire_reader *in)
{
    double above = wire_read_double(in), below = wire_read_double(in);
    if (in->bad || !isnormal(above) || !isnormal(below) || !isnormal(above / below) || above < 0 ||
        below < 0)
        return false;
    r->above = above;
    r->below = below;
    return true;
}

static int greatest_first(const void *a, const void *b)
{
    double x = ((const struct node_vote *)a)->value, y = ((const struct node_vote *)b)->value;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The greatest value reached by this share of all votes. */
static double votes_reach(struct node_vote *votes, unsigned count, double share)
{
    double all = 0, so_far = 0;
    for (unsigned i = 0; i < count; i++)
        all += votes[i].votes;
    if (!(all > 0))
        return 0;
    qsort(votes, count, sizeof *votes, greatest_first);
    unsigned at = 0;
    while (at + 1 < count && (so_far += votes[at].votes) < all * share)
        at++;
    return votes[at].value;
}

double node_votes_median(struct node_vote *votes, unsigned count)
{
    return votes_reach(votes, count, 0.5);
}

static unsigned fresh_of(unsigned samples, uint64_t at_ms, uint64_t now_ms)
{
    double age_ms = now_ms > at_ms ? (double)(now_ms - at_ms) : 0;
    if (samples == 0)
        return 0;
    return (unsigned)ceil(
        number_max(samples * exp2(-age_ms / RULE(HALF_LIFE_MS)) - RULE(FADED), 0));
}

unsigned node_speed_fresh(const struct node_speed *s, uint64_t now_ms)
{
    unsigned own = fresh_of(s->fresh, s->at_ms, now_ms);
    unsigned heard = fresh_of(s->heard_fresh, s->heard_ms, now_ms);
    return own > heard ? own : heard;
}

double node_speed_third(const struct node_speed *s, double beside, uint64_t now_ms)
{
    struct node_vote votes[NODE_SPEED_RECENT_MAX + 2];
    unsigned used = 0, own = fresh_of(s->fresh, s->at_ms, now_ms);
    for (unsigned i = 0; i < own; i++)
        votes[used++] = (struct node_vote){s->recent[s->fresh - own + i], 1};
    unsigned heard = fresh_of(s->heard_fresh, s->heard_ms, now_ms);
    if (heard > 0)
        votes[used++] = (struct node_vote){s->heard, number_min(heard, RULE(FEW) + 1)};
    if (beside > 0)
        votes[used++] = (struct node_vote){beside, 1};
    return votes_reach(votes, used, 1 / 3.0);
}

/* Drops all samples but the last `count`. */
static void recent_keep(struct node_speed *s, unsigned count)
{
    memmove(s->recent, s->recent + s->fresh - count, count * sizeof s->recent[0]);
    s->fresh = count;
}

void node_speed_add(struct node_speed *s, double sample, uint64_t now_ms)
{
    if (!(sample > 0))
        return;
    unsigned fresh = fresh_of(s->fresh, s->at_ms, now_ms);
    recent_keep(s, fresh == NODE_SPEED_RECENT_MAX ? fresh - 1 : fresh);
    s->recent[s->fresh++] = (float)sample;
    s->at_ms = now_ms;
    s->value = node_speed_third(s, 0, now_ms);
    s->samples++;
}

void node_speed_hear(struct node_speed *s, double value, uint64_t samples, uint64_t now_ms)
{
    s->samples = samples;
    s->heard = (float)value;
    s->heard_fresh = samples < NODE_SPEED_RECENT_MAX ? (unsigned)samples : NODE_SPEED_RECENT_MAX;
    s->heard_ms = now_ms;
    s->value = node_speed_third(s, 0, now_ms);
}

double node_fading_now(const struct node_fading *f, double half_ms, uint64_t now_ms)
{
    return now_ms > f->at_ms ? f->sum * exp2(-(double)(now_ms - f->at_ms) / half_ms) : f->sum;
}

void node_fading_add(struct node_fading *f, double amount, double half_ms, uint64_t now_ms)
{
    f->sum = node_fading_now(f, half_ms, now_ms) + amount;
    f->at_ms = now_ms;
}

double node_fading_mean_ms(double half_ms)
{
    return half_ms / log(2);
}
