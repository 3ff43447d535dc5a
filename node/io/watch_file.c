#include "node/io/watch_file.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"

static void wipe(struct io_watch *w)
{
    for (unsigned i = 0; i < w->count; i++)
        buf_free_wiped(&w->texts[i]);
}

/* Returns the digest of all texts, or of the error. */
static struct access_digest digest_of(const struct io_watch *w)
{
    struct access_digest each[IO_WATCH_FILES_MAX];
    if (w->err != 0)
        return access_digest_of(slice_of_cstr(w->message));
    for (unsigned i = 0; i < w->count; i++)
        each[i] = access_digest_of(buf_slice(&w->texts[i]));
    return access_digest_of(slice_of((const char *)each, w->count * sizeof each[0]));
}

/* Reads once, in any thread. `counts`: the reading counts even if not seen twice. */
static void reading(struct io_watch *w, bool counts)
{
    w->err = 0;
    w->exposed = NULL;
    for (unsigned i = 0; i < w->count && w->err == 0; i++) {
        bool others_read = false;
        w->err = io_file_read(&w->files[i], &w->texts[i], &others_read, w->message);
        if (others_read && w->files[i].secret)
            w->exposed = &w->files[i];
    }
    struct access_digest now = digest_of(w);
    w->settled = counts || (w->has_seen && access_digest_equal(&now, &w->seen));
    w->seen = now;
    w->has_seen = true;
    w->changed = w->err == 0 && !(w->has_used && access_digest_equal(&now, &w->used));
    w->made = false;
    if (!w->settled || w->err != 0 || !(w->changed || w->answers))
        return;
    w->err = w->make(w->context);
    w->made = w->err == 0;
    if (w->made) {
        w->used = now;
        w->has_used = true;
    }
}

/* Handles a reading that counts, in the loop. `says`: logs errors. */
static void take(struct io_watch *w, bool says)
{
    if (w->exposed != NULL && w->readable != NULL && !w->warned)
        log_event(w->all->log, LOG_WARN, w->readable, LOG_CSTR("setting", w->exposed->setting),
                  LOG_CSTR("file", w->exposed->path),
                  LOG_CSTR("want", "let only grapevine read it: chmod o-rwx"));
    w->warned = w->exposed != NULL;
    w->mended = w->err == 0 && w->told[0] != '\0';
    w->taken(w->context);
    if (w->made && w->err != 0)
        w->has_used = false;
    says = says && w->refused != NULL && (w->answers || strcmp(w->message, w->told) != 0);
    if (w->err != 0 && says)
        log_event(w->all->log, LOG_ERROR, w->refused, LOG_CSTR("error", w->message),
                  LOG_CSTR("effect", "the router keeps what it read before"));
    if (w->err != 0)
        memcpy(w->told, w->message, sizeof w->told);
    else
        w->told[0] = '\0';
}

int io_watch_read(struct io_watch *w)
{
    reading(w, true);
    take(w, false);
    wipe(w);
    return w->err;
}

static void on_work(uv_work_t *work)
{
    struct io_watch *w = work->data;
    reading(w, w->answers);
}

static void on_worked(uv_work_t *work, int status)
{
    struct io_watch *w = work->data;
    w->busy = false;
    if (status == 0 && w->settled && w->started)
        take(w, true);
    wipe(w);
}

void io_watch_start(struct io_watch *w)
{
    w->started = true;
    w->next = w->all->first;
    w->all->first = w;
}

void io_watches_tick(struct io_watches *all, uv_loop_t *loop, uint64_t now_ms)
{
    all->now_ms = now_ms;
    for (struct io_watch *w = all->first; w != NULL; w = w->next) {
        if (w->busy || (!w->asked && now_ms < w->due_ms))
            continue;
        w->due_ms = now_ms + IO_WATCH_INTERVAL_MS;
        w->work.data = w;
        w->answers = w->asked;
        w->busy = uv_queue_work(loop, &w->work, on_work, on_worked) == 0;
        w->asked = w->asked && !w->busy;
    }
}

void io_watches_stop(struct io_watches *all)
{
    for (struct io_watch *w = all->first; w != NULL; w = w->next) {
        w->started = false;
        if (w->busy)
            (void)uv_cancel((uv_req_t *)&w->work);
    }
    all->first = NULL;
}

bool io_watch_ask(struct io_watch *w)
{
    return w->asked = w->started;
}

bool io_watch_is_asked(const struct io_watch *w)
{
    return w->asked || (w->busy && w->answers);
}

void io_watch_free(struct io_watch *w)
{
    CHECK(!w->busy);
    wipe(w);
}
