#include "node/io/tls_files.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/secret_file.h"
#include "node/io/tls.h"

_Static_assert((int)TLS_MESSAGE == (int)IO_SECRET_MESSAGE, "one message serves both");

static bool digest(const struct tls_files *f, const struct buf *texts, unsigned char *out)
{
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool good = md != NULL && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;
    for (unsigned i = 0; i < f->count && good; i++) {
        uint64_t len = texts[i].len;
        good = EVP_DigestUpdate(md, &len, sizeof len) == 1 &&
               EVP_DigestUpdate(md, texts[i].at, texts[i].len) == 1;
    }
    good = good && EVP_DigestFinal_ex(md, out, NULL) == 1;
    EVP_MD_CTX_free(md);
    return good;
}

static bool read_texts(struct tls_files *f, struct buf *texts)
{
    for (unsigned i = 0; i < f->count; i++) {
        const struct tls_file *file = &f->at[i];
        struct io_secret secret = {
            .setting = file->setting,
            .path = file->path,
            .bytes_max = file->cas ? TLS_CA_BYTES_MAX : TLS_FILE_BYTES_MAX,
            .long_advice = file->cas ? "is too long, want at most 4 MiB of PEM"
                                     : "is too long, want at most 1 MiB of PEM",
            .regular = true,
        };
        bool others = false;
        buf_init(&texts[i], secret.bytes_max + 1);
        if (io_secret_read(&secret, &texts[i], &others, f->message) != 0)
            return false;
        f->readable |= others && file->secret;
    }
    return true;
}

/* One reading, in any thread. `at_once`: it need not be seen twice. */
static void reading(struct tls_files *f, bool at_once)
{
    static const char no_memory[] = "out of memory";
    unsigned char now[TLS_DIGEST_BYTES];
    struct buf *texts = calloc(f->count, sizeof *texts);
    f->message[0] = '\0';
    f->readable = false;
    f->made = NULL;
    bool good = texts != NULL && read_texts(f, texts) && digest(f, texts, now);
    if (good && memcmp(now, f->used, sizeof now) != 0) {
        bool settled = at_once || memcmp(now, f->seen, sizeof now) == 0;
        if (settled) /* tried again each time: what was wrong may have been no memory */
            f->made = f->make(f, texts, f->message);
        else /* as it was */
            memcpy(f->message, f->told, sizeof f->message);
        if (f->made != NULL)
            memcpy(f->used, now, sizeof now);
        memcpy(f->seen, now, sizeof now);
    } else if (!good && f->message[0] == '\0') {
        memcpy(f->message, no_memory, sizeof no_memory);
    }
    for (unsigned i = 0; texts != NULL && i < f->count; i++)
        io_secret_free(&texts[i]);
    free(texts);
}

/* What came of it, in the loop. */
static void taken(struct tls_files *f)
{
    if (f->readable && !f->warned)
        log_event(f->log, LOG_WARN, "tls_key_readable", LOG_CSTR("setting", f->at[0].setting),
                  LOG_CSTR("want", "nobody but grapevine to read its keys: chmod o-rwx"));
    f->warned = f->readable;
    if (f->made != NULL)
        f->take(f->context, f->made);
    if (f->message[0] != '\0' && strcmp(f->message, f->told) != 0)
        log_event(f->log, LOG_ERROR, "tls_files_refused", LOG_CSTR("error", f->message),
                  LOG_CSTR("effect", "what was read before stays in use"));
    else if (f->made != NULL || (f->message[0] == '\0' && f->told[0] != '\0'))
        log_event(f->log, LOG_INFO, "tls_files_read", LOG_CSTR("setting", f->at[0].setting),
                  LOG_CSTR("file", f->at[0].path), LOG_BOOL("changed", f->made != NULL));
    f->made = NULL;
    memcpy(f->told, f->message, sizeof f->told);
}

int tls_files_open(struct tls_files *f, char *message)
{
    reading(f, true);
    if (f->message[0] != '\0') {
        memcpy(message, f->message, sizeof f->message);
        return ERR_NOT_FOUND;
    }
    taken(f);
    return 0;
}

static void on_work(uv_work_t *work)
{
    reading(work->data, false);
}

static void on_worked(uv_work_t *work, int status)
{
    struct tls_files *f = work->data;
    f->busy = false;
    if (status == 0 && !f->stopped)
        taken(f);
    else if (status == 0 && f->made != NULL)
        f->drop(f->made);
    f->made = NULL;
}

void tls_files_tick(struct tls_files *f, uv_loop_t *loop, uint64_t now_ms)
{
    if (f->count == 0 || f->busy || f->stopped || now_ms < f->due_ms)
        return;
    f->due_ms = now_ms + TLS_FILES_INTERVAL_MS;
    f->work.data = f;
    f->busy = uv_queue_work(loop, &f->work, on_work, on_worked) == 0;
}

void tls_files_stop(struct tls_files *f)
{
    f->stopped = true;
    if (f->busy)
        (void)uv_cancel((uv_req_t *)&f->work);
}

void tls_files_free(struct tls_files *f)
{
    CHECK(!f->busy);
}
