/* Limits of a head, and heads in pieces. */
#include "http/head.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

#define H "Host: a\r\n"

/* The bytes to parse are in a heap block of exactly `len` bytes, so that ASan sees a read beyond
 * the end. */
static int parse(struct http_head *h, bool request, const char *text, size_t len)
{
    static char *block;
    free(block);
    block = malloc(len + (len == 0));
    assert_non_null(block);
    memcpy(block, text, len);
    return request ? http_request_parse(h, block, len, &http_limits_default)
                   : http_response_parse(h, block, len, false, &http_limits_default);
}

static struct http_head head;

static void overwrite(char *at, struct slice text)
{
    memcpy(at, text.at, text.len);
}

static void limits_bite_at_once(void **state)
{
    (void)state;
    struct http_limits limits = {.head_bytes_max = 200, .target_bytes_max = 50, .fields_max = 3};
    char text[512];
    memset(text, 'a', sizeof text);
    overwrite(text, SLICE("GET /"));
    assert_int_equal(http_request_parse(&head, text, 54, &limits), ERR_AGAIN);
    assert_int_equal(http_request_parse(&head, text, 55, &limits), ERR_LIMIT);
    assert_int_equal(head.refusal, 414);

    overwrite(text, SLICE("GET / HTTP/1.1\r\n"));
    assert_int_equal(http_request_parse(&head, text, 199, &limits), ERR_AGAIN);
    assert_int_equal(http_request_parse(&head, text, 200, &limits), ERR_LIMIT);
    assert_int_equal(head.refusal, 431);

    struct slice four = SLICE("GET / HTTP/1.1\r\n" H "A: 1\r\nB: 2\r\nC: 3\r\n\r\n");
    assert_int_equal(http_request_parse(&head, four.at, four.len, &limits), ERR_LIMIT);
    assert_int_equal(head.refusal, 431);
    struct slice three = SLICE("GET / HTTP/1.1\r\n" H "A: 1\r\nB: 2\r\n\r\n");
    assert_int_equal(http_request_parse(&head, three.at, three.len, &limits), 0);

    limits.head_bytes_max = three.len;
    assert_int_equal(http_request_parse(&head, three.at, three.len, &limits), 0);
    limits.head_bytes_max = three.len - 1;
    assert_int_equal(http_request_parse(&head, three.at, three.len, &limits), ERR_LIMIT);
    assert_int_equal(http_request_parse(&head, three.at, three.len - 2, &limits), ERR_AGAIN);

    overwrite(text, SLICE("HTTP/1.1 200 OK\r\n"));
    assert_int_equal(http_response_parse(&head, text, sizeof text, false, &limits), ERR_LIMIT);
    assert_int_equal(head.refusal, 502);
}

/* A head comes byte by byte: the parser runs a handful of times, not once a byte, and never misses
 * the last byte. */
static void progress_is_linear_and_exact(void **state)
{
    (void)state;
    char text[4200] = "\r\nGET / HTTP/1.1\r\nHost: a\r\nX: ";
    size_t len = strlen(text);
    memset(text + len, 'a', 4000);
    len += 4000;
    overwrite(text + len, SLICE("\r\n\r\n"));
    len += 4;
    struct http_progress progress = {0};
    unsigned tries = 0;
    for (size_t n = 1; n <= len; n++) {
        if (!http_head_progress(&progress, text, n, &http_limits_default)) {
            assert_true(n < len);
            continue;
        }
        tries++;
        assert_int_equal(parse(&head, true, text, n), n < len ? ERR_AGAIN : 0);
    }
    assert_in_range(tries, 1, 20);
    assert_int_equal(head.bytes, len);
}

static void progress_counts_a_bare_lf(void **state)
{
    (void)state;
    struct slice text =
        SLICE("GET / HTTP/1.1\r\nHost: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
    struct http_progress progress = {0};
    assert_true(http_head_progress(&progress, text.at, text.len - 8, &http_limits_default));
    for (size_t n = text.len - 7; n < text.len; n++)
        assert_false(http_head_progress(&progress, text.at, n, &http_limits_default));
    assert_true(http_head_progress(&progress, text.at, text.len, &http_limits_default));
}

/* The caller may have no room for more than the limit, and must not wait for more. */
static void progress_ends_at_the_limit(void **state)
{
    (void)state;
    struct http_limits limits = {.head_bytes_max = 100, .target_bytes_max = 50, .fields_max = 3};
    char text[100];
    memset(text, 'a', sizeof text);
    overwrite(text, SLICE("GET / HTTP/1.1\r\nX: "));
    struct http_progress progress = {0};
    assert_true(http_head_progress(&progress, text, 60, &limits));
    assert_false(http_head_progress(&progress, text, 99, &limits));
    assert_true(http_head_progress(&progress, text, 100, &limits));
    assert_int_equal(http_request_parse(&head, text, 100, &limits), ERR_LIMIT);
}

static void random_requests_split_anywhere(void **state)
{
    (void)state;
    static const char *const lines[] = {"A: b\r\n",
                                        "Accept: */*\r\n",
                                        "X-Y:  z \r\n",
                                        "Connection: close\r\n",
                                        "Cookie: a=b; c=d\r\n",
                                        "X-Empty:\r\n",
                                        "User-Agent: t\te\xc3\xa4st\r\n"};
    uint64_t seed = 1;
    for (int round = 0; round < 200; round++) {
        char text[1024] = "GET /a?b HTTP/1.1\r\nHost: a\r\n";
        for (int i = 0; i < round % 12; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            strcat(text, lines[(seed >> 33) % ARRAY_LEN(lines)]);
        }
        strcat(text, "\r\n");
        size_t len = strlen(text);
        for (size_t n = 0; n < len; n++)
            assert_int_equal(parse(&head, true, text, n), ERR_AGAIN);
        assert_int_equal(parse(&head, true, text, len), 0);
        assert_int_equal(head.bytes, len);
        assert_int_equal(head.field_count, 1 + round % 12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_bite_at_once),
        cmocka_unit_test(progress_is_linear_and_exact),
        cmocka_unit_test(progress_counts_a_bare_lf),
        cmocka_unit_test(progress_ends_at_the_limit),
        cmocka_unit_test(random_requests_split_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
