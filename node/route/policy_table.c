#include "base/check.h"
#include "node/route/policy.h"
#include "node/route/router.h"

/* Each name is that of a file in node/route/policy/. PLAIN policies weigh no costs. */
#define POLICIES(COSTS, PLAIN)                                                                     \
    COSTS(cache_aware)                                                                             \
    COSTS(chunk_aware)                                                                             \
    PLAIN(prefix_hash)                                                                             \
    PLAIN(session)                                                                                 \
    PLAIN(least_request)                                                                           \
    PLAIN(least_tokens)                                                                            \
    PLAIN(power_of_two)                                                                            \
    PLAIN(round_robin)                                                                             \
    PLAIN(random)

#define DECLARE(name) extern const struct node_policy node_policy_##name;
POLICIES(DECLARE, DECLARE)

static const struct node_policy *const table[] = {
#define ROW(name) &node_policy_##name,
    POLICIES(ROW, ROW)};

const char *const node_policy_names[] = {
#define NAME(name) #name,
    POLICIES(NAME, NAME) NULL};

const char *const node_policy_plain_names[] = {
#define NO_NAME(name)
    POLICIES(NO_NAME, NAME) NULL};

const struct node_policy *node_policy_find(const char *name)
{
    for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    }
    return NULL;
}
