#include "node/route/policy.h"

#include "base/hash.h"

uint64_t node_policy_weight(uint64_t key, const struct node_candidate *c)
{
    return hash_mix(key ^ hash_mix(c->name_hash));
}

unsigned node_policy_least_requests(const struct node_policy_input *in)
{
    unsigned best = 0, equals = 0;
    for (unsigned i = 0; i < in->count; i++) {
        if (in->candidates[i].requests < in->candidates[best].requests)
            equals = 0;
        else if (in->candidates[i].requests > in->candidates[best].requests)
            continue;
        /* The n-th equal one replaces those before it once in n. */
        if (prng_below(in->prng, ++equals) == 0)
            best = i;
    }
    return best;
}

unsigned node_policy_next_turn(const struct node_policy_input *in)
{
    return (unsigned)((*in->turn)++ % in->count);
}
