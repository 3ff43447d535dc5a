#include "node/io/client_keys.h"

#include <stdlib.h>
#include <string.h>

#include "node/io/secret_watch.h"

struct client_keys {
    struct log *log;
    struct access *access;
    struct io_secret_watch watch;
    /* Of the thread that reads, while it does. */
    struct access_digest text; /* of the last reading */
    bool has_text;
    bool again;                 /* the same text as in the last reading, */
    struct access_table *table; /* else what it says */
    int err;                    /* of that text */
    char wrong[ACCESS_MESSAGE_BYTES];
    char complained[IO_SECRET_MESSAGE]; /* what the log has; empty: the file is good */
    unsigned keys, names;               /* in use */
};

/* In the thread of the pool. */
static void on_read(void *context)
{
    struct client_keys *k = context;
    struct io_secret_watch *w = &k->watch;
    if (w->err != 0)
        return;
    struct access_digest text = access_digest_of(buf_slice(&w->text));
    k->again = k->has_text && access_digest_equal(&text, &k->text);
    if (k->again)
        return;
    k->text = text;
    k->has_text = true;
    k->err = access_table_create(&k->table, buf_slice(&w->text), k->wrong);
}

static void complain(struct client_keys *k)
{
    access_refused(k->access, true);
    if (strcmp(k->complained, k->watch.message) == 0)
        return;
    (void)memcpy(k->complained, k->watch.message, sizeof k->complained);
    log_event(k->log, LOG_ERROR, "client_keys_refused", LOG_CSTR("error", k->complained),
              LOG_CSTR("effect", "the keys stay as they were"));
}

static void take(void *context)
{
    struct client_keys *k = context;
    struct io_secret_watch *w = &k->watch;
    if (w->err == 0 && k->err != 0)
        w->err = io_secret_fail(&w->file, w->message, k->wrong);
    if (w->err != 0) {
        complain(k);
        return;
    }
    bool changed = k->table != NULL;
    bool mended = k->complained[0] != '\0';
    k->complained[0] = '\0';
    access_refused(k->access, false);
    if (!changed && !mended)
        return;
    if (changed) {
        k->keys = k->table->count;
        k->names = k->table->keys_count;
        access_take(k->access, k->table);
    }
    k->table = NULL;
    log_event(k->log, LOG_INFO, "client_keys_read", LOG_CSTR("file", w->file.path),
              LOG_UINT("keys", k->keys), LOG_UINT("names", k->names), LOG_BOOL("changed", changed));
}

int client_keys_open(struct client_keys **out, const char *path, struct log *log, char *message)
{
    struct client_keys *k = calloc(1, sizeof *k);
    if (k == NULL || access_create(&k->access) != 0) {
        free(k);
        (void)strcpy(message, err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    k->log = log;
    k->watch.context = k;
    k->watch.read = on_read;
    k->watch.taken = take;
    k->watch.file = (struct io_secret){
        .setting = "client-keys-file",
        .path = path,
        .bytes_max = ACCESS_FILE_BYTES_MAX,
        .long_advice = "is too long, want at most 16 MiB",
        .regular = true,
    };
    io_secret_watch_read(&k->watch);
    int err = k->watch.err;
    if (err == 0 && k->err != 0)
        err = io_secret_fail(&k->watch.file, k->watch.message, k->wrong);
    if (err != 0)
        (void)memcpy(message, k->watch.message, IO_SECRET_MESSAGE);
    else
        take(k);
    io_secret_free(&k->watch.text);
    if (err != 0) {
        client_keys_free(k);
        return err;
    }
    *out = k;
    return 0;
}

bool client_keys_refused(const struct client_keys *k)
{
    return k != NULL && k->complained[0] != '\0';
}

struct access *client_keys_access(const struct client_keys *k)
{
    return k->access;
}

void client_keys_tick(struct client_keys *k, uv_loop_t *loop, uint64_t now_ms)
{
    io_secret_watch_tick(&k->watch, loop, now_ms);
}

void client_keys_stop(struct client_keys *k)
{
    io_secret_watch_stop(&k->watch);
}

void client_keys_free(struct client_keys *k)
{
    if (k == NULL)
        return;
    io_secret_watch_free(&k->watch);
    access_table_destroy(k->table);
    access_destroy(k->access);
    free(k);
}
