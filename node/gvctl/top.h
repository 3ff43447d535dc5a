/* `gvctl top`: routers, replicas and requests, live in a terminal. */
#ifndef NODE_GVCTL_TOP_H
#define NODE_GVCTL_TOP_H

#include "base/err.h"
#include "node/gvctl/given.h"

/* A frame each --interval until q or Ctrl-C; one frame with --once, or where output is no terminal.
 * The exit status: 1 if the first frame cannot be had. */
MUST_USE int top(const struct given *g);

#endif
