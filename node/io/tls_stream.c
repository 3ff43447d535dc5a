/* A TLS stream: handshake, input, end. */
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "http/proxy_header.h"
#include "node/io/tls_internal.h"

enum { HANDSHAKE_RECORD = 22 }; /* ContentType of RFC 8446, section 5.1: the first byte */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes);

static void read_raw(struct tcp_stream *tcp, bool on)
{
    if (on)
        (void)uv_read_start(tcp_uv_of(tcp), on_alloc, on_read);
    else
        (void)uv_read_stop(tcp_uv_of(tcp));
}

/* --- life ------------------------------------------------------------------------------------ */

static struct tls_stream *new_stream(struct tls *t, struct tcp_stream *tcp, SSL_CTX *ctx,
                                     enum tls_side side)
{
    struct tls_stream *s = calloc(1, sizeof *s);
    BIO *bio = s != NULL ? BIO_new(t->bio) : NULL;
    if (bio != NULL)
        s->ssl = SSL_new(ctx);
    if (bio == NULL || s->ssl == NULL) {
        BIO_free(bio);
        free(s);
        ERR_clear_error();
        return NULL;
    }
    BIO_set_data(bio, s);
    BIO_set_init(bio, 1);
    SSL_set_bio(s->ssl, bio, bio);
    SSL_set_app_data(s->ssl, s);
    buf_init(&s->out, TLS_SEALED_BYTES);
    buf_init(&s->more, TLS_SEALED_BYTES);
    buf_init(&s->held, 4 * PROXY_READ_BYTES);
    s->all = t;
    s->tcp = tcp;
    s->side = side;
    s->state = TLS_SHAKING;
    tcp->tls = s;
    t->streams++;
    return s;
}

bool tls_on_port(const struct tls *t, enum proxy_port port)
{
    return t->server[port] != NULL;
}

int tls_accepted(struct tls *t, struct tcp_stream *tcp, enum proxy_port port)
{
    struct tls_server *server = t->server[port];
    struct tls_stream *s = new_stream(t, tcp, server->ctx[0], (enum tls_side)port);
    if (s == NULL)
        return ERR_NOMEM;
    SSL_set_accept_state(s->ssl);
    s->server = server;
    server->refs++;
    s->since_ms = shell_now_ms(tcp->shell);
    tls_link_add(&t->shaking, s, &s->shake);
    return 0;
}

int tls_connects(struct tls *t, struct tcp_stream *tcp, struct tls_host *host)
{
    struct tls_stream *s = new_stream(t, tcp, t->client, TLS_REPLICAS);
    if (s == NULL)
        return ERR_NOMEM;
    SSL_set_connect_state(s->ssl);
    s->host = host;
    s->since_ms = shell_now_ms(tcp->shell);
    ERR_clear_error();
    return tls_host_prepare(host, s->ssl) ? 0 : ERR_NOMEM;
}

void tls_closing(struct tcp_stream *tcp, bool cut)
{
    struct tls_stream *s = tcp->tls;
    tls_link_remove(s, &s->due);
    tls_link_remove(s, &s->shake);
    bool slow = shell_now_ms(tcp->shell) - s->since_ms >= TLS_REPLICA_SLOW_MS;
    if (s->state == TLS_SHAKING && s->side == TLS_REPLICAS && s->looked && slow)
        tls_failure_note(s, TLS_FAILURE_TIMEOUT, "the handshake has not ended");
    if (cut || s->state != TLS_OPEN || s->flushing || s->finished)
        return;
    ERR_clear_error();
    (void)SSL_shutdown(s->ssl);
    uv_buf_t buf = uv_buf_init(s->all->sealed, (unsigned)s->all->sealed_len);
    s->all->sealed_len = 0;
    if (buf.len > 0) /* if the kernel's buffer is full, the peer does not read anyway */
        (void)uv_try_write(tcp_uv_of(tcp), &buf, 1);
}

void tls_stream_free(struct tcp_stream *tcp)
{
    struct tls_stream *s = tcp->tls;
    tls_seal_free(s);
    buf_free(&s->held);
    /* Otherwise OpenSSL treats the session as damaged. */
    SSL_set_shutdown(s->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(s->ssl);
    tls_server_unref(s->server);
    s->all->streams--;
    free(s);
    tcp->tls = NULL;
}

/* --- failures -------------------------------------------------------------------------------- */

static int error_of_replica(enum tls_failure why)
{
    switch (why) {
    case TLS_FAILURE_CLOSED:
        return ERR_UNREACHABLE;
    case TLS_FAILURE_CERTIFICATE:
    case TLS_FAILURE_NAME:
        return ERR_DENIED;
    case TLS_FAILURE_PLAINTEXT:
        return ERR_UNSUPPORTED;
    default:
        return ERR_VERSION;
    }
}

void tls_stream_fail(struct tls_stream *s, enum tls_failure why, const char *detail)
{
    bool shaking = s->state == TLS_SHAKING;
    bool told = s->state == TLS_REFUSED; /* already logged */
    const struct net_events *events = s->tcp->stream.events;
    void *owner = s->tcp->stream.owner;
    tls_link_remove(s, &s->shake);
    tls_link_remove(s, &s->due);
    tls_seal_control(s); /* sends the alert */
    s->state = TLS_BROKEN;
    if (!told)
        tls_failure_note(s, why, detail);
    ERR_clear_error();
    read_raw(s->tcp, false);
    uint64_t now = shell_now_ms(s->tcp->shell);
    if (shaking && s->side == TLS_REPLICAS)
        events->connected(owner, error_of_replica(why), now);
    else
        events->ended(owner, ERR_CLOSED, now);
    if (!s->tcp->closing)
        tls_seal_tell(s);
}

/* Answers HTTP on a TLS port with an error; drops the client's bytes until the client leaves or the
 * time is up. */
static void refuse_plaintext(struct tls_stream *s)
{
    char body[256], answer[512];
    int body_len =
        snprintf(body, sizeof body,
                 "{\"error\":{\"message\":\"This port speaks TLS: use https:// in %s.\","
                 "\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}}",
                 s->side == TLS_CLIENTS ? "the base URL" : "its address (--admin of gvctl)");
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                       "Connection: close\r\nContent-Length: %d\r\n\r\n%s",
                       body_len, body);
    char first = s->in.at[0];
    s->in.len = 0;
    if (first < 'A' || first > 'Z') {
        tls_stream_fail(s, TLS_FAILURE_PLAINTEXT, "what came is no TLS");
        return;
    }
    tls_failure_note(s, TLS_FAILURE_PLAINTEXT, "HTTP without TLS");
    s->state = TLS_REFUSED;
    uv_buf_t buf = uv_buf_init(answer, (unsigned)len);
    (void)uv_try_write(tcp_uv_of(s->tcp), &buf, 1);
    (void)uv_shutdown(&s->tcp->shutdown, tcp_uv_of(s->tcp), NULL);
}

/* --- input ------------------------------------------------------------------------------------ */

/* Passes the load balancer's PROXY header to the owner, once the header is whole. TLS follows. */
static void take_header(struct tls_stream *s)
{
    struct http_proxy_header header;
    struct buf all = s->held;
    s->held = (struct buf){.max = all.max};
    int err = buf_append_slice(&all, s->in);
    s->in.len = 0;
    if (err == 0)
        err = http_proxy_header_parse(buf_slice(&all), &header);
    if (err == ERR_AGAIN) {
        s->held = all;
        return;
    }
    size_t len = err == 0 ? header.bytes : all.len;
    s->state = TLS_SHAKING;
    s->tcp->stream.events->received(s->tcp->stream.owner, slice_of(all.at, len),
                                    shell_now_ms(s->tcp->shell));
    if (!s->tcp->closing && len < all.len) {
        if (buf_append_slice(&s->held, slice_skip(buf_slice(&all), len)) != 0)
            tls_stream_fail(s, TLS_FAILURE_MALFORMED, "out of memory");
        else
            tls_due(s, false);
    }
    buf_free(&all);
}

static void opened(struct tls_stream *s)
{
    struct tls_counts *counts = &s->all->counts[s->side];
    s->state = TLS_OPEN;
    tls_link_remove(s, &s->shake);
    counts->handshakes++;
    counts->resumed += SSL_session_reused(s->ssl) == 1;
    if (s->side == TLS_REPLICAS) {
        s->host->failing = false;
        s->tcp->stream.events->connected(s->tcp->stream.owner, 0, shell_now_ms(s->tcp->shell));
    }
    if (!s->tcp->closing)
        tls_seal_pump(s);
}

static void shake(struct tls_stream *s)
{
    struct tls *t = s->all;
    if (!s->looked && s->side != TLS_REPLICAS && s->in.len > 0) {
        s->looked = true;
        if (s->in.at[0] != HANDSHAKE_RECORD) {
            refuse_plaintext(s);
            return;
        }
    }
    if (t->turn_ns >= TLS_TURN_NS || (t->crowded.first != NULL && !t->crowd_runs)) {
        t->handshakes_late++;
        tls_due(s, true);
        return;
    }
    s->looked = true;
    uint64_t began_ns = uv_hrtime();
    ERR_clear_error();
    int done = SSL_do_handshake(s->ssl);
    int why = done == 1 ? SSL_ERROR_NONE : SSL_get_error(s->ssl, done);
    uint64_t took_ns = uv_hrtime() - began_ns;
    t->turn_ns += took_ns;
    t->handshake_ns += took_ns;
    if (why == SSL_ERROR_NONE || why == SSL_ERROR_WANT_READ)
        tls_seal_control(s);
    if (why == SSL_ERROR_NONE)
        opened(s);
    else if (why != SSL_ERROR_WANT_READ)
        tls_stream_fail(s, tls_failure_of(s), NULL);
}

/* Like SSL_get_error(), but ignores errors of other streams in OpenSSL's queue. */
static int why_not_read(struct tls_stream *s, int answer)
{
    if (SSL_want_read(s->ssl))
        return SSL_ERROR_WANT_READ;
    if ((SSL_get_shutdown(s->ssl) & SSL_RECEIVED_SHUTDOWN) != 0)
        return SSL_ERROR_ZERO_RETURN;
    return SSL_get_error(s->ssl, answer);
}

/* Reads as much as is available and fits. Returns the reason for stopping, as SSL_get_error(): NONE
 * if the room is full. */
static int fill(struct tls_stream *s, char *to, size_t room, size_t *len)
{
    *len = 0;
    while (*len < room && (s->in.len > 0 || SSL_pending(s->ssl) > 0)) {
        size_t n = 0;
        int good = SSL_read_ex(s->ssl, to + *len, room - *len, &n);
        if (good != 1)
            return why_not_read(s, good);
        *len += n;
    }
    return *len == room ? SSL_ERROR_NONE : SSL_ERROR_WANT_READ;
}

/* Delivers received data. Returns false if there is no more at present. */
static bool take_data(struct tls_stream *s)
{
    const struct net_events *events = s->tcp->stream.events;
    void *owner = s->tcp->stream.owner;
    struct slice room = slice_of(NULL, 0);
    if (events->room != NULL)
        room = events->room(owner);
    if (room.len == 0)
        room = slice_of(s->tcp->shell->read_buffer, PROXY_READ_BYTES);
    size_t len;
    int why = fill(s, (char *)room.at, room.len, &len);
    uint64_t now = shell_now_ms(s->tcp->shell);
    tls_seal_control(s); /* OpenSSL's own answers: a key update */
    if (len > 0)
        events->received(owner, slice_of(room.at, len), now);
    if (why == SSL_ERROR_NONE || s->tcp->closing || s->state != TLS_OPEN)
        return why == SSL_ERROR_NONE;
    if (why == SSL_ERROR_ZERO_RETURN) {
        s->peer_done = true;
        read_raw(s->tcp, false);
        events->ended(owner, 0, now);
    } else if (why != SSL_ERROR_WANT_READ) {
        tls_stream_fail(s, TLS_FAILURE_MALFORMED, NULL);
    }
    return false;
}

/* Processes `in`. The rest is kept, and until it is taken no more is read. */
static void take(struct tls_stream *s)
{
    bool more = true;
    if (s->telling) /* first, because `in` may answer the written data */
        tls_seal_tell(s);
    if (s->state == TLS_HEADER)
        take_header(s);
    bool speaks_first = s->side == TLS_REPLICAS && !s->looked;
    if (s->state == TLS_SHAKING && !s->tcp->closing && (s->in.len > 0 || speaks_first))
        shake(s);
    while (more && s->state == TLS_OPEN && s->reading && !s->peer_done && !s->tcp->closing)
        more = take_data(s);
    if (s->state == TLS_REFUSED || s->state == TLS_BROKEN || s->peer_done || s->tcp->closing)
        s->in.len = 0;
    if (s->in.len > 0 && buf_append_slice(&s->held, s->in) != 0)
        tls_stream_fail(s, TLS_FAILURE_MALFORMED, "out of memory");
    s->in.len = 0;
    if (s->tcp->closing || s->state == TLS_BROKEN || s->peer_done)
        return;
    bool waits = s->state != TLS_HEADER && s->held.len > 0;
    read_raw(s->tcp, !waits && (s->state != TLS_OPEN || s->reading));
}

void tls_stream_run(struct tls_stream *s)
{
    struct buf mine = s->held;
    s->held = (struct buf){.max = mine.max};
    s->in = buf_slice(&mine);
    if (s->state == TLS_SHAKING || s->state == TLS_OPEN)
        take(s);
    s->in = slice_of(NULL, 0);
    buf_free(&mine);
    if (s->tcp->closing)
        return;
    tls_seal_pump(s);
    tls_seal_tell(s);
}

/* --- for tcp.c ------------------------------------------------------------------------------- */

void tls_begin(struct tcp_stream *tcp, bool after_header)
{
    struct tls_stream *s = tcp->tls;
    if (after_header)
        s->state = TLS_HEADER;
    read_raw(tcp, true);
    if (s->side == TLS_REPLICAS)
        shake(s);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    const struct tcp_stream *tcp = handle->data;
    *out = uv_buf_init(tcp->tls->all->in, PROXY_READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct tcp_stream *tcp = stream->data;
    struct tls_stream *s = tcp->tls;
    if (n == 0 || tcp->closing)
        return;
    if (n > 0) {
        s->in = slice_of(bytes->base, (size_t)n);
        take(s);
        return;
    }
    bool shaking = s->state == TLS_SHAKING || s->state == TLS_HEADER;
    if (s->state == TLS_OPEN)
        s->all->counts[s->side].truncated++;
    if (shaking || s->state == TLS_REFUSED)
        tls_stream_fail(s, TLS_FAILURE_CLOSED, "the peer closed the connection");
    else if (!s->peer_done && s->state == TLS_OPEN)
        tcp->stream.events->ended(tcp->stream.owner, ERR_CLOSED, shell_now_ms(tcp->shell));
}

void tls_read(struct tcp_stream *tcp, bool on)
{
    struct tls_stream *s = tcp->tls;
    s->reading = on;
    if (s->state != TLS_OPEN || s->peer_done)
        return;
    bool held = s->held.len > 0 || SSL_pending(s->ssl) > 0;
    if (on && held)
        tls_due(s, false);
    read_raw(tcp, on && !held);
}

void tls_finish(struct tcp_stream *tcp)
{
    struct tls_stream *s = tcp->tls;
    s->finished = true;
    if (s->state == TLS_OPEN) {
        ERR_clear_error();
        (void)SSL_shutdown(s->ssl);
        tls_seal_control(s);
    }
    if (!s->flushing)
        (void)uv_shutdown(&tcp->shutdown, tcp_uv_of(tcp), NULL);
}
