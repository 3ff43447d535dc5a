/* Files that something is made of, read again every IO_WATCH_INTERVAL_MS by a thread of libuv's
 * pool: a file system that hangs delays only the exit. Used for settings, keys, certificates and
 * lists of replicas.
 *
 *   1. A file is opened by its name each time: a link that is swapped, as Kubernetes does with
 *      Secrets and ConfigMaps, is a new file.
 *   2. A reading counts if the one before found the same: a file may be read while it is written,
 *      and of a certificate and its key one is written after the other. The reading that
 *      io_watch_read() or io_watch_ask() makes counts at once.
 *   3. Where nothing can be made of the files, make() is called again with each reading (memory may
 *      have been short). The user keeps what it has.
 *   4. The log says once that everybody may read a secret, and once what is wrong.
 */
#ifndef NODE_IO_WATCH_FILE_H
#define NODE_IO_WATCH_FILE_H

#include <uv.h>

#include "base/log.h"
#include "node/access/digest.h"
#include "node/io/read_file.h"
#include "node/settings/options.h"

enum { IO_WATCH_INTERVAL_MS = 1000, IO_WATCH_FILES_MAX = 2 * NODE_TLS_CERTS_MAX };

/* All that one router watches. */
struct io_watches {
    struct log *log; /* borrowed */
    struct io_watch *first;
    uint64_t now_ms; /* of the last tick */
};

struct io_watch {
    /* Set before the first reading; borrowed, as the names of events. */
    struct io_watches *all;
    const char *readable, *refused; /* names of the events; NULL: the log does not say so */
    struct io_file files[IO_WATCH_FILES_MAX];
    unsigned count; /* of files */
    /* In the thread, of `texts` that are new or were asked for. A negative error with `message`. */
    int (*make)(void *context);
    /* In the loop, of each reading that counts. If it sets `err` and `message`, make()
     * is called again. */
    void (*taken)(void *context);
    void *context;

    /* Of a reading that counts. */
    struct buf texts[IO_WATCH_FILES_MAX]; /* of the files; wiped afterwards */
    int err;
    char message[IO_FILE_MESSAGE];
    bool made;    /* make() has been called, and did not fail */
    bool changed; /* the files are not those that something was last made of */
    bool mended;  /* there was an error before, and there is none now */
    bool answers; /* io_watch_ask() was called before it began */
    /* What is wrong with the files as they are; "": nothing. */
    char told[IO_FILE_MESSAGE];

    /* Of watch_file.c. */
    struct io_watch *next;
    uv_work_t work;
    struct access_digest seen, used; /* of the last reading; of what was made last */
    bool has_seen, has_used;
    bool settled;
    const struct io_file *exposed; /* a secret that everybody may read; NULL: none */
    bool warned;
    bool started, asked, busy;
    uint64_t due_ms;
};

/* Reads, makes and takes now, without the loop. Returns `err`; the user tells what is wrong. */
MUST_USE int io_watch_read(struct io_watch *w);
/* It is read again from now on, until io_watches_stop(). */
void io_watch_start(struct io_watch *w);
/* Begins to read all again for which it is time. */
void io_watches_tick(struct io_watches *all, uv_loop_t *loop, uint64_t now_ms);
/* No more reading; one under way ends with the loop. */
void io_watches_stop(struct io_watches *all);
/* The next tick is the time. False: it has not been started, or was stopped. */
bool io_watch_ask(struct io_watch *w);
/* Whether a reading that was asked for has not been taken yet. */
bool io_watch_is_asked(const struct io_watch *w);
/* The loop has ended, or never ran. */
void io_watch_free(struct io_watch *w);

#endif
