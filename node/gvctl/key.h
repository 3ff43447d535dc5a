/* gvctl key new NAME: a key for a client, and its line for client-keys-file (node/access/line.h).
 * The key is printed once and kept nowhere.
 */
#ifndef NODE_GVCTL_KEY_H
#define NODE_GVCTL_KEY_H

#include "base/err.h"

/* The command and its own options, argv[0] is "key". Returns the exit status. */
MUST_USE int key_command(int argc, char **argv);

#endif
