#include "http/coding.h"

#include <stdlib.h>

#include "base/check.h"
#include "http/coding_internal.h"

struct kind {
    const char *name;
    void *(*begin)(void);
    void (*end)(void *state);
    int (*next)(void *state, struct slice *in, char *out, size_t size, size_t *made, bool *between);
    size_t (*memory)(const void *state);
};

static const struct kind kinds[HTTP_CODINGS] = {
    [HTTP_CODING_GZIP] = {"gzip", http_gzip_new, http_gzip_free, http_gzip_next, http_gzip_memory},
    [HTTP_CODING_ZSTD] = {"zstd", http_zstd_new, http_zstd_free, http_zstd_next, http_zstd_memory},
};

struct http_decoder {
    const struct kind *kind;
    void *state;      /* owned */
    uint64_t in, out; /* bytes so far */
    bool trusted;
    bool between; /* the input so far ends with a complete member or frame */
};

/* The coding with this name, an element of Content-Encoding. */
static enum http_coding coding_named(struct slice name)
{
    if (name.len == 0 || slice_equal_nocase(name, SLICE("identity")))
        return HTTP_CODING_NONE;
    if (slice_equal_nocase(name, SLICE("gzip")) || slice_equal_nocase(name, SLICE("x-gzip")))
        return HTTP_CODING_GZIP; /* RFC 9110, section 8.4.1.3 */
    return slice_equal_nocase(name, SLICE("zstd")) ? HTTP_CODING_ZSTD : HTTP_CODING_OTHER;
}

enum http_coding http_coding_of(const struct http_head *h)
{
    enum http_coding all = HTTP_CODING_NONE;
    for (unsigned i = h->first[HTTP_CONTENT_ENCODING]; i != 0 && i <= h->field_count; i++) {
        struct slice rest = h->fields[i - 1].value;
        if (h->fields[i - 1].id != HTTP_CONTENT_ENCODING)
            continue;
        while (rest.len > 0) {
            enum http_coding one = coding_named(slice_trim(slice_cut(&rest, ',')));
            if (one != HTTP_CODING_NONE)
                all = all == HTTP_CODING_NONE ? one : HTTP_CODING_OTHER;
        }
    }
    return all;
}

const char *http_coding_name(enum http_coding coding)
{
    return kinds[coding].name != NULL ? kinds[coding].name : "";
}

int http_decoder_new(struct http_decoder **out, enum http_coding coding, bool trusted)
{
    CHECK(kinds[coding].begin != NULL);
    struct http_decoder *d = malloc(sizeof *d);
    if (d == NULL)
        return ERR_NOMEM;
    *d = (struct http_decoder){.kind = &kinds[coding], .trusted = trusted, .between = true};
    d->state = d->kind->begin();
    if (d->state == NULL) {
        free(d);
        return ERR_NOMEM;
    }
    *out = d;
    return ERR_OK;
}

void http_decoder_free(struct http_decoder *d)
{
    if (d == NULL)
        return;
    d->kind->end(d->state);
    free(d);
}

static bool exceeds(const struct http_decoder *d)
{
    return !d->trusted && d->out > HTTP_CODING_FREE_BYTES && d->out / HTTP_CODING_RATIO_MAX > d->in;
}

int http_decoder_next(struct http_decoder *d, struct slice *in, char *out, size_t size,
                      size_t *made)
{
    *made = 0;
    for (;;) {
        struct slice before = *in;
        size_t n = 0;
        int err = d->kind->next(d->state, in, out + *made, size - *made, &n, &d->between);
        d->in += before.len - in->len;
        d->out += n;
        *made += n;
        CHECK(*made <= size && in->len <= before.len);
        if (err != 0)
            return err;
        if (exceeds(d))
            return ERR_LIMIT;
        if (*made == size || in->len == 0)
            return ERR_OK;
        if (n == 0 && in->len == before.len) /* no progress: the format is wrong */
            return ERR_SYNTAX;
    }
}

int http_decoder_end(const struct http_decoder *d)
{
    return d->between && (d->in > 0 || d->trusted) ? ERR_OK : ERR_SYNTAX;
}

size_t http_decoder_memory(const struct http_decoder *d)
{
    return sizeof *d + d->kind->memory(d->state);
}
