/* Files with a single secret: the replicas' API key (replica-api-key-file), and the tokens of the
 * admin port.
 *
 * The file is read at the start and then every second (node/io/watch_file.h). If the file becomes
 * unusable, the present key stays in force.
 *
 * The key is a line of visible ASCII. No message and no log contains the key. */
#ifndef NODE_IO_KEY_FILE_H
#define NODE_IO_KEY_FILE_H

#include "base/err.h"
#include "base/slice.h"
#include "node/io/watch_file.h"

enum {
    KEY_FILE_BYTES_MAX = 4096, /* longest key */
};

/* A kind of file, with the names for messages and the log. */
struct key_file_kind {
    const char *setting, *readable, *refused, *read; /* name of the setting; names of three events:
                                                      * others can read the file, the file is
                                                      * unusable, a new key was read */
};
extern const struct key_file_kind key_file_replicas, key_file_admin, key_file_admin_read;

struct key_file;

/* Finds the key in the text of a file: without trailing white space. Returns NULL, or the error. */
const char *key_file_parse(struct slice text, struct slice *key);

/* Reads the file for the first time. ERR_NOT_FOUND (or ERR_NOMEM) with a message of IO_FILE_MESSAGE
 * bytes. Warns if everybody may read the file. `path` and `all` are borrowed. */
MUST_USE int key_file_open(struct key_file **out, const struct key_file_kind *kind,
                           const char *path, struct io_watches *all, char *message);
/* Returns the key, valid until the next turn of the loop. */
struct slice key_file_key(const struct key_file *k);
/* Returns a number, raised with every new key. */
unsigned key_file_version(const struct key_file *k);
/* Wipes and frees; called after the loop has ended, or never ran. Accepts NULL. */
void key_file_free(struct key_file *k);

#endif
