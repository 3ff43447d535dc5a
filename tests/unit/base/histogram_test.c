#include "base/histogram.h"

#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/prometheus.h"
#include "tests/lib/test.h"

static void values_fall_below_their_bounds(void **state)
{
    (void)state;
    struct histogram h = {0};
    histogram_add(&h, 0);
    histogram_add(&h, -1); /* a clock went backwards */
    histogram_add(&h, 0.001);
    histogram_add(&h, 0.0011);
    histogram_add(&h, 1000);
    histogram_add(&h, 1e9);
    assert_int_equal(h.counts[0], 3);
    assert_int_equal(h.counts[1], 1);
    assert_int_equal(h.counts[HISTOGRAM_BOUNDS - 1], 1);
    assert_int_equal(h.counts[HISTOGRAM_BOUNDS], 1);
    assert_int_equal(h.count, 6);
    assert_true(h.sum_s > 1e9 && h.sum_s < 1e9 + 1001);
    for (unsigned i = 1; i < HISTOGRAM_BOUNDS; i++)
        assert_true(histogram_bounds_s[i] > histogram_bounds_s[i - 1]);
}

static void buckets_are_cumulative(void **state)
{
    (void)state;
    struct histogram h = {0};
    histogram_add(&h, 0.5);
    histogram_add(&h, 2);
    struct buf out = {0};
    struct prometheus p = prometheus_of(&out, "g_");
    prometheus_histograms(&p, "wait_seconds", "How long.");
    prometheus_histogram(&p, "model", SLICE("m"), &h);
    prometheus_family(&p, "next", "N.");
    prometheus_value(&p, 1);
    assert_int_equal(prometheus_finish(&p), ERR_OK);
    assert_int_equal(buf_append_char(&out, '\0'), 0);
    static const char *const wanted[] = {
        "# TYPE g_wait_seconds histogram\n",
        "g_wait_seconds_bucket{model=\"m\",le=\"0.001\"} 0\n",
        "g_wait_seconds_bucket{model=\"m\",le=\"0.5\"} 1\n",
        "g_wait_seconds_bucket{model=\"m\",le=\"1000\"} 2\n",
        "g_wait_seconds_bucket{model=\"m\",le=\"+Inf\"} 2\n",
        "g_wait_seconds_sum{model=\"m\"} 2.5\n",
        "g_wait_seconds_count{model=\"m\"} 2\n",
        "\ng_next 1\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        assert_non_null(strstr(out.at, wanted[i]));
    buf_free(&out);
}

static void quantiles_lie_between_bounds(void **state)
{
    (void)state;
    uint64_t counts[HISTOGRAM_BOUNDS + 1] = {0};
    assert_true(histogram_quantile(counts, 0.5) < 0);
    counts[1] = 10; /* values above the first bound, up to the second */
    double half = (histogram_bounds_s[0] + histogram_bounds_s[1]) / 2;
    assert_true(histogram_quantile(counts, 0.5) > half - 1e-9);
    assert_true(histogram_quantile(counts, 0.5) < half + 1e-9);
    assert_true(histogram_quantile(counts, 1) <= histogram_bounds_s[1]);
    counts[HISTOGRAM_BOUNDS] = 100; /* values beyond all bounds: only the last bound is certain */
    assert_true(histogram_quantile(counts, 0.5) == histogram_bounds_s[HISTOGRAM_BOUNDS - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_fall_below_their_bounds),
        cmocka_unit_test(buckets_are_cumulative),
        cmocka_unit_test(quantiles_lie_between_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
