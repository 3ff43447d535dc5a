/* What the files of a connection to a replica share: upstream_life.c opens and closes it,
 * upstream.c drives what goes over it. */
#ifndef NODE_PROXY_ENGINE_UPSTREAM_INTERNAL_H
#define NODE_PROXY_ENGINE_UPSTREAM_INTERNAL_H

#include "node/proxy/engine/upstream.h"

/* A new one, connecting. Errors as upstream_start(). */
MUST_USE int upstream_open(struct pool *pool, struct upstream **out);
/* Closes it, if it is not closed yet; one that is idle has left the pool. */
void upstream_close(struct upstream *u);
/* It is idle there no longer. */
void upstream_leave_pool(struct upstream *u);
void upstream_close_idle(struct upstream *idle);

#endif
