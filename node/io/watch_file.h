/* Watches files (settings, keys, certificates, lists of replicas) and parses them into objects. A
 * thread of libuv's pool reads them again every IO_WATCH_INTERVAL_MS, so a hanging file system
 * delays only the exit.
 *
 *   1. A file is opened by name each time, so a swapped link, as in Kubernetes' Secrets and
 *      ConfigMaps, is a new file.
 *   2. A reading counts if the reading before had the same contents, because a file may be read
 *      while being written, and certificate and key are written one after the other. The readings
 *      of io_watch_read() and io_watch_ask() count at once.
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
    uint64_t now_ms; /* time of the last tick */
};

struct io_watch {
    /* Set before the first reading; borrowed, and so are the names of events. */
    struct io_watches *all;
    const char *readable, *refused; /* names of the events; NULL: not logged */
    struct io_file files[IO_WATCH_FILES_MAX];
    unsigned count; /* number of files */
    /* Parses `texts` into an object. Called in the thread if the texts are new, or if
     * io_watch_ask() requested the reading. After an error writes `message` and returns a negative
     * error. */
    int (*make)(void *context);
    /* Called in the loop, for each reading that counts. If this sets `err` and `message`, make() is
     * called again with the next reading. */
    void (*taken)(void *context);
    void *context;

    /* Results of a reading that counts. */
    struct buf texts[IO_WATCH_FILES_MAX]; /* the files' contents; wiped afterwards */
    int err;
    char message[IO_FILE_MESSAGE];
    bool made;    /* make() was called, and did not fail */
    bool changed; /* the files differ from those of the last object */
    bool mended;  /* earlier readings had an error, and this reading has none */
    bool answers; /* io_watch_ask() requested this reading */
    /* The error in the present files; "": none. */
    char told[IO_FILE_MESSAGE];

    /* Private to watch_file.c. */
    struct io_watch *next;
    uv_work_t work;
    struct access_digest seen, used; /* digests of the last reading and of the object's texts */
    bool has_seen, has_used;
    bool settled;
    const struct io_file *exposed; /* a secret readable by everybody; NULL: none */
    bool warned;
    bool started, asked, busy;
    uint64_t due_ms;
};

/* Reads the files now, without the loop, and calls make() and taken(). Returns `err`, which the
 * caller reports. */
MUST_USE int io_watch_read(struct io_watch *w);
/* Starts to read repeatedly, until io_watches_stop(). */
void io_watch_start(struct io_watch *w);
/* Begins all due readings. */
void io_watches_tick(struct io_watches *all, uv_loop_t *loop, uint64_t now_ms);
/* Begins no more readings. A present reading ends with the loop. */
void io_watches_stop(struct io_watches *all);
/* Makes a reading due at the next tick. Returns false if the watch is not started, or stopped. */
bool io_watch_ask(struct io_watch *w);
/* Returns true until a reading requested by io_watch_ask() has been taken. */
bool io_watch_is_asked(const struct io_watch *w);
/* Called after the loop has ended, or never ran. */
void io_watch_free(struct io_watch *w);

#endif
