#include "node/io/secret_watch.h"

#include "base/check.h"
#include "base/err.h"

static void reading(struct io_secret_watch *w, bool at_once)
{
    w->others_read = false;
    w->err = io_secret_read(&w->file, &w->text, &w->others_read, w->message);
    struct slice said = w->err == 0 ? buf_slice(&w->text) : slice_of_cstr(w->message);
    struct access_digest now = access_digest_of(said);
    w->settled = at_once || access_digest_equal(&now, &w->seen);
    w->seen = now;
    if (w->settled && w->read != NULL)
        w->read(w->context);
}

void io_secret_watch_read(struct io_secret_watch *w)
{
    reading(w, true);
}

static void on_work(uv_work_t *work)
{
    reading(work->data, false);
}

static void on_worked(uv_work_t *work, int status)
{
    struct io_secret_watch *w = work->data;
    w->busy = false;
    if (status == 0 && w->settled && !w->stopped)
        w->taken(w->context);
    io_secret_free(&w->text);
}

void io_secret_watch_tick(struct io_secret_watch *w, uv_loop_t *loop, uint64_t now_ms)
{
    if (w->busy || w->stopped || now_ms < w->due_ms)
        return;
    w->due_ms = now_ms + IO_SECRET_INTERVAL_MS;
    w->work.data = w;
    w->busy = uv_queue_work(loop, &w->work, on_work, on_worked) == 0;
}

void io_secret_watch_stop(struct io_secret_watch *w)
{
    w->stopped = true;
    if (w->busy)
        (void)uv_cancel((uv_req_t *)&w->work);
}

void io_secret_watch_free(struct io_secret_watch *w)
{
    CHECK(!w->busy);
    io_secret_free(&w->text);
}
