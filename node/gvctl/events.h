/* `gvctl events`: what happened lately, in words, as all routers saw it or one; the last of it, or
 * as it happens. */
#ifndef NODE_GVCTL_EVENTS_H
#define NODE_GVCTL_EVENTS_H

#include "base/err.h"
#include "node/gvctl/given.h"

/* With --follow until it is interrupted; an event that counts up is then shown again. The exit
 * status. */
MUST_USE int events(const struct given *g);

#endif
