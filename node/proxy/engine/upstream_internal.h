/* Shared by upstream_life.c, which opens and closes connections to replicas, and upstream.c, which
 * sends the requests and reads the answers. */
#ifndef NODE_PROXY_ENGINE_UPSTREAM_INTERNAL_H
#define NODE_PROXY_ENGINE_UPSTREAM_INTERNAL_H

#include "node/proxy/engine/upstream.h"

/* Opens a new connection, in state CONNECTING. Errors as upstream_start(). */
MUST_USE int upstream_open(struct pool *pool, struct upstream **out);
/* Closes a connection unless already closed. An idle connection must have left the pool before. */
void upstream_close(struct upstream *u);
/* Takes an idle connection out of the pool. */
void upstream_leave_pool(struct upstream *u);
void upstream_close_idle(struct upstream *idle);

#endif
