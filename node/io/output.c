#include "node/io/output.h"

#include "base/check.h"
#include "http/chunked.h"

enum {
    PIECES_MAX = 60,
    JOIN_BYTES_MAX = 16384, /* up to here copying is cheaper than a list of pieces for the kernel */
};

static struct {
    const struct exchange *owner; /* NULL: nothing is gathered */
    bool has_head;
    unsigned count;
    size_t bytes;
    uv_buf_t pieces[PIECES_MAX];
} gathered;

static void claim(const struct exchange *x)
{
    CHECK(gathered.owner == NULL || gathered.owner == x);
    gathered.owner = x;
}

void output_discard(struct exchange *x)
{
    if (gathered.owner != x)
        return;
    gathered.owner = NULL;
    gathered.has_head = false;
    gathered.count = 0;
    gathered.bytes = 0;
}

void output_head(struct exchange *x, const struct http_head *head,
                 const struct http_forward_response *how)
{
    claim(x);
    struct buf *out = &x->shell->scratch;
    buf_clear(out);
    gathered.has_head = http_forward_response_write(out, head, how) == 0;
}

static void write_out(struct exchange *x, bool last)
{
    uv_buf_t iov[PIECES_MAX + 4];
    unsigned n = 0;
    char chunk[HTTP_CHUNK_HEAD_MAX];
    bool chunked = x->out_framing == HTTP_BODY_CHUNKED && !x->head_request;
    size_t total = gathered.bytes;
    if (gathered.has_head) {
        const struct buf *head = &x->shell->scratch;
        iov[n++] = uv_buf_init(head->at, (unsigned)head->len);
        total += head->len;
    }
    if (gathered.bytes > 0) {
        if (chunked)
            iov[n++] = uv_buf_init(chunk, (unsigned)http_chunk_head_write(chunk, gathered.bytes));
        memcpy(&iov[n], gathered.pieces, gathered.count * sizeof iov[0]);
        n += gathered.count;
        if (chunked && !last)
            iov[n++] = uv_buf_init((char *)HTTP_CHUNK_END, sizeof HTTP_CHUNK_END - 1);
    }
    if (chunked && last) {
        static const char end[] = HTTP_CHUNK_END HTTP_CHUNK_LAST;
        bool data = gathered.bytes > 0;
        iov[n++] = data ? uv_buf_init((char *)end, sizeof end - 1)
                        : uv_buf_init((char *)HTTP_CHUNK_LAST, sizeof HTTP_CHUNK_LAST - 1);
    }
    static char joined[JOIN_BYTES_MAX];
    if (n > 1 && total <= JOIN_BYTES_MAX - sizeof chunk - sizeof HTTP_CHUNK_END HTTP_CHUNK_LAST) {
        size_t len = 0;
        for (unsigned i = 0; i < n; i++) {
            memcpy(joined + len, iov[i].base, iov[i].len);
            len += iov[i].len;
        }
        iov[0] = uv_buf_init(joined, (unsigned)len);
        n = 1;
    }
    output_discard(x);
    if (n == 0)
        return;
    if (!x->answering)
        exchange_on_answering(x);
    x->bytes_out += total;
    client_write(x->client, iov, n);
}

void output_data(struct exchange *x, struct slice bytes)
{
    claim(x);
    if (gathered.count == PIECES_MAX)
        write_out(x, false);
    claim(x);
    gathered.pieces[gathered.count++] = uv_buf_init((char *)bytes.at, (unsigned)bytes.len);
    gathered.bytes += bytes.len;
}

void output_flush(struct exchange *x)
{
    if (gathered.owner == x)
        write_out(x, false);
}

void output_end(struct exchange *x)
{
    claim(x);
    write_out(x, true);
}
