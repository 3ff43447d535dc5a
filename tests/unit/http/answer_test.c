#include "http/answer.h"

#include "base/err.h"
#include "http/head.h"
#include "tests/lib/test.h"

static void check(const struct http_answer *answer, const char *want)
{
    struct buf out = {0};
    assert_int_equal(http_answer_write(&out, answer), 0);
    assert_slice_equal(buf_slice(&out), want);
    struct http_head head;
    assert_int_equal(
        http_response_parse(&head, out.at, out.len, answer->head_request, &http_limits_default), 0);
    buf_free(&out);
}

static void answers(void **state)
{
    (void)state;
    struct http_line extra[] = {{SLICE("Allow"), SLICE("GET")}, {SLICE("X"), SLICE("y")}};
    struct http_answer a = {.status = 405,
                            .content_type = SLICE("text/plain"),
                            .body = SLICE("no\n"),
                            .extra = extra,
                            .extra_count = 2,
                            .client_minor = 1};
    check(&a, "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n"
              "Content-Length: 3\r\nAllow: GET\r\nX: y\r\n\r\nno\n");
    a.extra_count = 0;
    a.head_request = true;
    check(&a, "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\n"
              "Content-Length: 3\r\n\r\n");
    check(&(struct http_answer){.status = 200, .client_minor = 1, .close = true},
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    check(&(struct http_answer){.status = 200},
          "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n");
    check(&(struct http_answer){.status = 204, .client_minor = 1},
          "HTTP/1.1 204 No Content\r\n\r\n");
}

static void errors(void **state)
{
    (void)state;
    struct buf out = {0};
    struct http_error error = {
        .message = SLICE("no \"x\"\n"), .status = 404, .param = SLICE("model")};
    assert_int_equal(http_error_body_write(&out, &error), 0);
    assert_slice_equal(buf_slice(&out),
                       "{\"error\":{\"message\":\"no \\\"x\\\"\\n\",\"type\":\"NotFoundError\","
                       "\"param\":\"model\",\"code\":404}}");
    buf_clear(&out);
    error = (struct http_error){.message = SLICE("m"), .type = SLICE("t"), .status = 503};
    assert_int_equal(
        http_answer_error_write(&out, &(struct http_answer){.client_minor = 1}, &error), 0);
    assert_slice_equal(
        buf_slice(&out),
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
        "Content-Length: 60\r\n\r\n"
        "{\"error\":{\"message\":\"m\",\"type\":\"t\",\"param\":null,\"code\":503}}");
    buf_free(&out);
}

static void full_buffer_is_left_alone(void **state)
{
    (void)state;
    for (size_t room = 1; room < 95; room++) {
        struct buf small;
        buf_init(&small, room + 1);
        assert_int_equal(buf_append_char(&small, 'b'), 0);
        struct http_answer a = {.status = 400, .close = true, .body = SLICE("0123456789")};
        int err = http_answer_write(&small, &a);
        assert_true(err == 0 || err == ERR_LIMIT);
        assert_int_equal(small.len, err == 0 ? 1 + 77 : 1);
        buf_free(&small);
    }
}

static void status_texts(void **state)
{
    (void)state;
    assert_string_equal(http_status_text(431), "Request Header Fields Too Large");
    assert_string_equal(http_status_text(299), "Unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers),
        cmocka_unit_test(errors),
        cmocka_unit_test(full_buffer_is_left_alone),
        cmocka_unit_test(status_texts),
    };
    return cmocka_run_group_tests_name("http/answer", tests, NULL, NULL);
}
