/* Replicas kept for a suspect request. The router places the suspect where no other request is
 * under way, and places other requests elsewhere if possible. */
#include <limits.h>

#include "base/check.h"
#include "base/err.h"
#include "node/route/router_internal.h"

enum { USED_MS = 10000 }; /* a replica that got a request within this time is in use */

void node_router_keep(struct node_router *r, unsigned replica, bool kept)
{
    CHECK(kept || r->kept > 0);
    node_replica_keep(node_router_process_at(r, replica), kept);
    r->kept = kept ? r->kept + 1 : r->kept - 1;
}

unsigned node_router_kept(const struct node_router *r)
{
    return r->kept;
}

static bool is_idle(const struct node_replica *k)
{
    return node_replica_requests(k) == 0;
}

/* True if all candidates belong to the same process. */
static bool is_one_process(const struct node_router *r)
{
    unsigned first = node_router_server(r, r->candidates[0].replica), i = 1;
    while (i < r->candidate_count && node_router_server(r, r->candidates[i].replica) == first)
        i++;
    return i == r->candidate_count;
}

/* For a request that must be alone: true if all candidates are one replica, the last that can
 * serve, and the replica is in use, even if idle just now. A suspect must not endanger such a
 * replica. */
static bool is_the_last_in_use(const struct node_router *r, const struct node_request *request,
                               uint64_t now_ms)
{
    const struct node_replica *k = node_router_process_at(r, r->candidates[0].replica);
    uint64_t used_ms = node_router_slot(r, k)->used_ms;
    return request->company == NODE_COMPANY_ALONE && is_one_process(r) &&
           (!is_idle(k) || (used_ms != 0 && now_ms - used_ms < USED_MS));
}

enum { COMPANY_OTHERS_TURN = 1, COMPANY_BUSY = 2, COMPANY_KEPT = 4 };

/* A number that says how far the other requests at the replica violate request->company; 0: not at
 * all. A suspect that cannot be alone at least avoids other suspects. `kept` shows this router's
 * suspects. To avoid other routers' suspects, the router prefers replicas where no other router
 * goes first. Each replica has a different order of routers. */
static unsigned company_at(const struct node_router *r, unsigned replica,
                           const struct node_request *request)
{
    const struct node_replica *k = node_router_process_at(r, replica);
    if (request->company == NODE_COMPANY_ANY)
        return k->kept > 0 ? COMPANY_KEPT : 0;
    if (k->kept > 0 && (int)node_router_server(r, replica) != request->kept_for_it)
        return COMPANY_KEPT;
    unsigned busy = is_idle(k) ? 0 : COMPANY_BUSY;
    bool others = request->company == NODE_COMPANY_RATHER_ALONE && k->turn.ahead > 0;
    return busy + (others ? COMPANY_OTHERS_TURN : 0);
}

int node_router_candidates_by_company(struct node_router *r, const struct node_request *request,
                                      uint64_t now_ms)
{
    if (request->company == NODE_COMPANY_ANY && r->kept == 0)
        return ERR_OK;
    if (is_the_last_in_use(r, request, now_ms))
        return ERR_LIMIT;
    unsigned least = UINT_MAX, left = 0;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned company = company_at(r, r->candidates[i].replica, request);
        least = company < least ? company : least;
    }
    bool any_but_kept = request->company == NODE_COMPANY_RATHER_ALONE && least < COMPANY_KEPT;
    if (least > 0 && !any_but_kept)
        return request->company == NODE_COMPANY_ALONE || request->may_wait ? ERR_EXISTS : ERR_OK;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned k = r->candidates[i].replica;
        if (company_at(r, k, request) == least)
            r->candidates[left++].replica = k;
    }
    r->candidate_count = left;
    return ERR_OK;
}
