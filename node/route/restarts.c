/* Engine restarts, with the loss of the cache, as seen in probes and scrapes. */
#include <math.h>

#include "node/route/router_internal.h"

static const uint64_t started_grain_ms = NODE_START_GRAIN_S * 1000;

static void raise_incarnation(struct node_router *r, unsigned replica, uint64_t started_ms)
{
    const struct crdt_replica *row = node_router_row(r, replica);
    if (!row)
        return;
    (void)crdt_state_restarted(r->crdt, replica, started_ms);
    node_router_cache_renewed(r, replica, row->rkey);
}

/* The process restarted, with all ranks: renews the incarnation of each. */
static void process_restarted(struct node_router *r, unsigned server, uint64_t started_ms)
{
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        if (slot == server || r->replicas[slot].rank.server == server)
            raise_incarnation(r, slot, started_ms);
    }
}

void node_router_cache_reset(struct node_router *r, unsigned server, uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    process_restarted(r, server, 0);
    node_router_touch(r, server);
}

/* The start time of a process, if the engine reports it. With the same start time, routers that
 * notice a restart at different times raise the incarnation to the same value. */
static uint64_t started_ms(const struct node_replica *k)
{
    double s = k->scrape.start_time_s;
    return s > 0 && s < 1e12 ? (uint64_t)llround(s * 1000) : 0;
}

/* True if this router has joined the cluster. Before, the router cannot compare a start time: the
 * other routers may know this time, or a time close to it (started_grain_ms). */
static bool has_joined(const struct node_router *r)
{
    return r->names == NULL || node_replication_ready(r->names);
}

void node_router_starts_take(struct node_router *r)
{
    if (!r->starts_wait || !has_joined(r))
        return;
    r->starts_wait = false;
    for (unsigned slot = 0; slot < r->replica_count; slot++) {
        const struct crdt_replica *row = node_router_row(r, slot);
        uint64_t started = r->slots[slot].start_early_ms;
        r->slots[slot].start_early_ms = 0;
        if (row && started > row->incarnation.started + started_grain_ms)
            process_restarted(r, slot, started);
    }
}

void node_router_probed(struct node_router *r, unsigned replica, struct node_check check,
                        uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    struct node_replica *k = node_router_replica_at(r, replica);
    enum node_health before = k->health;
    bool gone = node_replica_probed(k, check, now_ms);
    if (k->health != before)
        node_router_touch(r, replica);
    /* If the incarnation has risen since the last successful probe, another router has already
     * noticed the restart. With several routers, an engine that reports start times shows the
     * restart by a new start time, at the first scrape after its return. */
    bool told_later = r->common->replicated && started_ms(k) > 0;
    if (gone && r->slots[replica].rkey_probed == k->rkey && !told_later)
        process_restarted(r, replica, 0);
    if (check.ok || gone)
        r->slots[replica].rkey_probed = k->rkey;
}

void node_router_found_router(struct node_router *r, unsigned replica, struct slice who,
                              uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    struct node_replica *k = node_router_replica_at(r, replica);
    node_replica_found_router(k, who);
    node_router_touch(r, replica);
}

/* Looks for a restart in a scrape: by the process's start time, or by counters that show a `lost`
 * cache. */
static void restart_find(struct node_router *r, unsigned replica, bool lost, bool same_life)
{
    struct node_replica *k = &r->replicas[replica];
    const struct crdt_replica *row = node_router_row(r, replica);
    /* A router without peers or stored state sees each restart itself. */
    bool asks = r->common->replicated || r->common->keeps;
    uint64_t started = asks ? started_ms(k) : 0;
    uint64_t known = row ? row->incarnation.started : UINT64_MAX / 2;
    /* Another router noticed the restart since the last scrape, or the last figures are from the
     * engine's earlier life. */
    bool noticed = r->slots[replica].rkey_scraped != k->rkey ||
                   (started > 0 && !same_life && started + started_grain_ms >= known);
    bool early = started > 0 && !has_joined(r);
    r->slots[replica].start_early_ms = early ? started : 0;
    r->starts_wait |= early;
    if (!early && started > known + started_grain_ms)
        process_restarted(r, replica, started);
    else if (!early && lost && !noticed)
        process_restarted(r, replica, 0);
}

bool node_router_scraped(struct node_router *r, unsigned replica, const struct node_scrape *s,
                         uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    struct node_replica *k = node_router_replica_at(r, replica);
    struct node_scrape own = *s;
    const struct crdt_replica *row = node_router_row(r, replica);
    if (!k->rank.is_one && row &&
        node_scraped_is_late(k, s, (double)row->incarnation.started / 1000))
        return false;
    node_router_others_take(r, replica, now_ms);
    bool same_life = node_scrape_same_life(&k->scrape, s);
    if (!node_scrape_sizes_only(s))
        node_scraped_own(k, &own, now_ms);
    bool lost = node_replica_scraped(k, &own, now_ms);
    if (!k->rank.is_one) /* the sums of all ranks show a restart of the process */
        restart_find(r, replica, lost, same_life);
    r->slots[replica].rkey_scraped = k->rkey;
    node_router_evictions_take(r, replica, now_ms);
    node_router_adapters_scraped(r, replica, s, now_ms);
    node_router_touch(r, replica);
    return lost;
}
