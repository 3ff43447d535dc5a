/* Signs of life (node/replica/health.h), and the choice of a replica if all are down. */
#include "node/route/router_internal.h"

static const uint64_t awaited_ms = 60000; /* after this time down, a replica is probed less often */

void node_router_health_no(struct node_router *r, unsigned replica)
{
    node_replica_leaves(node_router_process_at(r, replica));
}

void node_router_replica_full(struct node_router *r, unsigned server, bool full)
{
    node_router_process_at(r, server)->server.no_place = full;
}

void node_router_core_dead(struct node_router *r, unsigned replica, uint64_t now_ms)
{
    struct node_replica *k = node_router_process_at(r, replica);
    node_replica_leaves(k);
    node_replica_fails(k, false, now_ms);
    node_router_touch(r, replica);
}

unsigned node_router_others(const struct node_router *r)
{
    unsigned most = 0;
    for (unsigned k = 0; k < r->replica_count; k++)
        most = r->replicas[k].turn.others > most ? r->replicas[k].turn.others : most;
    return most;
}

void node_router_watched(struct node_router *r, unsigned replica, const struct node_watched *w,
                         uint64_t watchdog_ms, uint64_t now_ms)
{
    struct node_replica *k = node_router_replica_at(r, replica);
    struct node_watched all = *w;
    node_router_load_take(r, replica, now_ms);
    for (unsigned i = 0; k->rank.ranks > 0 && i < r->replica_count; i++) {
        if (i != replica && r->replicas[i].rank.server == replica)
            all.prefill_tokens_max += r->replicas[i].load.remote.prefill_tokens;
    }
    node_signs_watch(k, &all, watchdog_ms, now_ms);
    if (node_signs_report(&k->signs) != r->slots[replica].told.still)
        node_router_touch(r, replica);
}

bool node_router_rank_stalled(const struct node_router *r, unsigned replica)
{
    return r->replicas[replica].signs.stall != NODE_STALL_NONE &&
           node_router_process_at(r, replica)->signs.stall == NODE_STALL_NONE;
}

enum node_stall node_router_replica_stall(const struct node_router *r, unsigned replica)
{
    return node_router_rank_stalled(r, replica) ? r->replicas[replica].signs.stall
                                                : node_router_process_at(r, replica)->signs.stall;
}

bool node_router_replica_moves(const struct node_router *r, unsigned replica, uint64_t now_ms)
{
    return !node_router_rank_stalled(r, replica) &&
           node_signs_are_moving(&node_router_process_at(r, replica)->signs, now_ms);
}

/* The row to watch: the rank's, if the rank's figures report single steps, otherwise the row of the
 * rank's process. */
static const struct node_replica *watched_of(const struct node_router *r, unsigned replica)
{
    const struct node_replica *k = &r->replicas[replica];
    return node_signs_tells_steps(k) ? k : node_router_process_at(r, replica);
}

uint64_t node_router_replica_worked(const struct node_router *r, unsigned replica)
{
    uint64_t own_ms = r->replicas[replica].signs.worked_ms;
    uint64_t worked_ms = watched_of(r, replica)->signs.worked_ms;
    return worked_ms > own_ms ? worked_ms : own_ms;
}

bool node_router_replica_tells(const struct node_router *r, unsigned replica)
{
    return node_signs_tells_steps(watched_of(r, replica));
}

bool node_router_answer_lost(const struct node_router *r, unsigned replica, uint64_t since_ms,
                             uint64_t heard_ms, uint64_t stall_cut_ms, uint64_t now_ms)
{
    uint64_t worked_ms = node_router_replica_worked(r, replica);
    return node_signs_lost(watched_of(r, replica), worked_ms > since_ms ? worked_ms : since_ms,
                           heard_ms, stall_cut_ms, now_ms);
}

bool node_router_ready(const struct node_router *r)
{
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *replica = &r->replicas[k];
        if (replica->health == NODE_HEALTH_UP && node_replica_usable(replica, NODE_HEALTH_UP))
            return true;
    }
    return false;
}

bool node_router_replica_awaited(const struct node_router *r, unsigned replica, uint64_t now_ms)
{
    const struct node_replica *k = node_router_process_at(r, replica);
    return k->health == NODE_HEALTH_DOWN &&
           (now_ms < k->signs.down_ms + awaited_ms || !node_router_ready(r));
}

/* True if `a` is tried before `b`. A replica whose port refused the connection comes last, fewer
 * failures come first, and equal replicas take turns. */
static bool goes_before(const struct node_replica *a, const struct node_replica *b)
{
    unsigned a_failed = a->trouble.answer_failures + a->trouble.error_answers;
    unsigned b_failed = b->trouble.answer_failures + b->trouble.error_answers;
    if (a->trouble.gone != b->trouble.gone)
        return b->trouble.gone;
    return a_failed != b_failed ? a_failed < b_failed : a->signs.tried_ms < b->signs.tried_ms;
}

int node_router_last_resort(struct node_router *r, const struct node_replica_set *serving,
                            const struct node_request *request,
                            const struct node_replica_set *excluded)
{
    int err = ERR_UNREACHABLE;
    r->candidate_count = 0;
    if (r->config.all_down_refuse || request->sent)
        return err;
    for (unsigned i = 0; i < r->replica_count; i++) {
        const struct node_replica *k = node_router_process_at(r, i);
        /* A report by others that the replica is down is not enough: perhaps they found a router at
         * the address. */
        bool down = k->health == NODE_HEALTH_DOWN && node_replica_usable(k, NODE_HEALTH_DOWN);
        if (!down || !node_router_is_asked(r, i, serving, request, excluded) ||
            !node_router_may_come(r, i))
            continue;
        if (node_replica_is_full(k, r->config.replica_requests_max)) {
            err = ERR_AGAIN;
            continue;
        }
        if (r->candidate_count == 0 ||
            goes_before(k, node_router_process_at(r, r->candidates[0].replica)))
            r->candidates[0].replica = i;
        r->candidate_count = 1;
    }
    return r->candidate_count == 1 ? ERR_OK : err;
}
