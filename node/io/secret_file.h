/* Reads a file that holds a secret, or may: keys of the cluster, of replicas, of clients and of
 * TLS, certificates, tokens, the list of replicas. It logs nothing and its messages name the file
 * and never what is in it. Blocks as reading a file does. */
#ifndef NODE_IO_SECRET_FILE_H
#define NODE_IO_SECRET_FILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum { IO_SECRET_MESSAGE = 512 };

struct io_secret {
    const char *setting; /* for messages: "cluster-key-file" */
    const char *path;
    size_t bytes_max;        /* a file of so many bytes, or more, is refused, */
    const char *long_advice; /* with these words */
    bool regular;            /* nothing but a regular file: what is read again must not be a pipe */
};

/* Appends what is in the file. `others_read`: its mode lets everybody read it. ERR_NOT_FOUND with a
 * message of at most IO_SECRET_MESSAGE bytes. The caller wipes `out` (io_secret_free). */
MUST_USE int io_secret_read(const struct io_secret *s, struct buf *out, bool *others_read,
                            char *message);

/* Why this secret will not do, in a line that names setting and file. Returns ERR_NOT_FOUND. */
MUST_USE int io_secret_fail(const struct io_secret *s, char *message, const char *what);

/* Wipes and frees. */
void io_secret_free(struct buf *text);

#endif
