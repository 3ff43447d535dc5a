/* Sources of a replica's speed (speed.h), besides streams. */
#include "node/replica/speed.h"

#include <math.h>

#include "node/replica/replica.h"
#include "tests/lib/test.h"

static const struct node_replica_config config = {
    .prefill_tokens_per_s = 10000, .decode_step_ms = 20, .bytes_per_token = 4};

static void assert_near(double actual, double expected, double share)
{
    if (!(fabs(actual - expected) <= share * fabs(expected)))
        fail_msg("%g is not near %g", actual, expected);
}

static struct node_replica replica_new(void)
{
    static struct node_replica k;
    node_replica_init(&k, SLICE("r"), NODE_ENGINE_VLLM, 1, &config);
    return k;
}

/* A reading of the metrics each second: 3,000 tokens computed at `rate`, and 200 steps of
 * `step_s`. */
static void scrape(struct node_replica *k, struct node_scrape *s, double rate, double step_s,
                   uint64_t *now_ms)
{
    *now_ms += 1000;
    s->prefill_tokens += 3000;
    s->prefill_s += 3000 / rate;
    double share = fmin(3000 / rate, 1);
    s->steps += 200;
    s->steps_s += 200 * step_s / (1 - share);
    (void)node_replica_scraped(k, s, *now_ms);
}

static struct node_scrape scrape_new(void)
{
    struct node_scrape s = node_scrape_unknown;
    s.prefill_tokens = s.prefill_s = s.steps = s.steps_s = 0;
    s.start_time_s = 1;
    return s;
}

static void the_engines_histograms_teach(void **state)
{
    (void)state;
    struct node_replica k = replica_new();
    struct node_scrape s = scrape_new();
    uint64_t now_ms = 1000;
    for (unsigned i = 0; i < 20; i++)
        scrape(&k, &s, 50000, 0.004, &now_ms);
    assert_near(k.shown.rate.value, 50000, 0.01);
    assert_near(1 / k.shown.pace.value, 0.004, 0.05);
}

/* A reading that missed half an hour, a restart and missing metrics teach nothing absurd. */
static void strange_readings_do_no_harm(void **state)
{
    (void)state;
    struct node_replica k = replica_new();
    struct node_scrape s = scrape_new();
    uint64_t now_ms = 1000;
    for (unsigned i = 0; i < 20; i++)
        scrape(&k, &s, 50000, 0.004, &now_ms);
    s.prefill_s += 1e9; /* a prompt, and a clock that jumped */
    scrape(&k, &s, 50000, 0.004, &now_ms);
    struct node_scrape gone = scrape_new(); /* restarted */
    gone.start_time_s = 500;
    (void)node_replica_scraped(&k, &gone, now_ms += 1000);
    s = node_scrape_unknown;
    s.running = 1;
    (void)node_replica_scraped(&k, &s, now_ms += 1000);
    assert_near(k.shown.rate.value, 50000, 0.01);
    assert_near(1 / k.shown.pace.value, 0.004, 0.1);
}

/* Histograms include all requests, mixed: times measured here are better. */
static void streams_are_believed_before_histograms(void **state)
{
    (void)state;
    struct node_replica k = replica_new();
    struct node_scrape s = scrape_new();
    uint64_t now_ms = 1000;
    for (unsigned i = 0; i < 40; i++) {
        assert_true(node_replica_rate_add(&k, 2000, 0.1, now_ms));
        scrape(&k, &s, 5000, 0.1, &now_ms);
    }
    assert_near(k.shown.rate.value, 20000, 0.01);
    for (unsigned i = 0; i < 40; i++)
        scrape(&k, &s, 5000, 0.1, &now_ms);
    assert_near(k.shown.rate.value, 5000, 0.01);
}

/* Answers that are all alike cannot separate prefill from decode: both are off by the same factor.
 * An answer that stopped for a minute counts next to nothing. */
static void uniform_whole_answers_scale_both_speeds(void **state)
{
    (void)state;
    struct node_replica k = replica_new();
    struct node_vote scratch[2];
    for (unsigned i = 0; i < 20; i++) {
        assert_true(node_replica_whole_add(&k, i == 10 ? 60 : 0.1, 10000, 100, 0, 1000 + i));
        node_fleet_believe(&k, 1, &config, scratch, 1000 + i);
    }
    assert_near(k.shown.rate.value, 300000, 0.05);
    assert_near(k.shown.pace.value, 1500, 0.05);
}

/* The fading was lost once in an integer division: after 300 fast answers, 100 slow ones hardly
 * showed. */
static void old_whole_answers_fade(void **state)
{
    (void)state;
    struct node_whole w = {0};
    const struct node_whole_base fast = {1e-4, 0.02};
    for (unsigned i = 0; i < 400; i++) {
        double times = i < 300 ? 1 : 0.5;
        node_whole_add(&w, times / (2 * fast.prefill_s), times / (2 * fast.decode_s));
    }
    assert_near(node_whole_factor(&w, fast), 0.5, 0.05);
}

/* Streaming clients come to a fleet without streams so far: the pace goes on from the result of
 * whole answers. */
static void streams_continue_from_whole_answers_pace(void **state)
{
    (void)state;
    struct node_replica k = replica_new();
    struct node_vote scratch[2];
    for (unsigned i = 0; i < 20; i++) {
        assert_true(node_replica_whole_add(&k, 0.6, 1000 + 500 * (i % 3), 100, 0, 1000 + i));
        node_fleet_believe(&k, 1, &config, scratch, 1000 + i);
    }
    double pace = k.shown.pace.value;
    node_replica_pace_add(&k, 1000, 1 / pace, 1100);
    assert_near(k.shown.pace.value, pace, 0.01);
    /* These requests met other queues. */
    for (unsigned i = 0; i < 300; i++)
        node_replica_pace_add(&k, 1000 * (i % 50), 0.02, 2000 + i);
    assert_near(1 / k.shown.pace.value, 0.02, 0.1);
    for (unsigned i = 0; i < 40; i++) {
        (void)node_replica_whole_add(&k, 0.6, 1000 + 500 * (i % 3), 100, 0, 100000 + i);
        node_fleet_believe(&k, 1, &config, scratch, 100000 + i);
    }
    pace = k.shown.pace.value;
    assert_true(1 / pace < 0.007);
    node_replica_pace_add(&k, 1000, 1 / pace, 100100);
    assert_near(k.shown.pace.value, pace, 0.01);
}

/* A nearly zero sum of seconds. */
static void impossibly_short_steps_are_ignored(void **state)
{
    (void)state;
    struct node_replica k = replica_new();
    assert_false(node_replica_pace_add(&k, 1000, 1e-300, 1000));
    assert_int_equal(k.shown.pace.samples, 0);
    assert_true(node_replica_pace_add(&k, 1000, 0.02, 1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engines_histograms_teach),
        cmocka_unit_test(strange_readings_do_no_harm),
        cmocka_unit_test(streams_are_believed_before_histograms),
        cmocka_unit_test(uniform_whole_answers_scale_both_speeds),
        cmocka_unit_test(old_whole_answers_fade),
        cmocka_unit_test(streams_continue_from_whole_answers_pace),
        cmocka_unit_test(impossibly_short_steps_are_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
