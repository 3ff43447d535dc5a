#include "tests/lib/test.h"

#include "base/prng.h"
#include "gossip/gossip.h"
#include "gossip/ring.h"

static void fill(char *out, uint64_t seq, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(seq * 7 + i);
}

static void test_the_last_bytes_are_kept(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 1);
    static size_t lens[20001];
    for (unsigned round = 0; round < 4; round++) {
        uint64_t most = round < 2 ? GOSSIP_DELTA_MAX : 3;
        uint64_t cap = 1160 + prng_below(&p, 20000);
        struct gossip_ring r;
        assert_int_equal(gossip_ring_init(&r, cap), 0);
        char delta[GOSSIP_DELTA_MAX];
        struct slice got;
        for (uint64_t seq = 1; seq <= 20000; seq++) {
            lens[seq] = 1 + prng_below(&p, most);
            fill(delta, seq, lens[seq]);
            assert_int_equal(gossip_ring_put(&r, slice_of(delta, lens[seq])), seq);
            gossip_ring_check(&r);
            assert_true(gossip_ring_get(&r, seq, &got));
        }
        uint64_t kept = 0;
        for (uint64_t seq = r.first; seq < r.next; seq++) {
            assert_true(gossip_ring_get(&r, seq, &got));
            fill(delta, seq, lens[seq]);
            assert_true(slice_equal(got, slice_of(delta, lens[seq])));
            kept += got.len;
        }
        assert_int_equal(kept, r.bytes_used);
        assert_true(kept + 2 * GOSSIP_DELTA_MAX >= cap);
        assert_false(gossip_ring_get(&r, r.first - 1, &got));
        assert_false(gossip_ring_get(&r, r.next, &got));
        gossip_ring_restart(&r);
        assert_int_equal(gossip_ring_put(&r, SLICE("x")), 1);
        gossip_ring_check(&r);
        gossip_ring_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_last_bytes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
