/* gzip, by zlib. */
#include <stdlib.h>
#define ZLIB_CONST /* zlib takes the input as const */
#include <zlib.h>

#include "base/check.h"
#include "http/coding_internal.h"

enum { GZIP_WINDOW_BITS = 15 + 16 }; /* 32 KiB, and only the gzip format (inflateInit2) */

struct gzip {
    z_stream z;
    size_t memory;
    bool ended; /* the member is complete: only another member may follow */
};

static voidpf allocate(voidpf opaque, uInt items, uInt size)
{
    struct gzip *g = opaque;
    void *at = calloc(items, size);
    if (at != NULL)
        g->memory += (size_t)items * size; /* nothing is freed before the end */
    return at;
}

static void give_back(voidpf opaque, voidpf at)
{
    (void)opaque;
    free(at);
}

void *http_gzip_new(void)
{
    struct gzip *g = malloc(sizeof *g);
    if (g == NULL)
        return NULL;
    *g = (struct gzip){.z = {.zalloc = allocate, .zfree = give_back, .opaque = g}};
    if (inflateInit2(&g->z, GZIP_WINDOW_BITS) != Z_OK) {
        free(g);
        return NULL;
    }
    return g;
}

void http_gzip_free(void *state)
{
    struct gzip *g = state;
    (void)inflateEnd(&g->z);
    free(g);
}

/* Limits a length to 1 GiB, because zlib counts in 32 bits. */
static uInt at_most(size_t n)
{
    return n < (1u << 30) ? (uInt)n : 1u << 30;
}

int http_gzip_next(void *state, struct slice *in, char *out, size_t size, size_t *made,
                   bool *between)
{
    struct gzip *g = state;
    if (g->ended && in->len > 0) {
        if (inflateReset(&g->z) != Z_OK)
            return ERR_SYNTAX;
        g->ended = false;
    }
    if (g->ended)
        return ERR_OK;
    uInt given = at_most(in->len), room = at_most(size);
    g->z.next_in = (const Bytef *)in->at;
    g->z.avail_in = given;
    g->z.next_out = (Bytef *)out;
    g->z.avail_out = room;
    int result = inflate(&g->z, Z_NO_FLUSH);
    *in = slice_skip(*in, given - g->z.avail_in);
    *made = room - g->z.avail_out;
    g->z.next_in = NULL;
    g->z.next_out = NULL;
    if (result == Z_MEM_ERROR)
        return ERR_NOMEM;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return ERR_SYNTAX; /* also Z_NEED_DICT: gzip has no dictionaries */
    g->ended = result == Z_STREAM_END;
    *between = g->ended;
    return ERR_OK;
}

size_t http_gzip_memory(const void *state)
{
    const struct gzip *g = state;
    return sizeof *g + g->memory;
}
