#include "tests/lib/test.h"

#include "base/prng.h"
#include "gossip/stream.h"

static void test_gaps_open_and_close(void **state)
{
    (void)state;
    struct gossip_stream s;
    gossip_stream_restart(&s, 7);
    assert_int_equal(gossip_stream_take(&s, 1, 100, 10), GOSSIP_STREAM_NEW);
    assert_true(s.nack_us == UINT64_MAX && s.gap_us == 0);
    assert_int_equal(gossip_stream_take(&s, 3, 100, 10), GOSSIP_STREAM_NEW);
    assert_true(s.nack_us == 110 && s.gap_us == 100);
    assert_int_equal(gossip_stream_take(&s, 3, 101, 10), GOSSIP_STREAM_AGAIN);
    gossip_stream_known(&s, 6, 105, 10);
    struct gossip_ranges r;
    gossip_stream_missing(&s, 0, 100, &r);
    assert_int_equal(r.count, 2);
    assert_true(r.at[0].first == 2 && r.at[0].last == 2 && r.at[1].first == 4 && r.at[1].last == 6);
    gossip_stream_missing(&s, 0, 2, &r);
    assert_true(r.count == 2 && r.at[1].last == 4);
    assert_int_equal(gossip_stream_take(&s, 2, 120, 10), GOSSIP_STREAM_FILLS);
    assert_int_equal(s.applied, 3);
    assert_int_equal(gossip_stream_take(&s, 5, 120, 10), GOSSIP_STREAM_FILLS);
    assert_int_equal(gossip_stream_close(&s, 6), 2); /* 4 and 6 */
    assert_true(s.applied == 6 && s.nack_us == UINT64_MAX);
    gossip_stream_check(&s);
}

static void test_deltas_beyond_the_gap_limit_are_postponed(void **state)
{
    (void)state;
    struct gossip_stream s;
    gossip_stream_restart(&s, 7);
    for (unsigned i = 0; i < GOSSIP_STREAM_RANGES; i++)
        assert_int_equal(gossip_stream_take(&s, 2 + 2 * i, 1, 1), GOSSIP_STREAM_NEW);
    assert_int_equal(gossip_stream_take(&s, 1000, 1, 1), GOSSIP_STREAM_LATER);
    gossip_stream_check(&s);
    assert_int_equal(s.known, 1000);
    assert_int_equal(gossip_stream_take(&s, 3, 1, 1), GOSSIP_STREAM_FILLS); /* joins two */
    assert_int_equal(gossip_stream_take(&s, 1000, 1, 1), GOSSIP_STREAM_FILLS);
    gossip_stream_check(&s);
}

/* Compares with a set: numbers in any order, again and again, until all have come. */
static void test_against_a_set(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 3);
    for (unsigned round = 0; round < 300; round++) {
        enum { N = 120 };
        bool have[N + 2] = {false};
        struct gossip_stream s;
        gossip_stream_restart(&s, 1);
        uint64_t spread = 1 + prng_below(&p, N);
        for (unsigned step = 0; step < 4000 && s.applied < N; step++) {
            uint64_t low = s.applied + 1;
            uint64_t seq = low + prng_below(&p, spread);
            if (seq > N)
                seq = 1 + prng_below(&p, N);
            if (prng_below(&p, 200) == 0) {
                uint64_t expected = 0;
                for (uint64_t i = 1; i <= seq; i++) {
                    expected += !have[i];
                    have[i] = true;
                }
                assert_int_equal(gossip_stream_close(&s, seq), expected);
            } else {
                enum gossip_stream_take take = gossip_stream_take(&s, seq, step, 10);
                assert_true(have[seq] == (take == GOSSIP_STREAM_AGAIN));
                if (take == GOSSIP_STREAM_NEW || take == GOSSIP_STREAM_FILLS)
                    have[seq] = true;
                else if (take == GOSSIP_STREAM_LATER)
                    assert_int_equal(s.count, GOSSIP_STREAM_RANGES);
            }
            gossip_stream_check(&s);
            uint64_t applied = 0;
            while (applied < N && have[applied + 1])
                applied++;
            assert_int_equal(s.applied, applied);
            struct gossip_ranges r;
            gossip_stream_missing(&s, 0, UINT64_MAX, &r);
            for (unsigned i = 0; i < r.count; i++)
                for (uint64_t n = r.at[i].first; n <= r.at[i].last; n++)
                    assert_false(have[n]);
        }
        assert_int_equal(s.applied, N);
        assert_int_equal(s.nack_us, UINT64_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gaps_open_and_close),
        cmocka_unit_test(test_deltas_beyond_the_gap_limit_are_postponed),
        cmocka_unit_test(test_against_a_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
