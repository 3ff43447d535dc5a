/* A --replica-file: a list of replicas (node/io/replica_list.h), read again after changes.
 *
 * The file is read at the start and then every second (node/io/watch_file.h). If the file is
 * missing or invalid, the source fails: the last list stays, and the log has the reason once, with
 * file and line. */
#ifndef NODE_IO_REPLICA_FILE_H
#define NODE_IO_REPLICA_FILE_H

#include "base/err.h"
#include "node/discover/discover.h"
#include "node/io/watch_file.h"

struct replica_file;

/* Registers the source with `d` and reads the file for the first time. All arguments are borrowed
 * until replica_file_free(). ERR_FULL, ERR_NOMEM. */
MUST_USE int replica_file_open(struct replica_file **out, const char *path, struct discover *d,
                               struct io_watches *all);
/* Called after the loop has ended, or never ran. Accepts NULL. */
void replica_file_free(struct replica_file *f);

/* Reads and parses the file once, to check it. ERR_* with a message of IO_FILE_MESSAGE bytes. */
MUST_USE int replica_file_check(const char *path, char *message);

#endif
