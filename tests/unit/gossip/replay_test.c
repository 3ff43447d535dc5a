/* The sliding window against a model that remembers everything. */
#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/hash.h"
#include "gossip/replay.h"

enum { COUNTERS = 100000 };

struct model {
    bool seen[COUNTERS];
    uint64_t next;
};

static bool model_fresh(const struct model *m, uint64_t counter)
{
    return !m->seen[counter] && counter + GOSSIP_REPLAY_WINDOW >= m->next;
}

static void both_take(struct gossip_replay *r, struct model *m, uint64_t counter)
{
    bool fresh = model_fresh(m, counter);
    assert_int_equal(gossip_replay_fresh(r, counter), fresh);
    if (!fresh)
        return;
    gossip_replay_mark(r, counter);
    m->seen[counter] = true;
    if (counter >= m->next)
        m->next = counter + 1;
}

static void whole_compare(const struct gossip_replay *r, const struct model *m)
{
    uint64_t from = m->next > 5000 ? m->next - 5000 : 0;
    for (uint64_t counter = from; counter < COUNTERS && counter < m->next + 5000; counter++)
        assert_int_equal(gossip_replay_fresh(r, counter), model_fresh(m, counter));
}

/* Steps of all sizes around the words and the window, and late counters. */
static void test_against_model(void **state)
{
    (void)state;
    static const uint64_t steps[] = {1,  1,   1,    2,    3,    31,   63,  64,
                                     65, 700, 2047, 2048, 2049, 2111, 4300};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct gossip_replay r = {0};
        struct model *m = calloc(1, sizeof *m);
        assert_non_null(m);
        uint64_t x = seed;
        for (unsigned i = 0; i < 1500; i++) {
            x = hash_mix(x + 0x9e3779b97f4a7c15u);
            uint64_t counter = 0;
            if ((x & 3) == 0 && m->next > 0) {
                uint64_t back = (x >> 8) % 2400;
                counter = m->next > back ? m->next - 1 - back % m->next : 0;
            } else {
                counter = m->next - 1 + steps[(x >> 8) % (i < 1000 ? 6 : 15)];
            }
            if (counter >= COUNTERS)
                break;
            both_take(&r, m, counter);
            if (i % 100 == 0)
                whole_compare(&r, m);
        }
        whole_compare(&r, m);
        free(m);
    }
}

static void test_edges(void **state)
{
    (void)state;
    struct gossip_replay r = {0};
    assert_true(gossip_replay_fresh(&r, 0));
    gossip_replay_mark(&r, 0);
    assert_false(gossip_replay_fresh(&r, 0));
    assert_true(gossip_replay_fresh(&r, 1));
    gossip_replay_mark(&r, GOSSIP_REPLAY_WINDOW);
    assert_true(gossip_replay_fresh(&r, 1));  /* the last inside */
    assert_false(gossip_replay_fresh(&r, 0)); /* just outside */
    gossip_replay_mark(&r, (uint64_t)1 << 40);
    assert_false(gossip_replay_fresh(&r, GOSSIP_REPLAY_WINDOW + 1));
    assert_true(gossip_replay_fresh(&r, ((uint64_t)1 << 40) - GOSSIP_REPLAY_WINDOW + 1));
    assert_false(gossip_replay_fresh(&r, ((uint64_t)1 << 40) - GOSSIP_REPLAY_WINDOW));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
