#include "node/io/key_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"

const struct key_file_kind key_file_replicas = {"replica-api-key-file", "replica_key_readable",
                                                "replica_key_refused", "replica_key_read"};
const struct key_file_kind key_file_admin = {"admin-token-file", "admin_token_readable",
                                             "admin_token_refused", "admin_token_read"};
const struct key_file_kind key_file_admin_read = {"admin-read-token-file", "admin_token_readable",
                                                  "admin_token_refused", "admin_token_read"};

struct key_file {
    const struct key_file_kind *kind;
    struct io_watch watch;
    struct slice fresh; /* the new key, within the text of the reading */
    unsigned version;
    size_t len;
    char key[KEY_FILE_BYTES_MAX];
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *key_file_parse(struct slice text, struct slice *key)
{
    while (text.len > 0 && is_space(text.at[text.len - 1]))
        text.len--;
    if (text.len == 0)
        return "is empty, want one line with the key or token";
    if (text.len > KEY_FILE_BYTES_MAX)
        return "is too long, want one line of at most 4096 bytes";
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\r' || text.at[i] == '\n')
            return "has more than one line, want one line with the key or token";
        if (text.at[i] == ' ' || text.at[i] == '\t')
            return "has a space in it, want one line with nothing but the key or token";
        if (text.at[i] <= ' ' || text.at[i] > '~')
            return "has other than visible ASCII in it, which no header can carry";
    }
    *key = text;
    return NULL;
}

static int make(void *context)
{
    struct key_file *k = context;
    const char *wrong = key_file_parse(buf_slice(&k->watch.texts[0]), &k->fresh);
    return wrong == NULL ? 0 : io_file_fail(&k->watch.files[0], k->watch.message, wrong);
}

static void take(void *context)
{
    struct key_file *k = context;
    const struct io_watch *w = &k->watch;
    bool is_new = w->made && !slice_equal(k->fresh, slice_of(k->key, k->len));
    if (is_new) {
        explicit_bzero(k->key, sizeof k->key);
        memcpy(k->key, k->fresh.at, k->fresh.len);
        k->len = k->fresh.len;
        k->version++;
    }
    if (is_new || w->mended)
        log_event(w->all->log, LOG_INFO, k->kind->read, LOG_CSTR("file", w->files[0].path),
                  LOG_BOOL("changed", is_new));
}

int key_file_open(struct key_file **out, const struct key_file_kind *kind, const char *path,
                  struct io_watches *all, char *message)
{
    struct key_file *k = calloc(1, sizeof *k);
    if (k == NULL) {
        (void)strcpy(message, err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    k->kind = kind;
    k->watch = (struct io_watch){
        .all = all,
        .readable = kind->readable,
        .refused = kind->refused,
        .make = make,
        .taken = take,
        .context = k,
        .count = 1,
        .files[0] = {.setting = kind->setting,
                     .path = path,
                     .bytes_max = 2 * KEY_FILE_BYTES_MAX,
                     .long_advice = "is too long, want one line of at most 4096 bytes",
                     .secret = true},
    };
    int err = io_watch_read(&k->watch);
    if (err != 0) {
        (void)memcpy(message, k->watch.message, IO_FILE_MESSAGE);
        key_file_free(k);
        return err;
    }
    io_watch_start(&k->watch);
    *out = k;
    return 0;
}

struct slice key_file_key(const struct key_file *k)
{
    return slice_of(k->key, k->len);
}

unsigned key_file_version(const struct key_file *k)
{
    return k->version;
}

void key_file_free(struct key_file *k)
{
    if (k == NULL)
        return;
    io_watch_free(&k->watch);
    explicit_bzero(k, sizeof *k);
    free(k);
}
