/* Commands beyond a call with a table (command.h). Each returns the exit status. */
#ifndef NODE_GVCTL_RUN_H
#define NODE_GVCTL_RUN_H

#include "base/err.h"
#include "node/gvctl/command.h"
#include "node/gvctl/given.h"

/* Prints a summary of the cluster. Returns 1 if the router cannot be asked, or is not ready. With
 * --check, returns problems_status(), or PROBLEMS_DEGRADED if the router is not ready and no
 * problem is known. */
MUST_USE int status(const struct given *g);
/* Shows routers, replicas and requests live in a terminal: a frame each --interval until q or
 * Ctrl-C. With --once, or if the output is not a terminal, prints a single frame. Returns 1 if the
 * first frame cannot be made. */
MUST_USE int top(const struct given *g);
/* Prints the last decisions with their reasons. With --follow, runs until interrupted, and shows
 * each decision once, at the end of the request. */
MUST_USE int decisions(const struct given *g);
/* Prints recent events, as seen by all routers or by a single router. With --follow, runs until
 * interrupted, and shows an event again when the event's count rises. */
MUST_USE int events(const struct given *g);
/* Makes the call of a command for a change, and prints a sentence about the new state. `drain
 * --wait` returns when the replica has no requests in flight. */
MUST_USE int change(const struct given *g, const struct command *c, const char *argument);

#endif
