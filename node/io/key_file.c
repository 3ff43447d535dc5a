#include "node/io/key_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/io/secret_watch.h"

const struct key_file_kind key_file_replicas = {"replica-api-key-file", "replica_key_readable",
                                                "replica_key_refused", "replica_key_read"};
const struct key_file_kind key_file_admin = {"admin-token-file", "admin_token_readable",
                                             "admin_token_refused", "admin_token_read"};
const struct key_file_kind key_file_admin_read = {"admin-read-token-file", "admin_token_readable",
                                                  "admin_token_refused", "admin_token_read"};

struct key_file {
    const struct key_file_kind *kind;
    struct log *log;
    struct io_secret_watch watch;
    bool complained;     /* that it cannot be used now */
    bool warned_of_mode; /* that others may read it */
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

/* Takes what was read. */
static void take(void *context)
{
    struct key_file *k = context;
    struct io_secret_watch *r = &k->watch;
    struct slice key = {0};
    const char *wrong = r->err == 0 ? key_file_parse(buf_slice(&r->text), &key) : NULL;
    if (wrong != NULL)
        r->err = io_secret_fail(&r->file, r->message, wrong);
    if (r->others_read && !k->warned_of_mode)
        log_event(k->log, LOG_WARN, k->kind->readable, LOG_CSTR("file", r->file.path),
                  LOG_CSTR("want", "nobody but grapevine to read it: chmod o-rwx"));
    k->warned_of_mode = r->others_read;
    bool is_new = r->err == 0 && !slice_equal(key, slice_of(k->key, k->len));
    if (is_new) {
        explicit_bzero(k->key, sizeof k->key);
        memcpy(k->key, key.at, key.len);
        k->len = key.len;
        k->version++;
    }
    if (r->err != 0 && k->version > 0 && !k->complained)
        log_event(k->log, LOG_ERROR, k->kind->refused, LOG_CSTR("error", r->message),
                  LOG_CSTR("effect", "it stays as it was"));
    else if (is_new || (r->err == 0 && k->complained))
        log_event(k->log, LOG_INFO, k->kind->read, LOG_CSTR("file", r->file.path),
                  LOG_BOOL("changed", is_new));
    k->complained = r->err != 0;
}

int key_file_open(struct key_file **out, const struct key_file_kind *kind, const char *path,
                  struct log *log, char *message)
{
    struct key_file *k = calloc(1, sizeof *k);
    if (k == NULL) {
        (void)strcpy(message, err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    k->kind = kind;
    k->log = log;
    k->watch.context = k;
    k->watch.taken = take;
    k->watch.file = (struct io_secret){
        .setting = kind->setting,
        .path = path,
        .bytes_max = 2 * KEY_FILE_BYTES_MAX,
        .long_advice = "is too long, want one line of at most 4096 bytes",
        .regular = true,
    };
    io_secret_watch_read(&k->watch);
    take(k);
    int err = k->watch.err;
    io_secret_free(&k->watch.text);
    if (err != 0) {
        (void)memcpy(message, k->watch.message, IO_SECRET_MESSAGE);
        key_file_free(k);
        return err;
    }
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

void key_file_tick(struct key_file *k, uv_loop_t *loop, uint64_t now_ms)
{
    io_secret_watch_tick(&k->watch, loop, now_ms);
}

void key_file_stop(struct key_file *k)
{
    io_secret_watch_stop(&k->watch);
}

void key_file_free(struct key_file *k)
{
    if (k == NULL)
        return;
    io_secret_watch_free(&k->watch);
    explicit_bzero(k, sizeof *k);
    free(k);
}
