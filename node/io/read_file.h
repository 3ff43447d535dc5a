/* Reads a whole file up to a limit: settings, keys, certificates, tokens, lists. Logs nothing;
 * messages name the file and never quote the contents. Blocks while reading. */
#ifndef NODE_IO_READ_FILE_H
#define NODE_IO_READ_FILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

enum { IO_FILE_MESSAGE = 512 };

struct io_file {
    const char *setting; /* name of the setting, with which messages begin: "cluster-key-file" */
    const char *path;
    size_t bytes_max;        /* limit of the file's size */
    const char *long_advice; /* advice in the message about a file over the limit */
    bool pipes;              /* the file need not be regular; not for files read repeatedly */
    bool secret;             /* io_watch warns if everybody may read the file */
};

/* Appends the file's text to `out`. `*others_read` (may be NULL) is set if everybody may read the
 * file. ERR_NOT_FOUND with a message of at most IO_FILE_MESSAGE bytes. This function leaves no copy
 * of a secret in memory, but the caller must wipe `out` (buf_free_wiped()). */
MUST_USE int io_file_read(const struct io_file *f, struct buf *out, bool *others_read,
                          char *message);
/* Reads from an open descriptor and closes it; -1: opening failed, and errno has the reason. */
MUST_USE int io_file_read_fd(const struct io_file *f, int fd, struct buf *out, bool *others_read,
                             char *message);

/* Writes why the file is unusable, in a line with setting and file. Returns ERR_NOT_FOUND. */
MUST_USE int io_file_fail(const struct io_file *f, char *message, const char *what);

#endif
