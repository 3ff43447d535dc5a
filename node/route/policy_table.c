#include "base/check.h"
#include "base/hash.h"
#include "node/route/policy.h"

/* The name of each is that of its file in node/route/policy/. */
#define POLICIES(X)                                                                                \
    X(cache_aware)                                                                                 \
    X(prefix_hash)                                                                                 \
    X(session)                                                                                     \
    X(least_request)                                                                               \
    X(least_tokens)                                                                                \
    X(power_of_two)                                                                                \
    X(round_robin)                                                                                 \
    X(random)

#define DECLARE(name) extern const struct node_policy node_policy_##name;
POLICIES(DECLARE)

static const struct node_policy *const table[] = {
#define ROW(name) &node_policy_##name,
    POLICIES(ROW)};

const char *const *node_policy_names(void)
{
    static const char *const names[] = {
#define NAME(name) #name,
        POLICIES(NAME) NULL};
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
