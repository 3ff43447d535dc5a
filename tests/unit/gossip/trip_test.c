/* Round trips: measurements, and the time allowed for an answer. */
#include "tests/lib/test.h"

#include "gossip/trip.h"

enum { MS = 1000 };

static void test_the_timeout_follows_measured_round_trips(void **state)
{
    (void)state;
    struct gossip_trip t = {0};
    assert_int_equal(gossip_trip_wait_us(&t, 7), 7);
    assert_int_equal(gossip_trip_jitter_us(&t), 0);
    gossip_trip_take(&t, 200 * MS);
    assert_int_equal(t.smooth_us, 200 * MS);
    assert_in_range(gossip_trip_wait_us(&t, 7), 600 * MS, 600 * MS);
    for (unsigned i = 0; i < 50; i++)
        gossip_trip_take(&t, 200 * MS);
    assert_in_range(gossip_trip_wait_us(&t, 7), 200 * MS, 201 * MS);
    /* A varying round trip allows more time, and even more if packets may overtake each other. */
    for (unsigned i = 0; i < 50; i++)
        gossip_trip_take(&t, (i % 2 ? 180 : 220) * MS);
    assert_in_range(gossip_trip_wait_us(&t, 7), 260 * MS, 320 * MS);
    assert_in_range(gossip_trip_jitter_us(&t), 15 * MS, 25 * MS);
    gossip_trip_take(&t, 0);
    assert_true(t.smooth_us > 0);
}

static void test_a_handshake_is_the_first_round_trip_estimate(void **state)
{
    (void)state;
    struct gossip_trip t = {0};
    gossip_trip_guess(&t, 2000 * MS); /* too long for a round trip: a sleep */
    assert_int_equal(t.smooth_us, 0);
    gossip_trip_guess(&t, 400 * MS);
    assert_int_equal(t.smooth_us, 400 * MS);
    gossip_trip_guess(&t, 800 * MS);
    assert_int_equal(t.smooth_us, 400 * MS);
    gossip_trip_take(&t, 1 * MS);
    assert_int_equal(t.smooth_us, 1 * MS);
    gossip_trip_guess(&t, 400 * MS);
    assert_int_equal(t.smooth_us, 1 * MS);
}

static void test_jitter_is_bounded_by_the_round_trip(void **state)
{
    (void)state;
    struct gossip_trip t = {.smooth_us = 400, .var_us = 10 * MS};
    assert_int_equal(gossip_trip_jitter_us(&t), 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_timeout_follows_measured_round_trips),
        cmocka_unit_test(test_a_handshake_is_the_first_round_trip_estimate),
        cmocka_unit_test(test_jitter_is_bounded_by_the_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
