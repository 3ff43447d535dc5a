/* The default: least cost in seconds, at random among near-equal ones so that several nodes with
 * the same beliefs do not all run to the same replica (node/route/cost.h). */
#include "node/route/policy.h"

/* Differences below this are noise, whatever the share. */
static const double tie_s = 0.001;

unsigned node_policy_least_cost(const struct node_policy_input *in)
{
    double least = in->candidates[0].cost.total_s;
    for (unsigned i = 1; i < in->count; i++) {
        if (in->candidates[i].cost.total_s < least)
            least = in->candidates[i].cost.total_s;
    }
    double share = least * in->near_tie;
    double limit = least + (share > tie_s ? share : tie_s);
    unsigned chosen = 0;
    double equals = 0;
    for (unsigned i = 0; i < in->count; i++) {
        if (in->candidates[i].cost.total_s <= limit &&
            node_policy_equal_takes(in, &in->candidates[i], &equals))
            chosen = i;
    }
    return chosen;
}

const struct node_policy node_policy_cache_aware = {
    .name = "cache_aware", .wants_costs = true, .choose = node_policy_least_cost};
