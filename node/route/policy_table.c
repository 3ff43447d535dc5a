#include "base/check.h"
#include "base/hash.h"
#include "node/route/policy.h"

static const struct node_policy *const table[] = {
    &node_policy_cache_aware,   &node_policy_prefix_hash,  &node_policy_session,
    &node_policy_least_request, &node_policy_least_tokens, &node_policy_power_of_two,
    &node_policy_round_robin,   &node_policy_random,
};

static const char *names[ARRAY_LEN(table) + 1];

__attribute__((constructor)) static void fill_names(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++)
        names[i] = table[i]->name;
}

const char *const *node_policy_names(void)
{
    return names;
}

const struct node_policy *node_policy_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}

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
