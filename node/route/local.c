/* Replicas on this machine's loopback or link, as routers of several machines call them
 * (node/replica/local.h). While all routers are on the loopback of one machine they share them as
 * any other. Once a router was met elsewhere that is over, for good. */
#include "node/replica/local.h"
#include "base/check.h"
#include "base/err.h"
#include "node/cluster/replication.h"
#include "node/replica/rank.h"
#include "node/route/router_internal.h"

static struct slice own_name(const struct node_router *r)
{
    return slice_of_cstr(r->config.name ? r->config.name : "");
}

struct slice node_router_shared_name(const struct node_router *r, struct slice name, char *out)
{
    struct node_local_name local;
    struct node_rank_name rank;
    bool plain = node_local_name_parse(name, &local) && local.owner.len == 0;
    if (!r->apart || !plain || node_rank_name_parse(name, &rank))
        return name;
    struct slice shared = node_local_name_write(name, own_name(r), out);
    return shared.len > 0 ? shared : name;
}

struct slice node_router_source_name(const struct node_router *r, struct slice name)
{
    char text[NODE_NAME_MAX];
    struct node_local_name local;
    struct node_rank_name rank;
    if (!node_local_name_parse(name, &local) || local.owner.len == 0 ||
        node_rank_name_parse(name, &rank))
        return name;
    struct slice own = node_local_name_write(local.address, own_name(r), text);
    return slice_equal(own, name) ? local.address : name;
}

bool node_router_may_use(const struct node_router *r, unsigned slot)
{
    struct node_local_name local;
    const struct node_replica *k = &r->replicas[slot];
    struct slice name = node_replica_name(k);
    char text[NODE_NAME_MAX];
    if (!node_local_name_parse(name, &local))
        return true;
    if (local.owner.len > 0) {
        struct slice own = node_local_name_write(local.address, own_name(r), text);
        struct node_rank_name rank;
        return slice_equal(own, node_rank_name_parse(name, &rank) ? rank.address : name);
    }
    const struct crdt_replica *row = node_router_row(r, slot);
    return !r->apart || k->configured || (row && row->asked);
}

struct slice node_router_only_at(const struct node_router *r, unsigned slot)
{
    struct node_local_name local;
    const struct node_replica *k = &r->replicas[slot];
    const struct crdt_replica *row = k->name_len > 0 ? node_router_row(r, slot) : NULL;
    bool used = row && row->wish != CRDT_WISH_REMOVED && (k->named || row->wish == CRDT_WISH_ADDED);
    if (!used || !node_local_name_parse(node_replica_name(k), &local) ||
        node_router_may_use(r, slot))
        return slice_of("", 0);
    return local.owner;
}

/* What was named as if all were on one machine gets this router's name, with its labels. */
static void name_anew(struct node_router *r, unsigned slot)
{
    char text[NODE_NAME_MAX], old[NODE_NAME_MAX + 1];
    struct node_replica *k = &r->replicas[slot];
    const struct crdt_replica *row = k->name_len > 0 ? node_router_row(r, slot) : NULL;
    bool asked = row && row->asked, configured = k->configured;
    CHECK(slice_to_cstr(node_replica_name(k), old, sizeof old));
    struct slice name = slice_of_cstr(old);
    struct slice shared = node_router_shared_name(r, name, text);
    if (!row || slice_equal(shared, name) || (!configured && !asked))
        return;
    if (asked) {
        DISCARD(crdt_state_remove(r->crdt, name));
        DISCARD(crdt_state_add(r->crdt, shared)); /* it may wait */
    }
    k->configured = false;
    crdt_state_unname(r->crdt, name);
    if (configured)
        DISCARD(node_router_name(r, shared, k->engine)); /* else its source offers it again */
}

void node_router_apart_follow(struct node_router *r)
{
    if (r->apart || !r->common->replicated ||
        !(r->config.apart || (r->names && node_replication_apart(r->names))))
        return;
    r->apart = true;
    for (unsigned slot = 0; slot < r->replica_count; slot++)
        name_anew(r, slot);
}
