#include "base/prometheus.h"

#include <math.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/test.h"

static void families_and_series(void **state)
{
    (void)state;
    struct buf out = {0};
    struct prometheus p = prometheus_of(&out, "g_");
    prometheus_family(&p, "up", "Whether.");
    prometheus_label(&p, "replica", SLICE("a"));
    prometheus_label(&p, "state", SLICE(""));
    prometheus_value(&p, 1);
    prometheus_label(&p, "replica", SLICE("b"));
    prometheus_value(&p, 0);
    const struct prometheus_figure rows[] = {
        {"bytes_total", "Bytes.", 12},
        {"age_seconds", "Age.", 0.5},
    };
    prometheus_figures(&p, rows, ARRAY_LEN(rows));
    assert_int_equal(prometheus_finish(&p), ERR_OK);
    assert_slice_equal(buf_slice(&out),
                       "# HELP g_up Whether.\n# TYPE g_up gauge\n"
                       "g_up{replica=\"a\",state=\"\"} 1\n"
                       "g_up{replica=\"b\"} 0\n"
                       "# HELP g_bytes_total Bytes.\n# TYPE g_bytes_total counter\n"
                       "g_bytes_total 12\n"
                       "# HELP g_age_seconds Age.\n# TYPE g_age_seconds gauge\n"
                       "g_age_seconds 0.5\n");
    buf_free(&out);
}

/* An engine may choose any name for a model: no byte of the name controls a terminal. */
static void label_values_are_escaped(void **state)
{
    (void)state;
    struct buf out = {0};
    struct prometheus p = prometheus_of(&out, "");
    prometheus_family(&p, "m", "H.");
    out.len = 0;
    prometheus_label(&p, "l", SLICE("a\"b\\c\nd\te\xff\x1b\xc2\x9b\xc3\xa9{}"));
    prometheus_value(&p, 1);
    assert_int_equal(prometheus_finish(&p), ERR_OK);
    assert_slice_equal(
        buf_slice(&out),
        "m{l=\"a\\\"b\\\\c\\nd\\\\x09e\\\\xff\\\\x1b\\\\xc2\\\\x9b\xc3\xa9{}\"} 1\n");
    buf_free(&out);
}

static void numbers(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *want;
    } cases[] = {
        {0, "m 0\n"},
        {-1, "m -1\n"},
        {0.05, "m 0.05\n"},
        {1e-9, "m 1e-09\n"},
        {1234567890123456, "m 1234567890123456\n"},
        {9007199254740992, "m 9007199254740992\n"},
        {1e300, "m 1e+300\n"},
        {NAN, "m NaN\n"},
        {INFINITY, "m +Inf\n"},
        {-INFINITY, "m -Inf\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out = {0};
        struct prometheus p = prometheus_of(&out, "");
        prometheus_family(&p, "m", "H.");
        out.len = 0;
        prometheus_value(&p, cases[i].value);
        assert_int_equal(prometheus_finish(&p), ERR_OK);
        assert_slice_equal(buf_slice(&out), cases[i].want);
        buf_free(&out);
    }
}

/* Wherever the limit falls, only the text before `prometheus_of` remains. */
static void errors_stick(void **state)
{
    (void)state;
    for (size_t max = 5; max < 200; max++) {
        struct buf out;
        buf_init(&out, max);
        assert_int_equal(buf_append_cstr(&out, "start"), ERR_OK);
        struct prometheus p = prometheus_of(&out, "g_");
        for (unsigned i = 0; i < 10; i++) {
            prometheus_family(&p, "up", "Whether.");
            prometheus_label(&p, "replica", SLICE("a\nb"));
            prometheus_value(&p, 0.25);
        }
        assert_int_equal(prometheus_finish(&p), ERR_LIMIT);
        assert_slice_equal(buf_slice(&out), "start");
        buf_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_and_series),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(numbers),
        cmocka_unit_test(errors_stick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
