/* Gathers an answer's bytes for a single write at the end of an event. */
#include "node/proxy/client/client.h"

#include "base/bug.h"
#include "base/check.h"

static struct client_gathered *claim(struct client *c)
{
    struct client_gathered *g = &c->proxy->clients.gathered;
    CHECK(g->owner == NULL || g->owner == c);
    g->owner = c;
    return g;
}

void client_gather_head(struct client *c, const struct http_head *head,
                        const struct http_forward_response *how)
{
    struct client_gathered *g = claim(c);
    struct buf *out = &c->proxy->scratch;
    buf_clear(out);
    g->has_head = http_forward_response_write(out, head, how) == 0;
}

void client_gather(struct client *c, struct slice bytes)
{
    struct client_gathered *g = claim(c);
    if (BUG_RARE(RARE_PIECE))
        return;
    CHECK(g->count < PROXY_PIECES_MAX);
    g->pieces[g->count++] = bytes;
    g->bytes += bytes.len;
}

int client_gather_keep(struct client *c, struct buf *out, size_t *head_bytes)
{
    struct client_gathered *g = claim(c);
    struct slice head = g->has_head ? buf_slice(&c->proxy->scratch) : slice_of("", 0);
    int err = buf_reserve(out, head.len + g->bytes);
    if (err != 0)
        return err;
    *head_bytes += head.len;
    CHECK(buf_append_slice(out, head) == 0);
    for (unsigned i = 0; i < g->count; i++)
        CHECK(buf_append_slice(out, g->pieces[i]) == 0);
    client_discard(c);
    return 0;
}

void client_gather_front(struct client *c, struct slice head, struct slice body)
{
    struct client_gathered *g = claim(c);
    struct buf *scratch = &c->proxy->scratch;
    if (head.len > 0) {
        buf_clear(scratch);
        g->has_head = buf_append_slice(scratch, head) == 0;
    }
    if (body.len == 0)
        return;
    memmove(g->pieces + 1, g->pieces, g->count * sizeof g->pieces[0]);
    g->pieces[0] = body;
    g->count++;
    g->bytes += body.len;
}

void client_discard(struct client *c)
{
    struct client_gathered *g = &c->proxy->clients.gathered;
    if (g->owner != c)
        return;
    g->owner = NULL;
    g->has_head = false;
    g->count = 0;
    g->bytes = 0;
}

/* Copies small pieces into a single buffer, where copying is cheaper than a list of pieces for the
 * kernel. */
static unsigned join(struct proxy *p, struct slice *pieces, unsigned count, size_t total)
{
    if (count <= 1 || total > sizeof p->joined)
        return count;
    size_t len = 0;
    for (unsigned i = 0; i < count; i++) {
        memcpy(p->joined + len, pieces[i].at, pieces[i].len);
        len += pieces[i].len;
    }
    pieces[0] = slice_of(p->joined, len);
    return 1;
}

size_t client_flush(struct client *c, bool chunked, bool last)
{
    static const struct slice chunk_end = SLICE(HTTP_CHUNK_END),
                              chunk_last = SLICE(HTTP_CHUNK_LAST);
    struct proxy *p = c->proxy;
    struct client_gathered *g = claim(c);
    struct slice pieces[PROXY_PIECES_MAX + 5];
    _Static_assert((int)PROXY_PIECES_MAX + 5 <= (int)NET_PIECES_MAX, "head, size, pieces, end");
    char size[HTTP_CHUNK_HEAD_MAX];
    unsigned n = 0;
    if (g->has_head)
        pieces[n++] = buf_slice(&p->scratch);
    if (g->bytes > 0) {
        if (chunked)
            pieces[n++] = slice_of(size, http_chunk_head_write(size, g->bytes));
        memcpy(&pieces[n], g->pieces, g->count * sizeof pieces[0]);
        n += g->count;
        if (chunked)
            pieces[n++] = chunk_end;
    }
    if (chunked && last && !BUG(END_UNTOLD))
        pieces[n++] = chunk_last;
    client_discard(c);
    size_t total = 0;
    for (unsigned i = 0; i < n; i++)
        total += pieces[i].len;
    n = join(p, pieces, n, total);
    if (n > 0)
        client_write(c, pieces, n);
    return total;
}
