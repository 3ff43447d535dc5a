#include "node/route/recall.h"

#include <stdlib.h>

#include "node/replica/learned.h"
#include "node/route/router_internal.h"

bool node_router_learned(const struct node_router *r, unsigned replica, struct crdt_learned *out)
{
    if (replica >= r->replica_count || r->replicas[replica].absent)
        return false;
    *out = node_replica_report(&r->replicas[replica]);
    return true;
}

void node_router_recall(struct node_router *r, unsigned replica, const struct crdt_learned *learned)
{
    if (r->recalled == NULL) /* without memory for it, it is learned anew */
        r->recalled = calloc(NODE_REPLICAS_MAX, sizeof *r->recalled);
    if (r->recalled == NULL || replica >= NODE_REPLICAS_MAX)
        return;
    r->recalled[replica] = (struct node_recalled){.any = true, .learned = *learned};
    if (replica < r->replica_count && !r->replicas[replica].absent)
        node_router_recalled_take(r, replica);
}

void node_router_recalled_take(struct node_router *r, unsigned replica)
{
    if (r->recalled == NULL || !r->recalled[replica].any)
        return;
    struct node_recalled *was = &r->recalled[replica];
    struct node_heard h = {.rkey = r->replicas[replica].rkey};
    was->any = false;
    node_heard_add(&h, &was->learned);
    node_replica_hear(&r->replicas[replica], &h, r->now_ms);
    r->fleet_stale = true;
}
