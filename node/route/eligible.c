/* Selects the candidates for a request. Of the replicas that serve the model, have a long enough
 * context and are not excluded, these are the replicas in the best standing that have room. */
#include "base/check.h"
#include "base/err.h"
#include "node/route/router_internal.h"

/* The replicas to take among those of equal health: the well replicas known to accept such requests
 * (PROVEN), all well replicas (GOOD), all replicas that work (SPARE), or all (ALL). */
enum takes { TAKES_PROVEN, TAKES_GOOD, TAKES_SPARE, TAKES_ALL };

/* True if the replica works, even in slow start, so that a request goes there rather than wait. A
 * replica that reported itself full counts again after a while without attempts, or with fewer
 * requests of this router than at the report. */
static bool is_spare(const struct node_replica *k, unsigned against, uint64_t now_ms)
{
    return (against & (NODE_IN_TROUBLE | 1U << NODE_STANDING_REJECTS)) == 0 &&
           ((against & 1U << NODE_STANDING_FULL) == 0 ||
            node_replica_own_requests(k) < k->trouble.busy_requests ||
            now_ms >= k->signs.tried_ms + NODE_BUSY_AGAIN_MS);
}

static bool is_taken(const struct node_router *r, unsigned replica,
                     const struct node_request *request, enum takes takes, uint64_t now_ms)
{
    const struct node_replica *k = node_router_process_at(r, replica);
    if (takes == TAKES_ALL)
        return true;
    unsigned against = node_router_against(r, replica, now_ms);
    if (takes == TAKES_SPARE)
        return is_spare(k, against, now_ms);
    return against == 0 && !k->server.models_stale &&
           (takes == TAKES_GOOD || node_reject_proven(&k->reject, request->kind));
}

bool node_router_model_up(struct node_router *r, const struct node_request *request,
                          const struct node_replica_set *excluded, uint64_t now_ms)
{
    node_router_servers_find(r, request, now_ms);
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *process = node_router_process_at(r, k);
        if (node_router_is_asked(r, k, &r->servers.asked, request, excluded) &&
            node_replica_set_has(&r->servers.may, node_router_server(r, k)) &&
            (node_replica_usable(process, NODE_HEALTH_UP) ||
             node_replica_usable(process, NODE_HEALTH_UNKNOWN)))
            return true;
    }
    return false;
}

/* Collects the candidates of this health, without those at replica_requests_max. Returns true if
 * there are any, with or without room. */
static bool candidates_collect(struct node_router *r, const struct node_replica_set *serving,
                               const struct node_request *request,
                               const struct node_replica_set *excluded, enum node_health health,
                               enum takes takes, uint64_t now_ms)
{
    bool full = false;
    r->candidate_count = 0;
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *process = node_router_process_at(r, k);
        if (node_router_is_asked(r, k, serving, request, excluded) &&
            node_replica_usable(process, health) && is_taken(r, k, request, takes, now_ms)) {
            if (!node_replica_is_full(process, r->config.replica_requests_max))
                r->candidates[r->candidate_count++].replica = k;
            else
                full = true;
        }
    }
    return full || r->candidate_count > 0;
}

/* ERR_UNREACHABLE: no replica of `serving` can be chosen now. */
static int candidates_among(struct node_router *r, const struct node_replica_set *serving,
                            const struct node_request *request, const struct node_need *need,
                            const struct node_replica_set *excluded, uint64_t now_ms)
{
    /* The request waits for a full replica rather than go to a replica in trouble, which has room
     * because it fails. */
    static const struct {
        enum node_health health;
        enum takes takes;
    } choices[] = {{NODE_HEALTH_UP, TAKES_PROVEN},    {NODE_HEALTH_UP, TAKES_GOOD},
                   {NODE_HEALTH_UP, TAKES_SPARE},     {NODE_HEALTH_UP, TAKES_ALL},
                   {NODE_HEALTH_UNKNOWN, TAKES_GOOD}, {NODE_HEALTH_UNKNOWN, TAKES_SPARE},
                   {NODE_HEALTH_UNKNOWN, TAKES_ALL}};
    /* A rejected request goes to a proven replica first: a replica that accepts such requests is
     * the best judge of a rejection. */
    for (unsigned i = request->rejected ? 0 : 1; i < ARRAY_LEN(choices); i++) {
        if (!candidates_collect(r, serving, request, excluded, choices[i].health, choices[i].takes,
                                now_ms))
            continue;
        node_router_candidates_sure(r, request, now_ms);
        node_router_candidates_fit(r, need);
        int err = r->candidate_count > 0 ? node_router_candidates_by_company(r, request, now_ms)
                                         : ERR_AGAIN;
        if (err == ERR_OK || choices[i].takes > TAKES_GOOD)
            return err;
    }
    return node_router_last_resort(r, serving, request, excluded);
}

/* No fitting replica can be chosen: tries replicas that may be too small, and replicas that denied
 * the model. */
static int candidates_beyond(struct node_router *r, const struct node_request *request,
                             const struct node_need *need, bool cut,
                             const struct node_replica_set *excluded, uint64_t now_ms)
{
    int err = ERR_UNREACHABLE;
    struct node_replica_set serving = r->servers.asked;
    if (cut && need->over == 0)
        err = candidates_among(r, &serving, request, need, excluded, now_ms);
    if (err == ERR_UNREACHABLE && node_router_denied_too(r, request, &serving))
        err = candidates_among(r, &serving, request, need, excluded, now_ms);
    if (err != ERR_UNREACHABLE)
        return err;
    return node_router_is_unknown(r, request) ? ERR_NOT_FOUND : ERR_UNREACHABLE;
}

int node_router_candidates_find(struct node_router *r, const struct node_request *request,
                                const struct node_need *need,
                                const struct node_replica_set *excluded, uint64_t now_ms)
{
    node_router_servers_find(r, request, now_ms);
    node_router_reject_find(r, &r->servers.asked, request, now_ms);
    /* An estimate is no proof. If nothing else can be chosen, the router tries a replica that seems
     * too small; the engine rejects the prompt if necessary. */
    struct node_replica_set fit = r->servers.asked;
    bool cut = request->replica_wanted < 0 && node_router_fit_keep(r, need, &fit);
    int err = candidates_among(r, &fit, request, need, excluded, now_ms);
    if (err != ERR_UNREACHABLE)
        return err;
    return candidates_beyond(r, request, need, cut, excluded, now_ms);
}
