/* Opens and closes connections to replicas. */
#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "node/proxy/engine/shortage.h"
#include "node/proxy/engine/upstream_internal.h"

/* --- closing -------------------------------------------------------------------------------- */

void upstream_free(struct upstream *u)
{
    CHECK(u->state == UPSTREAM_CLOSING && u->exchange == NULL);
    if (u->write_body != NULL)
        body_unref(&u->proxy->segments, u->write_body);
    free(u->write_head);
    buf_free(&u->in);
    buf_free(&u->held);
    free(u);
}

void upstream_close(struct upstream *u)
{
    if (u->state == UPSTREAM_CLOSING)
        return;
    /* After an orderly close by this side, the local port stays in use for a minute (TIME_WAIT). */
    bool reset = u->state == UPSTREAM_IDLE && shortage_lasts(u->proxy, NET_SHORT_OF_PORTS);
    u->state = UPSTREAM_CLOSING;
    u->exchange = NULL;
    u->request = NULL;
    deadline_clear(&u->deadline);
    CHECK(u->pool->open_count > 0);
    u->pool->open_count--;
    if (u->pool->walked == u)
        u->pool->walked = u->all_next;
    if (u->all_prev != NULL)
        u->all_prev->all_next = u->all_next;
    else
        u->pool->all = u->all_next;
    if (u->all_next != NULL)
        u->all_next->all_prev = u->all_prev;
    u->proxy->config.net->close(u->stream, reset);
    if (!u->no_place) /* the connection had a port and a file, which are free now */
        shortage_room(u->pool);
}

void upstream_leave_pool(struct upstream *u)
{
    if (u->prev != NULL)
        u->prev->next = u->next;
    else
        u->pool->idle = u->next;
    if (u->next != NULL)
        u->next->prev = u->prev;
    u->next = NULL;
    u->prev = NULL;
}

void upstream_close_idle(struct upstream *idle)
{
    upstream_leave_pool(idle);
    upstream_close(idle);
}

void upstream_flush_pool(struct pool *pool)
{
    while (pool->idle != NULL)
        upstream_close_idle(pool->idle);
}

/* --- opening -------------------------------------------------------------------------------- */

/* Closes an idle connection to end a shortage: one of this pool; if there is none and the shortage
 * is not of ports, the longest idle connection of all pools. Returns false if no connection is
 * idle. */
static bool make_room(struct pool *pool, int shortage)
{
    struct upstream *idle = pool->idle;
    if (idle == NULL && shortage != ERR_FULL) {
        struct deadline *d = deadline_first(&pool->proxy->limit[PROXY_UPSTREAM_KEEPALIVE]);
        idle = d != NULL ? CONTAINER_OF(d, struct upstream, deadline) : NULL;
    }
    if (idle == NULL)
        return false;
    deadline_clear(&idle->deadline);
    upstream_close_idle(idle);
    return true;
}

/* Connects as pool_connect(); ERR_FULL for any shortage. */
static int connect_pool(struct pool *pool, struct net_stream **stream)
{
    int err = shortage_now(pool);
    if (err == 0)
        err = pool_connect(pool, stream);
    if (net_is_shortage(err) && make_room(pool, err))
        err = pool_connect(pool, stream);
    if (!net_is_shortage(err))
        return err;
    if (BUG(SHORTAGE_CHARGED))
        return ERR_UNREACHABLE;
    shortage_full(pool);
    return ERR_FULL;
}

int upstream_open(struct pool *pool, struct upstream **out)
{
    struct proxy *p = pool->proxy;
    uint64_t max = p->config.options->upstream_connections_max;
    if (pool->open_count >= max && pool->idle != NULL) /* close an idle connection to make room */
        upstream_close_idle(pool->idle);
    if (pool->open_count >= max) {
        p->stats.upstream_full++;
        shortage_by_limit(pool);
        return ERR_FULL;
    }
    struct upstream *u = calloc(1, sizeof *u);
    if (u == NULL)
        return ERR_NOMEM;
    u->address = pool_address(pool);
    int err = connect_pool(pool, &u->stream);
    if (err != 0) {
        if (err != ERR_FULL)
            pool_address_failed(pool, u->address);
        free(u);
        return err == ERR_FULL ? ERR_FULL : ERR_UNREACHABLE;
    }
    u->stream->events = p->engines.events;
    u->stream->owner = u;
    u->proxy = p;
    u->pool = pool;
    u->state = UPSTREAM_CONNECTING;
    u->deadline.expired = p->engines.expired;
    buf_init(&u->in, p->engines.limits.head_bytes_max + PROXY_READ_BYTES);
    pool->open_count++;
    u->all_next = pool->all;
    if (u->all_next != NULL)
        u->all_next->all_prev = u;
    pool->all = u;
    p->stats.upstream_connects++;
    proxy_arm(p, PROXY_UPSTREAM_CONNECT, &u->deadline);
    *out = u;
    return 0;
}
