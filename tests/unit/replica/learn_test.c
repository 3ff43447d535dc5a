#include "node/replica/constants.h"
#include "node/replica/learn.h"

#include <math.h>

#include "base/prng.h"
#include "tests/lib/test.h"

static void assert_near(double actual, double expected, double share)
{
    if (fabs(actual - expected) > share * fabs(expected))
        fail_msg("%g is not near %g", actual, expected);
}

static void ratio_starts_at_the_prior(void **state)
{
    (void)state;
    struct node_ratio r = node_ratio_of(10000, 0.5, 20);
    assert_near(node_ratio_value(&r), 10000, 1e-12);
}

static void ratio_weighs_samples_by_their_size(void **state)
{
    (void)state;
    struct node_ratio r = node_ratio_of(10, 1, 1000);
    node_ratio_add(&r, 180, 9); /* 20 per unit; nine units, and a unit of the prior */
    assert_near(node_ratio_value(&r), 19, 1e-12);
}

static void ratio_follows_a_change_from_far_away(void **state)
{
    (void)state;
    struct node_ratio r = node_ratio_of(10000, 0.5, 20);
    for (int i = 0; i < 60; i++)
        node_ratio_add(&r, 1200, 1.5); /* 800 tokens a second */
    assert_near(node_ratio_value(&r), 800, 0.05);
    for (int i = 0; i < 400; i++)
        node_ratio_add(&r, 30000, 1);
    assert_near(node_ratio_value(&r), 30000, 0.01);
}

static void ratio_is_not_moved_by_an_absurd_sample(void **state)
{
    (void)state;
    struct node_ratio r = node_ratio_of(10000, 20, 20);
    node_ratio_add(&r, 1e12, 1);
    assert_true(node_ratio_value(&r) < 13500);
    node_ratio_add(&r, 0, 1);
    assert_true(node_ratio_value(&r) > 9000);
    double before = node_ratio_value(&r);
    node_ratio_add(&r, 5, 0);
    node_ratio_add(&r, 5, -1);
    node_ratio_add(&r, NAN, 1);
    assert_true(node_ratio_value(&r) == before);
}

static void the_upper_median_is_the_faster_of_two(void **state)
{
    (void)state;
    struct node_vote two[] = {{600, 1}, {10000, 1}};
    assert_true(node_votes_median(two, 2) == 10000);
    struct node_vote weighed[] = {{5, 1}, {3, 2.5}, {9, 1}};
    assert_true(node_votes_median(weighed, 3) == 3);
    struct node_vote none[] = {{5, 0}};
    assert_true(node_votes_median(none, 1) == 0);
    assert_true(node_votes_median(NULL, 0) == 0);
}

static void speed_has_no_prior_and_heeds_no_stall(void **state)
{
    (void)state;
    struct node_speed s = {0};
    node_speed_add(&s, 0, 0);
    node_speed_add(&s, -1, 0);
    node_speed_add(&s, NAN, 0);
    assert_true(s.samples == 0 && s.value == 0);
    static const double samples[] = {600, 10000, 11000, 0.5, 9000};
    for (unsigned i = 0; i < 5; i++)
        node_speed_add(&s, samples[i], 1000 + i);
    assert_near(s.value, 10000, 1e-6);
    for (unsigned i = 0; i < 50; i++)
        node_speed_add(&s, 10000, 2000);
    for (unsigned i = 0; i < 14; i++) /* images had to be fetched first */
        node_speed_add(&s, 1, 2000);
    assert_near(s.value, 10000, 1e-6);
    assert_true(s.samples == 69);
}

static void speed_follows_a_lasting_change(void **state)
{
    (void)state;
    struct node_speed s = {0};
    for (unsigned i = 0; i < 1000; i++)
        node_speed_add(&s, 10000, 1000);
    for (unsigned i = 0; i < 50; i++)
        node_speed_add(&s, 1000, 1000);
    assert_near(s.value, 1000, 1e-3);
}

static void speed_evidence_fades_with_time(void **state)
{
    (void)state;
    struct node_speed s = {0};
    for (unsigned i = 0; i < 100; i++)
        node_speed_add(&s, 500, 1000);
    assert_true(node_speed_fresh(&s, 1000) == NODE_SPEED_RECENT_MAX);
    uint64_t later_ms = 1000 + 5 * (uint64_t)RULE(HALF_LIFE_MS);
    assert_true(node_speed_fresh(&s, later_ms) == 1);
    node_speed_add(&s, 10000, later_ms);
    assert_true(s.value == 10000 && s.fresh == 2);
    assert_true(node_speed_fresh(&s, later_ms + 3600000) == 0);
    node_speed_hear(&s, 700, 3, later_ms);
    assert_true(s.samples == 3 && node_speed_fresh(&s, later_ms) == 3);
}

/* Routers that believe each other more than their own samples would keep a wrong figure for
 * ever. */
static void own_samples_outvote_reports(void **state)
{
    (void)state;
    struct node_speed s = {0};
    node_speed_hear(&s, 20000, 1000, 1000);
    assert_true(s.value == 20000 && node_speed_fresh(&s, 1000) == NODE_SPEED_RECENT_MAX);
    for (unsigned i = 0; i < 7; i++) {
        node_speed_add(&s, 10000, 1000);
        node_speed_hear(&s, 20000, 1000 + i, 1000);
    }
    assert_true(s.value == 10000);
}

static void a_fading_sum_halves_with_its_half_life(void **state)
{
    (void)state;
    struct node_fading f = {0};
    node_fading_add(&f, 100, 30000, 1000);
    assert_near(node_fading_now(&f, 30000, 1000), 100, 0);
    assert_near(node_fading_now(&f, 30000, 31000), 50, 0.001);
    assert_near(node_fading_now(&f, 30000, 500), 100, 0); /* an earlier time */
    node_fading_add(&f, 10, 30000, 31000);
    assert_near(node_fading_now(&f, 30000, 31000), 60, 0.001);
    assert_near(node_fading_mean_ms(30000), 30000 / 0.693147, 1e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratio_starts_at_the_prior),
        cmocka_unit_test(ratio_weighs_samples_by_their_size),
        cmocka_unit_test(ratio_follows_a_change_from_far_away),
        cmocka_unit_test(ratio_is_not_moved_by_an_absurd_sample),
        cmocka_unit_test(the_upper_median_is_the_faster_of_two),
        cmocka_unit_test(speed_has_no_prior_and_heeds_no_stall),
        cmocka_unit_test(speed_follows_a_lasting_change),
        cmocka_unit_test(speed_evidence_fades_with_time),
        cmocka_unit_test(own_samples_outvote_reports),
        cmocka_unit_test(a_fading_sum_halves_with_its_half_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
