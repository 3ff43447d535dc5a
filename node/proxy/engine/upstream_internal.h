/* The shared part of a connection to a replica: upstream_life.c opens and closes it, upstream.c
 * drives the requests. */
#ifndef NODE_PROXY_ENGINE_UPSTREAM_INTERNAL_H
#define NODE_PROXY_ENGINE_UPSTREAM_INTERNAL_H

#include "node/proxy/engine/upstream.h"

/* Opens a new connection, in state CONNECTING. Errors as upstream_start(). */
MUST_USE int upstream_open(struct pool *pool, struct upstream **out);
/* Closes a connection unless already closed; an idle one has left the pool before. */
void upstream_close(struct upstream *u);
/* Takes an idle connection out of the pool. */
void upstream_leave_pool(struct upstream *u);
void upstream_close_idle(struct upstream *idle);

#endif
