/* `gvctl decisions`: why requests went where they went, the last ones or as they end. */
#ifndef NODE_GVCTL_DECISIONS_H
#define NODE_GVCTL_DECISIONS_H

#include "base/err.h"
#include "node/gvctl/given.h"

/* With --follow until it is interrupted; then each is shown when its request has ended, once. The
 * exit status. */
MUST_USE int decisions(const struct given *g);

#endif
