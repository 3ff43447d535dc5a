/* Shortages of this machine when a connection to a replica should open: local ports towards the
 * address, open files, memory. A shortage is no failure of the replica: the request takes an idle
 * connection, goes to another replica, or waits in the queue (node/proxy/exchange/overload.c).
 *
 * The replica counts as full (node_router_replica_full()) until a connection there is idle or
 * closed, or until the next try. Tries come after 100 ms, then after twice as long each time, up to
 * a second. A failed try is not free: the kernel examines every port of its range.
 *
 * A shortage is over after SHORTAGE_OVER_MS without a failure. Meanwhile the log names the shortage
 * and the remedy once a minute; /metrics and `gvctl status` show them. */
#ifndef NODE_PROXY_ENGINE_SHORTAGE_H
#define NODE_PROXY_ENGINE_SHORTAGE_H

#include "node/proxy/engine/pool.h"

enum {
    SHORTAGE_WAIT_MS = 100, /* two ticks: no change shows sooner */
    SHORTAGE_WAIT_MAX_MS = 1000,
    SHORTAGE_OVER_MS = 10000, /* ten of the longest waits */
    SHORTAGE_LOG_MS = 60000,
};

/* net->connect or `connected` reported a shortage as `err`. */
void shortage_met(struct pool *pool, int err);
/* A limit of the router (upstream-connections-max) allows no more connections there. */
void shortage_by_limit(struct pool *pool);
/* A request found no room there, and no idle connection. */
void shortage_full(struct pool *pool);
/* A connection is open, or the pool closes. */
void shortage_none(struct pool *pool);
/* A connection is idle or closed, so there may be room. */
void shortage_room(struct pool *pool);
/* Returns the shortage against a connection now, as an error of net->connect; 0: a try is
 * allowed. */
MUST_USE int shortage_now(const struct pool *pool);
/* Allows waiting replicas another try, and detects the end of a shortage. */
void shortage_tick(struct proxy *p);

bool shortage_lasts(const struct proxy *p, enum net_shortage kind);
/* Returns the present shortage for people, as a sentence without an end; NULL: none. */
const char *shortage_text(const struct proxy *p);

#endif
