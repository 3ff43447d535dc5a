/* Reads a whole file up to a limit: settings, keys, certificates, tokens, lists. Logs nothing;
 * messages name the file and never quote its contents. Blocks while reading. */
#ifndef NODE_IO_READ_FILE_H
#define NODE_IO_READ_FILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum { IO_FILE_MESSAGE = 512 };

struct io_file {
    const char *setting; /* begins messages: "cluster-key-file" */
    const char *path;
    size_t bytes_max;        /* a longer file is refused, */
    const char *long_advice; /* with this advice */
    bool pipes;              /* also accepts non-regular files; a file read repeatedly must be
                              * regular */
    bool secret;             /* only the router should be able to read the file (io_watch warns) */
};

/* Appends the file's text. Sets `others_read`, unless NULL, if everybody may read the file.
 * ERR_NOT_FOUND with a message of at most IO_FILE_MESSAGE bytes. For a secret the caller wipes
 * `out` (buf_free_wiped); this function leaves no copies in memory. */
MUST_USE int io_file_read(const struct io_file *f, struct buf *out, bool *others_read,
                          char *message);
/* The same from an open descriptor, which is closed; -1: opening failed with errno. */
MUST_USE int io_file_read_fd(const struct io_file *f, int fd, struct buf *out, bool *others_read,
                             char *message);

/* Writes why the file is unusable, in a line that names setting and file. Returns ERR_NOT_FOUND. */
MUST_USE int io_file_fail(const struct io_file *f, char *message, const char *what);

#endif
