/* Any of them. */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    return (unsigned)prng_below(in->prng, in->count);
}

const struct node_policy node_policy_random = {.name = "random", .choose = choose};
