/* The file of client keys, shown and changed by `gvctl key`. All calls report errors on stderr. */
#ifndef NODE_GVCTL_KEY_FILE_H
#define NODE_GVCTL_KEY_FILE_H

#include "base/err.h"
#include "base/slice.h"
#include "node/gvctl/show.h"

/* Returns the number of the name's keys in the file; 0 also if there is no file. -1: the file
 * cannot be read. */
MUST_USE int key_file_has(const char *path, struct slice name);
/* Prints a line for each key. Returns the exit status. */
MUST_USE int key_file_list(const char *path, const struct show *how);
/* Removes the name's keys, or with `hash` only the key whose hash has this prefix. If keys of the
 * name stay, the first of them takes over the name's options. Returns the exit status. */
MUST_USE int key_file_revoke(const char *path, struct slice name, const char *hash);

#endif
