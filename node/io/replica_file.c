#include "node/io/replica_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "node/io/replica_list.h"
#include "node/io/secret_file.h"

/* What one reading found; the thread that reads touches nothing else. */
struct reading {
    struct io_secret file;
    struct buf text;
    int err;
    char message[IO_SECRET_MESSAGE];
};

struct replica_file {
    struct discover *discover; /* borrowed, as the path */
    const char *path;
    unsigned source;
    uv_work_t work;
    struct reading reading;
    bool busy;
    bool stopped;
    uint64_t due_ms;
    struct buf seen;                    /* what the last good reading found */
    bool judged;                        /* that is taken or refused, */
    char refused[REPLICA_FILE_MESSAGE]; /* and this is why; empty: taken */
};

static struct io_secret file_of(const char *path)
{
    return (struct io_secret){
        .setting = "replica-file",
        .path = path,
        .bytes_max = REPLICA_LIST_BYTES_MAX,
        .long_advice = "is too long, want less than 1 MiB",
        .regular = true,
    };
}

static void read_now(struct reading *r)
{
    bool others_read;
    buf_init(&r->text, 0);
    r->err = io_secret_read(&r->file, &r->text, &others_read, r->message);
}

/* Parses it. Why not is in `message`, with the file. */
static int parse(const char *path, struct slice text, struct replica_list *list, char *message)
{
    char wrong[REPLICA_LIST_MESSAGE];
    int err = replica_list_parse(text, list, wrong);
    message[0] = '\0';
    if (err != ERR_OK)
        (void)snprintf(message, REPLICA_FILE_MESSAGE, "replica-file %.200s:%s", path, wrong);
    return err;
}

static void judge(struct replica_file *f, uint64_t now_ms)
{
    struct replica_list list;
    f->judged = true;
    if (parse(f->path, buf_slice(&f->seen), &list, f->refused) == ERR_OK) {
        discover_hint(f->discover, f->source, "the file lists no replica");
        /* Errors are logged there. */
        DISCARD(discover_list(f->discover, f->source, list.entries, list.count, now_ms));
        replica_list_free(&list);
    } else {
        discover_failed(f->discover, f->source, f->refused, now_ms);
    }
}

/* Takes what was read. `at_once`: it need not be read twice. */
static void take(struct replica_file *f, bool at_once, uint64_t now_ms)
{
    struct reading *r = &f->reading;
    if (r->err != ERR_OK) {
        buf_free(&r->text);
        discover_failed(f->discover, f->source, r->message, now_ms);
        return;
    }
    bool same = slice_equal(buf_slice(&r->text), buf_slice(&f->seen));
    if (!same) {
        struct buf text = f->seen;
        f->seen = r->text;
        r->text = text;
        f->judged = false;
    }
    buf_free(&r->text);
    if (!f->judged && (same || at_once))
        judge(f, now_ms);
    else if (f->judged && f->refused[0] != '\0')
        discover_failed(f->discover, f->source, f->refused, now_ms);
    else if (f->judged)
        discover_same(f->discover, f->source, now_ms);
}

int replica_file_open(struct replica_file **out, const char *path, struct discover *d,
                      uint64_t now_ms)
{
    struct replica_file *f = calloc(1, sizeof *f);
    if (f == NULL)
        return ERR_NOMEM;
    int source = discover_source(d, "file", slice_of_cstr(path));
    if (source < 0) {
        free(f);
        return source;
    }
    f->discover = d;
    f->path = path;
    f->source = (unsigned)source;
    f->work.data = f;
    f->reading.file = file_of(path);
    f->due_ms = now_ms + REPLICA_FILE_INTERVAL_MS;
    read_now(&f->reading);
    take(f, true, now_ms);
    *out = f;
    return ERR_OK;
}

static void on_work(uv_work_t *work)
{
    struct replica_file *f = work->data;
    read_now(&f->reading);
}

static void on_worked(uv_work_t *work, int status)
{
    struct replica_file *f = work->data;
    f->busy = false;
    if (status == 0 && !f->stopped)
        take(f, false, uv_now(work->loop));
    else if (status == 0)
        buf_free(&f->reading.text);
}

void replica_file_tick(struct replica_file *f, uv_loop_t *loop, uint64_t now_ms)
{
    if (f->busy || f->stopped || now_ms < f->due_ms)
        return;
    f->due_ms = now_ms + REPLICA_FILE_INTERVAL_MS;
    f->busy = uv_queue_work(loop, &f->work, on_work, on_worked) == 0;
}

void replica_file_stop(struct replica_file *f)
{
    f->stopped = true;
    if (f->busy)
        (void)uv_cancel((uv_req_t *)&f->work);
}

void replica_file_free(struct replica_file *f)
{
    if (f == NULL)
        return;
    CHECK(!f->busy);
    buf_free(&f->seen);
    free(f);
}

int replica_file_check(const char *path, char *message)
{
    struct reading r = {.file = file_of(path)};
    struct replica_list list = {0};
    read_now(&r);
    (void)snprintf(message, REPLICA_FILE_MESSAGE, "%s", r.message);
    int err = r.err;
    if (err == ERR_OK)
        err = parse(path, buf_slice(&r.text), &list, message);
    replica_list_free(&list);
    buf_free(&r.text);
    return err;
}
