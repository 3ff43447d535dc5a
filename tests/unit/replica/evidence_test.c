#include "node/replica/constants.h"
#include "node/replica/evidence.h"

#include <math.h>

#include "base/check.h"
#include "base/prng.h"
#include "tests/lib/test.h"

/* A cache of `truth` times the reported size. Prompts of 10,000 tokens: a system prompt in all, and
 * a history last used `depth` of the reported size before. The fraction `share` of the cached
 * tokens is used. */
struct engine {
    double truth, share;
    double depth_min, depth_max; /* drawn evenly in logarithms */
    double head_start;
    struct prng prng;
};

/* The part of a prompt in a cache of `size` times the reported size. */
static double reach_tokens(const struct node_reach *reach, double size)
{
    double sum = 0;
    for (unsigned i = 0; i < reach->count; i++) {
        const struct node_part *p = &reach->parts[i];
        double tokens = (double)p->tokens, from = (double)p->from, to = (double)p->to;
        sum += size >= to ? tokens : size <= from ? 0 : tokens * (size - from) / (to - from);
    }
    return sum;
}

static struct node_evidence ask(struct engine *e, unsigned prompts)
{
    struct node_evidence evidence;
    node_evidence_init(&evidence);
    prng_seed(&e->prng, 7);
    for (unsigned i = 0; i < prompts; i++) {
        double depth = e->depth_min * pow(e->depth_max / e->depth_min, prng_unit(&e->prng));
        struct node_reach reach = {
            .count = 2,
            .parts = {{2000, 0, 0.01F}, {7000, (float)depth, (float)(depth * 1.1)}},
        };
        double held = reach_tokens(&reach, e->truth);
        bool used = prng_unit(&e->prng) < e->share;
        float expected[NODE_SIZES] = {0};
        node_reach_sum(&reach, 1, expected);
        node_evidence_add(&evidence, expected, used ? held : 0, 10000, 1, e->head_start);
    }
    return evidence;
}

static void assert_within(double actual, double expected, double share)
{
    if (fabs(actual - expected) > share * expected)
        fail_msg("%g is not %g", actual, expected);
}

static void a_wrong_reported_cache_size_is_detected(void **state)
{
    (void)state;
    static const double truths[] = {0.004, 0.05, 0.1, 0.25, 0.5, 0.7, 1, 1.4, 2};
    for (unsigned i = 0; i < ARRAY_LEN(truths); i++) {
        struct engine e = {.truth = truths[i],
                           .share = 1,
                           .depth_min = truths[i] / 30,
                           .depth_max = fmax(truths[i] * 3, 1),
                           .head_start = RULE(FEW)};
        struct node_evidence found = ask(&e, 200);
        assert_within(found.size, truths[i], 0.1);
        assert_within(found.share, 1, 0.05);
        assert_int_equal(found.size == 1, truths[i] == 1);
        assert_true(truths[i] == 1 || found.weight > 1);
    }
}

/* The engine uses fewer cached tokens for another reason: ranks behind the same URL, a template
 * with moved text, log-probabilities. Such requests once reduced the believed size to a quarter. */
static void unused_hits_lower_the_reuse_share_alone(void **state)
{
    (void)state;
    static const double shares[] = {1.0 / 8, 1.0 / 4, 0.5, 0.75};
    for (unsigned i = 0; i < ARRAY_LEN(shares); i++) {
        struct engine e = {.truth = 1,
                           .share = shares[i],
                           .depth_min = 0.001,
                           .depth_max = 3,
                           .head_start = RULE(FEW)};
        struct node_evidence found = ask(&e, 400);
        assert_true(found.size == 1);
        assert_within(found.share, shares[i], 0.35);
    }
    struct engine never = {
        .truth = 1, .share = 0, .depth_min = 0.01, .depth_max = 0.3, .head_start = RULE(FEW)};
    struct node_evidence found = ask(&never, 500);
    assert_true(found.size == 1 && found.share < 0.05);
}

static void cache_size_and_reuse_share_are_distinguished(void **state)
{
    (void)state;
    struct engine e = {
        .truth = 0.1, .share = 0.6, .depth_min = 0.001, .depth_max = 1, .head_start = RULE(FEW)};
    struct node_evidence found = ask(&e, 300);
    assert_within(found.size, 0.1, 0.2);
    assert_within(found.share, 0.6, 0.2);
}

/* Misses deep in the cache are no evidence while no access as deep was ever a hit, or a miss. */
static void prompts_of_equal_depth_keep_the_reported_size(void **state)
{
    (void)state;
    struct engine e = {
        .truth = 1, .share = 1, .depth_min = 0.001, .depth_max = 0.1, .head_start = RULE(FEW)};
    assert_true(ask(&e, 100).size == 1);
    e.depth_max = 0.8;
    assert_true(ask(&e, 100).size == 1);
}

static void an_absurd_answer_does_little(void **state)
{
    (void)state;
    struct engine e = {
        .truth = 0.0001, .share = 1, .depth_min = 0.9, .depth_max = 0.91, .head_start = RULE(FEW)};
    assert_true(ask(&e, 1).size == 1);
    assert_true(ask(&e, 10).size < 0.95);
}

static void fading_evidence_restores_the_reported_size(void **state)
{
    (void)state;
    struct engine e = {
        .truth = 0.1, .share = 1, .depth_min = 0.001, .depth_max = 1, .head_start = RULE(FEW)};
    struct node_evidence found = ask(&e, 100);
    assert_within(found.size, 0.1, 0.2);
    for (unsigned s = 0; s < 600; s++)
        node_evidence_fade(&found, 1, e.head_start);
    assert_within(found.size, 0.1, 0.2); /* ten minutes without a request: unchanged */
    for (unsigned s = 0; s < 3 * 3600; s++)
        node_evidence_fade(&found, 1, e.head_start);
    assert_true(found.size == 1 && found.share > 0.95);
}

/* The sum of many requests is a single equation. Several sums, each with another share of deep
 * requests, give the same result as single requests. */
static void counter_windows_give_the_same_result(void **state)
{
    (void)state;
    struct node_evidence e;
    node_evidence_init(&e);
    struct prng prng;
    prng_seed(&prng, 3);
    for (unsigned window = 0; window < 30; window++) {
        float expected[NODE_SIZES] = {0};
        double cached = 0;
        double deepest = 0.05 + 2 * prng_unit(&prng);
        for (unsigned i = 0; i < 8; i++) {
            float depth = (float)(deepest * prng_unit(&prng));
            struct node_reach reach = {.count = 1, .parts = {{8000, depth, depth * 1.05F}}};
            node_reach_sum(&reach, 1, expected);
            cached += reach_tokens(&reach, 0.5);
        }
        node_evidence_add(&e, expected, cached, 80000, 8, RULE(FEW));
    }
    assert_within(e.size, 0.5, 0.1);
    assert_within(e.share, 1, 0.1);
}

static void sums_match_the_hits_at_each_cache_size(void **state)
{
    (void)state;
    struct prng prng;
    prng_seed(&prng, 5);
    for (unsigned n = 0; n < 500; n++) {
        struct node_reach reach = {.count = 1 + (unsigned)prng_below(&prng, NODE_PARTS_MAX)};
        for (unsigned i = 0; i < reach.count; i++) {
            float from = (float)exp2(14 * prng_unit(&prng) - 10);
            float wide = prng_below(&prng, 3) == 0 ? 1 : (float)(1 + prng_unit(&prng));
            reach.parts[i] =
                (struct node_part){(float)(9000 * prng_unit(&prng)), from, from * wide};
        }
        if (n % 50 == 0) /* of an engine without a known size */
            reach.parts[0] = (struct node_part){1000, INFINITY, INFINITY};
        float sums[NODE_SIZES] = {0};
        node_reach_sum(&reach, 2, sums);
        node_reach_sum(&reach, -1, sums);
        for (unsigned i = 0; i < NODE_SIZES; i++) {
            double size = exp2(((double)i - NODE_SIZES_BELOW) / NODE_SIZES_PER_DOUBLING);
            double held = reach_tokens(&reach, (double)(float)size);
            assert_true(fabs((double)sums[i] - held) < 0.1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_reported_cache_size_is_detected),
        cmocka_unit_test(unused_hits_lower_the_reuse_share_alone),
        cmocka_unit_test(cache_size_and_reuse_share_are_distinguished),
        cmocka_unit_test(prompts_of_equal_depth_keep_the_reported_size),
        cmocka_unit_test(an_absurd_answer_does_little),
        cmocka_unit_test(fading_evidence_restores_the_reported_size),
        cmocka_unit_test(counter_windows_give_the_same_result),
        cmocka_unit_test(sums_match_the_hits_at_each_cache_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
