/* Creates files with secrets. */
#ifndef NODE_GVCTL_NEW_SECRET_H
#define NODE_GVCTL_NEW_SECRET_H

#include <stdbool.h>

#include "base/err.h"
#include "base/slice.h"

/* Opens a new file for appending, readable by the owner alone. If root makes the file in a folder
 * of the group "grapevine" (/etc/grapevine in the Debian package), this group may read the file
 * too, for the service. Returns -1 with errno if creation fails; EEXIST: the file exists. */
MUST_USE int new_secret_open(const char *path);
/* Creates a file with this text. Returns false with errno, leaving no file. */
MUST_USE bool new_secret_write(const char *path, struct slice text);
/* Replaces an existing file atomically, keeping owner and mode: readers see the old text or the
 * new. Returns the exit status, and prints the reason for a failure to stderr. */
MUST_USE int new_secret_replace(const char *path, struct slice text);

#endif
