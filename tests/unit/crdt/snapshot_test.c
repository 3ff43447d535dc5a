#include "crdt/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/prng.h"
#include "crdt/batch.h"
#include "tests/lib/state_help.h"
#include "tests/lib/states.h"
#include "tests/lib/test.h"

static struct chain chain;

/* --- blocks --------------------------------------------------------------------------------- */

static void test_blocks_return_the_entries_put_in(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 2);
    static uint32_t rkeys[CRDT_REPLICAS_MAX];
    for (unsigned i = 0; i < CRDT_REPLICAS_MAX; i++)
        rkeys[i] = 1000 + i;
    enum { MAX = 3000 };
    struct crdt_batch_entry *in = calloc(MAX, sizeof *in);
    struct crdt_batch_entry *out = calloc(MAX, sizeof *out);
    assert_true(in != NULL && out != NULL);
    for (unsigned round = 0; round < 200; round++) {
        unsigned count = 1 + (unsigned)prng_below(&p, MAX);
        unsigned slots = 1 + (unsigned)prng_below(&p, 1024);
        unsigned span = 1 + (unsigned)prng_below(&p, 4096);
        uint64_t singles = 0;
        uint64_t sum_in = 0;
        for (unsigned i = 0; i < count; i++) {
            bool again = i > 0 && prng_below(&p, 3) == 0;
            in[i] = (struct crdt_batch_entry){.id48 = again ? in[i - 1].id48 : prng_next(&p) >> 16,
                                              .code = again ? in[i - 1].code
                                                            : (uint8_t)prng_below(&p, 32),
                                              .generation = 5000 + (uint32_t)prng_below(&p, span),
                                              .slot = (uint16_t)prng_below(&p, slots)};
            singles += !again;
            sum_in += hash_mix(in[i].id48 ^ hash_mix((uint64_t)in[i].generation << 20 |
                                                     (uint64_t)in[i].slot << 8 | in[i].code));
        }
        struct buf b = {0};
        assert_int_equal(crdt_batch_append(&b, in, count, rkeys), 0);
        struct wire_reader r = wire_reader_of(b.at, b.len);
        struct crdt_batch block;
        crdt_batch_read(&r, &block);
        assert_false(r.bad);
        assert_int_equal(wire_left(&r), 0);
        struct crdt_batch_reader reader = crdt_batch_reader_of(&block);
        uint64_t sum_out = 0;
        unsigned got = 0;
        unsigned n;
        while ((n = crdt_batch_next(&reader, out, 64)) > 0) {
            for (unsigned i = 0; i < n; i++) {
                const uint8_t *at = (const uint8_t *)block.rkeys.at + 4 * (size_t)out[i].slot;
                unsigned slot = (unsigned)at[0] + 256u * at[1] - 1000;
                sum_out += hash_mix(out[i].id48 ^ hash_mix((uint64_t)out[i].generation << 20 |
                                                           (uint64_t)slot << 8 | out[i].code));
            }
            got += n;
        }
        assert_int_equal(got, count);
        assert_int_equal(sum_out, sum_in);
        for (size_t cut = 0; cut < b.len; cut += 1 + b.len / 50) {
            r = wire_reader_of(b.at, cut);
            crdt_batch_read(&r, &block);
            assert_true(r.bad);
        }
        buf_free(&b);
    }
    free(in);
    free(out);
}

/* --- snapshots ------------------------------------------------------------------------------ */

static struct crdt_state *make(uint64_t self)
{
    return states_make(&(struct states_setting){.self = self, .bytes_max = 12 << 20});
}

/* The state changes during the snapshot, and the deltas reach the joiner in any order with the
 * chunks. In the end the joiner has everything. */
static void test_a_snapshot_and_deltas_give_the_whole_state(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct prng p;
        prng_seed(&p, seed);
        struct crdt_state *a = make(1);
        struct crdt_state *b = make(2);
        for (unsigned i = 0; i < 500; i++) {
            unsigned slot = states_replica(a, (unsigned)prng_below(&p, 30));
            states_prompt(&chain, i, 100);
            assert_int_equal(crdt_state_observe(a, &chain, slot), 100);
        }
        uint64_t seq = states_tell_nobody(a, 0);
        struct crdt_snapshot c;
        crdt_snapshot_begin(&c, 0);
        struct buf chunk = {0};
        unsigned chunks = 0;
        int more = 1;
        while (more == 1) {
            if (prng_below(&p, 2) == 0) {
                buf_clear(&chunk);
                more = crdt_snapshot_next(a, &c, &chunk);
                assert_true(chunk.len <= CRDT_CHUNK_MAX);
                assert_int_equal(crdt_snapshot_apply(b, buf_slice(&chunk)), 0);
                chunks += more == 1;
                continue;
            }
            unsigned slot = states_replica(a, (unsigned)prng_below(&p, 31));
            states_prompt(&chain, prng_below(&p, 700), 100);
            state_advance(a, 1000 + (uint32_t)prng_below(&p, 3));
            assert_true(crdt_state_observe(a, &chain, slot) >= 0);
            crdt_state_load(a, slot, &(struct crdt_load){.requests = (uint32_t)prng_below(&p, 9)});
            if (prng_below(&p, 9) == 0)
                (void)crdt_state_restarted(a, slot, 0);
            uint8_t delta[1160];
            size_t len;
            state_advance(b, crdt_index_now(crdt_state_index(a)));
            while ((len = crdt_state_produce(a, ++seq, delta, sizeof delta)) > 0) {
                struct crdt_origin origin = {.router = 1, .epoch = 1, .seq = seq};
                assert_int_equal(crdt_state_apply(b, &origin, slice_of((char *)delta, len)), 0);
            }
        }
        assert_true(chunks > 3);
        assert_true(states_equal(a, b, 0));
        crdt_state_check(b);
        buf_free(&chunk);
        crdt_state_destroy(a);
        crdt_state_destroy(b);
    }
}

static void test_a_snapshot_begins_at_the_given_generation(void **state)
{
    (void)state;
    struct crdt_state *a = make(1);
    struct crdt_state *b = make(2);
    unsigned slot = states_replica(a, 1);
    for (uint32_t now = 1000; now < 1006; now++) {
        state_advance(a, now);
        states_prompt(&chain, now, 30);
        assert_int_equal(crdt_state_observe(a, &chain, slot), 30);
    }
    state_advance(b, 1005);
    struct crdt_snapshot c;
    crdt_snapshot_begin(&c, 1003);
    struct buf chunk = {0};
    while (crdt_snapshot_next(a, &c, &chunk) == 1) {
        assert_int_equal(crdt_snapshot_apply(b, buf_slice(&chunk)), 0);
        buf_clear(&chunk);
    }
    assert_true(states_equal(a, b, 1003));
    struct crdt_index_stats stats;
    crdt_index_stats(crdt_state_index(b), &stats);
    assert_int_equal(stats.entries, 90);
    buf_free(&chunk);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

/* Ids held by all replicas are sets in memory, and make no chunk too long. */
static void test_sets_of_holders_fit_into_chunks(void **state)
{
    (void)state;
    struct crdt_state *a = make(1);
    struct crdt_state *b = make(2);
    for (unsigned r = 0; r < 64; r++) {
        unsigned slot = states_replica(a, r);
        for (unsigned i = 0; i < 10; i++) {
            states_prompt(&chain, i, 200);
            assert_int_equal(crdt_state_observe(a, &chain, slot), 200);
        }
    }
    uint64_t seq = 0;
    states_join(b, a);
    assert_true(states_equal(a, b, 0));
    assert_true(states_tell_nobody(a, seq) > 100);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

/* A walk over gigabytes of empty table in a single call would stop a router for seconds. */
static void test_a_large_and_empty_index_is_walked_in_parts(void **state)
{
    (void)state;
    struct crdt_state_config config = {.self = 1,
                                       .index = {.bytes_max = 64 << 20,
                                                 .replicas_max = 4,
                                                 .ttl_generations = 40,
                                                 .generation = 1000,
                                                 .replicated = true}};
    struct crdt_state *a = NULL;
    assert_int_equal(crdt_state_create(&a, &config), 0);
    struct crdt_state *b = make(2);
    unsigned slot = states_replica(a, 1);
    states_prompt(&chain, 1, 100);
    assert_int_equal(crdt_state_observe(a, &chain, slot), 100);
    for (unsigned round = 0; round < 2; round++) {
        struct crdt_snapshot c;
        crdt_snapshot_begin(&c, round == 0 ? 0 : 1002); /* 1002: later than all entries */
        struct buf chunk = {0};
        unsigned chunks = 0;
        for (; crdt_snapshot_next(a, &c, &chunk) == 1; chunks++)
            assert_int_equal(crdt_snapshot_apply(b, buf_slice(&chunk)), 0);
        assert_in_range(chunks, round == 0 ? 10 : 1, round == 0 ? 20 : 1);
        assert_true(states_equal(a, b, 0));
        buf_free(&chunk);
    }
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

static void test_broken_chunks_change_nothing(void **state)
{
    (void)state;
    struct crdt_state *a = make(1);
    struct crdt_state *b = make(2);
    for (unsigned r = 0; r < 10; r++) {
        unsigned slot = states_replica(a, r);
        states_prompt(&chain, r / 8, 60);
        assert_int_equal(crdt_state_observe(a, &chain, slot), 60);
        crdt_state_sight(a, slot, &(struct crdt_sight){.health = 1});
    }
    (void)states_tell_nobody(a, 0);
    struct prng p;
    prng_seed(&p, 1);
    struct crdt_snapshot c;
    crdt_snapshot_begin(&c, 0);
    struct buf chunk = {0};
    while (crdt_snapshot_next(a, &c, &chunk) == 1) {
        for (unsigned i = 0; i < 600; i++) {
            size_t cut = i < 300 ? chunk.len * i / 300 : chunk.len;
            char *copy = malloc(cut > 0 ? cut : 1);
            assert_non_null(copy);
            memcpy(copy, chunk.at, cut);
            if (i >= 300)
                copy[prng_below(&p, i < 400 && cut > 40 ? 40 : cut)] ^=
                    (char)(1 << prng_below(&p, 8));
            struct crdt_digest before;
            struct crdt_digest after;
            crdt_state_digest(b, 0, &before);
            int err = crdt_snapshot_apply(b, slice_of(copy, cut));
            crdt_state_digest(b, 0, &after);
            assert_true(err == 0 ||
                        (err == ERR_SYNTAX && memcmp(&before, &after, sizeof after) == 0));
            free(copy);
        }
        buf_clear(&chunk);
    }
    crdt_state_check(b);
    buf_free(&chunk);
    crdt_state_destroy(a);
    crdt_state_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_return_the_entries_put_in),
        cmocka_unit_test(test_a_snapshot_and_deltas_give_the_whole_state),
        cmocka_unit_test(test_a_snapshot_begins_at_the_given_generation),
        cmocka_unit_test(test_sets_of_holders_fit_into_chunks),
        cmocka_unit_test(test_a_large_and_empty_index_is_walked_in_parts),
        cmocka_unit_test(test_broken_chunks_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
