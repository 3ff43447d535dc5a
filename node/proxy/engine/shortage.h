/* What this machine is short of when a connection to a replica is to be opened: local ports towards
 * its address, open files, memory. That is no failure of the replica: its requests take a
 * connection that is idle, go to another replica, or wait in the queue
 * (node/proxy/exchange/overload.c).
 *
 * A replica without a place counts as full (node_router_replica_full()) until one of its
 * connections is idle or closed, or it is tried again: after 100 ms, then twice as long, up to a
 * second. A try that fails is not free: the kernel looks at every port of its range.
 *
 * A shortage is over when none was met for SHORTAGE_OVER_MS. While it lasts the log names it and
 * its remedy once a minute; /metrics and `gvctl status` show it.
 */
#ifndef NODE_PROXY_ENGINE_SHORTAGE_H
#define NODE_PROXY_ENGINE_SHORTAGE_H

#include "node/proxy/engine/pool.h"

enum {
    SHORTAGE_WAIT_MS = 100, /* two ticks: as soon as something may have changed */
    SHORTAGE_WAIT_MAX_MS = 1000,
    SHORTAGE_OVER_MS = 10000, /* ten of the longest waits */
    SHORTAGE_LOG_MS = 60000,
};

/* net->connect, or `connected`, said `err`, which is a shortage. */
void shortage_met(struct pool *pool, int err);
/* No more connections may be opened there by a limit of ours (upstream-connections-max). */
void shortage_by_limit(struct pool *pool);
/* A request found no place there, and no idle connection either. */
void shortage_full(struct pool *pool);
/* A connection is open, or the pool closes. */
void shortage_none(struct pool *pool);
/* One of its connections is idle or closed: there is a place, or may be. */
void shortage_room(struct pool *pool);
/* The shortage for which none is to be opened now, as an error of net->connect; 0: it can be tried.
 */
MUST_USE int shortage_now(const struct pool *pool);
/* Lets replicas be tried that were waiting, and finds that a shortage is over. */
void shortage_tick(struct proxy *p);

bool shortage_lasts(const struct proxy *p, enum net_shortage kind);
/* For people: what is short now, as a sentence without its end; NULL: nothing. */
const char *shortage_text(const struct proxy *p);

#endif
