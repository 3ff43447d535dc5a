/* Shortages: this machine lacks a local port, a file descriptor or memory to open a connection to a
 * replica. A shortage is no failure of the replica. The request takes an idle connection, goes to
 * another replica, or waits in the queue (node/proxy/exchange/overload.c).
 *
 * The replica counts as full (node_router_replica_full()) until a connection there is idle or
 * closed, or until the next try. The first try comes after 100 ms. Each later wait is twice as
 * long, up to a second, because in a failed try the kernel examines every port of the range.
 *
 * A shortage is over after SHORTAGE_OVER_MS without a failure. Meanwhile the log names the shortage
 * and the remedy once a minute; /metrics and `gvctl status` show them. */
#ifndef NODE_PROXY_ENGINE_SHORTAGE_H
#define NODE_PROXY_ENGINE_SHORTAGE_H

#include "node/proxy/engine/pool.h"

enum {
    SHORTAGE_WAIT_MS = 100, /* two ticks: the router notices nothing sooner */
    SHORTAGE_WAIT_MAX_MS = 1000,
    SHORTAGE_OVER_MS = 10000, /* ten of the longest waits */
    SHORTAGE_LOG_MS = 60000,
};

/* Called if net->connect() or the event `connected` reported a shortage as `err`. */
void shortage_met(struct pool *pool, int err);
/* Called if upstream-connections-max allows no more connections to the replica. */
void shortage_by_limit(struct pool *pool);
/* Called if a request found no idle connection to the replica and none could be opened. */
void shortage_full(struct pool *pool);
/* Called if a connection opened, or the pool closes: the shortage no longer counts. */
void shortage_none(struct pool *pool);
/* Called if a connection became idle or closed, so that a request may find a connection. */
void shortage_room(struct pool *pool);
/* Returns the shortage because of which no connection may be tried now, as an error of
 * net->connect(); 0: a try is allowed. */
MUST_USE int shortage_now(const struct pool *pool);
/* Allows waiting replicas another try, and detects the end of a shortage. */
void shortage_tick(struct proxy *p);

bool shortage_lasts(const struct proxy *p, enum net_shortage kind);
/* Returns the present shortage for people, as a sentence without a full stop; NULL: none. */
const char *shortage_text(const struct proxy *p);

#endif
