#include "node/replica/evidence.h"

#include <math.h>
#include <string.h>

/* Requests, or windows of them, beyond these fade: a cache that changes is followed within some
 * tens of requests. */
static const double samples_max = 128;
static const double fade_s = 1800;
/* Before anything is known all of what is held is expected to be used again, as if this many
 * requests had shown it. */
static const double share_samples = 1;

/* exp2(step / 4), by step from -40 on. */
static double size_at(unsigned i)
{
    return exp2(((double)i - NODE_SIZES_BELOW) / NODE_SIZES_PER_DOUBLING);
}

static const float *sizes(void)
{
    static float table[NODE_SIZES];
    if (table[0] == 0) {
        for (unsigned i = NODE_SIZES; i-- > 0;)
            table[i] = (float)size_at(i);
    }
    return table;
}

static double part_tokens(const struct node_part *p, double size)
{
    if (size >= (double)p->to)
        return (double)p->tokens;
    if (size <= (double)p->from)
        return 0;
    return (double)p->tokens * (size - (double)p->from) / (double)(p->to - p->from);
}

double node_reach_tokens(const struct node_reach *reach, double size)
{
    double sum = 0;
    for (unsigned i = 0; i < reach->count; i++)
        sum += part_tokens(&reach->parts[i], size);
    return sum;
}

void node_reach_sum(const struct node_reach *reach, double times, float sums[NODE_SIZES])
{
    const float *size = sizes();
    if (reach->count == 0)
        return;
    for (unsigned i = 0; i < NODE_SIZES; i++)
        sums[i] += (float)(times * node_reach_tokens(reach, (double)size[i]));
}

void node_evidence_init(struct node_evidence *e)
{
    *e = (struct node_evidence){.size = 1, .share = 1};
}

static double share_of(const struct node_evidence *e, unsigned i)
{
    double share =
        ((double)e->product[i] + share_samples) / ((double)e->expected2[i] + share_samples);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

/* Of the size: squared differences between what it predicts and what was, and the head start of the
 * reported one, which grows little with the distance: one that is a hundred times off is no less
 * likely than one that is ten times off. */
static double error_of(const struct node_evidence *e, unsigned i, double head_start)
{
    double share = share_of(e, i);
    double error = (double)e->cached2 - 2 * share * (double)e->product[i] +
                   share * share * (double)e->expected2[i] +
                   share_samples * (1 - share) * (1 - share);
    double doublings = fabs((double)i - NODE_SIZES_BELOW) / NODE_SIZES_PER_DOUBLING;
    return error + head_start * doublings / (1 + doublings / 2);
}

static void weigh(struct node_evidence *e, double head_start)
{
    unsigned best = NODE_SIZES_BELOW;
    double least = error_of(e, best, head_start), reported = least;
    for (unsigned i = 0; i < NODE_SIZES; i++) {
        double error = error_of(e, i, head_start);
        if (error < least) {
            least = error;
            best = i;
        }
    }
    e->share = share_of(e, best);
    e->weight = reported - least;
    e->size = size_at(best);
}

void node_evidence_add(struct node_evidence *e, const float expected[NODE_SIZES], double cached,
                       double prompt, double weight, double head_start)
{
    double keep = samples_max / (samples_max + 1);
    double unit = weight / (prompt * prompt);
    for (unsigned i = 0; i < NODE_SIZES; i++) {
        double x = (double)expected[i];
        e->expected2[i] = (float)(((double)e->expected2[i] + x * x * unit) * keep);
        e->product[i] = (float)(((double)e->product[i] + x * cached * unit) * keep);
    }
    e->cached2 = (float)(((double)e->cached2 + cached * cached * unit) * keep);
    e->samples = (float)(((double)e->samples + weight) * keep);
    weigh(e, head_start);
}

void node_evidence_fade(struct node_evidence *e, double seconds, double head_start)
{
    if (e->samples <= 0)
        return;
    float keep = (float)exp(-seconds / fade_s);
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
