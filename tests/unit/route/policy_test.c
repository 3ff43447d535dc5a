#include "node/route/policy.h"
#include "node/route/router.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/lib/test.h"

enum { COUNT_MAX = 24 };

static struct node_candidate candidates[COUNT_MAX];
static struct prng prng;
static uint64_t turn;

static struct node_policy_input input_of(unsigned count)
{
    return (struct node_policy_input){.candidates = candidates,
                                      .count = count,
                                      .near_tie = 0.02,
                                      .load_bound = 1.25,
                                      .prng = &prng,
                                      .turn = &turn};
}

static int setup(void **state)
{
    (void)state;
    memset(candidates, 0, sizeof candidates);
    for (unsigned i = 0; i < COUNT_MAX; i++) {
        candidates[i].replica = i;
        candidates[i].name_hash = hash_mix(i + 1);
    }
    prng_seed(&prng, 1);
    turn = 0;
    return 0;
}

static unsigned choose(const char *policy, const struct node_policy_input *in)
{
    return node_policy_find(policy)->choose(in);
}

static void policies_have_unique_names(void **state)
{
    (void)state;
    const char *const *names = node_policy_names;
    assert_string_equal(names[0], "cache_aware"); /* the default comes first in --help */
    for (unsigned i = 0; names[i] != NULL; i++) {
        assert_string_equal(node_policy_find(names[i])->name, names[i]);
        for (unsigned other = 0; other < i; other++)
            assert_string_not_equal(names[i], names[other]);
    }
    assert_null(node_policy_find("nonsense"));
}

/* Engines with unknown queues: at equal costs the shortest known queue is taken. Each of several
 * routers looks at a part of them, so that not all pick the same. */
static void equal_costs_prefer_few_requests(void **state)
{
    (void)state;
    enum { COUNT = 8, TURNS = 4000 };
    for (unsigned i = 0; i < COUNT; i++) {
        candidates[i].cost.total_s = 1 + 0.001 * (COUNT - i);
        candidates[i].requests = 10 + i;
        candidates[i].weight = 1;
    }
    candidates[1].cost.total_s = 2;
    candidates[1].requests = 0;
    for (unsigned routers = 1; routers <= 4; routers += 3) {
        struct node_policy_input in = input_of(COUNT);
        in.routers = routers;
        unsigned times[COUNT] = {0};
        for (unsigned i = 0; i < TURNS; i++)
            times[choose("cache_aware", &in)]++;
        assert_int_equal(times[1], 0);
        if (routers == 1)
            assert_int_equal(times[0], TURNS);
        else
            assert_in_range(times[0], TURNS / 5, TURNS / 2);
        assert_true(times[2] >= times[4] && times[4] >= times[7]);
    }
}

/* In any state the result is the index of a candidate. */
static void every_policy_stays_in_bounds(void **state)
{
    (void)state;
    for (const char *const *name = node_policy_names; *name; name++) {
        for (int i = 0; i < 3000; i++) {
            unsigned count = 1 + (unsigned)prng_below(&prng, COUNT_MAX);
            for (unsigned k = 0; k < count; k++) {
                candidates[k].requests = prng_below(&prng, 4) ? prng_below(&prng, 9) : 0;
                candidates[k].tokens = prng_below(&prng, 3) * 1000;
                candidates[k].cost.total_s = prng_unit(&prng) * (double)prng_below(&prng, 5);
            }
            struct node_policy_input in = input_of(count);
            in.session_key = prng_below(&prng, 3);
            in.prefix_key = prng_below(&prng, 3);
            assert_true(choose(*name, &in) < count);
        }
    }
}

static void cache_aware_picks_the_least_cost(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++)
        candidates[i].cost.total_s = 1 + i;
    struct node_policy_input in = input_of(6);
    candidates[4].cost.total_s = 0.5;
    for (int i = 0; i < 50; i++)
        assert_int_equal(choose("cache_aware", &in), 4);
    /* Within two per cent: both, and no other. */
    candidates[1].cost.total_s = 0.505;
    unsigned seen[6] = {0};
    for (int i = 0; i < 400; i++)
        seen[choose("cache_aware", &in)]++;
    assert_true(seen[1] > 120 && seen[4] > 120 && seen[1] + seen[4] == 400);
}

static void least_policies_choose_randomly_among_equals(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        candidates[i].requests = candidates[i].tokens = i == 1 || i == 3 ? 2 : 7;
    struct node_policy_input in = input_of(5);
    unsigned by_requests[5] = {0}, by_tokens[5] = {0};
    for (int i = 0; i < 400; i++) {
        by_requests[choose("least_request", &in)]++;
        by_tokens[choose("least_tokens", &in)]++;
    }
    assert_true(by_requests[1] > 120 && by_requests[1] + by_requests[3] == 400);
    assert_true(by_tokens[1] > 120 && by_tokens[1] + by_tokens[3] == 400);
}

static void round_robin_takes_turns(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(3);
    for (unsigned i = 0; i < 9; i++)
        assert_int_equal(choose("round_robin", &in), i % 3);
}

static void two_choices_never_pick_the_worst(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        candidates[i].requests = i;
    struct node_policy_input in = input_of(5);
    unsigned seen[5] = {0};
    for (int i = 0; i < 2000; i++)
        seen[choose("power_of_two", &in)]++;
    assert_int_equal(seen[4], 0);
    assert_true(seen[0] > seen[1] && seen[1] > seen[2] && seen[2] > seen[3] && seen[3] > 0);
}

static void a_session_keeps_its_replica(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(8);
    unsigned before[1000], share[8] = {0}, moved = 0;
    for (unsigned i = 0; i < 1000; i++) {
        in.session_key = hash_mix(i + 77);
        before[i] = choose("session", &in);
        assert_int_equal(choose("session", &in), before[i]);
        share[before[i]]++;
    }
    for (unsigned k = 0; k < 8; k++)
        assert_true(share[k] > 80 && share[k] < 180);
    /* A replica goes: only the sessions there move. */
    memmove(&candidates[3], &candidates[4], 4 * sizeof candidates[0]);
    in.count = 7;
    for (unsigned i = 0; i < 1000; i++) {
        in.session_key = hash_mix(i + 77);
        unsigned replica = candidates[choose("session", &in)].replica;
        assert_true(before[i] == 3 || replica == before[i]);
        moved += replica != before[i];
    }
    assert_int_equal(moved, share[3]);
}

static void without_a_session_the_prompt_decides(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(4);
    in.load_bound = 1000;
    for (unsigned i = 0; i < 40; i++) {
        in.prefix_key = hash_mix(i + 5);
        unsigned by_prompt = choose("prefix_hash", &in);
        for (unsigned again = 0; again < 3; again++)
            assert_int_equal(choose("session", &in), by_prompt);
    }
}

static void prefix_hash_bounds_the_load(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(4);
    in.prefix_key = 12345;
    unsigned home = choose("prefix_hash", &in);
    assert_int_equal(choose("prefix_hash", &in), home);
    /* 400 equal prompts, all still in flight: no replica gets more than 1.25 times the mean. */
    for (unsigned i = 0; i < 400; i++)
        candidates[choose("prefix_hash", &in)].requests++;
    uint64_t total = 0;
    for (unsigned k = 0; k < 4; k++) {
        assert_true(candidates[k].requests <= 126);
        total += candidates[k].requests;
    }
    assert_int_equal(total, 400);
    assert_true(candidates[home].requests >= 125);
}

static void prefix_hash_without_a_prompt_uses_load(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(4);
    candidates[0].requests = candidates[1].requests = candidates[3].requests = 2;
    assert_int_equal(choose("prefix_hash", &in), 2);
}

/* The number of choices of each of the first `count` replicas in `rounds` turns. */
static void shares_of(const char *policy, struct node_policy_input *in, unsigned rounds,
                      unsigned *seen)
{
    memset(seen, 0, in->count * sizeof *seen);
    for (unsigned i = 0; i < rounds; i++) {
        in->session_key = in->prefix_key = hash_mix(i + 1);
        seen[choose(policy, in)]++;
    }
}

/* With any policy: if nothing else distinguishes the replicas, each gets a share by weight. */
static void work_follows_the_weights(void **state)
{
    (void)state;
    static const double weights[] = {1, 2, 1, 0.5, 3.5};
    static const char *const policies[] = {"cache_aware", "chunk_aware",   "prefix_hash",
                                           "session",     "least_request", "least_tokens",
                                           "round_robin", "random"};
    struct node_policy_input in = input_of(ARRAY_LEN(weights));
    in.weighted = true;
    in.load_bound = 1000; /* only the key's order */
    for (unsigned i = 0; i < in.count; i++)
        candidates[i].weight = weights[i];
    for (unsigned p = 0; p < ARRAY_LEN(policies); p++) {
        unsigned seen[ARRAY_LEN(weights)];
        shares_of(policies[p], &in, 8000, seen);
        for (unsigned i = 0; i < in.count; i++) {
            if (fabs(seen[i] / 8000.0 - weights[i] / 8) > 0.02)
                fail_msg("%s: %u of 8000 for the weight %g of 8", policies[p], seen[i], weights[i]);
        }
    }
    /* Equal weights count as none. */
    in.weighted = false;
    turn = 0;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(choose("round_robin", &in), i % in.count);
}

/* A replica of twice the weight may have twice as much under way. */
static void load_counts_by_weight(void **state)
{
    (void)state;
    static const char *const policies[] = {"least_request", "least_tokens", "power_of_two"};
    struct node_policy_input in = input_of(2);
    in.weighted = true;
    candidates[0].weight = 1;
    candidates[1].weight = 2;
    for (unsigned p = 0; p < ARRAY_LEN(policies); p++) {
        candidates[0].requests = candidates[0].tokens = 3;
        candidates[1].requests = candidates[1].tokens = 5;
        for (unsigned i = 0; i < 20; i++)
            assert_int_equal(choose(policies[p], &in), 1);
        candidates[1].requests = candidates[1].tokens = 7;
        for (unsigned i = 0; i < 20; i++)
            assert_int_equal(choose(policies[p], &in), 0);
    }
    /* Each replica has a separate bound in prefix_hash. */
    candidates[0].requests = 4;
    candidates[1].requests = 7;
    in.load_bound = 1;
    for (unsigned i = 0; i < 20; i++) {
        in.prefix_key = hash_mix(i + 1);
        assert_int_equal(choose("prefix_hash", &in), 1);
    }
}

/* With other weights only sessions to or from the changed replica move. */
static void a_changed_weight_moves_few_sessions(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(6);
    in.weighted = true;
    for (unsigned i = 0; i < in.count; i++)
        candidates[i].weight = 1;
    unsigned before[1000], moved = 0;
    for (unsigned i = 0; i < 1000; i++) {
        in.session_key = hash_mix(i + 77);
        before[i] = choose("session", &in);
    }
    candidates[2].weight = 2;
    for (unsigned i = 0; i < 1000; i++) {
        in.session_key = hash_mix(i + 77);
        unsigned now = choose("session", &in);
        if (now != before[i])
            assert_int_equal(now, 2);
        moved += now != before[i];
    }
    assert_true(moved > 60 && moved < 200); /* 2/7 - 1/6 of them: 119 */
}

/* Among equal replicas each router takes replicas of its share, and the cheapest of those. */
static void routers_divide_equal_replicas_among_them(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(8);
    in.routers = 4;
    for (unsigned i = 0; i < 8; i++)
        candidates[i].owner = i % 4;
    for (in.place = 0; in.place < 4; in.place++) {
        for (int i = 0; i < 20; i++)
            assert_int_equal(choose("cache_aware", &in) % 4, in.place);
    }
    in.place = 4; /* no share: any replica */
    unsigned seen = 0;
    for (int i = 0; i < 200; i++)
        seen |= 1u << choose("cache_aware", &in);
    assert_int_equal(seen, 0xff);
    in.place = 2;
    for (unsigned i = 0; i < 8; i++)
        candidates[i].cost = (struct node_cost){.queue_s = 0.1 * i, .total_s = 0.1 * i};
    assert_int_equal(choose("cache_aware", &in), 0); /* none of the share is as good */
    in.unseen_s = 0.4;                               /* the first three fill up to 0.23 */
    assert_int_equal(choose("cache_aware", &in), 2);
    in.place = 3;
    assert_true(choose("cache_aware", &in) < 3); /* any of the three */
    in.routers = 1;                              /* a single router sees everything */
    assert_int_equal(choose("cache_aware", &in), 0);
}

/* Others' work fills queues. This does not improve a cache without any part of the prompt. */
static void unseen_work_moves_no_prompt_from_its_cache(void **state)
{
    (void)state;
    struct node_policy_input in = input_of(8);
    in.routers = 8;
    in.unseen_s = 10;
    for (unsigned i = 0; i < 8; i++) {
        candidates[i].owner = i;
        candidates[i].cost = (struct node_cost){.uncached_s = i == 5 ? 0.01 : 1, .queue_s = 0.2};
        candidates[i].cost.total_s = candidates[i].cost.uncached_s + candidates[i].cost.queue_s;
    }
    for (in.place = 0; in.place < 8; in.place++)
        assert_int_equal(choose("cache_aware", &in), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(policies_have_unique_names, setup),
        cmocka_unit_test_setup(equal_costs_prefer_few_requests, setup),
        cmocka_unit_test_setup(every_policy_stays_in_bounds, setup),
        cmocka_unit_test_setup(cache_aware_picks_the_least_cost, setup),
        cmocka_unit_test_setup(routers_divide_equal_replicas_among_them, setup),
        cmocka_unit_test_setup(unseen_work_moves_no_prompt_from_its_cache, setup),
        cmocka_unit_test_setup(least_policies_choose_randomly_among_equals, setup),
        cmocka_unit_test_setup(round_robin_takes_turns, setup),
        cmocka_unit_test_setup(two_choices_never_pick_the_worst, setup),
        cmocka_unit_test_setup(a_session_keeps_its_replica, setup),
        cmocka_unit_test_setup(without_a_session_the_prompt_decides, setup),
        cmocka_unit_test_setup(prefix_hash_bounds_the_load, setup),
        cmocka_unit_test_setup(prefix_hash_without_a_prompt_uses_load, setup),
        cmocka_unit_test_setup(work_follows_the_weights, setup),
        cmocka_unit_test_setup(load_counts_by_weight, setup),
        cmocka_unit_test_setup(a_changed_weight_moves_few_sessions, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
