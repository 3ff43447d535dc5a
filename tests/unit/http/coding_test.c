/* Compressed request bodies: their output, in any splits, and the refused bodies. */
#include "http/coding.h"

#include <stdio.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

enum { ROOM = 4 * 1024 * 1024 };

static char plain[ROOM], packed[ROOM], out[ROOM];

static size_t gzip(const char *text, size_t len, char *to)
{
    z_stream z = {.zalloc = NULL};
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (const Bytef *)text;
    z.avail_in = (uInt)len;
    z.next_out = (Bytef *)to;
    z.avail_out = ROOM;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t n = ROOM - z.avail_out;
    assert_int_equal(deflateEnd(&z), Z_OK);
    return n;
}

static size_t zstd(const char *text, size_t len, char *to)
{
    size_t n = ZSTD_compress(to, ROOM, text, len, 3);
    assert_false(ZSTD_isError(n));
    return n;
}

static size_t pack(enum http_coding coding, const char *text, size_t len, char *to)
{
    return coding == HTTP_CODING_GZIP ? gzip(text, len, to) : zstd(text, len, to);
}

/* Returns ERR_* for the whole; takes `len` bytes of `packed` in pieces of `step`, and puts out
 * `room` bytes at a time. */
static int decode(enum http_coding coding, size_t len, size_t step, size_t room, size_t *made)
{
    struct http_decoder *d;
    assert_int_equal(http_decoder_new(&d, coding, false), 0);
    assert_true(http_decoder_memory(d) > 0);
    int err = 0;
    *made = 0;
    for (size_t at = 0; at < len && err == 0; at += step) {
        struct slice in = slice_of(packed + at, len - at < step ? len - at : step);
        size_t n;
        do {
            size_t left = ROOM - *made < room ? ROOM - *made : room;
            err = http_decoder_next(d, &in, out + *made, left, &n);
            *made += n;
        } while (err == 0 && (in.len > 0 || n == room));
    }
    if (err == 0)
        err = http_decoder_end(d);
    http_decoder_free(d);
    return err;
}

static const enum http_coding both[] = {HTTP_CODING_GZIP, HTTP_CODING_ZSTD};

static size_t prose(size_t len)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < len; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        plain[i] = "etaoin shrdlu\n{}\"1234"[x % 21];
    }
    return len;
}

static void bodies_are_decoded_unchanged(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 100, 32 * 1024, 300000};
    static const size_t splits[][2] = {{ROOM, ROOM}, {1, 4096}, {1000, 1}, {777, 100}};
    for (size_t c = 0; c < 2; c++) {
        for (size_t l = 0; l < ARRAY_LEN(lengths); l++) {
            size_t len = prose(lengths[l]), n = pack(both[c], plain, len, packed), made;
            for (size_t s = 0; s < ARRAY_LEN(splits); s++) {
                assert_int_equal(decode(both[c], n, splits[s][0], splits[s][1], &made), 0);
                assert_int_equal(made, len);
                assert_memory_equal(out, plain, len);
            }
        }
    }
}

static void several_members_form_a_single_body(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        size_t len = prose(1000), made;
        size_t n = pack(both[c], plain, 400, packed);
        n += pack(both[c], "", 0, packed + n);
        n += pack(both[c], plain + 400, 600, packed + n);
        for (size_t step = 1; step <= n; step += n - 1) {
            assert_int_equal(decode(both[c], n, step, ROOM, &made), 0);
            assert_int_equal(made, len);
            assert_memory_equal(out, plain, len);
        }
    }
    /* A skippable frame has no content (RFC 8878, 3.1.2). */
    static const char skip[] = "\x5f\x2a\x4d\x18\x03\x00\x00\x00xyz";
    size_t made;
    memcpy(packed, skip, sizeof skip - 1);
    size_t n = sizeof skip - 1 + zstd("abc", 3, packed + sizeof skip - 1);
    assert_int_equal(decode(HTTP_CODING_ZSTD, n, 1, ROOM, &made), 0);
    assert_int_equal(made, 3);
}

static void truncated_or_trailing_bytes_are_malformed(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        size_t made, len = prose(500), n = pack(both[c], plain, len, packed);
        for (size_t cut = 0; cut < n; cut++)
            assert_int_equal(decode(both[c], cut, ROOM, ROOM, &made), ERR_SYNTAX);
        for (size_t i = 0; i < 4; i++)
            packed[n + i] = 't';
        for (size_t more = 1; more <= 4; more++)
            assert_int_equal(decode(both[c], n + more, ROOM, ROOM, &made), ERR_SYNTAX);
        assert_int_equal(decode(both[c], n, ROOM, ROOM, &made), 0);
        packed[n / 2] ^= 0x55;
        (void)decode(both[c], n, ROOM, ROOM, &made); /* zstd has no checksum here */
    }
    static const char other[][14] = {"{\"model\":\"m\"}", "\x78\x9c\x03\x00\x00\x00\x00\x01",
                                     "\x25\xb5\x2f\xfd\x00\x00\x00\x00", "\x1f\x8b\x07"};
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        size_t made;
        memcpy(packed, other[i], 13);
        for (size_t c = 0; c < 2; c++)
            assert_int_equal(decode(both[c], 13, ROOM, ROOM, &made), ERR_SYNTAX);
    }
}

/* The library has a shortcut for whole frames, and judges some frames differently there. */
static void pieces_do_not_change_the_verdict(void **state)
{
    (void)state;
    /* 104 bytes are promised and none come; a window of 2^31 bytes, and a reserved block. */
    static const char promised[] = "\x28\xb5\x2f\xfd\x20\x68\x01\x00\x00";
    static const char window[] = "\x28\xb5\x2f\xfd\x40\xa8\x01\x00\x07\x00\x00";
    size_t n = sizeof promised - 1, made;
    memcpy(packed, promised, n);
    int whole = decode(HTTP_CODING_ZSTD, n, ROOM, ROOM, &made);
    for (size_t step = 1; step < n; step++)
        assert_int_equal(decode(HTTP_CODING_ZSTD, n, step, ROOM, &made), whole);
    n = sizeof window - 1;
    memcpy(packed, window, n);
    for (size_t step = 1; step <= n; step++)
        assert_int_equal(decode(HTTP_CODING_ZSTD, n, step, ROOM, &made), ERR_RANGE);
}

static void a_bomb_is_stopped_early(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        memset(plain, ' ', ROOM);
        size_t made, n = pack(both[c], plain, ROOM, packed);
        assert_true(n < ROOM / HTTP_CODING_RATIO_MAX);
        assert_int_equal(decode(both[c], n, ROOM, 4096, &made), ERR_LIMIT);
        assert_true(made <= HTTP_CODING_FREE_BYTES + 4096);
        /* Below HTTP_CODING_FREE_BYTES any ratio is allowed. */
        n = pack(both[c], plain, HTTP_CODING_FREE_BYTES, packed);
        assert_int_equal(decode(both[c], n, ROOM, 4096, &made), 0);
        assert_int_equal(made, HTTP_CODING_FREE_BYTES);
    }
}

/* Servers send an empty answer with a coding; in a request that is an error. */
static void nothing_is_an_empty_answer(void **state)
{
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        for (unsigned trusted = 0; trusted < 2; trusted++) {
            struct http_decoder *d;
            struct slice in = SLICE("\x1f");
            size_t n;
            assert_int_equal(http_decoder_new(&d, both[c], trusted != 0), 0);
            assert_int_equal(http_decoder_end(d), trusted != 0 ? ERR_OK : ERR_SYNTAX);
            if (http_decoder_next(d, &in, out, ROOM, &n) == ERR_OK)
                assert_int_equal(http_decoder_end(d), ERR_SYNTAX);
            http_decoder_free(d);
        }
    }
}

/* A few bytes can request a window, which takes memory. */
static void a_window_is_bounded(void **state)
{
    (void)state;
    static const char frames[][9] = {"\x28\xb5\x2f\xfd\x00\x68\x01\x00", /* 8 MiB, an empty block */
                                     "\x28\xb5\x2f\xfd\x00\x69\x01\x00"}; /* 9 MiB */
    size_t made;
    memcpy(packed, frames[0], 9);
    assert_int_equal(decode(HTTP_CODING_ZSTD, 9, ROOM, ROOM, &made), 0);
    memcpy(packed, frames[1], 9);
    assert_int_equal(decode(HTTP_CODING_ZSTD, 9, ROOM, ROOM, &made), ERR_RANGE);
}

static void content_encodings_are_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *lines;
        enum http_coding coding;
    } rows[] = {
        {"X: gzip\r\n", HTTP_CODING_NONE},
        {"Content-Encoding: identity\r\n", HTTP_CODING_NONE},
        {"Content-Encoding:\r\n", HTTP_CODING_NONE},
        {"content-encoding: GZip\r\n", HTTP_CODING_GZIP},
        {"Content-Encoding: x-gzip\r\n", HTTP_CODING_GZIP},
        {"Content-Encoding: zstd , identity\r\n", HTTP_CODING_ZSTD},
        {"Content-Encoding: br\r\n", HTTP_CODING_OTHER},
        {"Content-Encoding: deflate\r\n", HTTP_CODING_OTHER},
        {"Content-Encoding: gzip, gzip\r\n", HTTP_CODING_OTHER},
        {"Content-Encoding: gzip\r\nX: y\r\nContent-Encoding: zstd\r\n", HTTP_CODING_OTHER},
    };
    static struct http_head head;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[256];
        int n = snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: a\r\n%s\r\n", rows[i].lines);
        assert_int_equal(http_request_parse(&head, text, (size_t)n, &http_limits_default), 0);
        assert_int_equal(http_coding_of(&head), rows[i].coding);
    }
    assert_string_equal(http_coding_name(HTTP_CODING_GZIP), "gzip");
    assert_string_equal(http_coding_name(HTTP_CODING_OTHER), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_decoded_unchanged),
        cmocka_unit_test(several_members_form_a_single_body),
        cmocka_unit_test(truncated_or_trailing_bytes_are_malformed),
        cmocka_unit_test(pieces_do_not_change_the_verdict),
        cmocka_unit_test(a_bomb_is_stopped_early),
        cmocka_unit_test(nothing_is_an_empty_answer),
        cmocka_unit_test(a_window_is_bounded),
        cmocka_unit_test(content_encodings_are_recognised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
