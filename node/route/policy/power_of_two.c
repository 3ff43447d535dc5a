/* Two random replicas, and of these the one with fewer requests in flight (Mitzenmacher, 2001). */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    if (in->count == 1)
        return 0;
    unsigned a = node_policy_draw(in, in->count), b = node_policy_draw(in, a);
    const struct node_candidate *first = &in->candidates[a], *second = &in->candidates[b];
    return node_policy_share(in, (double)second->requests, second) <
                   node_policy_share(in, (double)first->requests, first)
               ? b
               : a;
}

const struct node_policy node_policy_power_of_two = {.name = "power_of_two", .choose = choose};
