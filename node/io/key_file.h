/* Files that hold one secret each: the API key of the replicas (replica-api-key-file), the tokens
 * of the admin port.
 *
 * The file is read at the start and then every second (node/io/watch_file.h). A file that cannot
 * be used any more leaves the key as it was.
 *
 * The key is one line of visible ASCII. It is in no message and in no log.
 */
#ifndef NODE_IO_KEY_FILE_H
#define NODE_IO_KEY_FILE_H

#include "base/err.h"
#include "base/slice.h"
#include "node/io/watch_file.h"

enum {
    KEY_FILE_BYTES_MAX = 4096, /* of the key */
};

/* What it is, in messages and in the log. */
struct key_file_kind {
    const char *setting, *readable, *refused, *read; /* the last three: events */
};
extern const struct key_file_kind key_file_replicas, key_file_admin, key_file_admin_read;

struct key_file;

/* The key in the text of a file: without the white space at its end. NULL, or what is wrong. */
const char *key_file_parse(struct slice text, struct slice *key);

/* Reads it for the first time. ERR_NOT_FOUND (or ERR_NOMEM) with a message of IO_FILE_MESSAGE
 * bytes. Warns of a file that everybody may read. `path` and `all` are borrowed. */
MUST_USE int key_file_open(struct key_file **out, const struct key_file_kind *kind,
                           const char *path, struct io_watches *all, char *message);
/* The key; good until the next turn of the loop. */
struct slice key_file_key(const struct key_file *k);
/* Rises with every new key. */
unsigned key_file_version(const struct key_file *k);
/* Wipes and frees; the loop has ended, or never ran. NULL is fine. */
void key_file_free(struct key_file *k);

#endif
