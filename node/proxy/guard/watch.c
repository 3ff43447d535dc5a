#include "node/proxy/guard/watch.h"

#include "base/bug.h"
#include "node/proxy/engine/prober.h"
#include "node/proxy/engine/shortage.h"
#include "node/proxy/exchange/drive.h"
#include "node/proxy/exchange/suspect.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Returns true if the engine should answer with tokens, and has the whole request or does not
 * accept the request's bytes. */
static bool wants_tokens(const struct upstream *u)
{
    return u->state == UPSTREAM_BUSY && u->reading && (u->request_sent || u->writing) &&
           exchange_answers_tokens(u->exchange->route.kind);
}

/* Notes if this router cannot send probes for lack of files or ports: then silence says nothing. If
 * a probe was sent and has no answer, silence does count: a hanging engine may use up the ports. */
static void note_unasked(struct pool *pool, struct node_watched *w)
{
    if (w->asked_ms == 0 && (pool->no_place || shortage_now(pool) != 0))
        pool->unasked_ms = pool->proxy->now_ms;
    w->unasked_ms = pool->unasked_ms;
}

/* Counts the requests at a replica from the connections. A data-parallel rank shares the process's
 * connections: only connections with the rank's requests count. */
static struct node_watched look(struct proxy *p, struct pool *pool, unsigned replica)
{
    uint64_t now = p->now_ms;
    unsigned server = node_router_server(p->config.router, replica);
    struct node_watched w = {.token_ms = pool->token_ms};
    pool->begun_ms = 0;
    for (const struct upstream *u = p->engines.pools[server].all; u != NULL; u = u->all_next) {
        if (!wants_tokens(u))
            continue;
        const struct exchange *x = u->exchange;
        if (server != replica && x->now.decision.replica != replica)
            continue;
        if (x->now.first_token) {
            w.streaming++;
            if (pool->begun_ms == 0 || u->active_ms < pool->begun_ms)
                pool->begun_ms = u->active_ms;
            continue;
        }
        w.waiting++;
        if (now - later(u->active_ms, p->resumed_ms) >= p->config.options->watchdog_ms) {
            w.waiting_long++;
            w.plain_long += exchange_is_plain(u->exchange);
        }
        uint64_t prefill = x->now.decision.prompt_tokens - x->now.decision.cached_tokens;
        w.prefill_tokens_max = later(w.prefill_tokens_max, prefill);
    }
    if (w.waiting + w.streaming == 0)
        pool->busy_ms = 0;
    else if (pool->busy_ms == 0)
        pool->busy_ms = now;
    w.since_ms = later(pool->busy_ms, p->resumed_ms);
    w.heard_ms = p->engines.pools[server].heard_ms;
    if (server == replica) {
        prober_waits(p, replica, &w.asked_ms, &w.health_asked_ms);
        note_unasked(pool, &w);
    }
    return w;
}

/* Asks the prober to read the metrics, after a third of the time limit without a byte, or an eighth
 * without a token, and again after each quarter. Counters are only as recent as their last reading.
 * After a third without a byte, or half without a token, also asks for a health check at the cost
 * of a token, once per time limit. */
static void ask_for_a_sign(struct proxy *p, struct pool *pool, unsigned replica,
                           const struct node_watched *w)
{
    uint64_t now = p->now_ms, limit = p->config.options->watchdog_ms;
    bool silent = now - later(w->heard_ms, w->since_ms) >= limit / 3;
    uint64_t still = now - later(w->token_ms, w->since_ms);
    bool late = silent || still >= limit / 2;
    bool health = late && now >= pool->health_asked_ms + limit;
    if (w->waiting + w->streaming == 0 || limit == 0 || (!silent && still < limit / 8) ||
        (!health && now < pool->asked_ms + limit / 4))
        return;
    pool->asked_ms = now;
    if (health)
        pool->health_asked_ms = now;
    prober_ask(p, node_router_server(p->config.router, replica), health);
}

static void log_stall(struct proxy *p, struct pool *pool, unsigned replica,
                      const struct node_watched *w)
{
    struct node_router *router = p->config.router;
    bool stalled = node_router_replica(router, replica)->signs.stall != NODE_STALL_NONE;
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
              LOG_CSTR("sign", node_stall_name(node_router_replica(router, replica)->signs.stall)),
              LOG_UINT("waiting", w->waiting), LOG_UINT("streaming", w->streaming),
              LOG_CSTR("effect", "the replica is avoided; its requests that have no answer token "
                                 "yet move to other replicas"));
}

/* --- stuck requests ------------------------------------------------------------------------- */

/* Returns true if the process, or the rank alone, is stuck. */
static bool is_stuck(const struct proxy *p, unsigned replica)
{
    const struct node_router *router = p->config.router;
    return node_router_replica_stall(router, replica) != NODE_STALL_NONE ||
           node_router_process(router, replica)->asleep;
}

/* Returns true if the replica is down and silent. The process may still be alive but paused. */
static bool is_silent(const struct proxy *p, const struct pool *pool, unsigned server)
{
    return node_router_replica_health(p->config.router, server) == NODE_HEALTH_DOWN &&
           p->now_ms - later(pool->heard_ms, p->resumed_ms) >= WATCH_DEAD_MS;
}

/* Moves a request that has no answer token yet away from a stuck or silent replica, if another
 * replica can take the request. */
static void move(struct proxy *p, struct upstream *u)
{
    struct exchange *x = u->exchange;
    if (x == NULL || x->now.first_token)
        return;
    bool waits = u->state == UPSTREAM_CONNECTING || wants_tokens(u);
    bool leaves = waits && is_stuck(p, x->now.decision.replica);
    if (!leaves && is_silent(p, u->pool, x->now.decision.server)) {
        bool busy = u->state == UPSTREAM_BUSY && u->reading;
        leaves = (waits || busy) && p->now_ms - later(u->active_ms, p->resumed_ms) >= WATCH_DEAD_MS;
    }
    if (!leaves || !suspect_may_move(x) || !exchange_may_move(x))
        return;
    p->stats.watchdog_moved++;
    exchange_failed(x, upstream_fail(u, UPSTREAM_STALLED));
}

/* Cuts a begun answer, which cannot move to another replica. */
static void cut(struct proxy *p, struct upstream *u)
{
    struct exchange *x = u->exchange;
    if (x == NULL || !x->now.first_token || !wants_tokens(u))
        return;
    uint64_t since_ms = later(u->active_ms, p->resumed_ms);
    uint64_t heard_ms = later(u->pool->heard_ms, p->resumed_ms);
    bool early = BUG(CUT_AT_PAUSE) && p->now_ms - since_ms >= p->config.options->watchdog_ms;
    if (early || node_router_answer_lost(p->config.router, x->now.decision.replica, since_ms,
                                         heard_ms, p->config.options->stall_cut_ms, p->now_ms))
        exchange_stall_cut(x);
}

/* Ends a request whose process no longer exists. */
static void end(struct proxy *p, struct upstream *u)
{
    struct exchange *x = u->exchange;
    bool connecting = u->state == UPSTREAM_CONNECTING;
    if (x == NULL || !(connecting || (u->state == UPSTREAM_BUSY && u->reading)))
        return;
    /* A connection accepted after the refusal belongs to the next process, which may be
     * starting. */
    const struct node_replica *k = node_router_process(p->config.router, x->now.decision.server);
    if (!connecting && (!k->trouble.gone || u->began_ms > k->trouble.refused_ms))
        return;
    uint64_t limit = connecting || !x->now.first_token ? WATCH_DEAD_MS : WATCH_SILENT_MS;
    if (p->now_ms - later(u->active_ms, p->resumed_ms) < limit)
        return;
    suspect_silent(u->pool);
    u->any_byte = true; /* not a stale connection: the engine is gone */
    exchange_failed(x, upstream_fail(u, connecting ? UPSTREAM_CONNECT_FAILED : UPSTREAM_BROKEN));
}

static void walk(struct proxy *p, struct pool *pool,
                 void (*each)(struct proxy *, struct upstream *))
{
    for (struct upstream *u = pool->all; u != NULL; u = pool->walked) {
        pool->walked = u->all_next; /* moves on if `u` closes */
        each(p, u);
    }
    pool->walked = NULL;
}

/* Returns true if the port refused a connection and no health check has succeeded since. */
static bool is_gone(const struct proxy *p, unsigned replica)
{
    const struct node_router *router = p->config.router;
    return node_router_replica_health(router, replica) == NODE_HEALTH_DOWN &&
           node_router_process(router, replica)->trouble.gone;
}

/* Returns true if some answer has begun and then been silent for the time limit. */
static bool is_due(const struct proxy *p, const struct pool *pool)
{
    uint64_t limit =
        BUG(CUT_AT_PAUSE) ? p->config.options->watchdog_ms : p->config.options->stall_cut_ms;
    return pool->begun_ms != 0 && limit > 0 &&
           p->now_ms - later(pool->begun_ms, p->resumed_ms) >= limit;
}

static void watch(struct proxy *p, struct pool *pool, unsigned replica)
{
    struct node_router *router = p->config.router;
    struct node_watched w = look(p, pool, replica);
    node_router_watched(router, replica, &w, p->config.options->watchdog_ms, p->now_ms);
    log_stall(p, pool, replica, &w);
    ask_for_a_sign(p, pool, replica, &w);
    if (pool->all == NULL)
        return;
    if (is_gone(p, replica)) {
        walk(p, pool, end);
    } else if (is_stuck(p, replica) || is_silent(p, pool, replica)) {
        walk(p, pool, move);
    }
    if (is_due(p, pool))
        walk(p, pool, cut);
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

/* Handles a removed replica, which is no longer probed. The replica's requests continue. */
static void watch_rest(struct proxy *p, struct pool *pool, unsigned replica)
{
    if (pool->all == NULL)
        return;
    (void)look(p, pool, replica);
    if (is_due(p, pool))
        walk(p, pool, cut);
}

void watch_tick(struct proxy *p)
{
    if (p->now_ms < p->watched_ms + WATCH_EVERY_MS)
        return;
    p->watched_ms = p->now_ms;
    for (unsigned i = 0; i < node_router_replica_count(p->config.router); i++) {
        struct pool *pool = &p->engines.pools[i];
        bool present = node_router_replica_present(p->config.router, i);
        if (!present && pool->proxy != NULL)
            watch_rest(p, pool, i);
        else if (present && pool->proxy != NULL)
            watch(p, pool, i);
        else if (present && node_router_rank(p->config.router, i) >= 0)
            watch_rank(p, i);
    }
}
