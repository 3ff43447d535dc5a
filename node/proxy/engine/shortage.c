#include "node/proxy/engine/shortage.h"

#include "base/check.h"

static const char *const texts[NET_SHORTAGES] = {
    [NET_SHORT_OF_PORTS] = "This router has no local port left for connections to replicas",
    [NET_SHORT_OF_FILES] = "This router has no open file left for connections to replicas",
    [NET_SHORT_OF_MEMORY] = "This router has no memory left for connections to replicas",
};

static enum net_shortage kind_of(int err)
{
    CHECK(net_is_shortage(err));
    return err == ERR_FULL    ? NET_SHORT_OF_PORTS
           : err == ERR_LIMIT ? NET_SHORT_OF_FILES
                              : NET_SHORT_OF_MEMORY;
}

/* Returns a name for the log. A new replica is probed before it has an index. */
static struct slice name_of(const struct pool *pool)
{
    const struct proxy *p = pool->proxy;
    const struct pool *first = p->engines.pools;
    if (pool < first || pool >= first + p->engines.pool_count)
        return slice_of_cstr(pool->authority);
    return node_router_replica_name(p->config.router, (unsigned)(pool - first));
}

static void note(struct pool *pool, enum net_shortage kind)
{
    struct proxy *p = pool->proxy;
    struct proxy_shortage *s = &p->engines.shortages[kind];
    if (s->since_ms == 0) {
        s->since_ms = p->now_ms;
        s->began_at = s->met;
    }
    s->met++;
    s->last_ms = p->now_ms;
    if (s->told_ms != 0 && p->now_ms - s->told_ms < SHORTAGE_LOG_MS)
        return;
    s->told_ms = p->now_ms;
    log_event(p->config.log, LOG_ERROR, "local_shortage", LOG_CSTR("of", net_shortage_name(kind)),
              LOG_STR("replica", name_of(pool)), LOG_UINT("connections", p->stats.connections_open),
              LOG_UINT("times", s->met),
              LOG_CSTR("effect", "requests use idle connections, go to other replicas, or wait; no "
                                 "replica counts as failed"),
              LOG_CSTR("want", net_shortage_want(kind)));
}

/* Marks the replica as full (`none`) or not, so that no request is routed there in vain. */
static void set_place(struct pool *pool, bool none)
{
    struct proxy *p = pool->proxy;
    if (pool->no_place == none)
        return;
    pool->no_place = none;
    if (none) {
        p->engines.without_place++;
    } else {
        CHECK(p->engines.without_place > 0);
        p->engines.without_place--;
        p->admission.due = true;
    }
    node_router_replica_full(p->config.router, (unsigned)(pool - p->engines.pools), none);
}

static uint64_t longer(uint64_t wait_ms)
{
    uint64_t next = wait_ms == 0 ? SHORTAGE_WAIT_MS : wait_ms * 2;
    return next < SHORTAGE_WAIT_MAX_MS ? next : SHORTAGE_WAIT_MAX_MS;
}

static void wait_longer(struct pool *pool)
{
    pool->place_wait_ms = longer(pool->place_wait_ms);
    pool->place_ms = pool->proxy->now_ms + pool->place_wait_ms;
}

void shortage_met(struct pool *pool, int err)
{
    struct proxy_engines *engines = &pool->proxy->engines;
    enum net_shortage kind = kind_of(err);
    note(pool, kind);
    if (kind == NET_SHORT_OF_PORTS) { /* the ports are used up for this address only */
        wait_longer(pool);
        return;
    }
    engines->place_wait_ms = longer(engines->place_wait_ms);
    engines->place_ms = pool->proxy->now_ms + engines->place_wait_ms;
}

void shortage_by_limit(struct pool *pool)
{
    wait_longer(pool);
    set_place(pool, true);
}

void shortage_full(struct pool *pool)
{
    set_place(pool, true);
}

void shortage_none(struct pool *pool)
{
    pool->place_ms = pool->place_wait_ms = 0;
    pool->proxy->engines.place_ms = pool->proxy->engines.place_wait_ms = 0;
    set_place(pool, false);
}

/* A port may become free with a delay, so the next try comes soon, however long the last wait
 * was. */
void shortage_room(struct pool *pool)
{
    if (pool->no_place || pool->place_wait_ms + pool->proxy->engines.place_wait_ms > 0)
        shortage_none(pool);
}

int shortage_now(const struct pool *pool)
{
    const struct proxy *p = pool->proxy;
    if (p->now_ms < p->engines.place_ms)
        return ERR_LIMIT;
    return p->now_ms < pool->place_ms ? ERR_FULL : 0;
}

static void look_over(struct proxy *p, enum net_shortage kind)
{
    struct proxy_shortage *s = &p->engines.shortages[kind];
    if (s->since_ms == 0 || p->now_ms - s->last_ms < SHORTAGE_OVER_MS)
        return;
    if (s->told_ms >= s->since_ms)
        log_event(p->config.log, LOG_INFO, "local_shortage_over",
                  LOG_CSTR("of", net_shortage_name(kind)),
                  LOG_UINT("lasted_ms", s->last_ms - s->since_ms),
                  LOG_UINT("times", s->met - s->began_at));
    s->since_ms = 0;
}

void shortage_tick(struct proxy *p)
{
    for (unsigned i = 0; i < NET_SHORTAGES; i++)
        look_over(p, (enum net_shortage)i);
    for (unsigned i = 0; i < p->engines.pool_count && p->engines.without_place > 0; i++) {
        struct pool *pool = &p->engines.pools[i];
        if (pool->no_place && shortage_now(pool) == 0)
            set_place(pool, false);
    }
}

bool shortage_lasts(const struct proxy *p, enum net_shortage kind)
{
    return p->engines.shortages[kind].since_ms != 0;
}

const char *shortage_text(const struct proxy *p)
{
    for (unsigned i = 0; p->engines.without_place > 0 && i < NET_SHORTAGES; i++) {
        if (shortage_lasts(p, (enum net_shortage)i))
            return texts[i];
    }
    return NULL;
}
