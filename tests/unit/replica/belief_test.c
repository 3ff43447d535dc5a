#include "node/replica/belief.h"

#include <math.h>

#include "tests/lib/test.h"

enum { MASK = 15 };

/* Blocks by generation 0..9; `now` is 8, so the newest of the ring is 9. */
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

static void all_is_present_while_there_is_room(void **state)
{
    (void)state;
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 1000);
    assert_int_equal(b.floor, 1);
    assert_near(b.floor_share, 1);
    assert_near(b.present_blocks, 160);
    assert_false(b.stale);
}

static void the_newest_that_fit_are_present(void **state)
{
    (void)state;
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 85); /* 10 + 10 + 20 + 30, and 15 of the 40 */
    assert_int_equal(b.floor, 2);
    assert_near(b.floor_share, 15.0 / 40);
    assert_near(b.present_blocks, 85);
    node_belief_refresh(&b, &ring, 70);
    assert_int_equal(b.floor, 4);
    assert_near(b.floor_share, 1);
    b.factor = 0.5;
    node_belief_refresh(&b, &ring, 80);
    assert_int_equal(b.floor, 5);
    assert_near(b.floor_share, 1);
}

static void displaced_counts_the_oldest_first(void **state)
{
    (void)state;
    struct node_decay decay;
    node_decay_fill(&decay, 10000, 100000); /* a generation is a tenth of the horizon */
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 90); /* 20 of generation 2, all from 4 on */
    assert_near(node_belief_displaced(&b, &ring, &decay, 0, 0, 0), 0);
    double e7 = exp(-0.7), e5 = exp(-0.5);
    assert_near(node_belief_displaced(&b, &ring, &decay, 15, 0, 0), 15 * e7);
    assert_near(node_belief_displaced(&b, &ring, &decay, 25, 0, 0), 20 * e7 + 5 * e5);
    /* Its own blocks are used again and stay: the next ones go. */
    assert_near(node_belief_displaced(&b, &ring, &decay, 25, 15, 2), 5 * e7 + 20 * e5);
    /* More than the cache holds: everything goes. */
    assert_near(node_belief_displaced(&b, &ring, &decay, 1e6, 0, 0),
                20 * e7 + 30 * e5 + 20 * exp(-0.4) + 10 * exp(-0.2) + 10 * exp(-0.1));
    node_belief_refresh(&b, &ring, 200);
    assert_near(node_belief_displaced(&b, &ring, &decay, 40, 0, 0), 0);
    assert_near(node_belief_displaced(&b, &ring, &decay, 50, 0, 0), 10 * exp(-0.8));
}

/* A belief that was made before the index moved on (or never counted) starts at its own floor,
 * which the ring no longer has: generations before the oldest are other generations' places in it.
 * Walking them took milliseconds a decision on a machine that had been up for a month. */
static void what_the_ring_no_longer_has_is_not_walked(void **state)
{
    (void)state;
    struct node_decay decay;
    node_decay_fill(&decay, 10000, 100000);
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

static void fewer_cached_than_predicted_shrink_the_belief(void **state)
{
    (void)state;
    struct node_belief b;
    node_belief_init(&b);
    for (int i = 0; i < 20; i++)
        node_belief_correct(&b, 50000, 45000, 1000, 400000);
    assert_true(b.factor < 0.65 && b.factor > 0.4);
    for (int i = 0; i < 1000; i++)
        node_belief_correct(&b, 50000, 45000, 1000, 400000);
    assert_near(b.factor, 0.25);
    assert_true(b.stale);
}

static void more_than_predicted_grow_it_only_when_full(void **state)
{
    (void)state;
    struct node_belief b;
    struct crdt_index_ring ring = ring_of(counts);
    node_belief_init(&b);
    node_belief_refresh(&b, &ring, 1000);
    node_belief_correct(&b, 50000, 1000, 45000, 400000);
    assert_near(b.factor, 1); /* it did not know: that says nothing of the size */
    node_belief_refresh(&b, &ring, 80);
    for (int i = 0; i < 1000; i++)
        node_belief_correct(&b, 50000, 1000, 45000, 400000);
    assert_near(b.factor, 1.5);
}

static void the_grain_of_checkpoints_teaches_nothing(void **state)
{
    (void)state;
    struct node_belief b;
    node_belief_init(&b);
    node_belief_correct(&b, 64000, 60000, 63000, 400000);
    node_belief_correct(&b, 64000, 60000, 57000, 400000);
    node_belief_correct(&b, 64000, 60000, 0, 0); /* size unknown */
    assert_near(b.factor, 1);
}

static void the_factor_recovers(void **state)
{
    (void)state;
    struct node_belief b;
    node_belief_init(&b);
    b.factor = 0.25;
    for (int i = 0; i < 1800; i++)
        node_belief_recover(&b, 1);
    assert_near(b.factor, exp(log(0.25) * exp(-1)));
    for (int i = 0; i < 18000; i++)
        node_belief_recover(&b, 1);
    assert_true(b.factor > 0.99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_present_while_there_is_room),
        cmocka_unit_test(the_newest_that_fit_are_present),
        cmocka_unit_test(displaced_counts_the_oldest_first),
        cmocka_unit_test(what_the_ring_no_longer_has_is_not_walked),
        cmocka_unit_test(fewer_cached_than_predicted_shrink_the_belief),
        cmocka_unit_test(more_than_predicted_grow_it_only_when_full),
        cmocka_unit_test(the_grain_of_checkpoints_teaches_nothing),
        cmocka_unit_test(the_factor_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
