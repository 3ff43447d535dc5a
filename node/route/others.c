/* Alternatives for a request: replicas other than the chosen replica, and the replica for a request
 * that must be alone. */
#include "node/route/router_internal.h"

/* Reasons to expect no answer from a replica. With `failing` only these count: a replica in
 * back-off or slow start may take the request if no other can. */
enum {
    NO_ANSWER = NODE_STANDS_STILL | 1U << NODE_STANDING_REJECTS | 1U << NODE_STANDING_FULL,
};

bool node_router_has_other(struct node_router *r, const struct node_request *request,
                           const struct node_replica_set *excluded, unsigned replica, bool failing,
                           uint64_t now_ms)
{
    struct node_replica_set without = *excluded;
    unsigned server = node_router_server(r, replica);
    if (node_router_rank_stalled(r, replica)) /* other ranks of the process are well */
        server = replica;
    node_replica_set_add(&without, server);
    struct node_size size;
    struct node_need need = node_router_need(r, request);
    int err = node_router_evaluate(r, request, &need, &without, false, now_ms, &size);
    if (err == ERR_AGAIN) /* a replica for the request will have room */
        return failing;
    bool all = err == ERR_OK;
    for (unsigned i = 0; all && i < r->candidate_count; i++) {
        unsigned other = r->candidates[i].replica;
        unsigned against = node_router_against(r, other, now_ms);
        all = node_replica_usable(node_router_process_at(r, other), NODE_HEALTH_UP) &&
              (failing ? against & NO_ANSWER : against) == 0;
    }
    return all;
}

bool node_router_still_fits(struct node_router *r, const struct node_request *request,
                            const struct node_replica_set *excluded, unsigned replica,
                            uint64_t now_ms)
{
    const struct node_replica *rank = node_router_replica_at(r, replica);
    const struct node_replica *k = node_router_process_at(r, replica);
    if (rank->absent || rank->draining || k->absent || k->draining || k->asleep ||
        k->health == NODE_HEALTH_ROUTER)
        return false;
    if (node_replica_usable(k, NODE_HEALTH_UP) &&
        (node_router_against(r, replica, now_ms) & NODE_IN_TROUBLE) == 0)
        return true;
    return !node_router_has_other(r, request, excluded, replica, false, now_ms);
}

int node_router_quietest(struct node_router *r, const struct node_request *request,
                         const struct node_replica_set *excluded, uint64_t now_ms)
{
    struct node_request bare = *request;
    bare.chain = NULL;
    bare.company = NODE_COMPANY_ANY;
    bare.may_wait = false;
    struct node_size size;
    struct node_need need = node_router_need(r, &bare);
    int err = node_router_evaluate(r, &bare, &need, excluded, false, now_ms, &size);
    if (err != ERR_OK)
        return err;
    unsigned least = 0;
    for (unsigned i = 1; i < r->candidate_count; i++) {
        if (r->candidates[i].requests < r->candidates[least].requests)
            least = i;
    }
    return (int)node_router_server(r, r->candidates[least].replica);
}
