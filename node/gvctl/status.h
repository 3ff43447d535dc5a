/* `gvctl status`: a cluster in a few lines. */
#ifndef NODE_GVCTL_STATUS_H
#define NODE_GVCTL_STATUS_H

#include "base/err.h"
#include "node/gvctl/given.h"

/* The exit status: 1 if the router cannot be asked, or is not ready. */
MUST_USE int status(const struct given *g);

#endif
