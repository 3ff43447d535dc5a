#include "node/io/client_keys.h"

#include <stdlib.h>
#include <string.h>

struct client_keys {
    struct access *access;
    struct io_watch watch;
    struct access_table *table; /* new table from make(), until take() takes it; NULL: none */
    unsigned keys, names;       /* numbers of keys and of their names, in force */
};

static int make(void *context)
{
    struct client_keys *k = context;
    struct io_watch *w = &k->watch;
    char wrong[ACCESS_MESSAGE_BYTES];
    if (access_table_create(&k->table, buf_slice(&w->texts[0]), wrong) == 0)
        return 0;
    return io_file_fail(&w->files[0], w->message, wrong);
}

static void take(void *context)
{
    struct client_keys *k = context;
    const struct io_watch *w = &k->watch;
    access_refused(k->access, w->err != 0);
    if (k->table != NULL) {
        k->keys = k->table->count;
        k->names = k->table->keys_count;
        access_take(k->access, k->table);
        k->table = NULL;
    }
    if (w->made || w->mended)
        log_event(w->all->log, LOG_INFO, "client_keys_read", LOG_CSTR("file", w->files[0].path),
                  LOG_UINT("keys", k->keys), LOG_UINT("names", k->names),
                  LOG_BOOL("changed", w->made));
}

int client_keys_open(struct client_keys **out, const char *path, struct io_watches *all,
                     char *message)
{
    struct client_keys *k = calloc(1, sizeof *k);
    if (k == NULL || access_create(&k->access) != 0) {
        free(k);
        (void)strcpy(message, err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    k->watch = (struct io_watch){
        .all = all,
        .refused = "client_keys_refused",
        .make = make,
        .taken = take,
        .context = k,
        .count = 1,
        .files[0] = {.setting = "client-keys-file",
                     .path = path,
                     .bytes_max = ACCESS_FILE_BYTES_MAX,
                     .long_advice = "is too long, want at most 16 MiB"},
    };
    int err = io_watch_read(&k->watch);
    if (err != 0) {
        (void)memcpy(message, k->watch.message, IO_FILE_MESSAGE);
        client_keys_free(k);
        return err;
    }
    io_watch_start(&k->watch);
    *out = k;
    return 0;
}

bool client_keys_refused(const struct client_keys *k)
{
    return k != NULL && k->watch.told[0] != '\0';
}

struct access *client_keys_access(const struct client_keys *k)
{
    return k->access;
}

void client_keys_free(struct client_keys *k)
{
    if (k == NULL)
        return;
    io_watch_free(&k->watch);
    access_table_destroy(k->table);
    access_destroy(k->access);
    free(k);
}
