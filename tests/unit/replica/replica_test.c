#include "node/replica/standing.h"

#include <math.h>

#include "node/replica/speed.h"
#include "tests/lib/test.h"

static struct node_replica make(void)
{
    struct node_replica_config config = {
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
    assert_false(node_replica_probed(&k, (struct node_check){.ok = true}, 0));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    for (int i = 0; i < 2; i++)
        assert_false(node_replica_probed(&k, (struct node_check){0}, 0));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    for (int i = 0; i < 3; i++)
        assert_false(node_replica_probed(&k, (struct node_check){0}, 0));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
}

static void a_router_is_no_replica_until_an_engine_answers(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    node_replica_found_router(&k, SLICE("r2"));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_ROUTER);
    assert_slice_equal(slice_of(k.router, k.router_len), "r2");
    k.hint = NODE_HEALTH_UP; /* whatever others believe */
    assert_false(node_replica_usable(&k, NODE_HEALTH_UP));
    assert_false(node_replica_usable(&k, NODE_HEALTH_UNKNOWN));
    k.draining = true;
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_ROUTER);
    k.draining = false;
    for (int i = 0; i < 3; i++)
        (void)node_replica_probed(&k, (struct node_check){0}, 0);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    char longer[NODE_ROUTER_NAME_MAX + 9];
    memset(longer, 'r', sizeof longer);
    node_replica_found_router(&k, slice_of(longer, sizeof longer));
    assert_int_equal(k.router_len, NODE_ROUTER_NAME_MAX);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
}

static void a_refused_port_is_down_at_once_and_reported_once(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    assert_false(node_replica_probed(&k, (struct node_check){0}, 0));
    assert_true(node_replica_probed(&k, (struct node_check){.refused = true}, 0));
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    assert_false(node_replica_probed(&k, (struct node_check){.refused = true}, 0));
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    assert_true(node_replica_probed(&k, (struct node_check){.refused = true}, 0));
}

static void consecutive_broken_connections_take_a_replica_down(void **state)
{
    (void)state;
    static const enum node_outcome bad[] = {NODE_OUTCOME_CONNECT_FAILED, NODE_OUTCOME_BROKEN};
    struct node_replica k = make();
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    for (int i = 0; i < 4; i++)
        node_replica_answered(&k, bad[i % 2], 0);
    node_replica_answered(&k, NODE_OUTCOME_OK, 0);
    for (int i = 0; i < 4; i++) {
        node_replica_answered(&k, bad[i % 2], 0);
        node_replica_answered(&k, NODE_OUTCOME_CLIENT_GONE, 0); /* says nothing */
    }
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    node_replica_answered(&k, NODE_OUTCOME_BROKEN, 0);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    node_replica_answered(&k, NODE_OUTCOME_OK, 0); /* sent before */
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
}

/* The last resort: if all replicas are down, a replica is tried. If it answers, the replica is up,
 * whatever is pending. Requests sent before it went down prove nothing. */
static void an_answered_last_resort_brings_a_replica_up(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 1000);
    for (int i = 0; i < 5; i++)
        node_replica_answered(&k, NODE_OUTCOME_BROKEN, 2000);
    node_replica_answering(&k, 1999, 2100);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    node_replica_answering(&k, 2200, 2300);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    assert_false(node_replica_avoided(&k, 2300));
    (void)node_replica_probed(&k, (struct node_check){.refused = true}, 3000);
    node_replica_answering(&k, 3100, 3200);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    assert_false(k.trouble.gone);
}

/* The health check succeeds and every request breaks: the replica is up, but avoided until the
 * back-off is over. Then a single request may try; if that request breaks, the next back-off is
 * twice as long. */
static void a_good_probe_does_not_end_the_back_off(void **state)
{
    (void)state;
    struct node_replica k = make();
    uint64_t now = 100000, away_ms = 1000;
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, now);
    for (int i = 0; i < 5; i++)
        node_replica_answered(&k, NODE_OUTCOME_BROKEN, now);
    for (int round = 0; round < 7; round++) {
        assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
        (void)node_replica_probed(&k, (struct node_check){.ok = true}, now + away_ms - 1);
        assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
        assert_true(node_replica_avoided(&k, now + away_ms - 1));
        (void)node_replica_probed(&k, (struct node_check){.ok = true}, now + away_ms);
        assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
        now += away_ms + 500;
        assert_false(node_replica_avoided(&k, now));
        k.load.requests = 1;
        assert_true(node_replica_avoided(&k, now)); /* a single request at a time */
        k.load.requests = 0;
        node_replica_answered(&k, NODE_OUTCOME_BROKEN, now);
        away_ms = away_ms * 2 < 30000 ? away_ms * 2 : 30000;
    }
    now += away_ms;
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, now);
    node_replica_answering(&k, now, now); /* works again, and others may come */
    k.load.requests = 1;
    assert_false(node_replica_avoided(&k, now));
    node_replica_answered(&k, NODE_OUTCOME_OK, now);
    now += 61000; /* and a much later failure counts as the first */
    for (int i = 0; i < 5; i++)
        node_replica_answered(&k, NODE_OUTCOME_BROKEN, now);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, now + 1000);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
}

/* A client whose request makes engines answer 500 must not be able to take all engines down. */
static void engine_errors_never_take_a_replica_down(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    for (int i = 0; i < 1000; i++)
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, (uint64_t)i * 100);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    assert_true(node_replica_backing_off(&k, 100000));
}

static void consecutive_errors_double_the_back_off(void **state)
{
    (void)state;
    struct node_replica k = make();
    uint64_t now = 100000;
    for (int i = 0; i < 2; i++)
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, now);
    node_replica_answered(&k, NODE_OUTCOME_OK, now);
    for (int i = 0; i < 2; i++)
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, now);
    assert_false(node_replica_avoided(&k, now));
    for (uint64_t away_ms = 1000; away_ms <= 60000; away_ms *= 2) {
        uint64_t bounded_ms = away_ms < 30000 ? away_ms : 30000;
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, now);
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, now + 10); /* sent before */
        assert_true(node_replica_avoided(&k, now + bounded_ms - 1));
        assert_false(node_replica_avoided(&k, now + bounded_ms));
        now += bounded_ms + 1000;
    }
    node_replica_answered(&k, NODE_OUTCOME_OK, now); /* used again, but an early failure is worse */
    assert_false(node_replica_backing_off(&k, now));
    now += NODE_BACKOFF_FORGET_MS;
    for (int i = 0; i < 3; i++)
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, now);
    assert_true(node_replica_avoided(&k, now + 999));
    assert_false(node_replica_avoided(&k, now + 1000));
}

static void busy_is_no_failure(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    for (int i = 0; i < 100; i++)
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_BUSY, 5000);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    assert_int_equal(k.trouble.busy_until_ms, 6000);
}

static void slow_is_no_failure(void **state)
{
    (void)state;
    struct node_replica k = make();
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    for (int i = 0; i < 100; i++)
        node_replica_answered(&k, NODE_OUTCOME_SLOW, 5000);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_UP);
    assert_false(node_replica_avoided(&k, 5000));
}

/* A counter that rose since the last scrape, or an answer that began. */
static void progress_of_an_engine_is_noticed(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape s = scrape_of(1000, 500);
    assert_false(node_signs_are_moving(&k.signs, 1000));
    (void)node_replica_scraped(&k, &s, 1000); /* the history before is unknown */
    (void)node_replica_scraped(&k, &s, 2000);
    assert_false(node_signs_are_moving(&k.signs, 2000));
    s.generation_tokens = 10;
    (void)node_replica_scraped(&k, &s, 3000); /* unknown before */
    assert_false(node_signs_are_moving(&k.signs, 3000));
    s.generation_tokens = 11;
    (void)node_replica_scraped(&k, &s, 4000);
    assert_true(node_signs_are_moving(&k.signs, 4000));
    (void)node_replica_scraped(&k, &s, 5000);
    assert_true(node_signs_are_moving(&k.signs, 8999));
    assert_false(node_signs_are_moving(&k.signs, 9000));
    node_replica_answering(&k, 10000, 10000);
    assert_true(node_signs_are_moving(&k.signs, 14999));
}

static void draining_is_independent_of_health(void **state)
{
    (void)state;
    struct node_replica k = make();
    k.draining = true;
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DRAINING);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DRAINING);
    assert_false(node_replica_usable(&k, NODE_HEALTH_UP));
    (void)node_replica_probed(&k, (struct node_check){.refused = true}, 0);
    assert_int_equal(node_replica_health(&k), NODE_HEALTH_DOWN);
    k.draining = false;
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    assert_true(node_replica_usable(&k, NODE_HEALTH_UP));
}

static void restarts_are_detected(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape s = scrape_of(1000, 500);
    assert_false(node_replica_scraped(&k, &s, 1000));
    assert_false(node_replica_scraped(&k, &s, 2000));
    s.start_time_s += 1; /* only a clock adjustment */
    assert_false(node_replica_scraped(&k, &s, 3000));
    s.start_time_s += 30;
    assert_true(node_replica_scraped(&k, &s, 4000));
    assert_false(node_replica_scraped(&k, &s, 5000));
    s.prefix_queries = s.prompt_tokens = 10; /* an engine without a start time */
    s.start_time_s = -1;
    assert_true(node_replica_scraped(&k, &s, 6000));
    assert_int_equal(k.restarts, 2);
}

static void a_missing_counter_is_no_restart(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape s = scrape_of(1000, 500), without = scrape_of(-1, -1);
    without.start_time_s = -1;
    assert_false(node_replica_scraped(&k, &s, 1000));
    assert_false(node_replica_scraped(&k, &without, 2000));
    assert_false(node_replica_scraped(&k, &s, 3000));
    s.prefix_queries = 999;
    assert_false(node_replica_scraped(&k, &without, 4000));
    assert_true(node_replica_scraped(&k, &s, 5000));
}

/* Two ranks behind the same URL with their counters added. A rank missing from a reading or two
 * does not remove the other's cache. */
static void a_missing_rank_is_no_restart(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape both = scrape_of(1000, 500), one = scrape_of(400, 200);
    both.series = 6;
    one.series = 3;
    one.cache_tokens = both.cache_tokens / 2;
    assert_false(node_replica_scraped(&k, &both, 1000));
    uint64_t cache_tokens = k.told.cache_tokens;
    assert_false(node_replica_scraped(&k, &one, 2000));
    assert_false(node_replica_scraped(&k, &one, 3000));
    assert_int_equal(k.told.cache_tokens, cache_tokens);
    assert_false(node_replica_scraped(&k, &both, 4000));
    assert_int_equal(k.restarts, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_false(node_replica_scraped(&k, &one, 5000 + 1000 * i));
    assert_true(node_replica_scraped(&k, &one, 7000)); /* the rank is gone, with the cache */
    one.start_time_s += 30;
    assert_true(node_replica_scraped(&k, &one, 8000));
    both.start_time_s = one.start_time_s;
    assert_false(node_replica_scraped(&k, &both, 9000));
    one.start_time_s += 30; /* restarted, and the other rank is not ready yet */
    assert_true(node_replica_scraped(&k, &one, 10000));
}

/* In between another router read the engine, and the reading came by gossip, without series. */
static void a_missing_rank_is_no_restart_after_reports(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape both = scrape_of(1000, 500), one = scrape_of(400, 200);
    struct node_scrape heard = scrape_of(1000, 500);
    heard.series = -1;
    both.series = 6;
    one.series = 3;
    assert_false(node_replica_scraped(&k, &both, 1000));
    assert_false(node_replica_scraped(&k, &heard, 2000));
    assert_false(node_replica_scraped(&k, &one, 3000));
    assert_int_equal(k.restarts, 0);
    assert_false(node_replica_scraped(&k, &both, 4000));
    heard.prefix_queries = 10;
    assert_true(node_replica_scraped(&k, &heard, 5000)); /* another router's report counts too */
}

static void sleep_loses_the_cache_once(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape s = scrape_of(0, 0);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 0);
    assert_false(node_replica_scraped(&k, &s, 1000));
    s.sleeping = 1;
    assert_true(node_replica_scraped(&k, &s, 2000));
    assert_false(node_replica_usable(&k, NODE_HEALTH_UP));
    assert_false(node_replica_scraped(&k, &s, 3000));
    s.sleeping = 0;
    assert_false(node_replica_scraped(&k, &s, 4000));
    assert_true(node_replica_usable(&k, NODE_HEALTH_UP));
}

static void cache_size_is_reported_or_configured(void **state)
{
    (void)state;
    struct node_replica k = make();
    assert_true(node_replica_cache_tokens(&k, 400000) == 400000);
    struct node_scrape s = scrape_of(0, 0);
    (void)node_replica_scraped(&k, &s, 1000);
    assert_true(node_replica_cache_tokens(&k, 400000) == 100000);
    s.cache_tokens = -1; /* missing this time: the earlier value stays */
    (void)node_replica_scraped(&k, &s, 2000);
    assert_true(node_replica_cache_tokens(&k, 400000) == 100000);
}

/* SGLang's /server_info is read in addition to the metrics and has only sizes. */
static void sizes_do_not_overwrite_metrics(void **state)
{
    (void)state;
    struct node_replica k = make();
    struct node_scrape sizes = scrape_of(-1, -1), all = scrape_of(1000, 500);
    sizes.start_time_s = -1;
    sizes.cache_tokens = 200000;
    assert_false(node_replica_scraped(&k, &sizes, 500)); /* before any metrics */
    assert_true(node_replica_cache_tokens(&k, 0) == 200000);
    assert_int_equal(k.scraped_ms, 0);
    all.running = 3;
    all.waiting = 2;
    all.cache_usage = 0.5;
    all.sleeping = 1;
    all.cache_tokens = -1;
    (void)node_replica_scraped(&k, &all, 1000);
    sizes.cache_tokens = 300000;
    assert_false(node_replica_scraped(&k, &sizes, 2000));
    assert_true(k.scrape.running == 3 && k.scrape.waiting == 2 && k.scrape.cache_usage == 0.5);
    assert_true(k.asleep);
    assert_int_equal(k.scraped_ms, 1000);
    assert_true(node_replica_cache_tokens(&k, 0) == 300000);
    assert_true(k.scrape.prefix_queries == 1000 && k.scrape.cache_tokens == 300000);
}

/* Begins a request of 10,000 tokens, 9,000 of them recorded `depth` deep in the cache. */
static void begin(struct node_replica *k, float depth)
{
    struct node_work work = {
        .prompt_tokens = 10000,
        .cached_tokens = 9000,
        .reach = {.count = 1, .parts = {{9000, depth, depth * 1.1F}}},
    };
    node_replica_began(k, &work, 1);
}

/* Windows of 10,000 tokens, of which 9,000 were recorded at any depth up to the size of the cache;
 * tokens up to depth `truth` are hits. */
static double factor_after_windows(unsigned requests, double truth, unsigned told)
{
    struct node_replica k = make();
    struct node_scrape s = scrape_of(0, 0);
    (void)node_replica_scraped(&k, &s, 1);
    for (unsigned i = 1; i <= 50; i++) {
        float depth = (float)(i % 10 + 1) / 12;
        for (unsigned n = 0; n < requests; n++)
            begin(&k, depth);
        k.cache.sums.told += told;
        s.prefix_queries = s.prompt_tokens = i * 10000.0;
        s.prefix_hits += (double)depth < truth ? 9000 : 0;
        (void)node_replica_scraped(&k, &s, i * 5000);
    }
    for (unsigned i = 0; i < 20; i++)
        node_replica_size_fade(&k, 1);
    return k.belief.factor;
}

static void engine_counters_correct_the_belief(void **state)
{
    (void)state;
    assert_true(factor_after_windows(1, 1, 0) == 1);
    double half = factor_after_windows(1, 0.5, 0);
    assert_true(half < 0.6 && half > 0.4);
    assert_true(factor_after_windows(1, 0.5, 1) == 1); /* answers already report it */
    assert_true(factor_after_windows(2, 0.5, 0) == 1); /* mostly others' requests, or no requests */
    assert_true(factor_after_windows(1, 0, 0) == 1);   /* misses at any depth: not the size */
}

/* Half of the 20,000 tokens between two scrapes are another router's; tokens recorded deep in the
 * cache are no hits. */
static double factor_after_shared_windows(bool same_routers, uint64_t every_ms)
{
    struct node_replica k = make();
    struct node_scrape s = scrape_of(0, 0);
    struct node_others others = {.who = 1};
    node_replica_others(&k, &others, 1, 0);
    (void)node_replica_scraped(&k, &s, 1);
    for (unsigned i = 1; i <= 20; i++) {
        begin(&k, i % 2 ? 0.1F : 0.6F);
        others.sums.prompt_tokens += 10000;
        others.sums.cached_tokens += 9000;
        others.who += !same_routers;
        node_replica_others(&k, &others, 1, 0);
        s.prefix_queries = s.prompt_tokens = i * 20000.0;
        s.prefix_hits += i % 2 ? 18000 : 0;
        (void)node_replica_scraped(&k, &s, i * every_ms);
    }
    for (unsigned i = 0; i < 20; i++)
        node_replica_size_fade(&k, 1);
    return k.belief.factor;
}

static void counters_are_compared_with_all_routers_predictions(void **state)
{
    (void)state;
    assert_true(factor_after_shared_windows(true, 16000) < 0.7);
    assert_true(factor_after_shared_windows(false, 16000) == 1);
    /* Others' sums are late: a window is at least NODE_WINDOW_SHARED_MS long. */
    assert_int_equal(NODE_WINDOW_SHARED_MS, 15000);
    assert_true(factor_after_shared_windows(true, 500) == 1);
}

static void deep_miss(struct node_replica *k, bool deep)
{
    struct node_reach reach = {.count = 1,
                               .parts = {{9000, deep ? 0.6F : 0.1F, deep ? 0.7F : 0.2F}}};
    float expected[NODE_SIZES] = {0};
    node_reach_sum(&reach, 1, expected);
    uint64_t cached = deep ? 0 : 9000;
    node_replica_cached_reported(k, 10000, 9000, cached, (double)cached, expected);
}

static void evidence_from_other_routers_answers_counts(void **state)
{
    (void)state;
    struct node_replica told = make(), heard = make();
    struct node_scrape s = scrape_of(0, 0);
    (void)node_replica_scraped(&told, &s, 1); /* the cache size */
    (void)node_replica_scraped(&heard, &s, 1);
    for (unsigned i = 0; i < 20; i++)
        deep_miss(&told, i % 2);
    assert_int_equal(told.cache.sums.told, 20); /* counters are ignored in this case */
    double size, weight;
    node_replica_size_known(&told, &size, &weight);
    assert_true(size < 0.7 && weight > 1);
    struct node_others others = {.who = 1, .size_log = weight * log(size), .size_weight = weight};
    for (unsigned i = 0; i < 40; i++) {
        node_replica_others(&heard, &others, 1, 0);
        node_replica_size_fade(&told, 0);
    }
    assert_true(fabs(heard.belief.factor - told.belief.factor) < 0.01);
    node_replica_size_known(&heard, &size, &weight);
    assert_true(weight == 0); /* what was heard is not passed on */
    deep_miss(&heard, true);  /* the same again is no news */
    for (unsigned i = 0; i < 40; i++)
        node_replica_size_fade(&heard, 0);
    assert_true(fabs(heard.belief.factor - told.belief.factor) < 0.05);
}

/* A cold engine with an empty queue would get every request at once. */
static void a_recovered_replica_starts_slowly(void **state)
{
    (void)state;
    struct node_replica k = make();
    uint64_t now = 100000;
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, now);
    k.load.requests = 1000;
    assert_false(node_replica_avoided(&k, now)); /* as far as known, up from the start */
    (void)node_replica_probed(&k, (struct node_check){.refused = true}, now);
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, now);
    for (unsigned limit = NODE_WARM_REQUESTS, s = 0; s < NODE_WARM_MS / 1000; s++, limit *= 2) {
        k.load.requests = limit / 2 - 1; /* own requests, and others' */
        k.load.remote.requests = limit / 2;
        assert_false(node_replica_avoided(&k, now + s * 1000));
        k.load.remote.requests++;
        assert_true(node_replica_avoided(&k, now + s * 1000));
    }
    assert_false(node_replica_avoided(&k, now + NODE_WARM_MS));
    k.load = (struct node_load){.requests = 4};
    struct node_scrape s = scrape_of(1000, 500);
    (void)node_replica_scraped(&k, &s, now + 10000);
    assert_false(node_replica_avoided(&k, now + 20000));
    s.start_time_s += 100;
    assert_true(node_replica_scraped(&k, &s, now + 20000));
    assert_true(node_replica_avoided(&k, now + 20000)); /* gone unseen */
}

/* Like a new replica, except for the name and the counters. */
static void a_renewed_replica_is_like_new(void **state)
{
    (void)state;
    struct node_replica k = make(), fresh = make();
    struct node_replica_config config = {
        .prefill_tokens_per_s = 10000, .decode_step_ms = 20, .bytes_per_token = 4};
    (void)node_replica_probed(&k, (struct node_check){.ok = true}, 1000);
    for (int i = 0; i < 10; i++) {
        node_replica_answered(&k, NODE_OUTCOME_ENGINE_ERROR, 1000);
        node_replica_answered(&k, NODE_OUTCOME_BROKEN, 1000);
        (void)node_replica_rate_add(&k, 1000, 0.5, 1000);
        node_replica_pace_add(&k, 10, 0.5, 1000);
    }
    node_replica_answered(&k, NODE_OUTCOME_ENGINE_BUSY, 1000);
    node_replica_bytes_believe(&k, 2, 100);
    struct node_scrape s = scrape_of(1000, 500);
    (void)node_replica_scraped(&k, &s, 1000);
    k.believed.tokens_per_s = 7;
    node_replica_present(&k, false, &config);
    assert_false(node_replica_avoided(&k, 1000));
    assert_false(node_replica_backing_off(&k, 1000));
    fresh.absent = true;
    fresh.life = 1;
    assert_memory_equal(&k, &fresh, sizeof k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(probes_decide_on_health),
        cmocka_unit_test(a_recovered_replica_starts_slowly),
        cmocka_unit_test(a_renewed_replica_is_like_new),
        cmocka_unit_test(a_router_is_no_replica_until_an_engine_answers),
        cmocka_unit_test(a_refused_port_is_down_at_once_and_reported_once),
        cmocka_unit_test(consecutive_broken_connections_take_a_replica_down),
        cmocka_unit_test(an_answered_last_resort_brings_a_replica_up),
        cmocka_unit_test(a_good_probe_does_not_end_the_back_off),
        cmocka_unit_test(engine_errors_never_take_a_replica_down),
        cmocka_unit_test(consecutive_errors_double_the_back_off),
        cmocka_unit_test(busy_is_no_failure),
        cmocka_unit_test(slow_is_no_failure),
        cmocka_unit_test(progress_of_an_engine_is_noticed),
        cmocka_unit_test(draining_is_independent_of_health),
        cmocka_unit_test(restarts_are_detected),
        cmocka_unit_test(a_missing_counter_is_no_restart),
        cmocka_unit_test(a_missing_rank_is_no_restart),
        cmocka_unit_test(a_missing_rank_is_no_restart_after_reports),
        cmocka_unit_test(sleep_loses_the_cache_once),
        cmocka_unit_test(cache_size_is_reported_or_configured),
        cmocka_unit_test(sizes_do_not_overwrite_metrics),
        cmocka_unit_test(engine_counters_correct_the_belief),
        cmocka_unit_test(counters_are_compared_with_all_routers_predictions),
        cmocka_unit_test(evidence_from_other_routers_answers_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
