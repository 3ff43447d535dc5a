/* gvctl key new NAME: a key for a client, and its line for client-keys-file (node/access/line.h).
 * The key is printed once and kept nowhere.
 */
#ifndef NODE_GVCTL_KEY_H
#define NODE_GVCTL_KEY_H

#include <stdbool.h>

#include "base/err.h"
#include "node/access/line.h"
#include "node/gvctl/show.h"

struct key_wanted {
    struct access_line line;
    const char *path; /* the line is appended there; NULL: it is printed */
};

/* `verb` is "new". Returns the exit status. */
MUST_USE int key_command(const struct key_wanted *wanted, const struct show *how, const char *verb,
                         const char *name);

#endif
