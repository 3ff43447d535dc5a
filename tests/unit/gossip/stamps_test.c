#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/err.h"
#include "gossip/stamps.h"

enum { NOW = 1000 };

static void test_only_rising_stamps_are_accepted(void **state)
{
    (void)state;
    struct gossip_stamps *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(gossip_stamps_take(s, 7, 100, true, NOW), ERR_OK);
    assert_int_equal(gossip_stamps_take(s, 7, 100, true, NOW), ERR_STALE);
    assert_int_equal(gossip_stamps_take(s, 7, 99, true, NOW), ERR_STALE);
    assert_int_equal(gossip_stamps_take(s, 8, 5, true, NOW),
                     ERR_OK); /* two nodes' clocks are not compared */
    assert_int_equal(gossip_stamps_take(s, 7, 101, true, NOW), ERR_OK);
    assert_int_equal(gossip_stamps_take(s, 7, 101, true, NOW), ERR_STALE);
    free(s);
}

/* The table is full: the member with the oldest hello goes, so members in contact are
 * remembered. */
static void test_eviction(void **state)
{
    (void)state;
    struct gossip_stamps *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (uint64_t node = 1; node <= GOSSIP_STAMPS_MAX; node++)
        assert_int_equal(gossip_stamps_take(s, node, 10, true, NOW), ERR_OK);
    assert_int_equal(gossip_stamps_take(s, 1, 11, true, NOW), ERR_OK); /* now 2 is the oldest */
    for (uint64_t node = 1; node < GOSSIP_STAMPS_MAX; node++)
        assert_int_equal(gossip_stamps_take(s, 100000 + node, 1, true, NOW), ERR_OK);
    assert_int_equal(s->count, GOSSIP_STAMPS_MAX);
    assert_int_equal(gossip_stamps_take(s, 1, 11, true, NOW), ERR_STALE);
    assert_int_equal(gossip_stamps_take(s, 2, 10, true, NOW),
                     ERR_OK); /* forgotten: answered once */
    assert_int_equal(gossip_stamps_take(s, 2, 10, true, NOW), ERR_STALE);
    free(s);
}

/* A hello of an earlier life with the clock an hour ahead is replayed to a newly started router.
 * The node's clock is right again by now: for an hour the node got no answer. */
static void test_an_earlier_epoch_is_accepted_without_a_session(void **state)
{
    (void)state;
    struct gossip_stamps *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(gossip_stamps_take(s, 7, 3600, false, NOW), ERR_OK);
    assert_int_equal(gossip_stamps_take(s, 7, 3600, false, NOW + 1), ERR_STALE);
    assert_int_equal(gossip_stamps_take(s, 7, 10, false, NOW + GOSSIP_STAMPS_EARLIER_US - 1),
                     ERR_STALE);
    assert_int_equal(gossip_stamps_take(s, 7, 10, false, NOW + GOSSIP_STAMPS_EARLIER_US), ERR_OK);
    assert_int_equal(gossip_stamps_take(s, 7, 3600, false, NOW + 3 * GOSSIP_STAMPS_EARLIER_US),
                     ERR_STALE); /* not twice */
    gossip_stamps_met(s, 7);
    assert_int_equal(gossip_stamps_take(s, 7, 11, false, NOW + GOSSIP_STAMPS_EARLIER_US), ERR_OK);
    for (uint64_t later = 1; later < 4; later++)
        for (uint64_t stamp = 1; stamp < 12; stamp++)
            assert_int_equal(
                gossip_stamps_take(s, 7, stamp, false, later * 2 * GOSSIP_STAMPS_EARLIER_US),
                ERR_STALE);
    free(s);
}

/* A router with the clock ahead stays away until the others have forgotten it, and comes back with
 * the cluster's time. No member answered or called it (simulation, long, 695290055). */
static void test_an_earlier_epoch_of_a_forgotten_node_is_accepted(void **state)
{
    (void)state;
    struct gossip_stamps *s = calloc(1, sizeof *s);
    assert_non_null(s);
    const uint64_t later = NOW + GOSSIP_STAMPS_EARLIER_US;
    gossip_stamps_forgotten(s, 7); /* router 7 was never a member */
    assert_int_equal(gossip_stamps_take(s, 7, 3600, true, NOW), ERR_OK);
    assert_int_equal(gossip_stamps_take(s, 7, 10, false, later), ERR_STALE);
    gossip_stamps_forgotten(s, 7);
    assert_int_equal(gossip_stamps_take(s, 7, 3600, false, later), ERR_STALE); /* not twice */
    assert_int_equal(gossip_stamps_take(s, 7, 10, false, later), ERR_OK);
    free(s);
}

static void test_the_next_stamp_rises(void **state)
{
    (void)state;
    assert_int_equal(gossip_stamp_next(0, 5), 5000);
    assert_int_equal(gossip_stamp_next(5000, 5), 5001);
    assert_int_equal(gossip_stamp_next(5001, 4), 5002);
    assert_int_equal(gossip_stamp_next(5002, 7), 7000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_rising_stamps_are_accepted),
        cmocka_unit_test(test_eviction),
        cmocka_unit_test(test_an_earlier_epoch_is_accepted_without_a_session),
        cmocka_unit_test(test_an_earlier_epoch_of_a_forgotten_node_is_accepted),
        cmocka_unit_test(test_the_next_stamp_rises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
