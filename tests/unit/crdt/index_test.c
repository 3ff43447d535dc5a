#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/prng.h"
#include "crdt/counts.h"
#include "crdt/spans.h"
#include "tests/lib/index_model.h"

/* Every test runs twice, as a single node and as a member of a cluster, with the same result. */
static bool replicated;

static struct crdt_index *make(uint64_t bytes, uint32_t replicas, uint32_t ttl, uint32_t now)
{
    struct crdt_index *x = NULL;
    struct crdt_index_config config = {.bytes_max = bytes,
                                       .replicas_max = replicas,
                                       .ttl_generations = ttl,
                                       .generation = now,
                                       .replicated = replicated};
    if (replicated) /* the same memory for the entries as in a single node */
        config.bytes_max += crdt_spans_bytes(replicas, ttl) +
                            crdt_counts_bytes(replicas, ttl + 2, true) -
                            crdt_counts_bytes(replicas, ttl + 2, false) + bytes / 64;
    assert_int_equal(crdt_index_create(&x, &config), 0);
    crdt_index_check(x);
    return x;
}

/* A replica lost the cache; the next cache has another name. */
static void forget(struct crdt_index *x, unsigned replica)
{
    static uint32_t rkey;
    crdt_index_forget(x, replica, ++rkey);
}

static struct crdt_index_stats stats_of(const struct crdt_index *x)
{
    struct crdt_index_stats stats;
    crdt_index_stats(x, &stats);
    return stats;
}

static uint64_t id_of(uint64_t n)
{
    return hash_mix(n + 1);
}

enum { RUNS = TEST_ROUNDS(500) }; /* the fuzz target has the same model */

/* --- against the model ---------------------------------------------------------------------- */

static void test_random_sequences_agree_with_a_naive_model(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 1);
    struct crdt_index_stats sum = {0};
    for (unsigned run = 0; run < RUNS; run++) {
        uint8_t tape[400];
        for (unsigned i = 0; i < sizeof tape; i++)
            tape[i] = (uint8_t)prng_next(&p);
        tape[0] = (uint8_t)(tape[0] % 128 + (replicated ? 128 : 0));
        struct crdt_index_stats one;
        model_run(tape, 40 + run % 360, replicated ? 8 : 1, &one);
        sum.promoted += one.promoted;
        sum.refused += one.refused;
        sum.evicted += one.evicted;
        sum.reclaimed += one.reclaimed;
    }
    print_message("at the end %llu sets; %llu refused, %llu evicted, %llu reclaimed\n",
                  (unsigned long long)sum.promoted, (unsigned long long)sum.refused,
                  (unsigned long long)sum.evicted, (unsigned long long)sum.reclaimed);
    /* The runs did reach the difficult cases. */
    assert_true(sum.promoted > RUNS / 4 && sum.refused > RUNS / 4);
    assert_true(sum.evicted > RUNS / 4 && sum.reclaimed > RUNS / 4);
}

/* --- joining -------------------------------------------------------------------------------- */

struct observation {
    uint64_t id;
    uint32_t generation;
    uint16_t replica;
    uint8_t code;
};

/* Order-independent digest of all live entries. */
static void digest_visit(void *context, uint64_t id48, uint8_t code, unsigned replica,
                         uint32_t generation)
{
    uint64_t *digest = context;
    *digest +=
        hash_mix(hash_mix(id48 ^ (uint64_t)code << 50) ^ (uint64_t)replica << 32 ^ generation);
}

static uint64_t digest_of(const struct crdt_index *x)
{
    uint64_t digest = 0;
    crdt_index_each(x, digest_visit, &digest);
    return digest;
}

static void test_order_and_repetition_do_not_matter(void **state)
{
    (void)state;
    enum { COUNT = 4000, ROUNDS = 20 };
    static struct observation o[COUNT];
    struct prng p;
    prng_seed(&p, 7);
    for (unsigned i = 0; i < COUNT; i++)
        o[i] = (struct observation){.id = id_of(prng_below(&p, 60)),
                                    .generation = 1000 + (uint32_t)prng_below(&p, 12),
                                    .replica = (uint16_t)prng_below(&p, 200),
                                    .code = (uint8_t)prng_below(&p, 2)};
    uint64_t expected = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct crdt_index *x = make(8 << 20, 200, 50, 1010);
        for (unsigned i = 0; i < COUNT; i++) {
            int got = crdt_index_observe(x, o[i].id, o[i].replica, o[i].code, o[i].generation);
            assert_true(got == 0 || got == 1);
            assert_int_equal(
                crdt_index_observe(x, o[i].id, o[i].replica, o[i].code, o[i].generation), 0);
            if (prng_below(&p, 100) == 0)
                (void)crdt_index_sweep(x, 5000);
        }
        crdt_index_check(x);
        assert_true(stats_of(x).promoted > 0);
        /* A floor commutes with joins: raised before, between or after them, the result is the
         * same. */
        crdt_index_floor_raise(x, 1003);
        for (unsigned i = 0; i < COUNT; i++)
            DISCARD(crdt_index_observe(x, o[i].id, o[i].replica, o[i].code, o[i].generation));
        if (round == 0)
            expected = digest_of(x);
        assert_int_equal(digest_of(x), expected);
        crdt_index_destroy(x);
        for (unsigned i = COUNT - 1; i > 0; i--) {
            unsigned j = (unsigned)prng_below(&p, i + 1);
            struct observation swap = o[i];
            o[i] = o[j];
            o[j] = swap;
        }
    }
}

static void test_generations_out_of_range_are_refused(void **state)
{
    (void)state;
    struct crdt_index *x = make(1 << 20, 8, 10, 100);
    assert_int_equal(crdt_index_floor(x), 90);
    assert_int_equal(crdt_index_observe(x, 1, 0, 0, 102), ERR_RANGE);
    assert_int_equal(crdt_index_observe(x, 1, 0, 0, UINT32_MAX), ERR_RANGE);
    assert_int_equal(crdt_index_observe(x, 1, 0, 0, 89), ERR_STALE);
    assert_int_equal(crdt_index_observe(x, 1, 0, 0, 0), ERR_STALE);
    assert_int_equal(stats_of(x).entries, 0);
    assert_int_equal(crdt_index_observe(x, 1, 0, 0, 90), 1);
    assert_int_equal(crdt_index_observe(x, 1, 0, 0, 101), 1);
    assert_int_equal(crdt_index_observe(x, 1, 0, 0, 100), 0);
    struct crdt_index_stats stats = stats_of(x);
    assert_int_equal(stats.future, 2);
    assert_int_equal(stats.stale, 2);
    assert_int_equal(stats.entries, 1);
    assert_int_equal(stats.inserted, 1);
    assert_int_equal(stats.refreshed, 1);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

static void test_a_chain_joins_like_its_points(void **state)
{
    (void)state;
    static struct chain chain;
    struct crdt_index *a = make(8 << 20, 64, 50, 500);
    struct crdt_index *b = make(8 << 20, 64, 50, 500);
    struct prng p;
    prng_seed(&p, 3);
    for (unsigned round = 0; round < 600; round++) {
        chain.length = (uint16_t)prng_below(&p, round % 10 == 0 ? CHAIN_POINTS_MAX + 1 : 40);
        for (unsigned i = 0; i < chain.length; i++) {
            uint64_t n = prng_below(&p, 5) == 0 ? prng_below(&p, 100) : i + round / 20 * 1000;
            chain.points[i] = (struct chain_point){
                .id = id_of(n), .blocks = i + 1, .code = checkpoint_code(n % CHECKPOINT_MAX)};
        }
        unsigned replica = (unsigned)prng_below(&p, 64);
        uint32_t generation = 490 + (uint32_t)prng_below(&p, 12);
        uint64_t inflated[CHAIN_POINTS_MAX / 64];
        int count = crdt_index_observe_chain(a, &chain, replica, generation, inflated);
        assert_true(count >= 0);
        for (unsigned i = 0; i < CHAIN_POINTS_MAX; i++) {
            int one = i >= chain.length ? 0
                                        : crdt_index_observe(b, chain.points[i].id, replica,
                                                             chain.points[i].code, generation);
            assert_int_equal(inflated[i / 64] >> i % 64 & 1, one);
            count -= one;
        }
        assert_int_equal(count, 0);
    }
    crdt_index_check(a);
    assert_int_equal(digest_of(a), digest_of(b));
    assert_int_equal(crdt_index_observe_chain(a, &chain, 0, 502, NULL), ERR_RANGE);
    assert_int_equal(crdt_index_observe_chain(a, &chain, 0, 449, NULL), ERR_STALE);
    crdt_index_destroy(a);
    crdt_index_destroy(b);
}

/* --- sets of holders ------------------------------------------------------------------------ */

static void test_an_id_with_many_holders_becomes_a_set(void **state)
{
    (void)state;
    struct crdt_index *x = make(8 << 20, 1000, 20, 100);
    for (unsigned r = 0; r < 1000; r++) {
        assert_int_equal(crdt_index_observe(x, 42, r, 3, 100 - r % 7), 1);
        assert_int_equal(stats_of(x).promoted, r >= 6);
        if (r % 50 == 0)
            crdt_index_check(x);
    }
    assert_int_equal(stats_of(x).entries, 1000);
    assert_int_equal(stats_of(x).slots_live, 1); /* a single slot for all of them */
    for (unsigned r = 0; r < 1000; r++) {
        uint32_t generation = 0;
        assert_int_equal(crdt_index_get(x, 42, r, 3, &generation), 0);
        assert_int_equal(generation, 100 - r % 7);
        assert_int_equal(crdt_index_blocks(x, r, generation), checkpoint_weight(3));
        assert_int_equal(crdt_index_observe(x, 42, r, 3, generation), 0);
    }
    /* All but three go stale: the sweeper makes single entries of the three and frees the set. */
    DISCARD(crdt_index_observe(x, 42, 10, 3, 101));
    DISCARD(crdt_index_observe(x, 42, 20, 3, 101));
    DISCARD(crdt_index_observe(x, 42, 999, 3, 101));
    uint64_t used = stats_of(x).bytes_used;
    crdt_index_advance(x, 121);
    assert_int_equal(stats_of(x).entries, 3);
    assert_int_equal(stats_of(x).promoted, 1);
    assert_int_equal(crdt_index_sweep(x, UINT32_MAX), 997);
    crdt_index_check(x);
    assert_int_equal(stats_of(x).promoted, 0);
    assert_int_equal(stats_of(x).slots_live, 3);
    assert_true(stats_of(x).bytes_used + 2000 < used);
    uint32_t generation = 0;
    assert_int_equal(crdt_index_get(x, 42, 20, 3, &generation), 0);
    assert_int_equal(generation, 101);
    crdt_index_advance(x, 122);
    crdt_index_sweep(x, UINT32_MAX);
    assert_int_equal(stats_of(x).slots_live, 0);
    assert_int_equal(stats_of(x).expired, 1000);
    assert_int_equal(stats_of(x).reclaimed, 1000);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

static void test_a_table_full_of_sets_counts_refusals(void **state)
{
    (void)state;
    struct crdt_index *x = make(1 << 20, 200, 20, 100);
    unsigned refused = 0;
    for (unsigned id = 0; id < 400; id++) {
        for (unsigned r = 0; r < 200; r++) {
            int got = crdt_index_observe(x, id_of(id), r, 0, 100);
            refused += got == ERR_FULL;
            assert_true(got == 1 || got == ERR_FULL);
        }
    }
    crdt_index_check(x);
    struct crdt_index_stats stats = stats_of(x);
    assert_true(refused > 0);
    assert_int_equal(stats.refused, refused);
    assert_int_equal(stats.entries, 400 * 200 - refused);
    crdt_index_advance(x, 121);
    crdt_index_sweep(x, UINT32_MAX);
    assert_int_equal(stats_of(x).slots_live, 0);
    assert_int_equal(crdt_index_observe(x, 5, 5, 5, 121), 1);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

/* A set may have dead stamps, and the sweeper assumes that everything behind the hand is clean. So
 * an insert into full buckets must not move a set from before the hand to behind it. Otherwise the
 * stamps would outlive the lap, although the incarnation number is reused. */
static void test_sets_are_not_moved_behind_the_sweeper(void **state)
{
    (void)state;
    struct crdt_index *x = make(1 << 18, 32, 20, 1000);
    uint64_t n = 1000;
    for (uint32_t now = 1000; now < 1000 + TEST_ROUNDS(400); now++) {
        crdt_index_advance(x, now);
        for (unsigned id = 0; id < 100; id++) {
            for (unsigned r = 0; r < 10; r++)
                DISCARD(crdt_index_observe(x, id_of(id), (now + r) % 32, 0, now));
        }
        for (uint64_t end = n + stats_of(x).slots_limit / 8; n < end; n++)
            DISCARD(crdt_index_observe(x, id_of(n), 31, 0, now));
        forget(x, now % 31);
        (void)crdt_index_sweep(x, (uint32_t)stats_of(x).buckets / 4 + 1);
        crdt_index_check(x);
    }
    assert_true(stats_of(x).promoted >= 50);
    crdt_index_destroy(x);
}

/* --- time ----------------------------------------------------------------------------------- */

static void test_expiry_needs_no_sweep_and_stamps_may_wrap(void **state)
{
    (void)state;
    for (unsigned sweeping = 0; sweeping < 2; sweeping++) {
        struct crdt_index *x = make(1 << 20, 16, 5, 4000);
        uint32_t generation = 0;
        for (uint32_t now = 4000; now < 4000 + 3 * 4096; now++) {
            crdt_index_advance(x, now);
            assert_int_equal(crdt_index_floor(x), now - 5);
            assert_int_equal(crdt_index_observe(x, id_of(now), now % 16, 1, now), 1);
            assert_int_equal(stats_of(x).entries, now - 4000 < 5 ? now - 4000 + 1 : 6);
            assert_int_equal(crdt_index_get(x, id_of(now - 5), (now - 5) % 16, 1, &generation),
                             now - 4000 < 5 ? ERR_NOT_FOUND : 0);
            assert_int_equal(crdt_index_get(x, id_of(now - 6), (now - 6) % 16, 1, &generation),
                             ERR_NOT_FOUND);
            assert_int_equal(
                crdt_index_get(x, id_of(now - 4096), (now - 4096) % 16, 1, &generation),
                ERR_NOT_FOUND);
            if (sweeping)
                (void)crdt_index_sweep(x, 100);
            if (now % 512 == 0)
                crdt_index_check(x);
        }
        crdt_index_destroy(x);
    }
}

static void test_the_clock_and_floor_never_go_back(void **state)
{
    (void)state;
    struct crdt_index *x = make(1 << 20, 4, 10, 50);
    crdt_index_advance(x, 60);
    crdt_index_advance(x, 10);
    assert_int_equal(crdt_index_now(x), 60);
    crdt_index_floor_raise(x, 55);
    crdt_index_floor_raise(x, 20);
    assert_int_equal(crdt_index_floor(x), 55);
    crdt_index_floor_raise(x, 1000);
    assert_int_equal(crdt_index_floor(x), 61);
    assert_int_equal(crdt_index_observe(x, 1, 1, 1, 60), ERR_STALE);
    assert_int_equal(crdt_index_observe(x, 1, 1, 1, 61), 1);
    crdt_index_advance(x, UINT32_MAX);
    assert_int_equal(stats_of(x).entries, 0);
    assert_int_equal(crdt_index_observe(x, 1, 1, 1, crdt_index_now(x) + 1), 1);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

static void test_a_forgotten_replica_is_empty_at_once(void **state)
{
    (void)state;
    struct crdt_index *x = make(4 << 20, 50, 20, 100);
    uint32_t generation = 0;
    /* More restarts within a lap than there are incarnation numbers; single entries and a set. */
    for (unsigned round = 0; round < 100; round++) {
        for (unsigned id = 0; id < 20; id++)
            assert_int_equal(crdt_index_observe(x, id_of(id), 7, 2, 100), 1);
        for (unsigned r = 0; r < 50; r++)
            assert_int_equal(crdt_index_observe(x, 1, r, 2, 100), r == 7 || round == 0);
        assert_int_equal(crdt_index_blocks(x, 7, 100), 21 * 3);
        forget(x, 7);
        crdt_index_check(x);
        assert_int_equal(crdt_index_blocks_total(x, 7), 0);
        assert_int_equal(stats_of(x).entries, 49);
        assert_int_equal(crdt_index_get(x, 1, 7, 2, &generation), ERR_NOT_FOUND);
        assert_int_equal(crdt_index_get(x, 1, 8, 2, &generation), 0);
        assert_int_equal(crdt_index_get(x, id_of(3), 7, 2, &generation), ERR_NOT_FOUND);
        if (round % 3 == 0)
            (void)crdt_index_sweep(x, 10000);
    }
    assert_int_equal(stats_of(x).forgotten, 2100);
    (void)crdt_index_sweep(x, UINT32_MAX);
    (void)crdt_index_sweep(x, UINT32_MAX);
    crdt_index_check(x);
    assert_int_equal(stats_of(x).slots_live, 1);
    crdt_index_destroy(x);
}

/* --- counters ------------------------------------------------------------------------------- */

static void test_blocks_move_with_their_entry(void **state)
{
    (void)state;
    struct crdt_index *x = make(1 << 20, 4, 10, 100);
    DISCARD(crdt_index_observe(x, 1, 2, 4, 95)); /* 6 blocks */
    DISCARD(crdt_index_observe(x, 2, 2, 0, 95));
    assert_int_equal(crdt_index_blocks(x, 2, 95), 7);
    DISCARD(crdt_index_observe(x, 1, 2, 4, 101));
    struct crdt_index_ring ring = crdt_index_ring(x, 2);
    assert_int_equal(ring.newest, 101);
    assert_int_equal(ring.oldest, 90);
    uint64_t sum = 0;
    for (uint32_t g = ring.newest; g >= ring.oldest; g--) {
        assert_int_equal(crdt_index_ring_at(&ring, g), g == 101 ? 6 : g == 95 ? 1 : 0);
        sum += crdt_index_ring_at(&ring, g);
    }
    assert_int_equal(sum, crdt_index_blocks_total(x, 2));
    assert_int_equal(crdt_index_blocks(x, 2, 89), 0);
    assert_int_equal(crdt_index_blocks(x, 2, 102), 0);
    crdt_index_advance(x, 106);
    assert_int_equal(crdt_index_blocks_total(x, 2), 6);
    assert_int_equal(crdt_index_blocks(x, 1, 101), 0);
    crdt_index_destroy(x);
}

static void test_a_counter_never_overflows(void **state)
{
    (void)state;
    struct crdt_index *x = make(2 << 20, 2, 10, 100);
    for (unsigned i = 0; i < 87381; i++)
        assert_int_equal(crdt_index_observe(x, id_of(i), 0, CHECKPOINT_CODE_MAX, 100), 1);
    assert_int_equal(crdt_index_blocks(x, 0, 100), UINT64_C(87381) * 49152);
    assert_int_equal(crdt_index_observe(x, id_of(87381), 0, CHECKPOINT_CODE_MAX, 100), ERR_FULL);
    assert_int_equal(crdt_index_observe(x, id_of(87381), 1, CHECKPOINT_CODE_MAX, 100), 1);
    assert_int_equal(crdt_index_observe(x, id_of(87381), 0, CHECKPOINT_CODE_MAX, 101), 1);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

/* --- memory --------------------------------------------------------------------------------- */

static void test_a_full_table_loses_the_oldest_first(void **state)
{
    (void)state;
    struct crdt_index *x = make(1 << 20, 16, 50, 1000);
    struct crdt_index_stats stats = stats_of(x);
    assert_true(stats.bytes <= stats.bytes_max && stats.bytes + 1000 > stats.bytes_max);
    uint32_t per_generation = (uint32_t)(stats.slots_limit / 10);
    uint64_t n = 0;
    for (uint32_t now = 1000; now < 1100; now++) {
        crdt_index_advance(x, now);
        uint64_t from = n;
        for (unsigned i = 0; i < per_generation; i++, n++)
            assert_int_equal(crdt_index_observe(x, id_of(n), (unsigned)n % 16, 0, now), 1);
        uint32_t generation = 0;
        for (uint64_t i = from; i < n; i++)
            assert_int_equal(crdt_index_get(x, id_of(i), (unsigned)i % 16, 0, &generation), 0);
        stats = stats_of(x);
        assert_true(stats.slots_live <= stats.slots_limit);
        assert_true(stats.entries >= stats.slots_limit * 8 / 10 || now < 1010);
        assert_true(crdt_index_floor(x) >= now - 10 || now < 1010);
        assert_true(now < 1011 || crdt_index_floor(x) <= now - 8);
        if (now % 10 == 0)
            crdt_index_check(x);
    }
    assert_true(stats.evicted > 0);
    assert_int_equal(stats.refused, 0);
    /* Evicted entries are below the published floor, and are not accepted again. */
    assert_int_equal(crdt_index_observe(x, id_of(0), 0, 0, 1000), ERR_STALE);
    crdt_index_destroy(x);
}

static void test_a_table_full_of_the_present_refuses(void **state)
{
    (void)state;
    struct crdt_index *x = make(1 << 20, 4, 50, 1000);
    struct crdt_index_stats stats = stats_of(x);
    uint64_t n = 0;
    while (crdt_index_observe(x, id_of(n), 0, 0, 1000) == 1)
        n++;
    assert_int_equal(n, stats.slots_limit);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(crdt_index_observe(x, id_of(n + i), 1, 0, 1000), ERR_FULL);
    assert_int_equal(crdt_index_floor(x), 1000); /* no entry was older */
    assert_int_equal(stats_of(x).refused, 1001);
    assert_int_equal(stats_of(x).entries, n);
    assert_int_equal(crdt_index_observe(x, id_of(5), 0, 0, 1001), 1); /* refreshed in place */
    crdt_index_check(x);
    /* The next generation takes over. */
    crdt_index_advance(x, 1001);
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(crdt_index_observe(x, id_of(n + i), 1, 0, 1001), 1);
    assert_int_equal(crdt_index_floor(x), 1001);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

static void collect(void *context, uint64_t id48, uint8_t code, unsigned replica,
                    uint32_t generation)
{
    (void)generation;
    uint64_t *sum = context;
    *sum += hash_mix(id48) * (code + 1u) * (replica + 1u);
}

static void test_ids_are_exact_from_4_mib_on(void **state)
{
    (void)state;
    struct crdt_index *x = make(9 << 20, 8, 50, 1000);
    assert_true(stats_of(x).buckets > 65536);
    uint64_t count = stats_of(x).slots_limit;
    uint64_t expected = 0;
    for (uint64_t n = 0; n < count; n++) {
        uint64_t id = id_of(n);
        assert_int_equal(crdt_index_observe(x, id, n % 8, (uint8_t)(n % 32), 1000), 1);
        expected += hash_mix(id & 0xffffffffffff) * (n % 32 + 1) * (n % 8 + 1);
    }
    uint64_t got = 0;
    crdt_index_each(x, collect, &got);
    assert_int_equal(got, expected);
    assert_int_equal(stats_of(x).refused, 0);
    crdt_index_check(x);
    crdt_index_destroy(x);
}

static void test_bad_settings_are_refused(void **state)
{
    (void)state;
    struct crdt_index *x = NULL;
    struct crdt_index_config good = {
        .bytes_max = 1 << 20, .replicas_max = 10, .ttl_generations = 10, .generation = 0};
    struct crdt_index_config c = good;
    c.replicas_max = 0;
    assert_int_equal(crdt_index_create(&x, &c), ERR_RANGE);
    c.replicas_max = CRDT_REPLICAS_MAX + 1;
    assert_int_equal(crdt_index_create(&x, &c), ERR_RANGE);
    c = good;
    c.ttl_generations = 0;
    assert_int_equal(crdt_index_create(&x, &c), ERR_RANGE);
    c.ttl_generations = CRDT_TTL_MAX + 1;
    assert_int_equal(crdt_index_create(&x, &c), ERR_RANGE);
    c = good;
    c.bytes_max = 1000;
    assert_int_equal(crdt_index_create(&x, &c), ERR_LIMIT);
    assert_null(x);
    static const uint32_t sizes[][2] = {
        {1, 1}, {8, 40}, {256, 1}, {256, 1022}, {256, CRDT_TTL_MAX}};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        c.replicas_max = sizes[i / 2][0];
        c.ttl_generations = sizes[i / 2][1];
        c.replicated = i % 2 == 1;
        c.bytes_max = crdt_index_bytes_ample(c.replicas_max, c.ttl_generations, c.replicated);
        assert_int_equal(crdt_index_create(&x, &c), 0);
        crdt_index_destroy(x);
    }
    crdt_index_destroy(NULL);
    x = make(1 << 20, 10, 10, 0);
    assert_int_equal(crdt_index_observe(x, 1, 1, 1, 0), 1); /* generation 0 is like any other */
    crdt_index_check(x);
    crdt_index_destroy(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sequences_agree_with_a_naive_model),
        cmocka_unit_test(test_order_and_repetition_do_not_matter),
        cmocka_unit_test(test_generations_out_of_range_are_refused),
        cmocka_unit_test(test_a_chain_joins_like_its_points),
        cmocka_unit_test(test_an_id_with_many_holders_becomes_a_set),
        cmocka_unit_test(test_a_table_full_of_sets_counts_refusals),
        cmocka_unit_test(test_sets_are_not_moved_behind_the_sweeper),
        cmocka_unit_test(test_expiry_needs_no_sweep_and_stamps_may_wrap),
        cmocka_unit_test(test_the_clock_and_floor_never_go_back),
        cmocka_unit_test(test_a_forgotten_replica_is_empty_at_once),
        cmocka_unit_test(test_blocks_move_with_their_entry),
        cmocka_unit_test(test_a_counter_never_overflows),
        cmocka_unit_test(test_a_full_table_loses_the_oldest_first),
        cmocka_unit_test(test_a_table_full_of_the_present_refuses),
        cmocka_unit_test(test_ids_are_exact_from_4_mib_on),
        cmocka_unit_test(test_bad_settings_are_refused),
    };
    int failed = cmocka_run_group_tests_name("a single node", tests, NULL, NULL);
    replicated = true;
    return failed + cmocka_run_group_tests_name("a replicated node", tests, NULL, NULL);
}
