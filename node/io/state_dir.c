#include "node/io/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "base/check.h"
#include "node/cluster/keep.h"
#include "node/io/read_file.h"
#include "node/io/shell.h"

static const char name_whole[] = "state", name_new[] = "state.new", name_last[] = "state.last",
                  name_refused[] = "state.refused";

enum {
    CHUNK_BYTES = 1 << 16, /* most bytes made for a write */
    CHUNK_US = 500,        /* longest time of making bytes for a write */
};

/* A file being written. Until the pool's thread is done, the thread owns this struct. */
struct writing {
    const char *name;
    int folder, fd;
    bool last; /* the last chunk: the file is renamed afterwards */
    int error; /* errno; 0: none so far */
    struct buf chunk;
    uint64_t bytes;
};

struct state_dir {
    const char *path;
    struct log *log;
    int folder;
    struct buf file; /* the file as read at the start */
    struct node_kept kept;
    bool has_kept;
    /* --- the next file --- */
    uv_work_t work;
    struct shell *shell;
    bool busy;
    struct node_keep *keep;
    struct writing writing;
    uint64_t next_ms, began_ms, loop_ns;
    uv_mutex_t ending; /* held while `ended` changes or the pool's thread renames a file: after the
                        * last file of state_dir_stop() no other is renamed */
    bool ended;
    /* --- for metrics --- */
    bool failed; /* the last attempt failed */
    uint64_t files, failures, bytes, written_ms, all_loop_ns;
};

/* --- the folder ------------------------------------------------------------------------------ */

static int fail(const char *path, char *message, const char *what)
{
    const struct io_file f = {.setting = "state-dir", .path = path};
    return io_file_fail(&f, message, what);
}

static int folder_check(const char *path, int folder, char *message)
{
    struct stat status;
    char what[256];
    if (folder < 0 || fstat(folder, &status) != 0)
        return fail(path, message,
                    errno == ENOTDIR ? "is no folder"
                    : errno == EACCES
                        ? "Permission denied: it must be of the user that this process runs as "
                          "(chown), with mode 700"
                        : strerror(errno));
    if (status.st_uid != geteuid()) {
        (void)snprintf(what, sizeof what,
                       "belongs to user %ld, and this process runs as %ld: chown it, or name a "
                       "folder in it, which is made then",
                       (long)status.st_uid, (long)geteuid());
        return fail(path, message, what);
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return fail(path, message, "others may write there: chmod 700");
    if (faccessat(folder, ".", R_OK | W_OK | X_OK, AT_EACCESS) != 0)
        return fail(path, message,
                    errno == EROFS ? "is on a file system that takes no writes"
                                   : "this process may not write there: chmod 700");
    return ERR_OK;
}

static int folder_open(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int state_dir_check(const char *path, char *message)
{
    int folder = folder_open(path);
    if (folder < 0 && errno == ENOENT) /* created at the start */
        return ERR_OK;
    int err = folder_check(path, folder, message);
    if (folder >= 0)
        (void)close(folder);
    return err;
}

static int folder_take(struct state_dir *d, char *message)
{
    d->folder = folder_open(d->path);
    if (d->folder < 0 && errno == ENOENT) {
        char what[256];
        if (mkdir(d->path, S_IRWXU) != 0) {
            (void)snprintf(what, sizeof what,
                           "is not there and cannot be made (%s): make it, with mode 700 and for "
                           "the user that this process runs as",
                           strerror(errno));
            return fail(d->path, message, what);
        }
        d->folder = folder_open(d->path);
    }
    int err = folder_check(d->path, d->folder, message);
    if (err == ERR_OK && flock(d->folder, LOCK_EX | LOCK_NB) != 0)
        err = fail(d->path, message, "another process uses it: each router has its own");
    return err;
}

/* --- reading --------------------------------------------------------------------------------- */

static void refuse(struct state_dir *d, const char *why)
{
    bool aside = renameat(d->folder, name_whole, d->folder, name_refused) == 0;
    log_event(d->log, LOG_WARN, "state_refused", LOG_CSTR("folder", d->path), LOG_CSTR("why", why),
              LOG_CSTR("aside", aside ? name_refused : ""));
}

static const char *file_read(struct state_dir *d, int fd, char *message)
{
    const struct io_file f = {.setting = "state-dir",
                              .path = d->path,
                              .bytes_max = NODE_KEEP_BYTES_MAX,
                              .long_advice = "is larger than any that a router writes"};
    struct stat status;
    const char *why = NULL;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        why = "is no regular file";
    else if (status.st_uid != geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        why = "is not this user's alone: want mode 600";
    if (why != NULL) {
        (void)close(fd);
        return why;
    }
    if (io_file_read_fd(&f, fd, &d->file, NULL, message) != ERR_OK)
        return message;
    d->has_kept = node_kept_read(&d->kept, buf_slice(&d->file), &why) == ERR_OK;
    return d->has_kept ? NULL : why;
}

static void kept_free(struct state_dir *d)
{
    buf_free_wiped(&d->file);
    explicit_bzero(&d->kept, sizeof d->kept);
    d->has_kept = false;
}

int state_dir_open(struct state_dir **out, const char *path, struct log *log, char *message)
{
    struct state_dir *d = calloc(1, sizeof *d);
    if (d == NULL || uv_mutex_init(&d->ending) != 0) {
        free(d);
        return fail(path, message, err_text(ERR_NOMEM));
    }
    d->path = path;
    d->log = log;
    d->folder = -1;
    d->writing.fd = -1;
    int err = folder_take(d, message);
    if (err != ERR_OK) {
        state_dir_free(d);
        return err;
    }
    int fd = openat(d->folder, name_whole, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0) {
        const char *why = file_read(d, fd, message);
        if (why != NULL)
            refuse(d, why);
    } else if (errno != ENOENT) {
        refuse(d, strerror(errno));
    }
    *out = d;
    return ERR_OK;
}

const struct hash_secret *state_dir_secret(const struct state_dir *d)
{
    return d != NULL && d->has_kept && d->kept.alone ? &d->kept.secret : NULL;
}

void state_dir_recall(struct state_dir *d, struct node *node, uint64_t now_ms)
{
    if (d == NULL || !d->has_kept)
        return;
    const char *why = "";
    uint64_t cluster_ms = node_state_cluster_ms(node->state, now_ms);
    uint64_t age_ms = cluster_ms > d->kept.cluster_ms ? cluster_ms - d->kept.cluster_ms : 0;
    int err = node_recall(node, &d->kept, now_ms, &why);
    if (err == ERR_OK)
        log_event(d->log, LOG_INFO, "state_read", LOG_CSTR("folder", d->path),
                  LOG_UINT("age_ms", age_ms), LOG_UINT("bytes", d->file.len));
    else
        refuse(d, why);
    kept_free(d);
}

/* --- writing --------------------------------------------------------------------------------- */

static bool write_all(int fd, struct slice s)
{
    while (s.len > 0) {
        ssize_t n = write(fd, s.at, s.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        s = slice_skip(s, (size_t)n);
    }
    return true;
}

static bool chunk_write(struct writing *w)
{
    if (w->fd < 0) {
        (void)unlinkat(w->folder, w->name, 0);
        w->fd = openat(w->folder, w->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                       S_IRUSR | S_IWUSR);
    }
    return w->fd >= 0 && write_all(w->fd, buf_slice(&w->chunk)) && (!w->last || fsync(w->fd) == 0);
}

static void chunk_put(struct writing *w)
{
    if (!chunk_write(w))
        w->error = errno;
    w->bytes += w->chunk.len;
    buf_clear(&w->chunk);
}

/* Closes the file, and renames or removes it. */
static void writing_end(struct writing *w, bool good)
{
    if (w->fd >= 0)
        (void)close(w->fd);
    w->fd = -1;
    if (good && (renameat(w->folder, w->name, w->folder, name_whole) != 0 || fsync(w->folder) != 0))
        w->error = errno;
    if (!good || w->error != 0)
        (void)unlinkat(w->folder, w->name, 0);
}

static void note(struct state_dir *d, const struct writing *w, uint64_t now_ms)
{
    d->failures += w->error != 0;
    if (w->error != 0 && !d->failed)
        log_event(d->log, LOG_ERROR, "state_not_written", LOG_CSTR("folder", d->path),
                  LOG_CSTR("error", strerror(w->error)));
    if (w->error == 0 && d->failed)
        log_event(d->log, LOG_INFO, "state_written", LOG_CSTR("folder", d->path));
    d->failed = w->error != 0;
    if (w->error != 0)
        return;
    d->files++;
    d->bytes = w->bytes;
    d->written_ms = now_ms > 0 ? now_ms : 1;
}

/* Makes a chunk. Returns 1 for more to come, 0 for the last, or an error. */
static int chunk_make(struct state_dir *d, struct buf *chunk)
{
    uint64_t began = uv_hrtime();
    int more;
    do
        more = node_keep_next(d->keep, chunk);
    while (more == 1 && chunk->len < CHUNK_BYTES && uv_hrtime() - began < CHUNK_US * 1000);
    d->loop_ns += uv_hrtime() - began;
    return more;
}

/* --- in the background ----------------------------------------------------------------------- */

static void on_work(uv_work_t *work)
{
    struct state_dir *d = work->data;
    struct writing *w = &d->writing;
    chunk_put(w);
    if (!w->last)
        return;
    uv_mutex_lock(&d->ending);
    writing_end(w, w->error == 0 && !d->ended);
    uv_mutex_unlock(&d->ending);
}

static void on_worked(uv_work_t *work, int status);

static void go_on(struct state_dir *d)
{
    struct writing *w = &d->writing;
    int more = chunk_make(d, &w->chunk);
    w->last = more == 0;
    if (more < 0)
        w->error = more == ERR_NOMEM ? ENOMEM : ESTALE;
    if (more < 0 || uv_queue_work(d->shell->loop, &d->work, on_work, on_worked) != 0)
        on_worked(&d->work, UV_ECANCELED);
}

static void on_worked(uv_work_t *work, int status)
{
    struct state_dir *d = work->data;
    struct writing *w = &d->writing;
    bool stops = status != 0 || w->error != 0 || d->ended;
    if (!stops && !w->last) {
        go_on(d);
        return;
    }
    if (!w->last || stops)
        writing_end(w, false);
    d->busy = false;
    node_keep_end(d->keep);
    buf_free_wiped(&w->chunk);
    if (d->ended)
        return;
    uint64_t now = shell_now_ms(d->shell), rate_ms = w->bytes * 1000 / STATE_DIR_BYTES_S;
    d->all_loop_ns += d->loop_ns;
    if (w->error != ESTALE) /* ESTALE is no failure: the clock was set back during the writing, and
                             * the next file has the new state */
        note(d, w, now);
    d->next_ms = d->began_ms + (rate_ms > STATE_DIR_PAUSE_MS ? rate_ms : STATE_DIR_PAUSE_MS);
}

void state_dir_tick(struct state_dir *d, struct shell *shell)
{
    if (d == NULL || d->busy || d->ended)
        return;
    uint64_t now = shell_now_ms(shell);
    if (d->next_ms == 0)
        d->next_ms = now + STATE_DIR_PAUSE_MS;
    if (now < d->next_ms)
        return;
    d->next_ms = now + STATE_DIR_PAUSE_MS;
    const struct node_keep_source source = node_remembers(shell->node);
    if (node_keep_begin(&d->keep, &source, now) != ERR_OK)
        return;
    d->shell = shell;
    d->busy = true;
    d->began_ms = now;
    d->loop_ns = 0;
    d->work.data = d;
    d->writing = (struct writing){.name = name_new, .folder = d->folder, .fd = -1};
    go_on(d);
}

/* --- the end --------------------------------------------------------------------------------- */

void state_dir_stop(struct state_dir *d, struct shell *shell)
{
    if (d == NULL || shell->node == NULL)
        return;
    /* A file under way is not renamed any more. */
    uv_mutex_lock(&d->ending);
    d->ended = true;
    uv_mutex_unlock(&d->ending);
    struct node_keep *before = d->keep;
    uint64_t now = shell_now_ms(shell);
    struct writing w = {.name = name_last, .folder = d->folder, .fd = -1};
    const struct node_keep_source source = node_remembers(shell->node);
    if (node_keep_begin(&d->keep, &source, now) != ERR_OK)
        return;
    int more;
    do {
        more = chunk_make(d, &w.chunk);
        w.last = more == 0;
        w.error = more < 0 ? ENOMEM : 0;
        if (w.error == 0)
            chunk_put(&w);
    } while (more == 1 && w.error == 0);
    writing_end(&w, w.error == 0);
    note(d, &w, now);
    node_keep_end(d->keep);
    buf_free_wiped(&w.chunk);
    d->keep = before;
}

void state_dir_free(struct state_dir *d)
{
    if (d == NULL)
        return;
    kept_free(d);
    if (d->folder >= 0)
        (void)close(d->folder);
    uv_mutex_destroy(&d->ending);
    free(d);
}

/* --- metrics --------------------------------------------------------------------------------- */

void state_dir_metrics(const struct state_dir *d, uint64_t now_ms, struct prometheus *p)
{
    static const struct state_dir none;
    d = d != NULL ? d : &none;
    double age_s = d->written_ms > 0 ? (double)(now_ms - d->written_ms) / 1000 : 0;
    const struct prometheus_figure figures[] = {
        {"state_files_total", "State files written.", (double)d->files},
        {"state_failures_total", "State files that could not be written.", (double)d->failures},
        {"state_bytes", "Bytes of the last state file.", (double)d->bytes},
        {"state_age_seconds", "Time since the last state file; 0 if none.", age_s},
        {"state_loop_seconds_total", "Event loop time spent on state files.",
         (double)d->all_loop_ns / 1e9},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
}
