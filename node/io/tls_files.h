/* Files that something is made of, read again every TLS_FILES_INTERVAL_MS by a thread of libuv's
 * pool, by their names each time: a link that is swapped, as Kubernetes does with Secrets, is a new
 * file.
 *
 * What is new counts when two readings in a row found the same: certificate and key are two files,
 * and one is written after the other. What nothing can be made of changes nothing, and the log says
 * once what is wrong.
 */
#ifndef NODE_IO_TLS_FILES_H
#define NODE_IO_TLS_FILES_H

#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "node/settings/options.h"

enum { TLS_FILES_MAX = 2 * NODE_TLS_CERTS_MAX, TLS_DIGEST_BYTES = 32 };

struct tls_file {
    const char *setting, *path; /* borrowed */
    bool secret;                /* nobody else is to read it */
    bool cas;                   /* may be large */
};

struct tls_files {
    /* Set before tls_files_open(). */
    unsigned count;
    struct tls_file at[TLS_FILES_MAX];
    /* In any thread: NULL with a message of TLS_MESSAGE bytes. */
    void *(*make)(const struct tls_files *f, const struct buf *texts, char *message);
    /* In the loop: owns it from now on. */
    void (*take)(void *context, void *made);
    void (*drop)(void *made); /* what nobody took */
    void *context;
    struct log *log;

    /* Of tls_files.c. */
    uv_work_t work;
    bool busy, stopped, warned, readable;
    uint64_t due_ms;
    unsigned char used[TLS_DIGEST_BYTES], seen[TLS_DIGEST_BYTES];
    void *made;        /* by the last reading; NULL: nothing new */
    char message[512]; /* what is wrong with the last reading; "": nothing */
    char told[512];    /* what is wrong, as the log has it */
};

/* Reads, makes and takes. ERR_NOT_FOUND with a message of TLS_MESSAGE bytes. */
MUST_USE int tls_files_open(struct tls_files *f, char *message);
void tls_files_tick(struct tls_files *f, uv_loop_t *loop, uint64_t now_ms);
void tls_files_stop(struct tls_files *f);
/* The loop has ended, or never ran. */
void tls_files_free(struct tls_files *f);

#endif
