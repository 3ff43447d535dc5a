#include "http/chunked.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

/* Decodes `in` in pieces of at most `piece` bytes, each in a separate heap block for ASan. Returns
 * the error; `*used` is the body's bytes in `in`. */
static int decode(struct http_chunked *c, struct slice in, size_t piece, struct buf *out,
                  size_t *used)
{
    http_chunked_init(c);
    buf_clear(out);
    *used = 0;
    while (*used < in.len && !c->done) {
        size_t n = in.len - *used < piece ? in.len - *used : piece;
        char *block = malloc(n);
        assert_non_null(block);
        memcpy(block, in.at + *used, n);
        size_t taken;
        struct slice data;
        int err = http_chunked_next(c, slice_of(block, n), &taken, &data);
        if (err == 0) {
            assert_true(taken > 0 && taken <= n);
            assert_int_equal(buf_append_slice(out, data), 0);
        }
        free(block);
        if (err != 0)
            return err;
        *used += taken;
    }
    return 0;
}

struct good {
    const char *name, *in, *out;
};

static struct good good[] = {
    {"empty body", "0\r\n\r\n", ""},
    {"one chunk", "5\r\nhello\r\n0\r\n\r\n", "hello"},
    {"two chunks", "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"},
    {"hex in both cases", "A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n\r\n",
     "01234567890123456789a"},
    {"leading zeros", "0000000000000005\r\nhello\r\n000\r\n\r\n", "hello"},
    {"CRLF in the data", "4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n"},
    {"extension name", "5;a\r\nhello\r\n0;b\r\n\r\n", "hello"},
    {"extension value", "5;a=b;c=d\r\nhello\r\n0\r\n\r\n", "hello"},
    {"extension quoted", "5;a=\"b ;\t\\\" c\";d\r\nhello\r\n0\r\n\r\n", "hello"},
    {"trailers", "5\r\nhello\r\n0\r\nX-A: b\r\nX-B:\r\nx-c: \t d \xff\r\n\r\n", "hello"},
};

static void accepted(void **state)
{
    const struct good *g = *state;
    char text[256];
    int len = snprintf(text, sizeof text, "%sGET ", g->in);
    struct buf out = {0};
    for (size_t piece = 1; piece <= (size_t)len; piece++) {
        struct http_chunked c;
        size_t used;
        assert_int_equal(decode(&c, slice_of(text, (size_t)len), piece, &out, &used), 0);
        assert_true(c.done);
        assert_int_equal(used, strlen(g->in)); /* "GET " is the next message */
        assert_slice_equal(buf_slice(&out), g->out);
    }
    /* Every way to cut the input in two. */
    for (size_t cut = 0; cut <= strlen(g->in); cut++) {
        struct http_chunked c;
        http_chunked_init(&c);
        buf_clear(&out);
        struct slice parts[2] = {slice_of(g->in, cut), slice_skip(slice_of_cstr(g->in), cut)};
        for (int i = 0; i < 2; i++) {
            while (parts[i].len > 0) {
                size_t used;
                struct slice data;
                assert_int_equal(http_chunked_next(&c, parts[i], &used, &data), 0);
                assert_int_equal(buf_append_slice(&out, data), 0);
                parts[i] = slice_skip(parts[i], used);
            }
            assert_int_equal(c.done, i == 1 || cut == strlen(g->in));
        }
        assert_slice_equal(buf_slice(&out), g->out);
    }
    buf_free(&out);
}

struct wrong {
    const char *name;
    struct slice in;
};

#define S(text)                                                                                    \
    {                                                                                              \
        (text), sizeof(text) - 1                                                                   \
    }

static struct wrong wrong[] = {
    {"no size", S("\r\nhello\r\n0\r\n\r\n")},
    {"only an extension", S(";a\r\n")},
    {"letter", S("g\r\n")},
    {"0x", S("0x5\r\nhello\r\n0\r\n\r\n")},
    {"minus", S("-5\r\n")},
    {"plus", S("+5\r\n")},
    {"underscore", S("1_0\r\n")},
    {"space in front", S(" 5\r\nhello\r\n")},
    {"space behind", S("5 \r\nhello\r\n")},
    {"HTAB behind", S("5\t\r\nhello\r\n")},
    {"seventeen digits", S("00000000000000005\r\nhello\r\n")},
    {"comma", S("5,5\r\nhello\r\n")},
    {"NUL", S("5\0\r\nhello\r\n")},
    {"LF behind the size", S("5\nhello\r\n")},
    {"CR alone behind the size", S("5\rhello\r\n")},
    {"CR CR LF behind the size", S("5\r\r\nhello\r\n")},
    {"LF behind the data", S("5\r\nhello\n0\r\n\r\n")},
    {"CR alone behind the data", S("5\r\nhello\r0\r\n\r\n")},
    {"data longer than the size", S("5\r\nhello!\r\n0\r\n\r\n")},
    {"data shorter than the size", S("5\r\nhell\r\n0\r\n\r\n")},
    {"no CRLF behind the data", S("5\r\nhello0\r\n\r\n")},
    {"two CRLFs behind the data", S("5\r\nhello\r\n\r\n0\r\n\r\n")},
    {"LF behind the last chunk", S("0\n\r\n")},
    {"LF as the end", S("0\r\n\n")},
    {"CR alone as the end", S("0\r\n\rX")},
    {"space before the extension", S("5 ;a\r\nhello\r\n")},
    {"extension without name", S("5;\r\nhello\r\n")},
    {"extension with space", S("5; a\r\nhello\r\n")},
    {"extension with empty value", S("5;a=\r\nhello\r\n")},
    {"extension with two values", S("5;a=b=c\r\nhello\r\n")},
    {"extension with LF", S("5;a\nhello\r\n")},
    {"extension with LF in quotes", S("5;a=\"\n\"\r\nhello\r\n")},
    {"extension with CR in quotes", S("5;a=\"\r\n\"\r\nhello\r\n")},
    {"extension with escaped CR", S("5;a=\"\\\r\n\"\r\nhello\r\n")},
    {"extension with NUL", S("5;a\0\r\nhello\r\n")},
    {"extension with rest behind quotes", S("5;a=\"b\"c\r\nhello\r\n")},
    {"extension with obs-text", S("5;\xe4\r\nhello\r\n")},
    {"trailer without colon", S("0\r\nX\r\n\r\n")},
    {"trailer without name", S("0\r\n: x\r\n\r\n")},
    {"trailer with space before the colon", S("0\r\nX : x\r\n\r\n")},
    {"trailer folded", S("0\r\nX: x\r\n y\r\n\r\n")},
    {"trailer with LF", S("0\r\nX: x\n\r\n")},
    {"trailer with CR", S("0\r\nX: x\ry\r\n\r\n")},
    {"trailer with NUL", S("0\r\nX: x\0\r\n\r\n")},
    {"trailer Content-Length", S("0\r\nContent-Length: 5\r\n\r\n")},
    {"trailer Transfer-Encoding", S("0\r\ntransfer-encoding: chunked\r\n\r\n")},
    {"trailer Host", S("0\r\nHOST: a\r\n\r\n")},
    {"trailer Authorization", S("0\r\nAuthorization: x\r\n\r\n")},
};

static void refused(void **state)
{
    const struct wrong *w = *state;
    struct buf out = {0};
    for (size_t piece = 1; piece <= w->in.len; piece++) {
        struct http_chunked c;
        size_t used;
        if (decode(&c, w->in, piece, &out, &used) != ERR_SYNTAX)
            fail_msg("%s was accepted in pieces of %zu", w->name, piece);
        assert_non_null(c.error);
        struct slice data; /* the error is final */
        assert_int_equal(http_chunked_next(&c, SLICE("0\r\n\r\n"), &used, &data), ERR_SYNTAX);
    }
    buf_free(&out);
}

static void limits(void **state)
{
    (void)state;
    struct http_chunked c;
    size_t used;
    struct buf in = {0}, out = {0};
    DISCARD(buf_append_cstr(&in, "1;"));
    for (int i = 0; i <= HTTP_CHUNK_EXTENSION_BYTES_MAX; i++)
        DISCARD(buf_append_char(&in, 'a'));
    assert_int_equal(decode(&c, buf_slice(&in), 100, &out, &used), ERR_LIMIT);

    buf_clear(&in); /* many chunks, each with a few bytes of extension */
    for (int i = 0; i <= HTTP_CHUNK_EXTENSIONS_BYTES_MAX; i++)
        DISCARD(buf_append_cstr(&in, "1;a\r\nx\r\n"));
    assert_int_equal(decode(&c, buf_slice(&in), 100, &out, &used), ERR_LIMIT);

    buf_clear(&in);
    DISCARD(buf_append_cstr(&in, "0\r\n"));
    for (int i = 0; i < HTTP_TRAILER_BYTES_MAX; i++)
        DISCARD(buf_append_cstr(&in, "x: y\r\n"));
    assert_int_equal(decode(&c, buf_slice(&in), 100, &out, &used), ERR_LIMIT);

    buf_clear(&in);
    DISCARD(buf_append_cstr(&in, "0\r\n"));
    for (int i = 0; i <= HTTP_TRAILER_NAME_MAX; i++)
        DISCARD(buf_append_char(&in, 'a'));
    assert_int_equal(decode(&c, buf_slice(&in), 100, &out, &used), ERR_LIMIT);
    buf_free(&in);
    buf_free(&out);
}

static void the_largest_size(void **state)
{
    (void)state;
    struct http_chunked c;
    http_chunked_init(&c);
    struct slice in = SLICE("ffffffffffffffff\r\nabc"), data;
    size_t used;
    assert_int_equal(http_chunked_next(&c, in, &used, &data), 0);
    assert_slice_equal(data, "abc");
    assert_int_equal(used, in.len);
    assert_false(c.done);
}

static void written_chunks_are_read_back(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 9, 10, 15, 16, 255, 256, 65535, 65536, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char head[HTTP_CHUNK_HEAD_MAX];
        char want[32];
        size_t n = http_chunk_head_write(head, sizes[i]);
        (void)snprintf(want, sizeof want, "%llx\r\n", (unsigned long long)sizes[i]);
        assert_slice_equal(slice_of(head, n), want);
    }
}

/* After using only part of the data, a reader returns the rest, in the middle or at the end of a
 * chunk. */
static void returned_bytes_are_read_again(void **state)
{
    (void)state;
    static const char text[] = "5\r\nhello\r\n6\r\n world\r\n0\r\nx: y\r\n\r\n";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        for (size_t keep = 0; keep < 4; keep++) {
            struct slice in = slice_of(text, sizeof text - 1);
            struct http_chunked c;
            struct buf out = {0};
            http_chunked_init(&c);
            while (!c.done) {
                size_t used, given = in.len < piece ? in.len : piece;
                struct slice data;
                assert_int_equal(http_chunked_next(&c, slice_of(in.at, given), &used, &data), 0);
                size_t back = data.len > keep + 1 ? data.len - keep - 1 : 0;
                http_chunked_back(&c, back);
                assert_int_equal(buf_append(&out, data.at, data.len - back), 0);
                in = slice_skip(in, used - back);
            }
            assert_int_equal(in.len, 0);
            assert_slice_equal(buf_slice(&out), "hello world");
            buf_free(&out);
        }
    }
}

int main(void)
{
    static struct CMUnitTest tests[128] = {
        cmocka_unit_test(returned_bytes_are_read_again),
        cmocka_unit_test(limits),
        cmocka_unit_test(the_largest_size),
        cmocka_unit_test(written_chunks_are_read_back),
    };
    size_t n = 4;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        tests[n++] = (struct CMUnitTest){
            .name = good[i].name, .test_func = accepted, .initial_state = &good[i]};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        tests[n++] = (struct CMUnitTest){
            .name = wrong[i].name, .test_func = refused, .initial_state = &wrong[i]};
    return _cmocka_run_group_tests("http/chunked", tests, n, NULL, NULL);
}
