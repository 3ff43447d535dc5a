#include "node/route/discovered.h"

#include "base/err.h"
#include "node/route/router_internal.h"

void node_router_sources(struct node_router *r, const struct discover *sources)
{
    r->sources = sources;
}

/* --- what node/discover calls ---------------------------------------------------------------- */

static int on_use(void *context, struct slice name, const struct node_labels *labels)
{
    struct node_router *r = context;
    int slot = node_router_name(r, name, labels->engine);
    if (slot < 0)
        return slot;
    node_router_labels(r, (unsigned)slot, labels);
    return ERR_OK;
}

static void on_drain(void *context, struct slice name)
{
    struct node_router *r = context;
    int slot = node_router_replica_find(r, name);
    if (slot >= 0) /* if not, the name waits, and told_take() drains it later */
        node_router_vanish(r, (unsigned)slot, true);
}

static void on_forget(void *context, struct slice name)
{
    static const struct node_labels none;
    struct node_router *r = context;
    int slot = node_router_replica_find(r, name);
    if (slot >= 0)
        node_router_labels(r, (unsigned)slot, &none);
    node_router_unname(r, name);
}

static bool on_busy(void *context, struct slice name)
{
    struct node_router *r = context;
    int slot = node_router_replica_find(r, name);
    return slot >= 0 && node_replica_own_requests(node_router_replica(r, (unsigned)slot)) > 0;
}

static bool on_has(void *context, struct slice name)
{
    const struct node_router *r = context;
    char shared[NODE_NAME_MAX];
    return crdt_registry_is_ours(crdt_state_registry(r->crdt),
                                 node_router_shared_name(r, name, shared));
}

struct discover_host node_router_discover_host(struct node_router *r)
{
    return (struct discover_host){.context = r,
                                  .use = on_use,
                                  .drain = on_drain,
                                  .forget = on_forget,
                                  .busy = on_busy,
                                  .has = on_has,
                                  .names_max =
                                      crdt_registry_stats(crdt_state_registry(r->crdt))->names_max};
}
