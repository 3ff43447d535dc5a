/* Input of a decision from the shared state: the time, and other routers' reports of loads and
 * caches. */
#include "node/replica/learned.h"
#include "node/route/router_internal.h"
#include "node/route/shade.h"

void node_router_state_take(struct node_router *r)
{
    r->crdt = node_state_crdt(r->state);
    r->index = node_state_index(r->state);
    r->generation = crdt_index_now(r->index);
    node_router_shadow_split(r);
}

void node_router_clock(struct node_router *r, uint64_t now_ms)
{
    node_state_clock(r->state, now_ms);
    r->now_ms = now_ms;
    uint32_t generation = crdt_index_now(r->index);
    if (generation == r->generation)
        return;
    r->generation = generation;
    for (unsigned k = 0; k < r->replica_count; k++)
        node_belief_moved(&r->replicas[k].belief);
}

/* --- loads ----------------------------------------------------------------------------------- */

void node_router_load_advance(struct node_router *r, struct node_replica *k, uint64_t now_ms)
{
    uint64_t before = k->load.prefill_tokens;
    node_load_advance(r->bookings, &k->load, k->believed.tokens_per_s, now_ms);
    if (k->load.prefill_tokens != before)
        node_router_touch(r, (unsigned)(k - r->replicas));
}

void node_router_load_take(struct node_router *r, unsigned replica, uint64_t now_ms)
{
    if (!r->common->replicated)
        return;
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    struct crdt_load sum;
    crdt_reports_load_sum(reports, replica, &sum);
    struct node_remote_load remote = {
        .requests = sum.requests,
        .prefill_tokens = sum.prefill_tokens,
        .context_tokens = sum.context_tokens,
        .decoding_tokens = sum.decoding_tokens,
        .prefilled_tokens = crdt_reports_prefilled(reports, replica),
    };
    struct node_replica *k = &r->replicas[replica];
    node_rank_load_remote(k, &r->replicas[k->rank.server], &remote, now_ms);
    if (remote.requests > 0)
        r->slots[k->rank.server].used_ms = now_ms;
}

void node_router_loads_take(struct node_router *r, uint64_t now_ms)
{
    if (!r->common->replicated)
        return;
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    uint64_t version = crdt_reports_load_version(reports);
    if (version == r->loads_taken)
        return;
    r->loads_taken = version;
    for (unsigned slot = 0; slot < r->replica_count; slot++)
        node_router_load_take(r, slot, now_ms);
}

/* --- caches ---------------------------------------------------------------------------------- */

void node_router_others_take(struct node_router *r, unsigned replica, uint64_t now_ms)
{
    const struct crdt_reports *reports = crdt_state_reports(r->crdt);
    struct node_others others = {0};
    for (unsigned i = 0; i < crdt_reports_routers(reports); i++) {
        struct crdt_report row;
        if (!crdt_reports_row(reports, i, CRDT_REPORT_LEARNED, replica, &row) ||
            crdt_reports_is_self(reports, row.router))
            continue;
        others.who += hash_mix(row.router ^ hash_mix(row.epoch));
        node_others_add(&others, &row.value.learned, r->replicas[replica].rkey);
    }
    node_replica_others(&r->replicas[replica], &others, r->generation, now_ms);
}
