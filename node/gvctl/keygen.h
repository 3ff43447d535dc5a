/* The key file of a cluster: creation and the steps of a rotation. */
#ifndef NODE_GVCTL_KEYGEN_H
#define NODE_GVCTL_KEYGEN_H

#include "base/err.h"

enum keygen_step {
    KEYGEN_NEW,     /* a whole file: `path`, which must not exist; NULL: stdout */
    KEYGEN_NEXT,    /* adds a second key to the file, accepted at once */
    KEYGEN_PROMOTE, /* puts the second key in use; the first, now `old`, stays accepted */
    KEYGEN_FINISH,  /* removes the old key */
    KEYGEN_SECRET,  /* creates a Kubernetes Secret named `path`, from inside a pod */
};

/* Changes `path` atomically (a new file, with the same mode and owner, replaces the old). Refuses
 * steps out of order. Returns the exit status; errors go to stderr, key ids to stdout. */
MUST_USE int keygen(enum keygen_step step, const char *path);

#endif
