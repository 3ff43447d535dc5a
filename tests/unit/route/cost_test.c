/* Each term against arithmetic done by hand. */
#include "node/route/cost.h"

#include <math.h>

#include "tests/lib/test.h"

static void assert_close(double actual, double expected)
{
    if (fabs(actual - expected) > 1e-9)
        fail_msg("%.12g is not %.12g", actual, expected);
}

static const struct node_cost_input base = {
    .tokens_per_s = 10000, .displaced_weight = 2, .decode_weight = 0.5, .weight = 1};

static void an_idle_empty_replica_costs_the_prompt(void **state)
{
    (void)state;
    struct node_cost_input in = base;
    in.prompt_tokens = 5000;
    in.output_tokens = 400;
    in.step_context_s = 30e-9;
    struct node_cost c = node_cost_of(&in);
    assert_close(c.uncached_s, 0.5);
    assert_close(c.queue_s + c.displaced_s + c.decode_s, 0);
    assert_close(c.total_s, 0.5);
}

static void cached_tokens_cost_nothing(void **state)
{
    (void)state;
    struct node_cost_input in = base;
    in.prompt_tokens = 5000;
    in.cached_tokens = 4000;
    assert_close(node_cost_of(&in).total_s, 0.1);
}

static void queue_and_displaced_add_up(void **state)
{
    (void)state;
    struct node_cost_input in = base;
    in.queue_s = 1.5;
    in.displaced_tokens = 2500;
    struct node_cost c = node_cost_of(&in);
    assert_close(c.displaced_s, 0.25);
    assert_close(c.total_s, 1.5 + 2 * 0.25);
}

static void decode_counts_both_ways(void **state)
{
    (void)state;
    /* Two requests of 100,000 tokens in all; 10,000 tokens more, 2,000 of them uncached; 300 out:
     *   300 * 30e-9 * 100,000           = 0.9
     *   2 * 30e-9 * 10,000 * 300 / 2    = 0.09
     *   2 * 2,000 / 10,000              = 0.4 */
    struct node_cost_input in = base;
    in.prompt_tokens = 10000;
    in.cached_tokens = 8000;
    in.output_tokens = 300;
    in.requests = 2;
    in.context_tokens = 100000;
    in.step_context_s = 30e-9;
    struct node_cost c = node_cost_of(&in);
    assert_close(c.decode_s, 1.39);
    assert_close(c.total_s, 0.2 + 0.5 * 1.39);
}

/* Another replica has 6,000 of 8,000 uncached tokens, and three more requests need those: 2,000 and
 * a quarter of 6,000 hold up the requests running here. */
static void followers_share_the_cost_of_a_copy(void **state)
{
    (void)state;
    struct node_cost_input in = base;
    in.prompt_tokens = 8000;
    in.requests = 2;
    in.copied_tokens = 6000;
    assert_close(node_cost_of(&in).decode_s, 2 * 0.8);
    in.followers = 3;
    struct node_cost c = node_cost_of(&in);
    assert_close(c.decode_s, 2 * (0.2 + 0.6 / 4));
    assert_close(c.uncached_s, 0.8); /* a request sent there waits for everything */
}

/* A saving of 0.3 s by a cached prefix outweighed 8 s of queue at a replica with 100 running
 * requests. */
static void a_crowd_does_not_outweigh_a_long_queue(void **state)
{
    (void)state;
    for (double n = 0; n <= 256; n += 8) {
        struct node_cost_input held = {.prompt_tokens = 4000,
                                       .cached_tokens = 4000,
                                       .output_tokens = 300,
                                       .requests = n,
                                       .requests_typical = n,
                                       .context_tokens = n * 4000,
                                       .tokens_per_s = 10000,
                                       .step_context_s = 30e-9,
                                       .displaced_weight = 6,
                                       .decode_weight = 0.25,
                                       .weight = 1};
        struct node_cost_input missed = held;
        missed.cached_tokens = 1000;
        held.queue_s = 0.25;
        assert_true(node_cost_of(&held).total_s < node_cost_of(&missed).total_s);
        held.queue_s = 1.2;
        assert_true(node_cost_of(&held).total_s > node_cost_of(&missed).total_s);
    }
}

/* Both are idle, and the prompt is short: the answer takes longer at the slow engine. */
static void an_idle_slow_engine_costs_more_than_a_fast_one(void **state)
{
    (void)state;
    struct node_cost_input fast = {.prompt_tokens = 100,
                                   .output_tokens = 300,
                                   .tokens_per_s = 10000,
                                   .decode_weight = 0.25,
                                   .weight = 1};
    struct node_cost_input slow = fast;
    slow.step_more_s = 0.020;
    assert_true(node_cost_of(&slow).total_s > node_cost_of(&fast).total_s + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_empty_replica_costs_the_prompt),
        cmocka_unit_test(cached_tokens_cost_nothing),
        cmocka_unit_test(queue_and_displaced_add_up),
        cmocka_unit_test(decode_counts_both_ways),
        cmocka_unit_test(followers_share_the_cost_of_a_copy),
        cmocka_unit_test(a_crowd_does_not_outweigh_a_long_queue),
        cmocka_unit_test(an_idle_slow_engine_costs_more_than_a_fast_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
