/* Out of memory: answers and forwarded heads are written whole or not at all. */
#include "tests/lib/failmalloc.h"

#include <string.h>

#include "base/err.h"
#include "http/answer.h"
#include "http/forward.h"
#include "tests/lib/test.h"

#define BEFORE "what was there"

/* An error leaves the buffer as before. */
static void judge(struct buf *out, int err, bool may_fail)
{
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    if (err != 0)
        assert_true(slice_equal(buf_slice(out), SLICE(BEFORE)) || out->len == 0);
    else
        assert_true(out->len > strlen(BEFORE));
    buf_free(out);
}

static struct buf with_bytes(void)
{
    struct buf out = {0};
    DISCARD(buf_append_cstr(&out, BEFORE)); /* without memory the buffer stays empty */
    return out;
}

static void answers(bool may_fail)
{
    static char body[3000];
    memset(body, 'b', sizeof body);
    struct http_line extra[] = {{SLICE("x-request-id"), SLICE("12345")}};
    struct http_answer answer = {.status = 200,
                                 .content_type = SLICE("text/plain"),
                                 .body = slice_of(body, sizeof body),
                                 .extra = extra,
                                 .extra_count = 1,
                                 .client_minor = 1};
    struct buf out = with_bytes();
    judge(&out, http_answer_write(&out, &answer), may_fail);
    struct http_error error = {.status = 503, .message = slice_of(body, 1000)};
    out = with_bytes();
    judge(&out, http_answer_error_write(&out, &answer, &error), may_fail);
}

static void heads(bool may_fail)
{
    static struct http_head head;
    struct slice request = SLICE("POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\n"
                                 "Content-Length: 3\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n");
    assert_int_equal(http_request_parse(&head, request.at, request.len, &http_limits_default), 0);
    struct http_forward_request how = {.host = SLICE("engine:8000"),
                                       .client_address = SLICE("10.0.0.2"),
                                       .request_id = SLICE("12345"),
                                       .via = SLICE("grapevine-0123456789abcdef"),
                                       .framing = HTTP_BODY_LENGTH,
                                       .content_length = 3};
    struct buf out = with_bytes();
    judge(&out, http_forward_request_write(&out, &head, &how), may_fail);
    struct slice response = SLICE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(
        http_response_parse(&head, response.at, response.len, false, &http_limits_default), 0);
    struct http_forward_response back = {
        .client_minor = 1, .keep_alive = true, .framing = HTTP_BODY_CHUNKED};
    out = with_bytes();
    judge(&out, http_forward_response_write(&out, &head, &back), may_fail);
}

static void test_answers(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(answers));
}

static void test_heads(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(heads));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
