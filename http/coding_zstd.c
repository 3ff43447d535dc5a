/* zstd, by its own library. */
#include <stdlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "http/coding_internal.h"

enum { ZSTD_WINDOW_LOG = 23 };
_Static_assert(HTTP_CODING_WINDOW_MAX == 1 << ZSTD_WINDOW_LOG, "the same in two words");

struct zstd {
    ZSTD_DCtx *z;
    unsigned magic; /* bytes of the present frame's magic number that came, up to 4 */
    bool skippable; /* by the first of them */
};

void *coding_zstd_new(void)
{
    struct zstd *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->z = ZSTD_createDCtx();
    if (s->z == NULL ||
        ZSTD_isError(ZSTD_DCtx_setParameter(s->z, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG))) {
        coding_zstd_free(s);
        return NULL;
    }
    return s;
}

void coding_zstd_free(void *state)
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

/* The library may know formats from before RFC 8878 as well, which nobody sends but to try it. */
static bool is_magic(struct zstd *s, struct slice in)
{
    static const unsigned char frame[4] = {0x28, 0xb5, 0x2f, 0xfd};
    static const unsigned char skippable[4] = {0x50, 0x2a, 0x4d, 0x18}; /* to 0x5f */
    for (size_t i = 0; i < in.len && s->magic < 4; i++, s->magic++) {
        unsigned char c = (unsigned char)in.at[i];
        if (s->magic == 0)
            s->skippable = (c & 0xf0) == skippable[0];
        unsigned char want = s->skippable ? skippable[s->magic] : frame[s->magic];
        if (c != want && !(s->magic == 0 && s->skippable))
            return false;
    }
    return true;
}

int coding_zstd_next(void *state, struct slice *in, char *out, size_t size, size_t *made,
                     bool *between)
{
    struct zstd *s = state;
    if (!is_magic(s, *in))
        return ERR_SYNTAX;
    ZSTD_inBuffer from = {in->at, in->len, 0};
    ZSTD_outBuffer to = {out, size, 0};
    size_t left = ZSTD_decompressStream(s->z, &to, &from); /* at most to the end of a frame */
    *made = to.pos;
    *in = slice_skip(*in, from.pos);
    if (ZSTD_isError(left))
        return error_of(left);
    if (from.pos == 0 && to.pos == 0)
        return ERR_OK;
    *between = left == 0;
    if (left == 0)
        s->magic = 0;
    return ERR_OK;
}

size_t coding_zstd_memory(const void *state)
{
    const struct zstd *s = state;
    return sizeof *s + ZSTD_sizeof_DCtx(s->z);
}
