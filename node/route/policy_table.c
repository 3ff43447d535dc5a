#include "base/check.h"
#include "node/route/policy.h"
#include "node/route/router.h"

/* Each name is that of the policy's file in node/route/policy/. */
#define POLICIES(X)                                                                                \
    X(cache_aware)                                                                                 \
    X(chunk_aware)                                                                                 \
    X(prefix_hash)                                                                                 \
    X(session)                                                                                     \
    X(least_request)                                                                               \
    X(least_tokens)                                                                                \
    X(power_of_two)                                                                                \
    X(round_robin)                                                                                 \
    X(random)

/* The policies that weigh no costs. */
#define PLAIN(X)                                                                                   \
    X(least_request)                                                                               \
    X(least_tokens)                                                                                \
    X(power_of_two)                                                                                \
    X(prefix_hash)                                                                                 \
    X(session)                                                                                     \
    X(round_robin)                                                                                 \
    X(random)

#define DECLARE(name) extern const struct node_policy node_policy_##name;
POLICIES(DECLARE)

static const struct node_policy *const table[] = {
#define ROW(name) &node_policy_##name,
    POLICIES(ROW)};

const char *const node_policy_names[] = {
#define NAME(name) #name,
    POLICIES(NAME) NULL};

const char *const node_policy_plain_names[] = {PLAIN(NAME) NULL};

const struct node_policy *node_policy_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}
