/* Consistent hashing of the prompt's first blocks, with bounded loads (Mirrokni, Thorup and
 * Zadimoghaddam, 2018): a key goes to the first replica, in the key's order, with less than
 * `load_bound` times the mean of requests in flight, relative to the replica's weight. Without a
 * prompt: least requests. */
#include <math.h>

#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    if (in->prefix_key == 0)
        return node_policy_least_requests(in);
    double total = 1, weights = 0; /* the request to be placed counts */
    for (unsigned i = 0; i < in->count; i++) {
        total += (double)in->candidates[i].requests;
        weights += in->weighted ? in->candidates[i].weight : 1;
    }

    /* The first replica with room in the key's order has the highest score. */
    unsigned best = in->count;
    double best_score = 0;
    for (unsigned i = 0; i < in->count; i++) {
        const struct node_candidate *c = &in->candidates[i];
        double bound = ceil(in->load_bound * total * (in->weighted ? c->weight : 1) / weights);
        if ((double)c->requests >= bound)
            continue;
        double score = node_policy_score(in, in->prefix_key, c);
        if (best == in->count || score > best_score) {
            best = i;
            best_score = score;
        }
    }
    return best < in->count ? best : node_policy_least_requests(in);
}

const struct node_policy node_policy_prefix_hash = {.name = "prefix_hash", .choose = choose};
