/* A walk over a changing replicated index misses nothing. */
#include "tests/lib/test.h"

#include "base/err.h"
#include "base/prng.h"
#include "tests/lib/index_help.h"

enum { NOW = 100, TTL = 2 };

struct walked {
    struct crdt_index *to;
    uint64_t visits;
};

static void walk_visit(void *context, uint64_t id48, uint8_t code, unsigned replica,
                       uint32_t generation)
{
    struct walked *w = context;
    int got = crdt_index_observe(w->to, id48, replica, code, generation);
    assert_true(got == 0 || got == 1 || got == ERR_STALE);
    w->visits++;
}

/* The table is nearly full, so that inserts move other entries; sets are made and dissolved. The
 * copy gets all visited entries and all observations meanwhile, and must be equal in the end. */
static void walk_once(struct prng *p, uint64_t bytes, uint32_t chunk, unsigned churn)
{
    enum { TIME = 1000, TIME_TTL = 32, WALKERS = 16 };
    struct crdt_index *x = make(bytes, WALKERS, TIME_TTL, TIME);
    struct crdt_index *y = make(bytes + (bytes - 3200000) * 2, WALKERS, TIME_TTL, TIME);
    for (unsigned r = 0; r < WALKERS; r++) {
        crdt_index_forget(x, r, 1 + r);
        crdt_index_forget(y, r, 1 + r);
    }
    uint64_t n = 0;
    while (stats_of(x).slots_live < stats_of(x).slots_limit - stats_of(x).slots / 40) {
        DISCARD(crdt_index_observe(x, id_of(n), n % WALKERS, 0, TIME - n % 20));
        DISCARD(crdt_index_observe(x, id_of(prng_below(p, 60)), n % 12, 1, TIME - n % 20));
        n++;
    }
    struct crdt_index_cursor cursor = {0};
    struct walked walked = {.to = y};
    unsigned steps = 0;
    while (crdt_index_walk(x, &cursor, chunk, walk_visit, &walked)) {
        steps++;
        assert_true(steps < 200000);
        for (uint64_t i = prng_below(p, churn + 1); i > 0; i--) {
            uint64_t id = prng_below(p, 3) == 0 ? prng_below(p, n) : n++;
            unsigned r = (unsigned)id % WALKERS;
            uint32_t g = TIME - (uint32_t)prng_below(p, 20);
            uint8_t code = 0;
            if (prng_below(p, 3) == 0) {
                id = prng_below(p, 90);
                r = (unsigned)prng_below(p, WALKERS);
                code = 1;
            }
            if (crdt_index_observe(x, id_of(id), r, code, g) >= 0)
                assert_true(crdt_index_observe(y, id_of(id), r, code, g) >= 0);
        }
        if (prng_below(p, 50) == 0)
            (void)crdt_index_sweep(x, 500);
        if (prng_below(p, 4000) == 0)
            crdt_index_floor_raise(x, crdt_index_floor(x) + 1);
    }
    uint32_t floor = crdt_index_floor(x);
    assert_int_equal(crdt_index_digest(x, floor), crdt_index_digest(y, floor));
    crdt_index_check(x);
    crdt_index_destroy(x);
    crdt_index_destroy(y);
}

static void test_a_walk_finds_entries_that_move(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 21);
    for (unsigned run = 0; run < TEST_ROUNDS(6); run++)
        walk_once(&p, 8900000 + run * 4096, 40 + run * 100, 40);
}

/* Between two calls, more entries move than the index remembers: the walk begins anew. */
static void test_a_walk_survives_more_moves_than_are_remembered(void **state)
{
    (void)state;
    for (uint64_t run = 0; run < 10; run++) {
        struct crdt_index *x = make(450000, 4, TTL, NOW);
        struct crdt_index *y = make(450000, 4, TTL, NOW);
        uint64_t limit = stats_of(x).slots_limit;
        uint64_t n = run << 32;
        for (; stats_of(x).slots_live < limit - 50; n++)
            DISCARD(crdt_index_observe(x, id_of(n), n % 4, 0, NOW));

        struct crdt_index_cursor cursor = {0};
        struct walked walked = {.to = y};
        assert_true(
            crdt_index_walk(x, &cursor, (uint32_t)stats_of(x).buckets / 2, walk_visit, &walked));
        for (unsigned round = 0; round < 2; round++) { /* a quarter goes, others come */
            crdt_index_forget(x, round % 4, 100 + round);
            crdt_index_forget(y, round % 4, 100 + round);
            (void)crdt_index_sweep(x, UINT32_MAX);
            (void)crdt_index_sweep(y, UINT32_MAX);
            for (; crdt_index_blocks_total(x, round % 4) < limit / 4 - 20; n++) {
                if (crdt_index_observe(x, id_of(n), round % 4, 0, NOW) == 1)
                    DISCARD(crdt_index_observe(y, id_of(n), round % 4, 0, NOW));
            }
        }
        while (crdt_index_walk(x, &cursor, 100, walk_visit, &walked)) {
        }
        assert_int_equal(crdt_index_digest(x, 0), crdt_index_digest(y, 0));
        crdt_index_check(x);
        crdt_index_destroy(x);
        crdt_index_destroy(y);
    }
}

/* Every entry that a call moves from ahead of the walk to behind it must still be found. Entries
 * move when a set (of seven holders) is made or dissolved, and when an insert moves them. */
static void test_a_walk_finds_entries_moved_by_sets_or_inserts(void **state)
{
    (void)state;
    enum { WALKERS = 16, SHARED = 1500, ROUNDS = 3 * TEST_ROUNDS(2) };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct crdt_index *x = make(6 << 20, WALKERS, TTL, NOW);
        struct crdt_index *y = make(40 << 20, WALKERS, TTL, NOW);
        uint64_t n = SHARED;
        /* Few holders of each shared id are of the present generation. */
        for (unsigned i = 0; i < SHARED; i++) {
            for (unsigned r = 0; r < 6; r++)
                DISCARD(crdt_index_observe(x, id_of(i), r, 1, r < 2 ? NOW : NOW - 2));
        }
        uint64_t limit = stats_of(x).slots_limit;
        for (; stats_of(x).slots_live < limit - SHARED; n++)
            DISCARD(crdt_index_observe(x, id_of(n), n % WALKERS, 0, NOW));
        if (round % 3 == 1) {
            for (unsigned i = 0; i < SHARED; i++)
                DISCARD(crdt_index_observe(x, id_of(i), 6, 1, NOW - 2));
            for (; stats_of(x).slots_live < limit - SHARED; n++) /* sets need fewer slots */
                DISCARD(crdt_index_observe(x, id_of(n), n % WALKERS, 0, NOW));
        }
        struct crdt_index_cursor cursor = {0};
        struct walked walked = {.to = y};
        assert_true(crdt_index_walk(x, &cursor, (uint32_t)stats_of(x).buckets / (2 + round / 3),
                                    walk_visit, &walked));
        uint64_t promoted = stats_of(x).promoted;
        if (round % 3 == 0) {
            for (unsigned i = 0; i < SHARED; i++) {
                assert_int_equal(crdt_index_observe(x, id_of(i), 6, 1, NOW - 2), 1);
                DISCARD(crdt_index_observe(y, id_of(i), 6, 1, NOW - 2));
            }
            assert_true(stats_of(x).promoted > promoted + SHARED / 2);
        } else if (round % 3 == 1) {
            crdt_index_advance(x, NOW + 1);
            crdt_index_advance(y, NOW + 1);
            (void)crdt_index_sweep(x, UINT32_MAX);
            assert_true(stats_of(x).promoted + 100 < promoted);
        } else {
            for (uint64_t end = n + 60000; n < end; n++) { /* the oldest entries make room */
                if (crdt_index_observe(x, id_of(n), n % WALKERS, 0, NOW) == 1)
                    DISCARD(crdt_index_observe(y, id_of(n), n % WALKERS, 0, NOW));
            }
        }
        while (crdt_index_walk(x, &cursor, 1000, walk_visit, &walked)) {
        }
        uint32_t floor = crdt_index_floor(x);
        assert_int_equal(crdt_index_digest(x, floor), crdt_index_digest(y, floor));
        crdt_index_destroy(x);
        crdt_index_destroy(y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_walk_finds_entries_that_move),
        cmocka_unit_test(test_a_walk_survives_more_moves_than_are_remembered),
        cmocka_unit_test(test_a_walk_finds_entries_moved_by_sets_or_inserts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
