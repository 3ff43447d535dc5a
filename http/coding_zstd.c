/* zstd, by libzstd. */
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "http/coding_internal.h"

enum {
    ZSTD_WINDOW_LOG = 23,
    HEADER_MAX = 18, /* bytes before a frame's first block (RFC 8878, section 3.1.1) */
};
_Static_assert(HTTP_CODING_WINDOW_MAX == 1 << ZSTD_WINDOW_LOG, "the same in two words");

struct zstd {
    ZSTD_DCtx *z;
    unsigned begun; /* bytes of the current frame so far, up to HEADER_MAX */
    bool skippable; /* the first byte says that the current frame is skippable */
};

void *http_zstd_new(void)
{
    struct zstd *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->z = ZSTD_createDCtx();
    if (s->z == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(s->z, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG))) {
        http_zstd_free(s);
        return NULL;
    }
    return s;
}

void http_zstd_free(void *state)
{
    struct zstd *s = state;
    (void)ZSTD_freeDCtx(s->z);
    free(s);
}

static int error_of(size_t result)
{
    switch (ZSTD_getErrorCode(result)) {
    case ZSTD_error_frameParameter_windowTooLarge:
        return ERR_RANGE;
    case ZSTD_error_memory_allocation:
        return ERR_NOMEM;
    default:
        return ERR_SYNTAX;
    }
}

/* True if the next byte fits a frame's magic number of RFC 8878. The library may also decode older
 * formats, which only attackers would send. */
static bool is_magic(struct zstd *s, unsigned char c)
{
    static const unsigned char frame[4] = {0x28, 0xb5, 0x2f, 0xfd};
    static const unsigned char skippable[4] = {0x50, 0x2a, 0x4d, 0x18}; /* the first byte is 0x50 to
                                                                         * 0x5f */
    if (s->begun == 0) {
        s->skippable = (c & 0xf0) == skippable[0];
        return s->skippable || c == frame[0];
    }
    return s->begun >= 4 || c == (s->skippable ? skippable : frame)[s->begun];
}

int http_zstd_next(void *state, struct slice *in, char *out, size_t size, size_t *made,
                   bool *between)
{
    struct zstd *s = state;
    ZSTD_inBuffer from = {in->at, in->len, 0};
    ZSTD_outBuffer to = {.size = size};
    to.dst = out;
    if (s->begun < HEADER_MAX && in->len > 0) {
        /* Feeds the header byte by byte: given a whole frame, the library decodes in another way,
         * with other checks of the window and size. */
        if (!is_magic(s, (unsigned char)in->at[0]))
            return ERR_SYNTAX;
        from.size = 1;
    }
    size_t left = ZSTD_decompressStream(s->z, &to, &from); /* stops at the end of a frame at the
                                                              latest */
    *made = to.pos;
    *in = slice_skip(*in, from.pos);
    if (ZSTD_isError(left))
        return error_of(left);
    if (from.pos == 0 && to.pos == 0)
        return ERR_OK;
    *between = left == 0;
    if (left == 0)
        s->begun = 0;
    else if (s->begun < HEADER_MAX)
        s->begun += (unsigned)from.pos;
    return ERR_OK;
}

size_t http_zstd_memory(const void *state)
{
    const struct zstd *s = state;
    return sizeof *s + ZSTD_sizeof_DCtx(s->z);
}
