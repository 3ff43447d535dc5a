/* Fewest tokens in flight; tokens waiting for prefill count twice. */
#include "node/route/policy.h"

static uint64_t tokens(const struct node_candidate *c)
{
    return c->tokens;
}

static unsigned choose(const struct node_policy_input *in)
{
    return node_policy_least(in, tokens);
}

const struct node_policy node_policy_least_tokens = {.name = "least_tokens", .choose = choose};
