/* Routers that were met on other machines. While all are on the loopback of one machine they share
 * what is there as any other replica. Once one was met elsewhere that is over, for good: replicas
 * of the loopback or a link get the name of their router (local.c). */
#include "base/check.h"
#include "base/err.h"
#include "node/cluster/replication.h"
#include "node/route/router_internal.h"

/* What was named as if all were on one machine gets this router's name, with its labels. Its ranks
 * are named anew at the next tick (ranks.c). */
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
    node_router_presence_update(r); /* what others tell of their loopback is used no more */
}
