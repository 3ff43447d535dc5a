/* Any candidate, at random by weight. */
#include "node/route/policy.h"

static unsigned choose(const struct node_policy_input *in)
{
    return node_policy_draw(in, in->count);
}

const struct node_policy node_policy_random = {.name = "random", .choose = choose};
