/* Consistent hashing of the first blocks of the prompt, with bounded loads (Mirrokni, Thorup and
 * Zadimoghaddam, 2018): a key goes to its first replica that has less than `load_bound` times the
 * mean of requests in flight. Without a prompt: least requests. */
#include <math.h>

#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    if (in->prefix_key == 0)
        return node_policy_least_requests(in);
    uint64_t total = 1; /* the request to be placed counts */
    for (unsigned i = 0; i < in->count; i++)
        total += in->candidates[i].requests;
    uint64_t bound = (uint64_t)ceil(in->load_bound * (double)total / in->count);

    /* The first in the key's order that has room is the heaviest that has room. */
    unsigned best = in->count;
    uint64_t best_weight = 0;
    for (unsigned i = 0; i < in->count; i++) {
        if (in->candidates[i].requests >= bound)
            continue;
        uint64_t weight = node_policy_weight(in->prefix_key, &in->candidates[i]);
        if (best == in->count || weight > best_weight) {
            best = i;
            best_weight = weight;
        }
    }
    return best < in->count ? best : node_policy_least_requests(in);
}

const struct node_policy node_policy_prefix_hash = {.name = "prefix_hash", .choose = choose};
