/* The clients' keys (client-keys-file; node/access defines the contents).
 *
 * The file is read at the start and then every second (node/io/watch_file.h). A thread parses the
 * file into a table, as ten thousand keys take milliseconds. If the file becomes unusable, the
 * present keys stay in force. */
#ifndef NODE_IO_CLIENT_KEYS_H
#define NODE_IO_CLIENT_KEYS_H

#include "base/err.h"
#include "node/access/access.h"
#include "node/io/watch_file.h"

struct client_keys;

/* Reads the file for the first time. ERR_NOT_FOUND (or ERR_NOMEM) with a message of IO_FILE_MESSAGE
 * bytes, which names file and line. `path` and `all` are borrowed. */
MUST_USE int client_keys_open(struct client_keys **out, const char *path, struct io_watches *all,
                              char *message);
/* Returns the table of keys, which `k` owns. */
struct access *client_keys_access(const struct client_keys *k);
/* True if the file's present contents are unusable. Accepts NULL. */
bool client_keys_refused(const struct client_keys *k);
/* Called after the loop has ended, or never ran, when no key is in use. Accepts NULL. */
void client_keys_free(struct client_keys *k);

#endif
