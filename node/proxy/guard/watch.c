#include "node/proxy/guard/watch.h"

#include "node/proxy/engine/prober.h"
#include "node/proxy/exchange/drive.h"
#include "node/proxy/exchange/suspect.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Whether the engine is to answer it with tokens, and has the request, or does not take it. */
static bool wants_tokens(const struct upstream *u)
{
    return u->state == UPSTREAM_BUSY && u->reading && (u->request_sent || u->writing) &&
           exchange_answers_tokens(u->exchange->route.kind);
}

/* Of a replica with its connections, or of a rank with those of its process, of which it looks at
 * its own. */
static struct node_watched look(struct proxy *p, struct pool *pool, unsigned replica)
{
    uint64_t now = p->now_ms;
    unsigned server = node_router_server(p->config.router, replica);
    struct node_watched w = {.token_ms = pool->token_ms};
    for (const struct upstream *u = p->engines.pools[server].all; u != NULL; u = u->all_next) {
        if (!wants_tokens(u))
            continue;
        const struct exchange *x = u->exchange;
        if (server != replica && x->decision.replica != replica)
            continue;
        if (x->first_token) {
            w.streaming++;
            continue;
        }
        w.waiting++;
        w.waiting_long +=
            now - later(u->active_ms, p->resumed_ms) >= p->config.options->watchdog_ms;
        uint64_t prefill = x->decision.prompt_tokens - x->decision.cached_tokens;
        w.prefill_tokens_max = later(w.prefill_tokens_max, prefill);
    }
    if (w.waiting + w.streaming == 0)
        pool->busy_ms = 0;
    else if (pool->busy_ms == 0)
        pool->busy_ms = now;
    w.since_ms = later(pool->busy_ms, p->resumed_ms);
    w.heard_ms = p->engines.pools[server].heard_ms;
    if (server == replica)
        prober_waits(p, replica, &w.asked_ms, &w.health_asked_ms);
    return w;
}

/* Nothing came for a third of the time, or no token, for whomever, for half of it. */
static void ask_for_a_sign(struct proxy *p, struct pool *pool, unsigned replica,
                           const struct node_watched *w)
{
    uint64_t now = p->now_ms, limit = p->config.options->watchdog_ms;
    bool silent = now - later(w->heard_ms, w->since_ms) >= limit / 3;
    uint64_t moved = node_router_replica_moved(p->config.router, replica);
    bool still = now - later(later(w->token_ms, moved), w->since_ms) >= limit / 2;
    if (w->waiting + w->streaming == 0 || limit == 0 || (!silent && !still) ||
        now < pool->asked_ms + limit)
        return;
    pool->asked_ms = now;
    prober_ask(p, node_router_server(p->config.router, replica));
}

static void log_stall(struct proxy *p, struct pool *pool, unsigned replica,
                      const struct node_watched *w)
{
    struct node_router *router = p->config.router;
    bool stalled = node_router_own_stall(router, replica) != NODE_STALL_NONE;
    if (stalled == pool->told_stalled)
        return;
    pool->told_stalled = stalled;
    if (!stalled) {
        log_event(p->config.log, LOG_INFO, "replica_stall_over",
                  LOG_STR("replica", node_router_replica_name(router, replica)));
        return;
    }
    log_event(p->config.log, LOG_WARN, "replica_stalled",
              LOG_STR("replica", node_router_replica_name(router, replica)),
              LOG_CSTR("sign", node_stall_name(node_router_own_stall(router, replica))),
              LOG_UINT("waiting", w->waiting), LOG_UINT("streaming", w->streaming),
              LOG_CSTR("effect", "it is avoided; what has no token moves to others"));
}

/* --- what is stuck there -------------------------------------------------------------------- */

/* Whether an answer that has begun there is lost by now. Where requests only starve it goes on. */
static bool is_lost(const struct proxy *p, const struct upstream *u, unsigned replica)
{
    const struct node_router *router = p->config.router;
    enum node_stall stall = node_router_replica_stall(router, replica);
    bool dead = stall == NODE_STALL_SILENT || stall == NODE_STALL_COUNTERS ||
                node_router_replica_asleep(router, replica);
    uint64_t limit = p->config.options->watchdog_ms;
    limit += limit / 2;
    return dead && limit > 0 && p->now_ms - later(u->active_ms, p->resumed_ms) >= limit;
}

/* Of its process, or of its rank alone. */
static bool is_stuck(const struct proxy *p, unsigned replica)
{
    const struct node_router *router = p->config.router;
    return node_router_replica_stall(router, replica) != NODE_STALL_NONE ||
           node_router_replica_asleep(router, replica);
}

static void move(struct proxy *p, struct upstream *u)
{
    struct exchange *x = u->exchange;
    bool asks = u->state == UPSTREAM_CONNECTING || wants_tokens(u);
    if (x == NULL || !asks || !is_stuck(p, x->decision.replica))
        return;
    if (x->first_token) {
        if (is_lost(p, u, x->decision.replica))
            exchange_failed(x, upstream_fail(u, UPSTREAM_STALLED));
        return;
    }
    if (!suspect_may_move(x) || !exchange_may_move(x))
        return;
    p->stats.watchdog_moved++;
    exchange_failed(x, upstream_fail(u, UPSTREAM_STALLED));
}

static void end(struct proxy *p, struct upstream *u)
{
    struct exchange *x = u->exchange;
    bool connecting = u->state == UPSTREAM_CONNECTING;
    if (x == NULL || !(connecting || (u->state == UPSTREAM_BUSY && u->reading)))
        return;
    uint64_t limit = connecting || !x->first_token ? WATCH_DEAD_MS : WATCH_SILENT_MS;
    if (p->now_ms - later(u->active_ms, p->resumed_ms) < limit)
        return;
    u->any_byte = true; /* not a stale connection: the engine is gone */
    exchange_failed(x, upstream_fail(u, connecting ? UPSTREAM_CONNECT_FAILED : UPSTREAM_BROKEN));
}

static void walk(struct proxy *p, struct pool *pool,
                 void (*each)(struct proxy *, struct upstream *))
{
    for (struct upstream *u = pool->all; u != NULL; u = pool->walked) {
        pool->walked = u->all_next; /* moves on if that one closes */
        each(p, u);
    }
    pool->walked = NULL;
}

static bool is_dead(const struct proxy *p, const struct pool *pool, unsigned replica)
{
    const struct node_router *router = p->config.router;
    if (node_router_replica_health(router, replica) != NODE_HEALTH_DOWN)
        return false;
    return node_router_replica_gone(router, replica) ||
           p->now_ms - later(pool->heard_ms, p->resumed_ms) >= WATCH_DEAD_MS;
}

/* Not a byte of anything for so long, not even of what any live server answers at once. */
static bool is_mute(const struct proxy *p, const struct pool *pool, unsigned replica)
{
    return node_router_replica_stall(p->config.router, replica) == NODE_STALL_SILENT &&
           p->now_ms - later(pool->heard_ms, p->resumed_ms) >= WATCH_MUTE_MS;
}

static void watch(struct proxy *p, struct pool *pool, unsigned replica)
{
    struct node_router *router = p->config.router;
    struct node_watched w = look(p, pool, replica);
    node_router_watched(router, replica, &w, p->config.options->watchdog_ms, p->now_ms);
    enum node_stall stall = node_router_replica_stall(router, replica);
    log_stall(p, pool, replica, &w);
    ask_for_a_sign(p, pool, replica, &w);
    if (pool->all == NULL)
        return;
    if (is_dead(p, pool, replica) || is_mute(p, pool, replica)) {
        suspect_silent(pool);
        walk(p, pool, end);
    } else if (stall != NODE_STALL_NONE || node_router_replica_asleep(router, replica)) {
        walk(p, pool, move);
    }
}

static void watch_rank(struct proxy *p, unsigned rank)
{
    struct node_router *router = p->config.router;
    struct pool *pool = &p->engines.pools[rank];
    struct node_watched w = look(p, pool, rank);
    node_router_watched(router, rank, &w, p->config.options->watchdog_ms, p->now_ms);
    log_stall(p, pool, rank, &w);
    ask_for_a_sign(p, pool, rank, &w);
    if (node_router_rank_stalled(router, rank))
        walk(p, &p->engines.pools[node_router_server(router, rank)], move);
}

void watch_tick(struct proxy *p)
{
    if (p->now_ms < p->watched_ms + WATCH_EVERY_MS)
        return;
    p->watched_ms = p->now_ms;
    for (unsigned i = 0; i < node_router_replica_count(p->config.router); i++) {
        if (!node_router_replica_present(p->config.router, i))
            continue;
        if (p->engines.pools[i].proxy != NULL)
            watch(p, &p->engines.pools[i], i);
        else if (node_router_rank(p->config.router, i) >= 0)
            watch_rank(p, i);
    }
}
