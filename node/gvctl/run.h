/* What carries out the commands that are more than a call and its table (command.h). Each returns
 * the exit status. */
#ifndef NODE_GVCTL_RUN_H
#define NODE_GVCTL_RUN_H

#include "base/err.h"
#include "node/gvctl/command.h"
#include "node/gvctl/given.h"

/* A cluster in a few lines; 1 if the router cannot be asked, or is not ready. */
MUST_USE int status(const struct given *g);
/* Routers, replicas and requests, live in a terminal: a frame each --interval until q or Ctrl-C;
 * one frame with --once, or where output is no terminal. 1 if the first frame cannot be had. */
MUST_USE int top(const struct given *g);
/* Why requests went where they went, the last ones; with --follow until it is interrupted, then
 * each is shown when its request has ended, once. */
MUST_USE int decisions(const struct given *g);
/* What happened lately, in words, as all routers saw it or one; with --follow until it is
 * interrupted, and an event that counts up is then shown again. */
MUST_USE int events(const struct given *g);
/* Makes the call of a command that changes something, and says in a sentence what is so now. `drain
 * --wait` returns when nothing is under way at the replica. */
MUST_USE int change(const struct given *g, const struct command *c, const char *argument);

#endif
