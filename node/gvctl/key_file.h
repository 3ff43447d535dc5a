/* The file of client keys, as `gvctl key` shows and changes it. All calls report
 * errors on stderr. */
#ifndef NODE_GVCTL_KEY_FILE_H
#define NODE_GVCTL_KEY_FILE_H

#include "base/err.h"
#include "base/slice.h"
#include "node/gvctl/show.h"

/* How many keys that name has there; 0 also where there is no file. -1: the file cannot be read. */
MUST_USE int key_file_has(const char *path, struct slice name);
/* A line for each key. Returns the exit status. */
MUST_USE int key_file_list(const char *path, const struct show *how);
/* Removes the name's keys, or with `hash` the one whose hash begins so. If keys of the name stay,
 * the first of them takes the name's options. Returns the exit status. */
MUST_USE int key_file_revoke(const char *path, struct slice name, const char *hash);

#endif
