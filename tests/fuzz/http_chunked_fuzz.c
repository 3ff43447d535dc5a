/* Any bytes as a chunked body: pieces of any size decode to the same bytes as the whole. The
 * decoded bytes, written as chunks again, decode to themselves. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "http/chunked.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int decode(struct slice in, size_t piece, struct buf *out, size_t *used)
{
    struct http_chunked c;
    http_chunked_init(&c);
    *used = 0;
    while (*used < in.len && !c.done) {
        size_t n = in.len - *used < piece ? in.len - *used : piece;
        size_t taken;
        struct slice data;
        int err = http_chunked_next(&c, slice_of(in.at + *used, n), &taken, &data);
        if (err != 0)
            return err;
        CHECK(taken > 0 && taken <= n && data.len <= taken);
        CHECK(buf_append_slice(out, data) == 0);
        *used += taken;
    }
    return c.done ? 0 : ERR_AGAIN;
}

static void check_written(struct slice body)
{
    struct buf text = {0}, out = {0};
    struct slice rest = body;
    while (rest.len > 0) {
        size_t n = rest.len < 7 ? rest.len : 7;
        char head[HTTP_CHUNK_HEAD_MAX];
        CHECK(buf_append(&text, head, http_chunk_head_write(head, n)) == 0);
        CHECK(buf_append(&text, rest.at, n) == 0);
        CHECK(buf_append_cstr(&text, HTTP_CHUNK_END) == 0);
        rest = slice_skip(rest, n);
    }
    CHECK(buf_append_cstr(&text, HTTP_CHUNK_LAST) == 0);
    size_t used;
    CHECK(decode(buf_slice(&text), 5, &out, &used) == 0);
    CHECK(used == text.len && slice_equal(buf_slice(&out), body));
    buf_free(&text);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t piece = (size_t)data[0] % 16 + 1;
    char *at = malloc(size);
    CHECK(at != NULL);
    memcpy(at, data + 1, size - 1);
    struct slice in = slice_of(at, size - 1);
    struct buf whole = {0}, pieces = {0};
    size_t used_whole, used_pieces;
    int err = decode(in, SIZE_MAX, &whole, &used_whole);
    CHECK(decode(in, piece, &pieces, &used_pieces) == err);
    if (err == 0) {
        CHECK(used_whole == used_pieces && slice_equal(buf_slice(&whole), buf_slice(&pieces)));
        check_written(buf_slice(&whole));
    }
    buf_free(&whole);
    buf_free(&pieces);
    free(at);
    return 0;
}
