/* The commands that change something: each says in a sentence what is so now. */
#ifndef NODE_GVCTL_CHANGE_H
#define NODE_GVCTL_CHANGE_H

#include "base/err.h"
#include "node/gvctl/command.h"
#include "node/gvctl/given.h"

/* Makes the command's call. The exit status. `drain --wait` returns when nothing is under way at
 * the replica. */
MUST_USE int change(const struct given *g, const struct command *c, const char *argument);

#endif
