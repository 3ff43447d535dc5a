/* Two replicas at random, the one with fewer requests in flight (Mitzenmacher, 2001). */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    if (in->count == 1)
        return 0;
    unsigned a = (unsigned)prng_below(in->prng, in->count);
    unsigned b = (unsigned)prng_below(in->prng, in->count - 1);
    if (b >= a)
        b++;
    return in->candidates[b].requests < in->candidates[a].requests ? b : a;
}

const struct node_policy node_policy_power_of_two = {.name = "power_of_two", .choose = choose};
