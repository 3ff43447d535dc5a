#include "http/events.h"

#include "base/check.h"
#include "tests/lib/test.h"

static void lengths(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t first, whole;
    } cases[] = {
        {"", 0, 0},
        {"data: 1", 0, 0},
        {"data: 1\n", 0, 0},
        {"data: 1\n\n", 9, 9},
        {"data: 1\r\n\r\ndata: 2\r\r", 11, 20},
        {"data: 1\n\ndata: 2\n\ndata: 3\n", 9, 18},
        {": comment\n\ndata", 11, 11},
        {"\n\ndata: 1\n\n", 2, 11},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct slice text = slice_of_cstr(cases[i].text);
        assert_int_equal(http_event_length(text), cases[i].first);
        assert_int_equal(http_events_whole(text), cases[i].whole);
    }
}

#define ROLE  "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
#define TOKEN "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"

static void the_preamble_ends_at_a_token_an_error_or_the_end(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t preamble;
    } cases[] = {
        {ROLE TOKEN TOKEN, sizeof ROLE - 1},
        {TOKEN ROLE, 0},
        {": ping\n\n" ROLE TOKEN, sizeof ROLE - 1 + 8},
        {ROLE "data: {\"error\":{\"code\":503}}\n\n", sizeof ROLE - 1},
        {ROLE "data: [DONE]\n\n", sizeof ROLE - 1},
        {ROLE "data: {\"choi", sizeof ROLE - 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_int_equal(http_events_preamble(slice_of_cstr(cases[i].text)), cases[i].preamble);
}

static void data_lines_are_found(void **state)
{
    (void)state;
    struct slice rest =
        SLICE("event: error\r\ndata: one\r\n\r\n: no\ndata:two\nda: no\ndata: three");
    assert_true(slice_equal(http_events_data(&rest), SLICE("one")));
    assert_true(slice_equal(http_events_data(&rest), SLICE("two")));
    assert_true(slice_equal(http_events_data(&rest), SLICE("three")));
    assert_int_equal(http_events_data(&rest).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths),
        cmocka_unit_test(the_preamble_ends_at_a_token_an_error_or_the_end),
        cmocka_unit_test(data_lines_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
