#include "node/io/replica_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "node/io/replica_list.h"

struct replica_file {
    struct discover *discover; /* borrowed */
    unsigned source;
    struct io_watch watch;
    struct replica_list list; /* made, but not taken yet */
};

static int make(void *context)
{
    struct replica_file *f = context;
    char wrong[REPLICA_LIST_MESSAGE];
    int err = replica_list_parse(buf_slice(&f->watch.texts[0]), &f->list, wrong);
    if (err != ERR_OK)
        (void)snprintf(f->watch.message, IO_FILE_MESSAGE, "replica-file %.170s:%s",
                       f->watch.files[0].path, wrong);
    return err;
}

static void take(void *context)
{
    struct replica_file *f = context;
    const struct io_watch *w = &f->watch;
    if (w->err != ERR_OK) {
        discover_failed(f->discover, f->source, w->message, w->all->now_ms);
    } else if (w->made) {
        discover_hint(f->discover, f->source, "the file lists no replica");
        /* discover_list() logs errors. */
        DISCARD(
            discover_list(f->discover, f->source, f->list.entries, f->list.count, w->all->now_ms));
        replica_list_free(&f->list);
    } else {
        discover_same(f->discover, f->source, w->all->now_ms);
    }
}

static void take_nothing(void *context)
{
    (void)context;
}

static struct replica_file *new_file(const char *path, struct io_watches *all,
                                     void (*taken)(void *context))
{
    struct replica_file *f = calloc(1, sizeof *f);
    if (f != NULL)
        f->watch = (struct io_watch){
            .all = all,
            .make = make,
            .taken = taken,
            .context = f,
            .count = 1,
            .files[0] = {.setting = "replica-file",
                         .path = path,
                         .bytes_max = REPLICA_LIST_BYTES_MAX,
                         .long_advice = "is too long, want at most 1 MiB"},
        };
    return f;
}

int replica_file_open(struct replica_file **out, const char *path, struct discover *d,
                      struct io_watches *all)
{
    struct replica_file *f = new_file(path, all, take);
    if (f == NULL)
        return ERR_NOMEM;
    int source = discover_source(d, "file", slice_of_cstr(path));
    if (source < 0) {
        free(f);
        return source;
    }
    f->discover = d;
    f->source = (unsigned)source;
    DISCARD(io_watch_read(&f->watch)); /* errors count as the source's failure */
    io_watch_start(&f->watch);
    *out = f;
    return ERR_OK;
}

void replica_file_free(struct replica_file *f)
{
    if (f == NULL)
        return;
    io_watch_free(&f->watch);
    replica_list_free(&f->list);
    free(f);
}

int replica_file_check(const char *path, char *message)
{
    struct replica_file *f = new_file(path, NULL, take_nothing);
    int err = f != NULL ? io_watch_read(&f->watch) : ERR_NOMEM;
    (void)snprintf(message, IO_FILE_MESSAGE, "%s", f != NULL ? f->watch.message : err_text(err));
    replica_file_free(f);
    return err;
}
