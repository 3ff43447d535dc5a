/* The deterministic part of the quality bench: an order of policies, and a bound on regret. If
 * routing becomes worse, this fails. Seeds are fixed, so one build has one outcome. */
#include "base/check.h"
#include "tests/bench/quality/calibrate.h"
#include "tests/bench/quality/cases.h"
#include "tests/bench/quality/regret.h"
#include "tests/lib/test.h"

enum { ASKS = 800 };

static struct figures figures_by(const struct quality_case *c, const char *chooser)
{
    struct outcome o;
    play(c, chooser_find(chooser), &o);
    assert_int_equal(o.count + o.refused, workload_asks(c->work));
    struct figures f = figures_of(&o, c);
    outcome_free(&o);
    return f;
}

static struct quality_case chats(struct workload *w, double speed, unsigned routers)
{
    workload_tenants(w, 21, ASKS);
    struct quality_case c = case_plain(w, 4, routers, engine_plain(speed, 100000, 16));
    calibrate(&c, 0.7);
    return c;
}

/* Engines that the defaults fit, and those 30 times faster and 10 times slower. */
static void test_default_policy_is_near_perfect_knowledge_and_before_all_rivals(void **state)
{
    (void)state;
    static const double speeds[] = {1, 30, 0.1};
    for (unsigned i = 0; i < ARRAY_LEN(speeds); i++) {
        struct workload w;
        struct quality_case c = chats(&w, speeds[i], 1);
        struct figures own = figures_by(&c, "cache_aware"), bound = figures_by(&c, "perfect");
        assert_true(own.cached > bound.cached - 0.04);
        assert_true(own.ttft_s < 1.4 * bound.ttft_s);
        assert_true(own.ttft_s < 0.6 * figures_by(&c, "least_request").ttft_s);
        assert_true(own.ttft_s < 0.6 * figures_by(&c, "round_robin").ttft_s);
        assert_true(own.ttft_s < figures_by(&c, "session").ttft_s);
        assert_true(own.ttft_s < figures_by(&c, "longest match").ttft_s);
        workload_free(&w);
    }
}

static void test_four_routers_are_nearly_as_good_as_one(void **state)
{
    (void)state;
    struct workload w;
    struct quality_case c = chats(&w, 1, 1);
    struct figures one = figures_by(&c, "cache_aware");
    c.routers = 4;
    struct figures four = figures_by(&c, "cache_aware");
    assert_true(four.cached > one.cached - 0.03);
    assert_true(four.ttft_s < 1.4 * one.ttft_s);
    workload_free(&w);
}

/* Nothing says so but its answers. */
static void test_an_engine_five_times_slower_is_known(void **state)
{
    (void)state;
    struct workload w;
    struct quality_case c = chats(&w, 1, 1);
    workload_free(&w);
    workload_distinct(&w, 23, 2 * ASKS);
    c.specs[0] = engine_plain(0.2, 100000, 16);
    calibrate(&c, 0.85);
    struct figures own = figures_by(&c, "cache_aware"), bound = figures_by(&c, "perfect");
    assert_true(own.ttft_s < 1.4 * bound.ttft_s);
    assert_true(own.p99_s < 1.6 * bound.p99_s); /* with rates that are not learned: 4 times */
    workload_free(&w);
}

/* Sixteen run at once at most, which no engine says; a prefix that most requests share pulls them
 * to one engine, whose line nobody sees, for answers come whole. */
static void test_room_that_no_engine_reports_is_known(void **state)
{
    (void)state;
    struct workload w;
    workload_popular(&w, 25, 2 * ASKS);
    for (unsigned i = 0; i < w.count; i++)
        w.talks[i].asks[0].whole = true;
    struct engine_spec engine = engine_plain(10, 150000, 32);
    engine.model.running_max = 16;
    engine.metrics = ENGINE_METRICS_NONE;
    struct quality_case c = case_plain(&w, 4, 4, engine);
    calibrate(&c, 0.95);
    struct figures own = figures_by(&c, "cache_aware"), least = figures_by(&c, "least_request");
    assert_true(own.ttft_s < 2.5 * least.ttft_s); /* if it is not learned: 9.8 times */
    workload_free(&w);
}

static void test_regret_over_draws_is_bounded(void **state)
{
    (void)state;
    enum { DRAWS = 11 }; /* each workload once */
    struct regrets r;
    regrets_open(&r);
    for (unsigned i = 0; i < DRAWS; i++)
        regrets_draw(&r, 11 + i, ASKS / 2, REGRETS_QUIET);
    assert_true(regrets_at(&r, MEASURE_TTFT, 0.5) < 1.1);
    assert_true(regrets_at(&r, MEASURE_TTFT, 0.75) < 1.5);
    assert_true(regrets_at(&r, MEASURE_END, 0.5) < 1.05);
    regrets_close(&r);
}

static void test_one_seed_is_one_outcome(void **state)
{
    (void)state;
    struct workload w;
    struct quality_case c = chats(&w, 1, 2);
    struct figures a = figures_by(&c, "cache_aware"), b = figures_by(&c, "cache_aware");
    assert_true(a.ttft_s == b.ttft_s && a.cached == b.cached && a.end_s == b.end_s);
    workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_policy_is_near_perfect_knowledge_and_before_all_rivals),
        cmocka_unit_test(test_four_routers_are_nearly_as_good_as_one),
        cmocka_unit_test(test_an_engine_five_times_slower_is_known),
        cmocka_unit_test(test_room_that_no_engine_reports_is_known),
        cmocka_unit_test(test_regret_over_draws_is_bounded),
        cmocka_unit_test(test_one_seed_is_one_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
