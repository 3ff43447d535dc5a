/* A file with a secret, read again and again by a thread of libuv's pool: a file system that hangs
 * delays only the exit. It is opened by its name each time: a link that is swapped, as Kubernetes
 * does with Secrets, is a new secret. What is new counts when two readings were equal: who writes a
 * file in place may be in the middle of it.
 */
#ifndef NODE_IO_SECRET_WATCH_H
#define NODE_IO_SECRET_WATCH_H

#include <uv.h>

#include "node/access/digest.h"
#include "node/io/secret_file.h"

enum { IO_SECRET_INTERVAL_MS = 1000 };

struct io_secret_watch {
    struct io_secret file;
    /* A reading that counts, in the thread that made it: for what takes long. NULL: nothing. */
    void (*read)(void *context);
    /* The same, in the loop: `err` with `message`, or `text`, which is wiped afterwards. */
    void (*taken)(void *context);
    void *context;
    struct buf text;
    int err;
    bool others_read;
    char message[IO_SECRET_MESSAGE];
    /* Of secret_watch.c. */
    uv_work_t work;
    struct access_digest seen; /* of the last reading */
    bool settled;
    bool busy, stopped;
    uint64_t due_ms;
};

/* Reads it now, without the loop: this reading counts. The caller wipes `text` (io_secret_free). */
void io_secret_watch_read(struct io_secret_watch *w);
/* Begins to read it again when it is time. */
void io_secret_watch_tick(struct io_secret_watch *w, uv_loop_t *loop, uint64_t now_ms);
/* No more reading; one under way ends with the loop. */
void io_secret_watch_stop(struct io_secret_watch *w);
/* The loop has ended, or never ran. */
void io_secret_watch_free(struct io_secret_watch *w);

#endif
