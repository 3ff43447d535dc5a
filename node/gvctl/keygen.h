/* The key file of a cluster: makes one, and takes it through a rotation. */
#ifndef NODE_GVCTL_KEYGEN_H
#define NODE_GVCTL_KEYGEN_H

#include "base/err.h"

enum keygen_step {
    KEYGEN_NEW,     /* a whole file: `path`, which must not be there; stdout if it is NULL */
    KEYGEN_NEXT,    /* the file gets a second key that is accepted already */
    KEYGEN_PROMOTE, /* that is used from now on; the first, now `old`, stays accepted */
    KEYGEN_FINISH,  /* the old key goes */
    KEYGEN_SECRET,  /* a new one as a Secret of Kubernetes with the name `path`, made from a pod */
};

/* Changes `path` in one step (a new file takes its place, with its mode and owner). A step out of
 * order is refused. The exit status; what is wrong stands on stderr, key ids on stdout. */
MUST_USE int keygen(enum keygen_step step, const char *path);

#endif
