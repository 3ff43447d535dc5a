/* Reads a whole file up to a limit: settings, keys, certificates, tokens, lists. It logs nothing,
 * and its messages name the file and never what is in it. Blocks as reading a file does. */
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
    const char *long_advice; /* with these words */
    bool pipes;              /* may be no regular file; one that is read again must be one */
    bool secret;             /* only the router should be able to read it (io_watch warns) */
};

/* Appends the file's text. `others_read`, unless it is NULL: everybody may read it. ERR_NOT_FOUND
 * with a message of at most IO_FILE_MESSAGE bytes. If the text is a secret the caller wipes `out`
 * (buf_free_wiped); what this function moves leaves nothing behind in memory. */
MUST_USE int io_file_read(const struct io_file *f, struct buf *out, bool *others_read,
                          char *message);
/* The same from an open descriptor, which is closed; -1: it could not be opened, errno says why. */
MUST_USE int io_file_read_fd(const struct io_file *f, int fd, struct buf *out, bool *others_read,
                             char *message);

/* Why this file will not do, in a line that names setting and file. Returns ERR_NOT_FOUND. */
MUST_USE int io_file_fail(const struct io_file *f, char *message, const char *what);

#endif
