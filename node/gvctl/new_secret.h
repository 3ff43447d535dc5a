/* A file that holds a secret, made anew. */
#ifndef NODE_GVCTL_NEW_SECRET_H
#define NODE_GVCTL_NEW_SECRET_H

#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

/* Opens it to append to, for its owner alone. What root makes in a folder of the group "grapevine"
 * (/etc/grapevine, as the Debian package has it) that group may read, too: it is for the service.
 * Returns -1 with errno where it cannot be made; EEXIST: it is there already. */
MUST_USE int new_secret_open(const char *path);
/* Makes it with that text. False with errno, and no file is left. */
MUST_USE bool new_secret_write(const char *path, struct slice text);
/* Replaces an existing file at once, with its owner and mode: readers see the old text or the new.
 * Returns the exit status, and says on stderr why it failed. */
MUST_USE int new_secret_replace(const char *path, struct slice text);

#endif
