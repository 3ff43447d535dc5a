/* Output of a TLS stream. The proxy learns what the kernel accepted, as with a plain stream. Sealed
 * bytes beyond the kernel's room are `ahead`: they count as not taken, and are skipped when the
 * owner queues them. So the proxy never counts unsent bytes as sent, and at most a batch is
 * buffered. */
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/tls_internal.h"

/* Position in the pieces for the next record. */
struct cursor {
    const struct slice *pieces;
    unsigned count, at;
    size_t offset;
};

struct batch {
    unsigned records;
    size_t plain[TLS_BATCH_RECORDS];  /* plain bytes up to the end of each record */
    size_t sealed[TLS_BATCH_RECORDS]; /* sealed bytes up to the end of each record */
};

/* --- to the kernel --------------------------------------------------------------------------- */

static void on_flushed(uv_write_t *request, int status);

/* Sends the bytes in `out`. Returns false if the stream is broken. */
static bool flush(struct tls_stream *s)
{
    uv_buf_t buf = uv_buf_init(s->out.at, (unsigned)s->out.len);
    s->flushing = uv_write(&s->flush, tcp_uv_of(s->tcp), &buf, 1, on_flushed) == 0;
    if (!s->flushing)
        s->state = TLS_BROKEN;
    return s->flushing;
}

static void on_flushed(uv_write_t *request, int status)
{
    struct tls_stream *s = CONTAINER_OF(request, struct tls_stream, flush);
    s->flushing = false;
    s->out.len = 0;
    if (s->tcp->closing)
        return;
    if (status != 0)
        s->state = TLS_BROKEN;
    if (s->state != TLS_BROKEN && s->more.len > 0) {
        struct buf sent = s->out;
        s->out = s->more;
        s->more = sent;
        if (flush(s))
            return;
    }
    tls_seal_pump(s);
    tls_seal_tell(s);
    if (!s->flushing && s->queued == NULL)
        buf_free(&s->out);
    if (!s->flushing && s->finished && !s->tcp->closing)
        (void)uv_shutdown(&s->tcp->shutdown, tcp_uv_of(s->tcp), NULL);
}

/* Sends as much of `sealed` as the kernel accepts at once; the rest follows. Returns the number of
 * bytes accepted, or ERR_CLOSED. */
static ptrdiff_t send_sealed(struct tls_stream *s)
{
    struct tls *t = s->all;
    size_t len = t->sealed_len, sent = 0;
    t->sealed_len = 0;
    if (len == 0)
        return 0;
    if (!s->flushing) {
        uv_buf_t buf = uv_buf_init(t->sealed, (unsigned)len);
        int n = uv_try_write(tcp_uv_of(s->tcp), &buf, 1);
        if (n < 0 && n != UV_EAGAIN)
            s->state = TLS_BROKEN;
        sent = n > 0 ? (size_t)n : 0;
    }
    if (s->state == TLS_BROKEN)
        return ERR_CLOSED;
    if (sent == len)
        return (ptrdiff_t)sent;
    if (buf_append(s->flushing ? &s->more : &s->out, t->sealed + sent, len - sent) != 0) {
        s->state = TLS_BROKEN;
        return ERR_CLOSED;
    }
    return s->flushing || flush(s) ? (ptrdiff_t)sent : ERR_CLOSED;
}

void tls_seal_control(struct tls_stream *s)
{
    (void)send_sealed(s); /* a broken stream shows at the next use */
}

/* --- records ---------------------------------------------------------------------------------- */

/* Returns the bytes of the next record; empty: none. Valid until the next call. */
static struct slice next_record(struct tls *t, struct cursor *c)
{
    size_t len = 0;
    while (c->at < c->count) {
        struct slice piece = slice_skip(c->pieces[c->at], c->offset);
        size_t n = TLS_RECORD_BYTES - len < piece.len ? TLS_RECORD_BYTES - len : piece.len;
        bool alone = len == 0 && (n == TLS_RECORD_BYTES || c->at + 1 == c->count);
        if (!alone)
            memcpy(t->joined + len, piece.at, n);
        len += n;
        c->offset += n;
        if (n == piece.len) {
            c->at++;
            c->offset = 0;
        }
        if (alone && n > 0)
            return slice_of(piece.at, n);
        if (len == TLS_RECORD_BYTES)
            break;
    }
    return slice_of(t->joined, len);
}

/* Seals a batch into `sealed`. Returns false if the stream is broken. */
static bool seal(struct tls_stream *s, struct cursor *c, struct batch *b)
{
    struct tls *t = s->all;
    size_t plain = 0;
    CHECK(t->sealed_len == 0);
    b->records = 0;
    while (b->records < TLS_BATCH_RECORDS) {
        struct slice bytes = next_record(t, c);
        size_t wrote = 0;
        if (bytes.len == 0)
            return true;
        if (SSL_write_ex(s->ssl, bytes.at, bytes.len, &wrote) != 1 || wrote != bytes.len) {
            t->sealed_len = 0;
            s->state = TLS_BROKEN;
            ERR_clear_error();
            return false;
        }
        plain += bytes.len;
        b->plain[b->records] = plain;
        b->sealed[b->records++] = t->sealed_len;
    }
    return true;
}

ptrdiff_t tls_write(struct tcp_stream *tcp, const struct slice *pieces, unsigned count)
{
    struct tls_stream *s = tcp->tls;
    struct cursor c = {.pieces = pieces, .count = count};
    struct batch b;
    size_t done = 0;
    if (s->state == TLS_BROKEN)
        return ERR_CLOSED;
    if (s->state != TLS_OPEN || s->flushing || s->queued != NULL)
        return 0;
    CHECK(s->ahead == 0);
    while (c.at < c.count) {
        if (!seal(s, &c, &b))
            return done > 0 ? (ptrdiff_t)done : ERR_CLOSED;
        if (b.records == 0)
            break;
        ptrdiff_t sent = send_sealed(s);
        if (sent < 0)
            return done > 0 ? (ptrdiff_t)done : ERR_CLOSED;
        size_t whole = 0, plain = b.plain[b.records - 1];
        for (unsigned i = 0; i < b.records && b.sealed[i] <= (size_t)sent; i++)
            whole = b.plain[i];
        done += whole;
        if (whole < plain) {
            s->ahead = plain - whole;
            break;
        }
    }
    return (ptrdiff_t)done;
}

/* --- queued pieces ---------------------------------------------------------------------------- */

/* Skips the queued bytes that are already sealed (`ahead`). */
static void skip_ahead(struct tls_stream *s)
{
    while (s->ahead > 0 && s->queued_at < s->queued_count) {
        size_t left = s->queued[s->queued_at].len - s->queued_offset;
        size_t n = left < s->ahead ? left : s->ahead;
        s->ahead -= n;
        s->queued_offset += n;
        if (n == left) {
            s->queued_at++;
            s->queued_offset = 0;
        }
    }
}

int tls_queue(struct tcp_stream *tcp, const struct slice *pieces, unsigned count)
{
    struct tls_stream *s = tcp->tls;
    if (s->state == TLS_BROKEN)
        return ERR_CLOSED;
    CHECK(s->queued == NULL && count > 0 && count <= NET_PIECES_MAX);
    s->queued = malloc(count * sizeof *s->queued);
    if (s->queued == NULL)
        return ERR_NOMEM;
    memcpy(s->queued, pieces, count * sizeof *pieces);
    s->queued_count = count;
    s->queued_at = 0;
    s->queued_offset = 0;
    s->telling = true;
    skip_ahead(s);
    tls_seal_pump(s);
    if (!s->flushing && s->state != TLS_SHAKING && s->state != TLS_HEADER)
        tls_due(s, false);
    return 0;
}

void tls_seal_pump(struct tls_stream *s)
{
    struct tls *t = s->all;
    struct batch b;
    if (s->state != TLS_OPEN || s->flushing || s->queued == NULL)
        return;
    struct cursor c = {.pieces = s->queued,
                       .count = s->queued_count,
                       .at = s->queued_at,
                       .offset = s->queued_offset};
    bool sealed = seal(s, &c, &b);
    s->queued_at = c.at;
    s->queued_offset = c.offset;
    if (!sealed || b.records == 0)
        return;
    s->out.len = 0;
    if (buf_append(&s->out, t->sealed, t->sealed_len) != 0)
        s->state = TLS_BROKEN;
    t->sealed_len = 0;
    if (s->state != TLS_BROKEN)
        (void)flush(s);
}

void tls_seal_tell(struct tls_stream *s)
{
    bool broken = s->state == TLS_BROKEN;
    /* The kernel may have all bytes before libuv reports it. */
    bool gone = !s->flushing ||
                (s->more.len == 0 && uv_stream_get_write_queue_size(tcp_uv_of(s->tcp)) == 0);
    bool done = gone && s->queued_at == s->queued_count && s->state == TLS_OPEN;
    if (!s->telling || s->tcp->closing || (!broken && !done))
        return;
    s->telling = false;
    free(s->queued);
    s->queued = NULL;
    s->tcp->stream.events->written(s->tcp->stream.owner, broken ? ERR_CLOSED : 0,
                                   shell_now_ms(s->tcp->shell));
}

void tls_seal_free(struct tls_stream *s)
{
    free(s->queued);
    s->queued = NULL;
    buf_free(&s->out);
    buf_free(&s->more);
}
