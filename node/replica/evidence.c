#include "node/replica/evidence.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/wide.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"

/* The sizes that are tried, and for each size the multiple of the head start that it must make up.
 * This multiple depends on the distance from the reported size, but grows little with it: a factor
 * of a hundred is hardly less likely than a factor of ten. */
struct sizes {
    float size[NODE_SIZES];
    float distance[NODE_SIZES];
};

static struct sizes sizes;

/* Runs before main(): no thread sees the table half made. */
__attribute__((constructor)) static void sizes_make(void)
{
    for (unsigned i = 0; i < NODE_SIZES; i++) {
        double doublings = ((double)i - NODE_SIZES_BELOW) / NODE_SIZES_PER_DOUBLING;
        sizes.distance[i] = (float)(fabs(doublings) / (1 + fabs(doublings) / 2));
        sizes.size[i] = (float)exp2(doublings);
    }
}

/* For each size, adds to `sums` the part's tokens in a cache of this size. For sizes between the
 * part's depths, the share of the tokens grows linearly from 0 to 1. Such loops have no branch and
 * a known end, so a compiler vectorises them. */
static WIDE_INLINED void part_sum(const struct node_part *p, float times, float *restrict sums)
{
    const float *restrict size = sizes.size;
    float tokens = times * p->tokens, from = p->from, width = p->to - from;
    if (!(width > 0)) { /* true for infinity minus infinity too */
        for (unsigned i = 0; i < NODE_SIZES; i++)
            sums[i] += size[i] >= from ? tokens : 0;
        return;
    }
    for (unsigned i = 0; i < NODE_SIZES; i++) {
        float share = (size[i] - from) / width;
        share = share < 0 ? 0 : share;
        sums[i] += tokens * (share > 1 ? 1 : share);
    }
}

static WIDE_INLINED void reach_sum(const struct node_reach *reach, float times, float *sums)
{
    for (unsigned i = 0; i < reach->count; i++)
        part_sum(&reach->parts[i], times, sums);
}

WIDE_TARGET static void reach_sum_wide(const struct node_reach *reach, float times, float *sums)
{
    reach_sum(reach, times, sums);
}

void node_reach_sum(const struct node_reach *reach, double times, float sums[NODE_SIZES])
{
    if (wide_has())
        reach_sum_wide(reach, (float)times, sums);
    else
        reach_sum(reach, (float)times, sums);
}

double node_evidence_size(double size)
{
    return number_min(number_max(size, (double)sizes.size[0]), (double)sizes.size[NODE_SIZES - 1]);
}

void node_evidence_init(struct node_evidence *e)
{
    *e = (struct node_evidence){.size = 1, .share = 1};
}

static WIDE_INLINED float share_of(const struct node_evidence *e, unsigned i)
{
    float share =
        (e->product[i] + 1) / (e->expected2[i] + 1); /* as if a sample had shown full reuse */
    share = share < 0 ? 0 : share;
    return share > 1 ? 1 : share;
}

/* Sets the error of each size: the sum of the squared differences between prediction and result,
 * plus the handicap from the head start. */
static WIDE_INLINED void errors_of(const struct node_evidence *e, float head_start,
                                   float *restrict errors)
{
    const float *restrict distance = sizes.distance;
    for (unsigned i = 0; i < NODE_SIZES; i++) {
        float share = share_of(e, i);
        errors[i] = e->cached2 - 2 * share * e->product[i] + share * share * e->expected2[i] +
                    (1 - share) * (1 - share) + head_start * distance[i];
    }
}

/* Index of the first size with the least error; NODE_SIZES_BELOW, the reported size, if no other
 * size has a smaller error. Finds LANES minima in parallel, each over every LANES-th size, so that
 * each comparison waits only for the previous one in its lane. */
static WIDE_INLINED unsigned least_of(const float *errors)
{
    enum { LANES = 8, WHOLE = NODE_SIZES / LANES * LANES };
    float lanes[LANES], least = errors[NODE_SIZES_BELOW];
    for (unsigned k = 0; k < LANES; k++)
        lanes[k] = least;
    for (unsigned i = 0; i < WHOLE; i += LANES)
        for (unsigned k = 0; k < LANES; k++)
            lanes[k] = errors[i + k] < lanes[k] ? errors[i + k] : lanes[k];
    for (unsigned k = 0; k < LANES; k++)
        least = lanes[k] < least ? lanes[k] : least;
    for (unsigned i = WHOLE; i < NODE_SIZES; i++)
        least = errors[i] < least ? errors[i] : least;
    if (!(least < errors[NODE_SIZES_BELOW])) /* no number is less than a NaN */
        return NODE_SIZES_BELOW;
    unsigned best = 0;
    while (errors[best] != least)
        best++;
    return best;
}

static WIDE_INLINED void weigh(struct node_evidence *e, double head_start)
{
    float errors[NODE_SIZES];
    errors_of(e, (float)head_start, errors);
    unsigned best = least_of(errors);
    e->share = (double)share_of(e, best);
    e->weight = (double)(errors[NODE_SIZES_BELOW] - errors[best]);
    e->size = (double)sizes.size[best];
    if (LEFT_OUT(SIZE))
        e->weight = 0;
    if (LEFT_OUT(SHARE))
        e->share = 1;
}

static WIDE_INLINED void add(struct node_evidence *e, const float *expected, double cached,
                             double prompt, double weight, double head_start)
{
    const float keep = (float)(RULE(SIZE_PROMPTS) / (RULE(SIZE_PROMPTS) + 1));
    float each = (float)(1 / prompt), times = (float)weight, share = (float)(cached / prompt);
    for (unsigned i = 0; i < NODE_SIZES; i++) {
        float x = expected[i] * each;
        e->expected2[i] = (e->expected2[i] + x * x * times) * keep;
        e->product[i] = (e->product[i] + x * share * times) * keep;
    }
    e->cached2 = (e->cached2 + share * share * times) * keep;
    e->samples = (e->samples + times) * keep;
    weigh(e, head_start);
}

WIDE_TARGET static void add_wide(struct node_evidence *e, const float *expected, double cached,
                                 double prompt, double weight, double head_start)
{
    add(e, expected, cached, prompt, weight, head_start);
}

void node_evidence_add(struct node_evidence *e, const float expected[NODE_SIZES], double cached,
                       double prompt, double weight, double head_start)
{
    if (wide_has())
        add_wide(e, expected, cached, prompt, weight, head_start);
    else
        add(e, expected, cached, prompt, weight, head_start);
}

static WIDE_INLINED void fade(struct node_evidence *e, double seconds, double head_start)
{
    float keep = (float)exp(-seconds / RULE(FADE_S));
    for (unsigned i = 0; i < NODE_SIZES; i++) {
        e->expected2[i] *= keep;
        e->product[i] *= keep;
    }
    e->cached2 *= keep;
    e->samples *= keep;
    if (e->samples < 1e-3F)
        node_evidence_init(e);
    else
        weigh(e, head_start);
}

WIDE_TARGET static void fade_wide(struct node_evidence *e, double seconds, double head_start)
{
    fade(e, seconds, head_start);
}

void node_evidence_fade(struct node_evidence *e, double seconds, double head_start)
{
    if (e->samples <= 0)
        return;
    if (wide_has())
        fade_wide(e, seconds, head_start);
    else
        fade(e, seconds, head_start);
}
