/* Whether another replica would do for a request that one was chosen for. */
#include "node/route/router_internal.h"

/* ERR_OK: these are the candidates; else as node_router_evaluate(). */
static int find_others(struct node_router *r, const struct node_request *request,
                       const uint64_t *excluded, unsigned replica, uint64_t now_ms)
{
    uint64_t without[NODE_REPLICA_WORDS];
    memcpy(without, excluded, sizeof without);
    unsigned server = node_router_server(r, replica);
    if (node_router_rank_stalled(r, replica)) /* other ranks of the process are well */
        server = replica;
    without[server / 64] |= UINT64_C(1) << (server % 64);
    struct node_size size;
    return node_router_evaluate(r, request, without, false, now_ms, &size);
}

/* Whether it answers, as far as is known: it may be avoided for failures before, and one that warms
 * up takes one more where no other will do. */
static bool answers(const struct node_router *r, const struct node_replica *rank, uint64_t now_ms)
{
    const struct node_replica *k = &r->replicas[rank->server];
    return node_replica_usable(k, NODE_HEALTH_UP) && k->busy_until_ms <= now_ms &&
           !node_replica_stands_still(rank, now_ms) && !node_router_reject_avoids(r, rank->server);
}

bool node_router_has_other(struct node_router *r, const struct node_request *request,
                           const uint64_t *excluded, unsigned replica, uint64_t now_ms)
{
    if (find_others(r, request, excluded, replica, now_ms) != ERR_OK)
        return false;
    const struct node_replica *rank = &r->replicas[r->candidates[0].replica];
    return answers(r, rank, now_ms) && !node_replica_avoided(&r->replicas[rank->server], now_ms);
}

bool node_router_has_any_other(struct node_router *r, const struct node_request *request,
                               const uint64_t *excluded, unsigned replica, uint64_t now_ms)
{
    int err = find_others(r, request, excluded, replica, now_ms);
    if (err == ERR_AGAIN) /* room for it comes there */
        return true;
    bool all = err == ERR_OK;
    for (unsigned i = 0; all && i < r->candidate_count; i++)
        all = answers(r, &r->replicas[r->candidates[i].replica], now_ms);
    return all;
}

bool node_router_still_fits(struct node_router *r, const struct node_request *request,
                            const uint64_t *excluded, unsigned replica, uint64_t now_ms)
{
    const struct node_replica *rank = node_router_replica_at(r, replica);
    const struct node_replica *k = node_router_process_at(r, replica);
    if (rank->absent || rank->draining || k->absent || k->draining || k->asleep ||
        k->health == NODE_HEALTH_ROUTER)
        return false;
    if (node_replica_usable(k, NODE_HEALTH_UP) && !node_replica_in_trouble(k, now_ms) &&
        !node_replica_stands_still(rank, now_ms))
        return true;
    return !node_router_has_other(r, request, excluded, replica, now_ms);
}
