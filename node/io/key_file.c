#include "node/io/key_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "node/io/secret_file.h"

/* What one reading found; the thread that reads touches nothing else. */
struct reading {
    struct io_secret file;
    struct buf text;
    struct slice key; /* in the text */
    int err;
    bool others_read;
    char message[IO_SECRET_MESSAGE];
};

struct key_file {
    struct log *log;
    uv_work_t work;
    struct reading reading;
    bool busy;
    bool stopped;
    bool complained;     /* that it cannot be used now */
    bool warned_of_mode; /* that others may read it */
    uint64_t due_ms;
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
        return "is empty, want one line with the API key of the replicas";
    if (text.len > KEY_FILE_BYTES_MAX)
        return "is too long, want one line of at most 4096 bytes";
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\r' || text.at[i] == '\n')
            return "has more than one line, want one line with the API key of the replicas";
        if (text.at[i] == ' ' || text.at[i] == '\t')
            return "has a space in it, want one line with nothing but the API key of the replicas";
        if (text.at[i] <= ' ' || text.at[i] > '~')
            return "has other than visible ASCII in it, which no header can carry";
    }
    *key = text;
    return NULL;
}

static void read_now(struct reading *r)
{
    r->others_read = false;
    r->err = io_secret_read(&r->file, &r->text, &r->others_read, r->message);
    const char *wrong = r->err == 0 ? key_file_parse(buf_slice(&r->text), &r->key) : NULL;
    if (wrong != NULL)
        r->err = io_secret_fail(&r->file, r->message, wrong);
}

/* Takes what was read, and wipes it. */
static void take(struct key_file *k)
{
    struct reading *r = &k->reading;
    if (r->others_read && !k->warned_of_mode)
        log_event(k->log, LOG_WARN, "replica_key_readable", LOG_CSTR("file", r->file.path),
                  LOG_CSTR("want", "nobody but grapevine to read it: chmod o-rwx"));
    k->warned_of_mode = r->others_read;
    bool is_new = r->err == 0 && !slice_equal(r->key, slice_of(k->key, k->len));
    if (is_new) {
        explicit_bzero(k->key, sizeof k->key);
        memcpy(k->key, r->key.at, r->key.len);
        k->len = r->key.len;
        k->version++;
    }
    if (r->err != 0 && k->version > 0 && !k->complained)
        log_event(k->log, LOG_ERROR, "replica_key_refused", LOG_CSTR("error", r->message),
                  LOG_CSTR("effect", "the key stays as it was"));
    else if (is_new || (r->err == 0 && k->complained))
        log_event(k->log, LOG_INFO, "replica_key_read", LOG_CSTR("file", r->file.path),
                  LOG_BOOL("changed", is_new));
    k->complained = r->err != 0;
    io_secret_free(&r->text);
}

int key_file_open(struct key_file **out, const char *path, struct log *log, char *message)
{
    struct key_file *k = calloc(1, sizeof *k);
    if (k == NULL) {
        (void)strcpy(message, err_text(ERR_NOMEM));
        return ERR_NOMEM;
    }
    k->log = log;
    k->work.data = k;
    k->reading.file = (struct io_secret){
        .setting = "replica-api-key-file",
        .path = path,
        .bytes_max = 2 * KEY_FILE_BYTES_MAX,
        .long_advice = "is too long, want one line of at most 4096 bytes",
        .regular = true,
    };
    read_now(&k->reading);
    int err = k->reading.err;
    take(k);
    if (err != 0) {
        (void)memcpy(message, k->reading.message, IO_SECRET_MESSAGE);
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

static void on_work(uv_work_t *work)
{
    struct key_file *k = work->data;
    read_now(&k->reading);
}

static void on_worked(uv_work_t *work, int status)
{
    struct key_file *k = work->data;
    k->busy = false;
    if (status == 0 && !k->stopped)
        take(k);
    else
        io_secret_free(&k->reading.text);
}

void key_file_tick(struct key_file *k, uv_loop_t *loop, uint64_t now_ms)
{
    if (k->busy || k->stopped || now_ms < k->due_ms)
        return;
    k->due_ms = now_ms + KEY_FILE_INTERVAL_MS;
    k->busy = uv_queue_work(loop, &k->work, on_work, on_worked) == 0;
}

void key_file_stop(struct key_file *k)
{
    k->stopped = true;
    if (k->busy)
        (void)uv_cancel((uv_req_t *)&k->work);
}

void key_file_free(struct key_file *k)
{
    if (k == NULL)
        return;
    CHECK(!k->busy);
    io_secret_free(&k->reading.text);
    explicit_bzero(k, sizeof *k);
    free(k);
}
