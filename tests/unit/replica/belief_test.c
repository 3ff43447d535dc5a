#include "node/replica/belief.h"

#include <math.h>

#include "tests/lib/test.h"

enum { MASK = 15 };

/* Blocks by generation 0..9; `now` is 8, so the newest generation of the ring is 9. */
static struct crdt_index_ring ring_of(const uint32_t *counts)
{
    struct crdt_index_ring ring = {.counts = counts, .mask = MASK, .newest = 9, .oldest = 1};
    for (uint32_t g = ring.oldest; g <= ring.newest; g++)
        ring.total += crdt_index_ring_at(&ring, g);
    return ring;
}

static void assert_near(double actual, double expected)
{
    if (fabs(actual - expected) > 1e-6)
        fail_msg("%g is not %g", actual, expected);
}

static const uint32_t counts[MASK + 1] = {0, 50, 40, 0, 30, 20, 0, 10, 10, 0};

static void everything_fits_a_large_cache(void **state)
{
    (void)state;
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 1000, 0);
    assert_int_equal(b.floor, 1);
    assert_near(b.floor_share, 1);
    assert_near(b.present_blocks, 160);
    assert_false(b.stale);
}

static void the_newest_blocks_that_fit_are_present(void **state)
{
    (void)state;
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 85, 0); /* 10 + 10 + 20 + 30, and 15 of the 40 */
    assert_int_equal(b.floor, 2);
    assert_near(b.floor_share, 15.0 / 40);
    assert_near(b.present_blocks, 85);
    node_belief_refresh(&b, &ring, 70, 0);
    assert_int_equal(b.floor, 4);
    assert_near(b.floor_share, 1);
    b.factor = 0.5;
    node_belief_refresh(&b, &ring, 80, 0);
    assert_int_equal(b.floor, 5);
    assert_near(b.floor_share, 1);
}

static void displaced_counts_the_oldest_first(void **state)
{
    (void)state;
    struct node_decay decay;
    node_decay_fill(&decay, 10000, 100); /* a generation is a tenth of the horizon */
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 90, 0); /* 20 of generation 2, all from 4 on */
    assert_near(node_belief_displaced(&b, &ring, &decay, 0, 0, 0), 0);
    double e7 = exp(-0.7), e5 = exp(-0.5);
    assert_near(node_belief_displaced(&b, &ring, &decay, 15, 0, 0), 15 * e7);
    assert_near(node_belief_displaced(&b, &ring, &decay, 25, 0, 0), 20 * e7 + 5 * e5);
    /* The prompt's own blocks are used again and stay: the next older blocks go. */
    assert_near(node_belief_displaced(&b, &ring, &decay, 25, 15, 2), 5 * e7 + 20 * e5);
    /* More than the cache's size: everything goes. */
    assert_near(node_belief_displaced(&b, &ring, &decay, 1e6, 0, 0),
                20 * e7 + 30 * e5 + 20 * exp(-0.4) + 10 * exp(-0.2) + 10 * exp(-0.1));
    node_belief_refresh(&b, &ring, 200, 0);
    assert_near(node_belief_displaced(&b, &ring, &decay, 40, 0, 0), 0);
    assert_near(node_belief_displaced(&b, &ring, &decay, 50, 0, 0), 10 * exp(-0.8));
}

/* A belief from before the index moved on (or never counted) starts at a floor outside of the ring.
 * Generations before the oldest share places with other generations. Walking them took milliseconds
 * a decision after a month of uptime. */
static void generations_outside_the_ring_are_not_walked(void **state)
{
    (void)state;
    struct node_decay decay;
    node_decay_fill(&decay, 10000, 100);
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    ring.oldest += 1600000;
    ring.newest += 1600000;
    node_belief_init(&b);
    b.size_blocks = b.present_blocks = 160;
    b.floor_share = 1;
    assert_near(node_belief_displaced(&b, &ring, &decay, 60, 0, 0),
                50 * exp(-0.8) + 10 * exp(-0.7));
}

static void depth_counts_blocks_used_since(void **state)
{
    (void)state;
    struct crdt_index_ring ring = ring_of(counts);
    double newer, among;
    struct node_belief b;
    node_belief_init(&b);
    node_belief_depth(&b, &ring, 5, &newer, &among);
    assert_near(newer, 20);
    assert_near(among, 20);
    node_belief_depth(&b, &ring, 9, &newer, &among);
    assert_near(newer, 0);
    assert_near(among, 0);
    node_belief_depth(&b, &ring, 0, &newer, &among); /* before the ring: like the oldest */
    assert_near(newer, 110);
    assert_near(among, 50);
}

static void refused_prompts_take_no_cache_space(void **state)
{
    (void)state;
    struct crdt_index_ring ring = ring_of(counts);
    struct node_belief b;
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 30, 0);
    assert_int_equal(b.floor, 5);
    node_belief_void(&b, 7, 8, 10); /* all blocks were just used */
    assert_true(b.stale);
    node_belief_refresh(&b, &ring, 30, 0);
    assert_int_equal(b.floor, 5);
    assert_near(b.floor_share, 1);
    node_belief_void(&b, 8, 7, 10);
    node_belief_refresh(&b, &ring, 30, 0);
    assert_int_equal(b.floor, 4);
    double newer, among;
    node_belief_depth(&b, &ring, 4, &newer, &among);
    assert_near(newer, 20);
    node_belief_void(&b, 8, 8, 0); /* again: the blocks moved to the newer generation */
    node_belief_depth(&b, &ring, 4, &newer, &among);
    assert_near(newer, 30);
    for (unsigned i = 0; i < 100; i++)
        node_belief_void(&b, 100 + i, 1 + i % 9, 5);
    assert_int_equal(b.void_count, NODE_VOIDS_MAX);
    node_belief_refresh(&b, &ring, 1000, 0);
    assert_true(b.present_blocks > 0 && b.present_blocks < 160);
}

/* Each of a handful of answers moves the factor by a few percent, until it is right. */
static void the_size_factor_approaches_the_truth_in_steps(void **state)
{
    (void)state;
    struct node_belief b;
    node_belief_init(&b);
    b.stale = false;
    node_belief_approach(&b, 0.01);
    assert_near(b.factor, 1 / 1.2);
    assert_true(b.stale);
    for (int i = 0; i < 100; i++)
        node_belief_approach(&b, 0.01);
    assert_near(b.factor, 0.01);
    for (int i = 0; i < 100; i++)
        node_belief_approach(&b, 1);
    assert_near(b.factor, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_fits_a_large_cache),
        cmocka_unit_test(the_newest_blocks_that_fit_are_present),
        cmocka_unit_test(displaced_counts_the_oldest_first),
        cmocka_unit_test(generations_outside_the_ring_are_not_walked),
        cmocka_unit_test(depth_counts_blocks_used_since),
        cmocka_unit_test(refused_prompts_take_no_cache_space),
        cmocka_unit_test(the_size_factor_approaches_the_truth_in_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
