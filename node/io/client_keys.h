/* The keys of clients (client-keys-file; node/access says what is in it).
 *
 * The file is read at the start and then every second (node/io/watch_file.h). A thread makes the
 * table of it: ten thousand keys take milliseconds. A file that cannot be used any more leaves the
 * keys as they were.
 */
#ifndef NODE_IO_CLIENT_KEYS_H
#define NODE_IO_CLIENT_KEYS_H

#include "base/err.h"
#include "node/access/access.h"
#include "node/io/watch_file.h"

struct client_keys;

/* Reads it for the first time. ERR_NOT_FOUND (or ERR_NOMEM) with a message of IO_FILE_MESSAGE
 * bytes, which names file and line. `path` and `all` are borrowed. */
MUST_USE int client_keys_open(struct client_keys **out, const char *path, struct io_watches *all,
                              char *message);
/* Owned by `k`. */
struct access *client_keys_access(const struct client_keys *k);
/* Whether the file cannot be used as it is now; NULL: there is none. */
bool client_keys_refused(const struct client_keys *k);
/* The loop has ended, or never ran; nobody holds a key. NULL is fine. */
void client_keys_free(struct client_keys *k);

#endif
