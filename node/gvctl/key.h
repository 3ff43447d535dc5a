/* gvctl key: clients' keys, and the lines with their hashes in client-keys-file
 * (node/access/line.h). A new key is printed once and stored nowhere. */
#ifndef NODE_GVCTL_KEY_H
#define NODE_GVCTL_KEY_H

#include <stdbool.h>

#include "base/err.h"
#include "node/access/line.h"
#include "node/gvctl/show.h"

struct key_wanted {
    struct access_line line;
    const char *path; /* the file; NULL: print the line of a new key */
    const char *hash; /* revoke: only the key whose hash has this prefix; NULL: all keys of the
                       * name */
    bool add;         /* new: a second key of a name */
};

/* `verb` is "new", "list" or "revoke"; `name` may be NULL. Returns the exit status. */
MUST_USE int key_command(const struct key_wanted *wanted, const struct show *how, const char *verb,
                         const char *name);

#endif
