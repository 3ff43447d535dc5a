/* Files parsed into objects, read again every IO_WATCH_INTERVAL_MS by a thread of libuv's pool: a
 * hanging file system delays only the exit. Used for settings, keys, certificates and lists of
 * replicas.
 *
 *   1. A file is opened by name each time: a swapped link, as in Kubernetes' Secrets and
 *      ConfigMaps, is a new file.
 *   2. A reading counts if the one before had the same contents: a file may be read while it is
 *      written, and a certificate and its key are written one after the other. The reading of
 *      io_watch_read() or io_watch_ask() counts at once.
 *   3. If make() fails, it is called again with each reading (memory may have been short). The user
 *      keeps the present object.
 *   4. The log warns once that everybody may read a secret, and reports an error once. */
#ifndef NODE_IO_WATCH_FILE_H
#define NODE_IO_WATCH_FILE_H

#include <uv.h>

#include "base/log.h"
#include "node/access/digest.h"
#include "node/io/read_file.h"
#include "node/settings/options.h"

enum { IO_WATCH_INTERVAL_MS = 1000, IO_WATCH_FILES_MAX = 2 * NODE_TLS_CERTS_MAX };

/* All watched files of a router. */
struct io_watches {
    struct log *log; /* borrowed */
    struct io_watch *first;
    uint64_t now_ms; /* of the last tick */
};

struct io_watch {
    /* Set before the first reading; borrowed, and so are the names of events. */
    struct io_watches *all;
    const char *readable, *refused; /* names of the events; NULL: not logged */
    struct io_file files[IO_WATCH_FILES_MAX];
    unsigned count; /* of files */
    /* Called in the thread, with `texts` that are new or were requested. Returns a negative error
     * with `message`. */
    int (*make)(void *context);
    /* Called in the loop, for each reading that counts. If this sets `err` and `message`, make() is
     * called again. */
    void (*taken)(void *context);
    void *context;

    /* Results of a reading that counts. */
    struct buf texts[IO_WATCH_FILES_MAX]; /* of the files; wiped afterwards */
    int err;
    char message[IO_FILE_MESSAGE];
    bool made;    /* make() was called, and did not fail */
    bool changed; /* the files differ from those of the last object */
    bool mended;  /* the error of earlier readings is gone */
    bool answers; /* io_watch_ask() was called before this reading */
    /* The error in the present files; "": none. */
    char told[IO_FILE_MESSAGE];

    /* Private to watch_file.c. */
    struct io_watch *next;
    uv_work_t work;
    struct access_digest seen, used; /* of the last reading; of the last object */
    bool has_seen, has_used;
    bool settled;
    const struct io_file *exposed; /* a secret that everybody may read; NULL: none */
    bool warned;
    bool started, asked, busy;
    uint64_t due_ms;
};

/* Reads, makes and takes now, without the loop. Returns `err`; the user reports the error. */
MUST_USE int io_watch_read(struct io_watch *w);
/* Starts repeated reading, until io_watches_stop(). */
void io_watch_start(struct io_watch *w);
/* Begins all readings that are due. */
void io_watches_tick(struct io_watches *all, uv_loop_t *loop, uint64_t now_ms);
/* Begins no more readings; a present one ends with the loop. */
void io_watches_stop(struct io_watches *all);
/* Makes the reading due at the next tick. Returns false if not started, or stopped. */
bool io_watch_ask(struct io_watch *w);
/* True until a requested reading has been taken. */
bool io_watch_is_asked(const struct io_watch *w);
/* Called after the loop has ended, or never ran. */
void io_watch_free(struct io_watch *w);

#endif
