/* Promises of a replicated index beyond those of a local index: digests, sketches, bindings. */
#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

#include "base/checkpoint.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/prng.h"
#include "crdt/index.h"
#include "tests/lib/index_help.h"

static bool sketches_equal(const struct crdt_index *x, const struct crdt_index *y, uint32_t from)
{
    static struct crdt_sketch a, b;
    crdt_index_sketch(x, from, &a);
    crdt_index_sketch(y, from, &b);
    return memcmp(a.cell, b.cell, sizeof a.cell) == 0 &&
           crdt_sketch_estimate(a.estimate, b.estimate) == 0;
}

/* --- small scopes, exhaustively ------------------------------------------------------------- */

enum { IDS = 2, REPLICAS = 2, NOW = 100, TTL = 2 };

#ifdef __SANITIZE_ADDRESS__ /* far slower */
enum { LENGTH = 3 };
#else
enum { LENGTH = 4 };
#endif

/* Small tables cannot distinguish all ids, but they distinguish these two. */
static uint64_t small_id[IDS];

static void keep_id(void *context, uint64_t id48, uint8_t code, unsigned replica,
                    uint32_t generation)
{
    (void)code;
    (void)replica;
    (void)generation;
    *(uint64_t *)context = id48;
}

static struct crdt_index *make_small(void)
{
    return make(500000, REPLICAS, TTL, NOW);
}

static void choose_small_ids(void)
{
    for (unsigned id = 0; id < IDS; id++) {
        struct crdt_index *x = make_small();
        assert_int_equal(crdt_index_observe(x, id_of(id), 0, 3, NOW), 1);
        crdt_index_each(x, keep_id, &small_id[id]);
        crdt_index_destroy(x);
    }
    assert_true(small_id[0] != small_id[1]);
}

/* The value as the header defines it, in the simplest form. */
struct naive {
    uint32_t now;
    uint32_t rkey[REPLICAS];
    uint32_t generation[IDS][REPLICAS]; /* 0: absent */
};

static uint32_t naive_floor(const struct naive *n)
{
    return n->now - TTL;
}

static uint64_t naive_digest(const struct naive *n, uint32_t from, struct crdt_sketch *sketch)
{
    uint64_t sum = 0;
    for (unsigned id = 0; id < IDS; id++) {
        for (unsigned r = 0; r < REPLICAS; r++) {
            uint32_t g = n->generation[id][r];
            if (g < naive_floor(n) || g < from)
                continue;
            struct crdt_symbol symbol = {
                .id48 = small_id[id], .rkey = n->rkey[r], .generation = g & 4095, .code = 3};
            sum += crdt_symbol_hash(&symbol);
            crdt_sketch_flip(sketch, &symbol, 1);
        }
    }
    return sum;
}

enum { OBSERVES = IDS * REPLICAS * 2, OPERATIONS = OBSERVES + REPLICAS + 2 };

static void operate(struct crdt_index *x, struct naive *n, unsigned operation, uint32_t *rkeys)
{
    if (operation < OBSERVES) {
        unsigned id = operation % IDS;
        unsigned r = operation / IDS % REPLICAS;
        uint32_t generation = n->now - 1 + operation / IDS / REPLICAS;
        int got = crdt_index_observe(x, small_id[id], r, 3, generation);
        uint32_t *known = &n->generation[id][r];
        assert_int_equal(got, *known < generation);
        *known = *known < generation ? generation : *known;
    } else if (operation < OBSERVES + REPLICAS) {
        unsigned r = operation - OBSERVES;
        n->rkey[r] = ++*rkeys;
        crdt_index_forget(x, r, n->rkey[r]);
        for (unsigned id = 0; id < IDS; id++)
            n->generation[id][r] = 0;
    } else if (operation == OBSERVES + REPLICAS) {
        crdt_index_advance(x, ++n->now);
    } else {
        (void)crdt_index_sweep(x, UINT32_MAX);
    }
}

static void compare(struct crdt_index *x, const struct naive *n)
{
    static struct crdt_sketch got, expected;
    crdt_index_check(x);
    for (uint32_t from = n->now - TTL - 1; from <= n->now + 1; from++) {
        memset(&expected, 0, sizeof expected);
        assert_int_equal(crdt_index_digest(x, from), naive_digest(n, from, &expected));
    }
    sweep(x); /* now no dead entry is in memory: the sketches are those of the value */
    uint32_t from = n->now - TTL;
    memset(&expected, 0, sizeof expected);
    assert_int_equal(crdt_index_digest(x, from), naive_digest(n, from, &expected));
    crdt_index_sketch(x, from, &got);
    assert_memory_equal(&got, &expected, sizeof got);
}

/* All sequences of LENGTH operations: 2 ids, 2 replicas, 2 generations, restarts, time, sweeps. */
static void test_digests_depend_on_the_value_alone(void **state)
{
    (void)state;
    choose_small_ids();
    unsigned total = 1;
    for (unsigned i = 0; i < LENGTH; i++)
        total *= OPERATIONS;
    for (unsigned history = 0; history < total; history++) {
        struct crdt_index *x = make_small();
        struct naive n = {.now = NOW};
        uint32_t rkeys = 0;
        for (unsigned i = 0, rest = history; i < LENGTH; i++, rest /= OPERATIONS)
            operate(x, &n, rest % OPERATIONS, &rkeys);
        compare(x, &n);
        crdt_index_destroy(x);
    }
}

/* --- convergence ---------------------------------------------------------------------------- */

enum { MANY_REPLICAS = 40 };

struct observation {
    uint64_t id;
    uint32_t generation;
    uint16_t replica;
    uint8_t code;
};

static struct observation random_observation(struct prng *p, uint64_t ids, uint32_t now)
{
    uint64_t n = prng_below(p, ids);
    n = prng_below(p, 4) == 0 ? n % 50 : n;
    return (struct observation){.id = id_of(n),
                                .generation = now + 1 - (uint32_t)prng_below(p, 60),
                                .replica = (uint16_t)prng_below(p, MANY_REPLICAS),
                                .code = (uint8_t)(n % 3)};
}

/* A replica has another number on every router, but the same name everywhere. */
static unsigned slot_of(unsigned router, unsigned replica)
{
    return (replica * 7 + router * 13) % MANY_REPLICAS;
}

static void observe(struct crdt_index *x, unsigned router, const struct observation *o)
{
    int got = crdt_index_observe(x, o->id, slot_of(router, o->replica), o->code, o->generation);
    assert_true(got == 0 || got == 1 || got == ERR_STALE);
}

static void shuffle(struct prng *p, struct observation *o, unsigned count)
{
    for (unsigned i = count - 1; i > 0; i--) {
        unsigned j = (unsigned)prng_below(p, i + 1);
        struct observation swap = o[i];
        o[i] = o[j];
        o[j] = swap;
    }
}

/* The same observations in another order, with other slots, sweeps at other times and the restarts
 * in between: equal digests at once, equal sketches once dead entries are gone. */
static void test_routers_with_equal_observations_agree(void **state)
{
    (void)state;
    enum { COUNT = 20000, ROUTERS = 3, TIME = 1000, TIME_TTL = 64 };
    static struct observation o[COUNT];
    struct prng p;
    prng_seed(&p, 11);
    for (unsigned run = 0; run < 5; run++) {
        struct crdt_index *x[ROUTERS];
        for (unsigned i = 0; i < COUNT; i++)
            o[i] = random_observation(&p, 8000, TIME);
        for (unsigned router = 0; router < ROUTERS; router++) {
            x[router] = make(20 << 20, MANY_REPLICAS, TIME_TTL, TIME);
            for (unsigned r = 0; r < MANY_REPLICAS; r++)
                crdt_index_forget(x[router], slot_of(router, r), 1000 + r);
            /* Observations of an earlier cache of replica 3, which restarts: each router has other
             * observations. */
            for (unsigned i = 0; i < 500; i++)
                DISCARD(crdt_index_observe(x[router], id_of(prng_below(&p, 9000)),
                                           slot_of(router, 3), 0,
                                           TIME - (uint32_t)prng_below(&p, 30)));
            crdt_index_forget(x[router], slot_of(router, 3), 2003);
            shuffle(&p, o, COUNT);
            for (unsigned i = 0; i < COUNT; i++) {
                observe(x[router], router, &o[i]);
                if (prng_below(&p, 1000) == 0)
                    (void)crdt_index_sweep(x[router], 10000);
                if (i == COUNT / 2 && router == 1)
                    crdt_index_floor_raise(x[router], TIME - 35);
            }
            crdt_index_check(x[router]);
        }
        assert_true(stats_of(x[0]).promoted > 0);
        uint32_t from = TIME - 35; /* the greatest of all floors */
        for (unsigned router = 1; router < ROUTERS; router++) {
            assert_int_equal(crdt_index_digest(x[router], from), crdt_index_digest(x[0], from));
            for (uint32_t g = from; g <= TIME + 1; g++) {
                assert_int_equal(crdt_index_digest_at(x[router], g), crdt_index_digest_at(x[0], g));
                assert_int_equal(crdt_index_entries_at(x[router], g),
                                 crdt_index_entries_at(x[0], g));
            }
        }
        assert_true(crdt_index_digest(x[1], 0) != crdt_index_digest(x[0], 0));
        for (unsigned router = 0; router < ROUTERS; router++)
            sweep(x[router]);
        uint32_t span = crdt_index_sketch_from(x[1], crdt_index_floor(x[1]));
        assert_in_range(span, TIME - 35, TIME - 33);
        assert_true(sketches_equal(x[1], x[0], span));
        assert_true(sketches_equal(x[2], x[0], span));
        /* Later, the remaining entries are still equal. */
        for (unsigned router = 0; router < ROUTERS; router++) {
            crdt_index_advance(x[router], TIME + 40);
            crdt_index_check(x[router]);
        }
        span = crdt_index_sketch_from(x[0], crdt_index_floor(x[0]));
        assert_true(sketches_equal(x[1], x[0], span));
        assert_int_equal(crdt_index_digest(x[1], span), crdt_index_digest(x[0], span));
        for (unsigned router = 0; router < ROUTERS; router++)
            crdt_index_destroy(x[router]);
    }
}

/* The rkey is compared too: two caches of the same replica differ. */
static void test_the_rkey_of_a_cache_is_compared(void **state)
{
    (void)state;
    struct crdt_index *x = make(20 << 20, 8, TTL, NOW);
    struct crdt_index *y = make(20 << 20, 8, TTL, NOW);
    crdt_index_forget(x, 1, 77);
    crdt_index_forget(y, 2, 78);
    crdt_index_forget(y, 2, 77); /* renamed before the first entry */
    assert_int_equal(stats_of(y).retired, 0);
    DISCARD(crdt_index_observe(x, 5, 1, 3, NOW));
    DISCARD(crdt_index_observe(y, 5, 2, 3, NOW));
    assert_int_equal(crdt_index_digest(x, 0), crdt_index_digest(y, 0));
    assert_true(sketches_equal(x, y, NOW - TTL));
    crdt_index_forget(y, 2, 79);
    assert_int_equal(stats_of(y).retired, 1);
    assert_int_equal(crdt_index_digest(y, 0), 0);
    DISCARD(crdt_index_observe(y, 5, 2, 3, NOW));
    assert_true(crdt_index_digest(x, 0) != crdt_index_digest(y, 0));
    sweep(y);
    assert_int_equal(stats_of(y).retired, 0);
    assert_false(sketches_equal(x, y, NOW - TTL));
    crdt_index_forget(x, 1, 79);
    DISCARD(crdt_index_observe(x, 5, 1, 3, NOW));
    sweep(x);
    assert_int_equal(crdt_index_digest(x, 0), crdt_index_digest(y, 0));
    assert_true(sketches_equal(x, y, NOW - TTL));
    crdt_index_destroy(x);
    crdt_index_destroy(y);
}

/* The whole of anti-entropy; crdt/state.h sends messages between these steps. */
static void test_differences_are_found_and_repaired(void **state)
{
    (void)state;
    enum { COMMON = 100000, TIME = 5000, TIME_TTL = 240, MAX = 5760 };
    static struct crdt_sketch a, b;
    static struct crdt_cell cells[MAX], theirs[MAX];
    static struct crdt_symbol symbols[MAX];
    static const unsigned differences[] = {0, 1, 7, 100, 1000, 3000};
    struct prng p;
    prng_seed(&p, 12);
    struct crdt_index *x = make(24 << 20, MANY_REPLICAS, TIME_TTL, TIME);
    struct crdt_index *y = make(24 << 20, MANY_REPLICAS, TIME_TTL, TIME);
    for (unsigned r = 0; r < MANY_REPLICAS; r++) {
        crdt_index_forget(x, r, 1000 + r);
        crdt_index_forget(y, r, 1000 + r);
    }
    for (unsigned i = 0; i < COMMON; i++) {
        uint32_t generation = TIME - i % TIME_TTL;
        assert_int_equal(crdt_index_observe(x, id_of(i), i % MANY_REPLICAS, 0, generation), 1);
        assert_int_equal(crdt_index_observe(y, id_of(i), i % MANY_REPLICAS, 0, generation), 1);
    }
    for (unsigned d = 0; d < sizeof differences / sizeof *differences; d++) {
        /* New entries on either side, and refreshed entries, which count twice. */
        unsigned n = 0;
        for (; n + 2 <= differences[d] / 2; n += 2) {
            uint64_t i = prng_below(&p, COMMON);
            if (crdt_index_observe(x, id_of(i), i % MANY_REPLICAS, 0, TIME + 1) != 1)
                n -= 2;
        }
        for (; n < differences[d]; n++)
            assert_int_equal(crdt_index_observe(n % 3 == 0 ? x : y, id_of(COMMON * (d + 1) + n), 3,
                                                0, TIME - n % 100),
                             1);
        uint32_t from = crdt_index_sketch_from(x, TIME - TIME_TTL);
        crdt_index_sketch(x, from, &a);
        crdt_index_sketch(y, from, &b);
        uint8_t estimate[CRDT_ESTIMATE_COUNTERS];
        crdt_index_estimate(x, from, estimate);
        assert_memory_equal(estimate, a.estimate, sizeof estimate);
        uint64_t about = crdt_sketch_estimate(estimate, b.estimate);
        assert_true(about * 4 >= n * 3 && about * 3 <= n * 4);
        uint32_t width = crdt_sketch_width(about + about / 8);
        crdt_sketch_fold(&a, width, cells);
        crdt_sketch_fold(&b, width, theirs);
        crdt_cells_add(cells, theirs, CRDT_SKETCH_ROWS * width);
        assert_int_equal(crdt_sketch_decode(cells, width, symbols, MAX), n);
        for (unsigned i = 0; i < n; i++) { /* both join all: the older of two is no news */
            unsigned r = symbols[i].rkey - 1000;
            uint32_t generation = crdt_index_generation_of(x, symbols[i].generation);
            DISCARD(crdt_index_observe(x, symbols[i].id48, r, symbols[i].code, generation));
            DISCARD(crdt_index_observe(y, symbols[i].id48, r, symbols[i].code, generation));
        }
        assert_int_equal(crdt_index_digest(x, 0), crdt_index_digest(y, 0));
        assert_true(sketches_equal(x, y, from));
    }
    crdt_index_check(x);
    crdt_index_check(y);
    crdt_index_destroy(x);
    crdt_index_destroy(y);
}

static void test_a_retired_cache_is_swept_within_a_lap(void **state)
{
    (void)state;
    struct crdt_index *x = make(8 << 20, 8, TTL, NOW);
    uint64_t buckets = stats_of(x).buckets;
    for (unsigned i = 0; i < 1000; i++)
        DISCARD(crdt_index_observe(x, id_of(i), 1, 0, NOW));
    crdt_index_forget(x, 1, 5);
    unsigned calls = 0;
    for (; stats_of(x).retired > 0; calls++)
        (void)crdt_index_sweep(x, (uint32_t)(buckets / 1000));
    assert_in_range(calls, 7, 9); /* a lap from here, wherever the lap before ended */
    assert_int_equal(stats_of(x).reclaimed, 1000);
    crdt_index_destroy(x);
}

/* Digests never contain entries of lost caches; sketches do until the sweeper has finished a
 * lap. */
static void test_a_sketch_is_clean_after_lost_caches_are_swept(void **state)
{
    (void)state;
    struct crdt_index *x = make(8 << 20, 8, TTL, NOW);
    struct crdt_index *y = make(8 << 20, 8, TTL, NOW);
    (void)crdt_index_sweep(x, (uint32_t)stats_of(x).buckets / 2); /* another position */
    for (unsigned i = 0; i < 3 * CRDT_REMAINS_MAX; i++) {
        unsigned r = i < CRDT_REMAINS_MAX ? 1 : 2;
        DISCARD(crdt_index_observe(x, id_of(i), r, 0, NOW));
        DISCARD(crdt_index_observe(y, id_of(i), r, 0, NOW));
    }
    crdt_index_forget(x, 1, 5);
    crdt_index_forget(y, 1, 5);
    assert_true(crdt_index_sketch_is_clean(x)); /* few enough to be decoded */
    crdt_index_forget(x, 2, 6);
    crdt_index_forget(y, 2, 6);
    assert_false(crdt_index_sketch_is_clean(x));
    (void)crdt_index_sweep(x, 5);
    assert_int_equal(crdt_index_digest(x, 0), crdt_index_digest(y, 0));
    assert_false(sketches_equal(x, y, NOW - TTL));
    for (unsigned i = 0; i < 2; i++) { /* two laps: the second cache was lost during a lap */
        (void)crdt_index_sweep(x, UINT32_MAX);
        (void)crdt_index_sweep(y, UINT32_MAX);
    }
    assert_true(crdt_index_sketch_is_clean(x) && crdt_index_sketch_is_clean(y));
    assert_true(sketches_equal(x, y, NOW - TTL));
    crdt_index_check(x);
    crdt_index_destroy(x);
    crdt_index_destroy(y);
}

static void test_the_sketch_of_a_cut_has_the_live_entries_up_to_the_next_span(void **state)
{
    (void)state;
    enum { CUT_TTL = 96, AT = 999 }; /* spans of 3 */
    static struct crdt_sketch got, want;
    struct crdt_index *x = make(16 << 20, 16, CUT_TTL, AT + 5);
    struct crdt_index *y = make(16 << 20, 16, CUT_TTL, AT + 5);
    for (unsigned r = 0; r < 16; r++) {
        crdt_index_forget(x, r, 100 + r);
        crdt_index_forget(y, r, 100 + r);
    }
    for (unsigned i = 0; i < 3000; i++) { /* single entries and sets, of 6 generations */
        uint32_t generation = AT + i % 6;
        uint64_t id = i < 3000 - 16 ? id_of(i) : 77; /* the last 16: the same id at each replica */
        DISCARD(crdt_index_observe(x, id, i % 16, 0, generation));
        if (generation == AT + 1 || generation == AT + 2)
            DISCARD(crdt_index_observe(y, id, i % 16, 0, generation));
    }
    crdt_index_floor_raise(x, AT + 1);
    crdt_index_forget(x, 3, 200);
    crdt_index_forget(y, 3, 200);
    assert_true(crdt_index_sketch_cut(x, AT + 1, &got));
    assert_true(crdt_index_sketch_cut(y, AT + 1, &want));
    assert_int_equal(crdt_index_sketch_from(x, AT + 1), AT + 3);
    assert_int_equal(crdt_index_entries_between(x, 0, AT + 3),
                     crdt_index_entries_between(y, 0, AT + 3));
    assert_memory_equal(&got, &want, sizeof got);
    assert_int_equal(crdt_index_digest_between(x, 0, AT + 3), crdt_index_digest(y, 0));
    crdt_index_destroy(x);
    crdt_index_destroy(y);
}

/* --- bindings ------------------------------------------------------------------------------- */

static void test_bindings_have_no_weight_and_the_newest_wins(void **state)
{
    (void)state;
    struct crdt_index *x = make(8 << 20, 16, 20, NOW);
    const uint8_t code = CHECKPOINT_CODE_BINDING;
    unsigned replica = 0;
    uint32_t generation = 0;
    for (unsigned r = 0; r < 16; r++)
        crdt_index_forget(x, r, 100 - r);
    assert_int_equal(crdt_index_newest(x, 9, code, &replica, &generation), ERR_NOT_FOUND);
    assert_int_equal(crdt_index_observe(x, 9, 3, code, NOW - 5), 1);
    assert_int_equal(crdt_index_observe(x, 9, 3, 0, NOW), 1); /* a prompt with the same id */
    assert_int_equal(crdt_index_newest(x, 9, code, &replica, &generation), 0);
    assert_true(replica == 3 && generation == NOW - 5);
    assert_int_equal(crdt_index_blocks_total(x, 3), 1);
    assert_int_equal(crdt_index_entries_at(x, NOW - 5), 1);
    for (unsigned r = 0; r < 16; r++) { /* from single entries to a set */
        assert_int_equal(crdt_index_observe(x, 9, (r * 5 + 7) % 16, code, NOW - 4), 1);
        assert_int_equal(crdt_index_newest(x, 9, code, &replica, &generation), 0);
        assert_int_equal(generation, NOW - 4);
        unsigned least = 16; /* the greatest rkey */
        for (unsigned i = 0; i <= r; i++)
            least = (i * 5 + 7) % 16 < least ? (i * 5 + 7) % 16 : least;
        assert_int_equal(replica, least);
    }
    assert_int_equal(crdt_index_observe(x, 9, 11, code, NOW), 1);
    assert_int_equal(crdt_index_newest(x, 9, code, &replica, &generation), 0);
    assert_true(replica == 11 && generation == NOW);
    crdt_index_forget(x, 11, 7);
    assert_int_equal(crdt_index_newest(x, 9, code, &replica, &generation), 0);
    assert_true(replica == 0 && generation == NOW - 4);
    assert_int_equal(crdt_index_blocks_total(x, 0), 0);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

static void test_a_run_joins_like_its_observations(void **state)
{
    (void)state;
    enum { COUNT = 700 };
    struct prng p;
    prng_seed(&p, 31);
    struct crdt_index *x = make(20 << 20, 16, 20, NOW);
    struct crdt_index *y = make(20 << 20, 16, 20, NOW);
    uint64_t ids[COUNT];
    uint8_t codes[COUNT];
    uint64_t inflated[(COUNT + 63) / 64];
    for (unsigned run = 0; run < 200; run++) {
        unsigned count = (unsigned)prng_below(&p, COUNT + 1);
        unsigned r = (unsigned)prng_below(&p, 16);
        uint32_t generation = NOW + 1 - (uint32_t)prng_below(&p, 20);
        for (unsigned i = 0; i < count; i++) {
            ids[i] = id_of(prng_below(&p, 2000));
            codes[i] = (uint8_t)(ids[i] % 32);
        }
        int got = crdt_index_observe_run(x, ids, codes, count, r, generation, inflated);
        for (unsigned i = 0; i < count; i++) {
            int one = crdt_index_observe(y, ids[i], r, codes[i], generation);
            assert_int_equal(inflated[i / 64] >> i % 64 & 1, one);
            got -= one;
        }
        assert_int_equal(got, 0);
    }
    assert_int_equal(crdt_index_observe_run(x, ids, codes, 3, 0, NOW + 2, inflated), ERR_RANGE);
    assert_int_equal(inflated[0], 0);
    assert_int_equal(crdt_index_observe_run(x, ids, codes, 3, 0, NOW - 21, NULL), ERR_STALE);
    assert_int_equal(crdt_index_digest(x, 0), crdt_index_digest(y, 0));
    crdt_index_check(x);
    crdt_index_destroy(x);
    crdt_index_destroy(y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digests_depend_on_the_value_alone),
        cmocka_unit_test(test_routers_with_equal_observations_agree),
        cmocka_unit_test(test_the_rkey_of_a_cache_is_compared),
        cmocka_unit_test(test_differences_are_found_and_repaired),
        cmocka_unit_test(test_a_retired_cache_is_swept_within_a_lap),
        cmocka_unit_test(test_a_sketch_is_clean_after_lost_caches_are_swept),
        cmocka_unit_test(test_the_sketch_of_a_cut_has_the_live_entries_up_to_the_next_span),
        cmocka_unit_test(test_bindings_have_no_weight_and_the_newest_wins),
        cmocka_unit_test(test_a_run_joins_like_its_observations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
