/* Good statuses of a health check, as written in settings. */
#include "node/settings/statuses.h"

#include "tests/lib/test.h"

static void statuses_and_ranges_are_read(void **state)
{
    (void)state;
    struct node_statuses s;
    assert_null(node_statuses_parse(SLICE("200..299"), &s));
    assert_true(node_statuses_has(&s, 200) && node_statuses_has(&s, 299));
    assert_false(node_statuses_has(&s, 199) || node_statuses_has(&s, 300));
    assert_null(node_statuses_parse(SLICE("200, 204,400..404"), &s));
    assert_true(node_statuses_has(&s, 204) && node_statuses_has(&s, 402));
    assert_false(node_statuses_has(&s, 201) || node_statuses_has(&s, 503));
}

static void invalid_statuses_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",         "99",        "600",  "20",    "2000", "200-299",
        "299..200", "200...299", "200,", "200..", "abc",  "200,201,202,203,204,205,206,207,208"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct node_statuses s = {.count = 7};
        assert_non_null(node_statuses_parse(slice_of_cstr(bad[i]), &s));
        assert_int_equal(s.count, 7); /* unchanged */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_and_ranges_are_read),
        cmocka_unit_test(invalid_statuses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
