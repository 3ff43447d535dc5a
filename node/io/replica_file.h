/* A --replica-file: a list of replicas (node/io/replica_list.h) that is read again as it changes.
 *
 * It is read at the start, and then every REPLICA_FILE_INTERVAL_MS by a thread of libuv's pool, by
 * its name each time: a link that is swapped, as Kubernetes does with ConfigMaps, is a new list.
 * What is new counts when two readings in a row found the same: a file may be read while it is
 * written. A file that is not there or not understood is a source that fails: its last list holds,
 * and the log says once what is wrong, with file and line.
 */
#ifndef NODE_IO_REPLICA_FILE_H
#define NODE_IO_REPLICA_FILE_H

#include <uv.h>

#include "base/err.h"
#include "node/discover/discover.h"

enum {
    REPLICA_FILE_INTERVAL_MS = 1000,
    REPLICA_FILE_MESSAGE = 1024,
};

struct replica_file;

/* Registers the source with `d` and reads the file for the first time. `path` and `d` are borrowed
 * until replica_file_free(). ERR_FULL, ERR_NOMEM. */
MUST_USE int replica_file_open(struct replica_file **out, const char *path, struct discover *d,
                               uint64_t now_ms);
/* Begins to read it again when it is time. */
void replica_file_tick(struct replica_file *f, uv_loop_t *loop, uint64_t now_ms);
/* No more reading; one under way ends with the loop. */
void replica_file_stop(struct replica_file *f);
/* The loop has ended, or never ran. NULL is fine. */
void replica_file_free(struct replica_file *f);

/* Reads and parses it once. ERR_* with a message of REPLICA_FILE_MESSAGE bytes. */
MUST_USE int replica_file_check(const char *path, char *message);

#endif
