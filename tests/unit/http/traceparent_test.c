#include "http/traceparent.h"

#include <stdio.h>

#include "tests/lib/test.h"

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN  "00f067aa0ba902b7"

static struct http_head head;

static bool parse(const char *text, struct http_traceparent *out)
{
    return http_traceparent_parse(slice_of_cstr(text), out);
}

static void valid_headers_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool sampled;
    } rows[] = {
        {"00-" TRACE "-" SPAN "-01", true},
        {"00-" TRACE "-" SPAN "-00", false},
        {"00-" TRACE "-" SPAN "-ff", true},
        {"00-" TRACE "-" SPAN "-02", false},
        {"cc-" TRACE "-" SPAN "-01", true},
        {"cc-" TRACE "-" SPAN "-01-what-the-future-will-be-like", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct http_traceparent t;
        assert_true(parse(rows[i].text, &t));
        assert_memory_equal(t.trace, TRACE, 32);
        assert_memory_equal(t.span, SPAN, 16);
        assert_int_equal(t.sampled, rows[i].sampled);
    }
}

/* Cases of the W3C's test suite. */
static void invalid_headers_are_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "00",
        "00-" TRACE "-" SPAN "-0",
        "00-" TRACE "-" SPAN "-01-",
        "00-" TRACE "-" SPAN "-01.",
        "cc-" TRACE "-" SPAN "-01.what",
        "ff-" TRACE "-" SPAN "-01",
        "FF-" TRACE "-" SPAN "-01",
        ".0-" TRACE "-" SPAN "-01",
        "00-00000000000000000000000000000000-" SPAN "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" SPAN "-01",
        "00-.bf92f3577b34da6a3ce929d0e0e4736-" SPAN "-01",
        "00-" TRACE "-00f067aa0ba902B7-01",
        "00-" TRACE "-" SPAN "-0.",
        "00-" TRACE "-" SPAN "-.0",
        "00_" TRACE "-" SPAN "-01",
        "00-" TRACE "_" SPAN "-01",
        "00-" TRACE "-" SPAN "_01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-0" SPAN "-01",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct http_traceparent t;
        if (parse(rows[i], &t))
            fail_msg("taken: %s", rows[i]);
    }
}

static bool find(const char *fields, struct http_traceparent *out)
{
    static char text[512];
    (void)snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    assert_int_equal(http_request_parse(&head, text, strlen(text), &http_limits_default), 0);
    return http_traceparent_find(&head, out);
}

static void a_request_has_at_most_a_single_header(void **state)
{
    (void)state;
    struct http_traceparent t;
    assert_true(find("Traceparent: 00-" TRACE "-" SPAN "-01\r\nX: y\r\n", &t));
    assert_true(t.sampled);
    assert_false(find("X: y\r\n", &t));
    assert_false(find("traceparent: 00-" TRACE "-" SPAN "-01\r\nX: y\r\n"
                      "traceparent: 00-" TRACE "-" SPAN "-01\r\n",
                      &t));
}

static void a_written_header_keeps_trace_and_sampling(void **state)
{
    (void)state;
    struct http_traceparent t;
    char line[HTTP_TRACEPARENT_BYTES];
    assert_true(parse("cc-" TRACE "-" SPAN "-03-more", &t));
    http_traceparent_write(&t, line);
    assert_memory_equal(line, "00-" TRACE "-" SPAN "-01", sizeof line);
    t.sampled = false;
    http_traceparent_write(&t, line);
    assert_memory_equal(line, "00-" TRACE "-" SPAN "-00", sizeof line);

    char text[] = "GET /\r\ntraceparent: 00-" TRACE "-" SPAN "-01\r\nX: y\r\n\r\n";
    http_traceparent_aim(slice_of(text, sizeof text - 1), TRACE, "1234567890abcdef");
    assert_string_equal(text,
                        "GET /\r\ntraceparent: 00-" TRACE "-1234567890abcdef-01\r\nX: y\r\n\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_headers_are_read),
        cmocka_unit_test(invalid_headers_are_refused),
        cmocka_unit_test(a_request_has_at_most_a_single_header),
        cmocka_unit_test(a_written_header_keeps_trace_and_sampling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
