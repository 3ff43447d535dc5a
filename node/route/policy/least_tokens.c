/* Fewest tokens in flight, those waiting for prefill counted twice. */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    unsigned best = 0, equals = 0;
    for (unsigned i = 0; i < in->count; i++) {
        if (in->candidates[i].tokens < in->candidates[best].tokens)
            equals = 0;
        else if (in->candidates[i].tokens > in->candidates[best].tokens)
            continue;
        if (prng_below(in->prng, ++equals) == 0)
            best = i;
    }
    return best;
}

const struct node_policy node_policy_least_tokens = {.name = "least_tokens", .choose = choose};
