#include "node/core/replica.h"

#include "tests/lib/test.h"

static struct node_replica make(void)
{
    struct node_router_config config = {
        .prefill_tokens_per_s = 10000, .decode_step_ms = 20, .bytes_per_token = 4};
    struct node_replica k;
    node_replica_init(&k, SLICE("host:1"), NODE_ENGINE_AUTO, 1, &config);
    return k;
}

static struct node_scrape scrape_of(double queries, double hits)
{
    return (struct node_scrape){.running = -1,
                                .waiting = -1,
                                .cache_usage = -1,
                                .cache_tokens = 100000,
                                .block_tokens = 16,
                                .prefix_queries = queries,
                                .prefix_hits = hits,
                                .prompt_tokens = queries,
                                .generation_tokens = -1,
                                .start_time_s = 1700000000,
                                .sleeping = -1};
}

static void probes_decide_on_health(void **state)
{
    (void)state;
    struct node_replica k = make();
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UNKNOWN);
    assert_false(node_replica_probed(&k, true, false));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    for (int i = 0; i < 2; i++)
        assert_false(node_replica_probed(&k, false, false));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    (void)node_replica_probed(&k, true, false);
    for (int i = 0; i < 3; i++)
        assert_false(node_replica_probed(&k, false, false));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    (void)node_replica_probed(&k, true, false);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
}

static void a_refused_port_is_down_at_once_and_told_once(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, true, false);
    assert_false(node_replica_probed(&k, false, false));
    assert_true(node_replica_probed(&k, false, true));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    assert_false(node_replica_probed(&k, false, true));
    (void)node_replica_probed(&k, true, false);
    assert_true(node_replica_probed(&k, false, true));
}

static void failed_answers_in_a_row_take_it_down(void **state)
{
    (void)state;
    static const enum node_outcome bad[] = {NODE_OUTCOME_ENGINE_ERROR, NODE_OUTCOME_CONNECT_FAILED,
                                            NODE_OUTCOME_BROKEN};
    struct node_replica k = make();
    (void)node_replica_probed(&k, true, false);
    for (int i = 0; i < 4; i++)
        node_replica_answered(&k, bad[i % 3], 0);
    node_replica_answered(&k, NODE_OUTCOME_OK, 0);
    for (int i = 0; i < 4; i++) {
        node_replica_answered(&k, bad[i % 3], 0);
        node_replica_answered(&k, NODE_OUTCOME_CLIENT_GONE, 0); /* says nothing */
    }
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    node_replica_answered(&k, NODE_OUTCOME_BROKEN, 0);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    node_replica_answered(&k, NODE_OUTCOME_OK, 0); /* only a probe brings it back */
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
}

static void busy_is_no_failure(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, true, false);
    for (int i = 0; i < 100; i++)
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_BUSY, 5000);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    assert_int_equal(k.busy_until_ms, 6000);
}

static void draining_is_a_wish_beside_health(void **state)
{
    (void)state;
    struct node_replica k = make();
    k.draining = true;
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DRAINING);
    (void)node_replica_probed(&k, true, false);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DRAINING);
    assert_false(node_replica_usable(&k, NODE_HEALTH_UP));
    (void)node_replica_probed(&k, false, true);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    k.draining = false;
    (void)node_replica_probed(&k, true, false);
    assert_true(node_replica_usable(&k, NODE_HEALTH_UP));
}

static void restarts_are_seen(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape s = scrape_of(1000, 500);
    assert_false(node_replica_scraped(&k, &s, 0, 1000));
    assert_false(node_replica_scraped(&k, &s, 0, 2000));
    s.start_time_s += 1; /* a clock adjusted */
    assert_false(node_replica_scraped(&k, &s, 0, 3000));
    s.start_time_s += 30;
    assert_true(node_replica_scraped(&k, &s, 0, 4000));
    assert_false(node_replica_scraped(&k, &s, 0, 5000));
    s.prefix_queries = s.prompt_tokens = 10; /* an engine that tells no start time */
    s.start_time_s = -1;
    assert_true(node_replica_scraped(&k, &s, 0, 6000));
    assert_int_equal(k.restarts, 2);
}

static void a_missing_counter_is_no_restart(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape s = scrape_of(1000, 500), without = scrape_of(-1, -1);
    without.start_time_s = -1;
    assert_false(node_replica_scraped(&k, &s, 0, 1000));
    assert_false(node_replica_scraped(&k, &without, 0, 2000));
    assert_false(node_replica_scraped(&k, &s, 0, 3000));
    s.prefix_queries = 999;
    assert_false(node_replica_scraped(&k, &without, 0, 4000));
    assert_true(node_replica_scraped(&k, &s, 0, 5000));
}

static void sleep_loses_the_cache_once(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape s = scrape_of(0, 0);
    (void)node_replica_probed(&k, true, false);
    assert_false(node_replica_scraped(&k, &s, 0, 1000));
    s.sleeping = 1;
    assert_true(node_replica_scraped(&k, &s, 0, 2000));
    assert_false(node_replica_usable(&k, NODE_HEALTH_UP));
    assert_false(node_replica_scraped(&k, &s, 0, 3000));
    s.sleeping = 0;
    assert_false(node_replica_scraped(&k, &s, 0, 4000));
    assert_true(node_replica_usable(&k, NODE_HEALTH_UP));
}

static void cache_size_is_told_or_configured(void **state)
{
    (void)state;
    struct node_replica k = make();
    assert_true(node_replica_cache_tokens(&k, 400000) == 400000);
    struct node_scrape s = scrape_of(0, 0);
    (void)node_replica_scraped(&k, &s, 400000, 1000);
    assert_true(node_replica_cache_tokens(&k, 400000) == 100000);
    s.cache_tokens = -1; /* missing this time: what it told stays */
    (void)node_replica_scraped(&k, &s, 400000, 2000);
    assert_true(node_replica_cache_tokens(&k, 400000) == 100000);
}

/* 10,000 tokens between two scrapes, of which `predicted` and `hits` were in the cache. */
static double factor_after_windows(double ours, double predicted, double hits, unsigned told)
{
    struct node_replica k = make();
    struct node_scrape s = scrape_of(0, 0);
    (void)node_replica_scraped(&k, &s, 0, 1);
    for (unsigned i = 1; i <= 50; i++) {
        k.window.prompt_tokens += (uint64_t)ours;
        k.window.predicted_tokens += (uint64_t)predicted;
        k.window.told += told;
        s.prefix_queries = s.prompt_tokens = i * 10000.0;
        s.prefix_hits = i * hits;
        (void)node_replica_scraped(&k, &s, 0, i * 5000);
    }
    return k.belief.factor;
}

static void counters_of_the_engine_correct_the_belief(void **state)
{
    (void)state;
    assert_true(factor_after_windows(10000, 9000, 9000, 0) == 1);
    assert_true(factor_after_windows(10000, 9000, 1000, 0) < 0.6);
    assert_true(factor_after_windows(10000, 9000, 1000, 1) == 1); /* answers tell already */
    assert_true(factor_after_windows(3000, 2700, 1000, 0) == 1);  /* mostly others' requests */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probes_decide_on_health),
        cmocka_unit_test(a_refused_port_is_down_at_once_and_told_once),
        cmocka_unit_test(failed_answers_in_a_row_take_it_down),
        cmocka_unit_test(busy_is_no_failure),
        cmocka_unit_test(draining_is_a_wish_beside_health),
        cmocka_unit_test(restarts_are_seen),
        cmocka_unit_test(a_missing_counter_is_no_restart),
        cmocka_unit_test(sleep_loses_the_cache_once),
        cmocka_unit_test(cache_size_is_told_or_configured),
        cmocka_unit_test(counters_of_the_engine_correct_the_belief),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
