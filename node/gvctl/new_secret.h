/* A file that holds a secret, made anew. */
#ifndef NODE_GVCTL_NEW_SECRET_H
#define NODE_GVCTL_NEW_SECRET_H

#include "base/err.h"

/* Opens it to append to, for its owner alone. What root makes in a folder of the group "grapevine"
 * (/etc/grapevine, as the Debian package has it) that group may read, too: it is for the service.
 * Returns -1 with errno where it cannot be made; EEXIST: it is there already. */
MUST_USE int new_secret_open(const char *path);

#endif
