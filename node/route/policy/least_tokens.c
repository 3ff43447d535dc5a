/* Fewest tokens in flight, those waiting for prefill counted twice. */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    unsigned best = 0;
    double least = 0, equals = 0;
    for (unsigned i = 0; i < in->count; i++) {
        const struct node_candidate *c = &in->candidates[i];
        double tokens = node_policy_share(in, (double)c->tokens, c);
        if (i == 0 || tokens < least)
            equals = 0;
        else if (tokens > least)
            continue;
        least = tokens;
        if (node_policy_equal_takes(in, c, &equals))
            best = i;
    }
    return best;
}

const struct node_policy node_policy_least_tokens = {.name = "least_tokens", .choose = choose};
