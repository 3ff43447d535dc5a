#include "node/route/discovered.h"

#include "base/check.h"
#include "base/err.h"
#include "node/route/router_internal.h"

void node_router_sources(struct node_router *r, const struct discover *sources)
{
    r->sources = sources;
}

void node_router_labels(struct node_router *r, unsigned replica, const struct node_labels *labels)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    if (labels->engine != NODE_ENGINE_AUTO && labels->engine != k->engine)
        node_router_replica_engine_set(r, replica, labels->engine);
    CHECK(labels->model.len <= sizeof k->model);
    bool other = !slice_equal(labels->model, slice_of(k->model, k->model_len));
    k->weight = node_labels_weight(labels);
    k->model_len = (uint16_t)labels->model.len;
    if (labels->model.len > 0)
        memcpy(k->model, labels->model.at, labels->model.len);
    if (other)
        node_router_model_label_take(r, replica);
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
    if (slot >= 0)
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
    return slot >= 0 && node_router_replica_busy(r, (unsigned)slot);
}

struct discover_host node_router_discover_host(struct node_router *r)
{
    return (struct discover_host){
        .context = r, .use = on_use, .drain = on_drain, .forget = on_forget, .busy = on_busy};
}
