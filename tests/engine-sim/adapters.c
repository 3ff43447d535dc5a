#include "tests/engine-sim/adapters.h"

#include <string.h>

#include "base/check.h"

static uint32_t find(const struct sim_adapters *a, uint64_t id)
{
    uint32_t at = 0;
    while (at < a->count && a->slots[at].id != id)
        at++;
    return at;
}

/* Index of the adapter to evict; `count`: all are in use. */
static uint32_t idle_last(const struct sim_adapters *a)
{
    for (uint32_t at = a->count; at > 0; at--) {
        if (a->slots[at - 1].users == 0)
            return at - 1;
    }
    return a->count;
}

bool sim_adapters_has(const struct sim_adapters *a, uint64_t id)
{
    return find(a, id) < a->count;
}

bool sim_adapters_can(const struct sim_adapters *a, uint64_t id)
{
    return sim_adapters_has(a, id) || a->count < a->slots_max || idle_last(a) < a->count;
}

bool sim_adapters_take(struct sim_adapters *a, uint64_t id)
{
    uint32_t at = find(a, id), users = 0;
    bool held = at < a->count;
    if (held)
        users = a->slots[at].users;
    else if (a->count < a->slots_max)
        at = a->count++;
    else
        at = idle_last(a);
    CHECK(at < a->count && a->slots_max <= SIM_ADAPTERS_MAX);
    memmove(&a->slots[1], &a->slots[0], at * sizeof a->slots[0]);
    a->slots[0].id = id;
    a->slots[0].users = users + 1;
    return !held;
}

void sim_adapters_release(struct sim_adapters *a, uint64_t id)
{
    uint32_t at = find(a, id);
    CHECK(at < a->count && a->slots[at].users > 0);
    a->slots[at].users--;
}
