/* Routers choosing at the same moment: the other routers' unreported work, and each router's
 * preferred share of equal replicas (policy/cache_aware.c). */
#include <stdlib.h>

#include "base/number.h"
#include "node/cluster/replication.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/route/router_internal.h"

void node_router_placed(struct node_router *r, double work_s, uint64_t now_ms)
{
    node_fading_add(&r->placed_s, work_s, RULE(PLACED_MS), now_ms);
}

double node_router_unseen_s(const struct node_router *r)
{
    double placed_s = node_fading_now(&r->placed_s, RULE(PLACED_MS), r->now_ms);
    double rate = placed_s / node_fading_mean_ms(RULE(PLACED_MS));
    return r->routers > 1 && !LEFT_OUT(UNSEEN) ? (r->routers - 1) * rate * r->unseen_ms : 0;
}

/* Shares rotate with the generations, which are the same at all routers, so the shares even out
 * over time. If there are more routers than replicas, several routers share a replica. */
unsigned node_router_owner(const struct node_router *r, unsigned k)
{
    unsigned turned = r->places[k] + r->generation;
    if (r->placed >= r->routers || r->placed == 0)
        return r->routers > 0 ? turned % r->routers : 0;
    return turned % r->placed == r->place % r->placed ? r->place : r->routers;
}

struct by_hash {
    uint64_t hash;
    unsigned replica;
};

static int compare_hash(const void *a, const void *b)
{
    const struct by_hash *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* All routers have the same order of replicas and of routers, except for a moment after a
 * change. */
void node_router_shares_find(struct node_router *r)
{
    struct by_hash order[NODE_REPLICAS_MAX];
    unsigned count = 0;
    for (unsigned k = 0; k < r->replica_count; k++) {
        if (!r->replicas[k].absent && r->replicas[k].rank.ranks == 0)
            order[count++] = (struct by_hash){r->replicas[k].name_hash, k};
    }
    qsort(order, count, sizeof order[0], compare_hash);
    for (unsigned i = 0; i < count; i++)
        r->places[order[i].replica] = (uint16_t)i;
    r->placed = count;
    double travel_ms = r->names != NULL ? node_replication_travel_ms(r->names) : 0;
    r->unseen_ms = RULE(UNSEEN_MS) + travel_ms;
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    r->routers = r->common->replicated ? crdt_reports_routers(reports) : 1;
    for (unsigned i = 0; i < r->routers && r->routers > 1; i++) {
        if (crdt_reports_is_self(reports, crdt_reports_router_at(reports, i).router))
            r->place = i;
    }
}
