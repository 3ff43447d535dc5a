#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "node/admin/attention.h"
#include "node/io/tls_internal.h"

enum {
    FILES_CLIENTS = PROXY_PORT_CLIENT,
    FILES_ADMIN = PROXY_PORT_ADMIN,
    FILES_REPLICAS,
    FILES_TICKETS
};

/* --- contents of files ------------------------------------------------------------------------ */

static void take_server(struct tls *t, enum proxy_port port, struct tls_server *server)
{
    tls_server_unref(t->server[port]);
    t->server[port] = server;
    for (unsigned i = 0; i < server->count; i++) {
        int64_t left_s = tls_context_expires_s(server->ctx[i]) - (int64_t)time(NULL);
        if (left_s <= 0)
            log_event(t->log, LOG_WARN, "tls_certificate_expired",
                      LOG_CSTR("file", t->files[port].watch.files[2 * i].path),
                      LOG_INT("expired_s", -left_s),
                      LOG_CSTR("want", "put a new certificate in that file"));
    }
}

static void take_clients(void *context, void *made)
{
    take_server(context, PROXY_PORT_CLIENT, made);
}

static void take_admin(void *context, void *made)
{
    take_server(context, PROXY_PORT_ADMIN, made);
}

static void drop_server(void *made)
{
    tls_server_unref(made);
}

static void take_replicas(void *context, void *made)
{
    struct tls *t = context;
    SSL_CTX_free(t->client);
    t->client = made;
    t->client_version++;
}

static void drop_replicas(void *made)
{
    SSL_CTX_free(made);
}

static int make_of_files(void *context)
{
    struct tls_files *f = context;
    f->made = f->make(&f->watch);
    return f->made != NULL ? 0 : ERR_SYNTAX;
}

static void take_made(void *context)
{
    struct tls_files *f = context;
    const struct io_watch *w = &f->watch;
    if (f->made != NULL)
        f->take(f->context, f->made);
    f->made = NULL;
    if (w->made || w->mended)
        log_event(w->all->log, LOG_INFO, "tls_files_read", LOG_CSTR("setting", w->files[0].setting),
                  LOG_CSTR("file", w->files[0].path), LOG_BOOL("changed", w->made));
}

static void add(struct tls_files *f, const char *setting, const char *path, bool secret)
{
    f->watch.files[f->watch.count++] = (struct io_file){
        .setting = setting,
        .path = path,
        .secret = secret,
        .bytes_max = TLS_FILE_BYTES_MAX,
        .long_advice = "is too long, want at most 1 MiB of PEM",
    };
}

static void add_cas(struct tls_files *f, const char *setting, const char *path)
{
    struct io_file *file = &f->watch.files[f->watch.count];
    add(f, setting, path, false);
    file->bytes_max = TLS_CA_BYTES_MAX;
    file->long_advice = "is too long, want at most 4 MiB of PEM";
}

static void name_files(struct tls *t, struct io_watches *all)
{
    const struct node_options *o = t->options;
    struct tls_files *f = t->files;
    f[FILES_CLIENTS] =
        (struct tls_files){.make = tls_server_make, .take = take_clients, .drop = drop_server};
    f[FILES_ADMIN] =
        (struct tls_files){.make = tls_server_make, .take = take_admin, .drop = drop_server};
    f[FILES_REPLICAS] =
        (struct tls_files){.make = tls_client_make, .take = take_replicas, .drop = drop_replicas};
    f[FILES_TICKETS] = (struct tls_files){
        .make = tls_tickets_make, .take = tls_tickets_take, .drop = tls_tickets_drop};
    for (unsigned i = 0; i < ARRAY_LEN(t->files); i++) {
        f[i].context = i == FILES_TICKETS ? (void *)&t->tickets : t;
        f[i].watch.all = all;
        f[i].watch.readable = "tls_key_readable";
        f[i].watch.refused = "tls_files_refused";
        f[i].watch.make = make_of_files;
        f[i].watch.taken = take_made;
        f[i].watch.context = &f[i];
    }
    for (unsigned i = 0; i < o->tls_cert.count; i++) {
        bool apart = o->tls_key.count > 0; /* else certificate and key are in the same file */
        add(&f[FILES_CLIENTS], "tls-cert", o->tls_cert.at[i], false);
        add(&f[FILES_CLIENTS], apart ? "tls-key" : "tls-cert",
            apart ? o->tls_key.at[i] : o->tls_cert.at[i], true);
    }
    if (o->admin_tls_cert[0] != '\0') {
        add(&f[FILES_ADMIN], "admin-tls-cert", o->admin_tls_cert, false);
        add(&f[FILES_ADMIN], "admin-tls-key", o->admin_tls_key, true);
    }
    if (o->replica_ca_file[0] != '\0')
        add_cas(&f[FILES_REPLICAS], "replica-ca-file", o->replica_ca_file);
    if (o->replica_cert[0] != '\0') {
        add(&f[FILES_REPLICAS], "replica-cert", o->replica_cert, false);
        add(&f[FILES_REPLICAS], "replica-key", o->replica_key, true);
    }
    if (o->tls_ticket_key_file[0] != '\0')
        add(&f[FILES_TICKETS], "tls-ticket-key-file", o->tls_ticket_key_file, true);
}

/* --- OpenSSL's input and output in memory ----------------------------------------------------- */

static int bio_read(BIO *bio, char *out, int len)
{
    struct tls_stream *s = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (s->in.len == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t n = s->in.len < (size_t)len ? s->in.len : (size_t)len;
    memcpy(out, s->in.at, n);
    s->in = slice_skip(s->in, n);
    return (int)n;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
    struct tls *t = ((struct tls_stream *)BIO_get_data(bio))->all;
    BIO_clear_retry_flags(bio);
    size_t room = sizeof t->sealed - t->sealed_len;
    size_t n = room < (size_t)len ? room : (size_t)len;
    if (n == 0) {
        BIO_set_retry_write(bio);
        return -1;
    }
    memcpy(t->sealed + t->sealed_len, bytes, n);
    t->sealed_len += n;
    return (int)n;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_bio(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "grapevine");
    if (method != NULL && BIO_meth_set_read(method, bio_read) == 1 &&
        BIO_meth_set_write(method, bio_write) == 1 && BIO_meth_set_ctrl(method, bio_ctrl) == 1)
        return method;
    BIO_meth_free(method);
    return NULL;
}

/* --- life ------------------------------------------------------------------------------------ */

int tls_open(struct tls **out, const struct node_options *options, struct io_watches *all,
             char *message)
{
    struct tls *t = calloc(1, sizeof *t);
    int err = t != NULL ? 0 : ERR_NOMEM;
    if (err == 0) {
        t->options = options;
        t->log = all->log;
        t->bio = make_bio();
        t->tickets.aes = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
        name_files(t, all);
        err = t->bio == NULL || t->tickets.aes == NULL ? ERR_NOMEM : tls_tickets_own(&t->tickets);
    }
    if (err != 0)
        (void)snprintf(message, IO_FILE_MESSAGE, "TLS: %s", err_text(err));
    for (unsigned i = 0; err == 0 && i < ARRAY_LEN(t->files); i++) {
        struct io_watch *w = &t->files[i].watch;
        if (w->count == 0)
            continue;
        err = io_watch_read(w);
        if (err == 0)
            io_watch_start(w);
        else
            memcpy(message, w->message, IO_FILE_MESSAGE);
    }
    if (err == 0 && t->files[FILES_TICKETS].watch.count > 0)
        t->tickets.own = false;
    if (err != 0) {
        tls_free(t);
        return err;
    }
    *out = t;
    return 0;
}

void tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    CHECK(t->streams == 0);
    for (unsigned i = 0; i < ARRAY_LEN(t->files); i++) {
        struct tls_files *f = &t->files[i];
        io_watch_free(&f->watch);
        if (f->made != NULL)
            f->drop(f->made);
    }
    tls_server_unref(t->server[PROXY_PORT_CLIENT]);
    tls_server_unref(t->server[PROXY_PORT_ADMIN]);
    SSL_CTX_free(t->client);
    tls_tickets_free(&t->tickets);
    BIO_meth_free(t->bio);
    free(t);
}

/* --- time ------------------------------------------------------------------------------------ */

void tls_start(struct tls *t, struct shell *shell)
{
    t->shell = shell;
    tls_due_start(t, tls_stream_run);
}

void tls_tick(struct tls *t, uint64_t now_ms)
{
    tls_tickets_tick(&t->tickets, now_ms);
    uint64_t limit_ms = t->options->tls_handshake_timeout_ms;
    struct tls_stream *s;
    while ((s = t->shaking.first) != NULL && now_ms - s->since_ms >= limit_ms)
        tls_stream_fail(s, TLS_FAILURE_TIMEOUT, "the handshake has not ended");
}

bool tls_waits(const struct tls *t)
{
    return t->shaking.first != NULL;
}

/* --- metrics --------------------------------------------------------------------------------- */

static const char *const sides[TLS_SIDES] = {"clients", "admin", "replicas"};

static void write_counts(const struct tls *t, struct prometheus *p, const char *name,
                         const char *help, size_t offset)
{
    prometheus_family(p, name, help);
    for (unsigned i = 0; i < TLS_SIDES; i++) {
        prometheus_label(p, "side", slice_of_cstr(sides[i]));
        prometheus_value(p, (double)*(const uint64_t *)((const char *)&t->counts[i] + offset));
    }
}

/* Writes the series of a certificate. If this is the first series, writes the family's name and
 * help before it, and sets `*any`. */
static void write_expiry(struct prometheus *p, const struct io_file *file, const SSL_CTX *ctx,
                         bool *any)
{
    if (!*any)
        prometheus_family(p, "tls_certificate_expiry_seconds",
                          "Time until the certificate expires; negative once it has.");
    *any = true;
    prometheus_label(p, "setting", slice_of_cstr(file->setting));
    prometheus_label(p, "file", slice_of_cstr(file->path));
    prometheus_value(p, (double)(tls_context_expires_s(ctx) - (int64_t)time(NULL)));
}

static void write_expiries(const struct tls *t, struct prometheus *p)
{
    bool any = false;
    for (unsigned port = 0; port < ARRAY_LEN(t->server); port++) {
        for (unsigned i = 0; t->server[port] != NULL && i < t->server[port]->count; i++)
            write_expiry(p, &t->files[port].watch.files[2 * i], t->server[port]->ctx[i], &any);
    }
    const struct tls_files *f = &t->files[FILES_REPLICAS];
    if (t->options->replica_cert[0] != '\0')
        write_expiry(p, &f->watch.files[f->watch.count - 2], t->client, &any);
}

/* Two weeks: most issuers renew earlier, so by then a renewal has failed. */
enum { EXPIRES_SOON_DAYS = 14, DAY_S = 86400 };

static void look_at_expiry(struct admin_attention_list *list, const struct io_file *file,
                           const SSL_CTX *ctx)
{
    int64_t left_s = tls_context_expires_s(ctx) - (int64_t)time(NULL);
    const struct admin_attention_facts facts = {.about = slice_of_cstr(file->path),
                                                .n = left_s > 0 ? (uint64_t)left_s / DAY_S : 0};
    if (left_s <= 0)
        admin_attention_add(list, ATTENTION_CERTIFICATE_EXPIRED, &facts);
    else if (left_s < (int64_t)EXPIRES_SOON_DAYS * DAY_S)
        admin_attention_add(list, ATTENTION_CERTIFICATE_EXPIRES, &facts);
}

void tls_attention(const struct tls *t, struct admin_attention_list *list)
{
    if (t == NULL)
        return;
    for (unsigned port = 0; port < ARRAY_LEN(t->server); port++) {
        for (unsigned i = 0; t->server[port] != NULL && i < t->server[port]->count; i++)
            look_at_expiry(list, &t->files[port].watch.files[2 * i], t->server[port]->ctx[i]);
    }
    const struct tls_files *f = &t->files[FILES_REPLICAS];
    if (t->options->replica_cert[0] != '\0')
        look_at_expiry(list, &f->watch.files[f->watch.count - 2], t->client);
}

unsigned tls_files_refused(const struct tls *t)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < ARRAY_LEN(t->files); i++)
        refused += t->files[i].watch.told[0] != '\0';
    return refused;
}

void tls_metrics(const struct tls *t, struct prometheus *p)
{
    write_counts(t, p, "tls_handshakes_total", "Successful TLS handshakes.",
                 offsetof(struct tls_counts, handshakes));
    write_counts(t, p, "tls_resumed_total", "Resumed TLS sessions.",
                 offsetof(struct tls_counts, resumed));
    write_counts(t, p, "tls_truncated_total", "TLS streams that ended without close_notify.",
                 offsetof(struct tls_counts, truncated));
    prometheus_family(p, "tls_failures_total", "Failed TLS streams.");
    for (unsigned i = 0; i < TLS_SIDES; i++) {
        for (unsigned k = 0; k < TLS_FAILURES; k++) {
            prometheus_label(p, "side", slice_of_cstr(sides[i]));
            prometheus_label(p, "reason", slice_of_cstr(tls_failure_name((enum tls_failure)k)));
            prometheus_value(p, (double)t->counts[i].failures[k]);
        }
    }
    const struct prometheus_figure figures[] = {
        {"tls_files_refused", "TLS file sets that are invalid; the old files stay.",
         tls_files_refused(t)},
        {"tls_streams", "Open TLS streams.", (double)t->streams},
        {"tls_handshake_cpu_seconds_total", "Time spent on TLS handshakes.",
         (double)t->handshake_ns / 1e9},
        {"tls_handshakes_late_total", "TLS handshake steps that waited.",
         (double)t->handshakes_late},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
    write_expiries(t, p);
}
