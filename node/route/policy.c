#include "node/route/policy.h"

#include <math.h>

#include "base/hash.h"

double node_policy_score(const struct node_policy_input *in, uint64_t key,
                         const struct node_candidate *c)
{
    double score = (double)hash_mix(key ^ hash_mix(c->name_hash));
    return in->weighted ? -c->weight / log((score + 0.5) * 0x1p-64) : score;
}

bool node_policy_equal_takes(const struct node_policy_input *in, const struct node_candidate *c,
                             double *sum)
{
    if (!in->weighted) { /* the n-th equal candidate replaces the earlier ones with chance 1/n */
        *sum += 1;
        return prng_below(in->prng, (uint64_t)*sum) == 0;
    }
    *sum += c->weight;
    return prng_unit(in->prng) * *sum < c->weight;
}

unsigned node_policy_draw(const struct node_policy_input *in, unsigned without)
{
    if (!in->weighted) {
        if (without == in->count)
            return (unsigned)prng_below(in->prng, in->count);
        unsigned other = (unsigned)prng_below(in->prng, in->count - 1);
        return other >= without ? other + 1 : other;
    }
    unsigned drawn = without == 0 ? 1 : 0;
    double sum = 0;
    for (unsigned i = 0; i < in->count; i++) {
        if (i != without && node_policy_equal_takes(in, &in->candidates[i], &sum))
            drawn = i;
    }
    return drawn;
}

unsigned node_policy_least(const struct node_policy_input *in,
                           uint64_t (*of)(const struct node_candidate *c))
{
    unsigned best = 0;
    double least = 0, equals = 0;
    for (unsigned i = 0; i < in->count; i++) {
        const struct node_candidate *c = &in->candidates[i];
        double amount = node_policy_share(in, (double)of(c), c);
        if (i == 0 || amount < least)
            equals = 0;
        else if (amount > least)
            continue;
        least = amount;
        if (node_policy_equal_takes(in, c, &equals))
            best = i;
    }
    return best;
}

static uint64_t requests(const struct node_candidate *c)
{
    return c->requests;
}

unsigned node_policy_least_requests(const struct node_policy_input *in)
{
    return node_policy_least(in, requests);
}

unsigned node_policy_next_turn(const struct node_policy_input *in)
{
    uint64_t turn = (*in->turn)++;
    if (!in->weighted)
        return (unsigned)(turn % in->count);
    /* Multiples of the golden ratio fall evenly on all parts of a line, wherever the line is
     * cut. */
    double sum = 0;
    for (unsigned i = 0; i < in->count; i++)
        sum += in->candidates[i].weight;
    double golden = (double)turn * 0.6180339887498949;
    double at = (golden - floor(golden)) * sum;
    unsigned i = 0;
    while (i + 1 < in->count && at >= in->candidates[i].weight)
        at -= in->candidates[i++].weight;
    return i;
}
