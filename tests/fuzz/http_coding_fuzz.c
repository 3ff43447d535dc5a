/* Compressed bodies: the output does not depend on the cuts of the body; the output and the
 * decoder's memory stay within bounds. The first byte chooses the coding. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "http/coding.h"

enum {
    OUT_MAX = HTTP_CODING_FREE_BYTES + 256 * 1024,
    /* A window, the decoder's blocks, and the library's memory. */
    MEMORY_MAX = HTTP_CODING_WINDOW_MAX + 1024 * 1024,
};

static int run(enum http_coding coding, struct slice body, size_t step, size_t room, char *out,
               size_t *made)
{
    struct http_decoder *d;
    CHECK(http_decoder_new(&d, coding, false) == 0);
    int err = 0;
    *made = 0;
    while (body.len > 0 && err == 0) {
        struct slice in = slice_of(body.at, body.len < step ? body.len : step);
        body = slice_skip(body, in.len);
        size_t n;
        do {
            if (*made + room > OUT_MAX) {
                http_decoder_free(d);
                return ERR_LIMIT;
            }
            err = http_decoder_next(d, &in, out + *made, room, &n);
            CHECK(n <= room && (err != 0 || in.len == 0 || n == room));
            *made += n;
            CHECK(http_decoder_memory(d) <= MEMORY_MAX);
        } while (err == 0 && (in.len > 0 || n == room));
    }
    if (err == 0)
        err = http_decoder_end(d);
    http_decoder_free(d);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char whole[OUT_MAX], pieces[OUT_MAX];
    if (size == 0 || size > 64 * 1024)
        return 0;
    enum http_coding coding = data[0] % 2 == 0 ? HTTP_CODING_GZIP : HTTP_CODING_ZSTD;
    struct slice body = slice_of((const char *)data + 1, size - 1);
    size_t len, len_of_pieces;
    int err = run(coding, body, size, 4096, whole, &len);
    int err_of_pieces = run(coding, body, 1 + data[0] / 2, 4096, pieces, &len_of_pieces);
    size_t both = len < len_of_pieces ? len : len_of_pieces;
    CHECK(memcmp(whole, pieces, both) == 0);
    if (err == 0 && err_of_pieces == 0)
        CHECK(len == len_of_pieces);
    CHECK((err == ERR_SYNTAX) == (err_of_pieces == ERR_SYNTAX) || err == ERR_LIMIT ||
          err_of_pieces == ERR_LIMIT);
    CHECK(err != 0 || len <= HTTP_CODING_FREE_BYTES || len / HTTP_CODING_RATIO_MAX <= body.len);
    return 0;
}
