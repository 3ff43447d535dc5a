/* The codec of routers' reports to the reader of an engine's KV-cache events. */
#include "node/kv/told.h"

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/prng.h"
#include "tests/lib/test.h"

static struct slice written(const struct wire_writer *w)
{
    assert_false(w->bad);
    return slice_of((const char *)w->start, wire_written(w));
}

static struct kv_path path_of(unsigned count, uint64_t seed)
{
    struct kv_path path = {.parent = seed, .count = count};
    struct prng p;
    prng_seed(&p, seed);
    for (unsigned i = 0; i < count; i++) {
        path.ids[i] = prng_next(&p) & 0xffffffffffff;
        path.codes[i] = (uint8_t)prng_below(&p, CHECKPOINT_CODE_MAX + 1);
    }
    return path;
}

/* In pieces of any size, each behind the point before. */
static void test_a_path_survives_in_pieces(void **state)
{
    (void)state;
    uint8_t bytes[CRDT_TIDING_MAX];
    for (unsigned count = 1; count <= KV_PATH_POINTS_MAX; count += 9) {
        const struct kv_path path = path_of(count, count - 1);
        for (size_t room = 15; room <= sizeof bytes; room += 37) {
            unsigned from = 0;
            while (from < count) {
                struct wire_writer w = wire_writer_of(bytes, room);
                unsigned some = kv_path_write(&path, from, &w);
                assert_true(some > 0 && from + some <= count);
                struct kv_path got;
                assert_int_equal(kv_path_read(written(&w), &got), ERR_OK);
                assert_int_equal(got.count, some);
                assert_int_equal(got.parent, from > 0 ? path.ids[from - 1] : path.parent);
                assert_memory_equal(got.ids, path.ids + from, some * sizeof got.ids[0]);
                assert_memory_equal(got.codes, path.codes + from, some);
                from += some;
            }
            struct wire_writer w = wire_writer_of(bytes, room);
            assert_int_equal(kv_path_write(&path, count, &w), 0);
        }
        struct wire_writer w = wire_writer_of(bytes, 14);
        assert_int_equal(kv_path_write(&path, 0, &w), 0);
        assert_int_equal(wire_written(&w), 0);
    }
}

static void test_broken_paths_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[CRDT_TIDING_MAX];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    const struct kv_path path = path_of(5, 1);
    assert_int_equal(kv_path_write(&path, 0, &w), 5);
    struct slice body = written(&w);
    struct kv_path got;
    for (size_t len = 0; len < body.len; len++)
        assert_int_equal(kv_path_read(slice_of(body.at, len), &got), ERR_SYNTAX);
    assert_int_equal(kv_path_read(slice_of(body.at, body.len + 9), &got), ERR_OK); /* later */
    bytes[6] = 0;                                                                  /* no point */
    assert_int_equal(kv_path_read(body, &got), ERR_SYNTAX);
    bytes[6] = 5;
    bytes[body.len - 1] = CHECKPOINT_CODE_BINDING;
    assert_int_equal(kv_path_read(body, &got), ERR_SYNTAX);
    memset(bytes, 0, sizeof bytes);
    bytes[6] = 0x80 | ((KV_PATH_POINTS_MAX + 1) & 0x7f);
    bytes[7] = (KV_PATH_POINTS_MAX + 1) >> 7;
    assert_int_equal(kv_path_read(slice_of((char *)bytes, sizeof bytes), &got), ERR_SYNTAX);
}

static const struct kv_told answers[] = {
    {.end = 1, .sent_ms = 1, .ended_ms = 1},
    {.end = 0xffffffffffff,
     .tail_bytes = UINT32_MAX,
     .sent_ms = 1700000000000,
     .first_ms = 1700000000000,
     .ended_ms = 1700000600000,
     .prompt_tokens = UINT32_MAX - 1,
     .cached_tokens = 0,
     .output_tokens = KV_UNTOLD,
     .well = true,
     .asked_block = UINT32_MAX,
     .asked_chain = UINT64_MAX,
     .fronts = {KV_FRONTS_MAX,
                {{1, 2, 3},
                 {KV_FRONT_BLOCKS_MAX - 1, UINT64_MAX, UINT64_MAX},
                 {KV_FRONT_BLOCKS_MAX - 1, UINT64_MAX, UINT64_MAX},
                 {KV_FRONT_BLOCKS_MAX - 1, UINT64_MAX, UINT64_MAX}}}},
    {.sent_ms = UINT64_MAX >> 1,
     .first_ms = UINT64_MAX - 2,
     .ended_ms = UINT64_MAX - 1,
     .prompt_tokens = KV_UNTOLD,
     .cached_tokens = KV_UNTOLD,
     .output_tokens = UINT32_MAX - 1},
};

static void test_an_answer_survives(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ARRAY_LEN(answers); i++) {
        uint8_t bytes[KV_TOLD_BYTES_MAX];
        struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
        kv_told_write(&answers[i], 0xfeed0000u + i, &w);
        struct kv_told got;
        uint32_t rkey;
        struct slice body = written(&w);
        assert_int_equal(kv_told_read(body, &rkey, &got), ERR_OK);
        const struct kv_told *t = &answers[i];
        assert_int_equal(rkey, 0xfeed0000u + i);
        assert_true(got.end == t->end && got.tail_bytes == t->tail_bytes);
        assert_true(got.sent_ms == t->sent_ms && got.first_ms == t->first_ms);
        assert_true(got.ended_ms == t->ended_ms && got.prompt_tokens == t->prompt_tokens);
        assert_true(got.cached_tokens == t->cached_tokens);
        assert_true(got.output_tokens == t->output_tokens && got.well == t->well);
        assert_true(got.asked_block == t->asked_block && got.asked_chain == t->asked_chain);
        assert_int_equal(got.fronts.count, t->fronts.count);
        for (unsigned f = 0; f < t->fronts.count; f++)
            assert_true(got.fronts.at[f].blocks == t->fronts.at[f].blocks &&
                        got.fronts.at[f].chain == t->fronts.at[f].chain &&
                        got.fronts.at[f].digest == t->fronts.at[f].digest);
        for (size_t len = 0; len < body.len; len++)
            assert_int_equal(kv_told_read(slice_of(body.at, len), &rkey, &got), ERR_SYNTAX);
    }
}

/* A router of an earlier build reads as far as the flags, and ignores the bytes behind them. */
static void test_a_chain_follows_the_fields_of_earlier_builds(void **state)
{
    (void)state;
    struct kv_told told = answers[1];
    uint8_t asked[KV_TOLD_BYTES_MAX], plain[KV_TOLD_BYTES_MAX];
    struct wire_writer w = wire_writer_of(asked, sizeof asked);
    kv_told_write(&told, 7, &w);
    told.asked_block = 0;
    struct wire_writer v = wire_writer_of(plain, sizeof plain);
    kv_told_write(&told, 7, &v);
    size_t flags = wire_written(&v) - 1;
    assert_int_equal(wire_written(&w), flags + 1 + 5 + 8 + 1 + (1 + 16) + 3 * (2 + 16));
    assert_memory_equal(asked, plain, flags);
    assert_int_equal(asked[flags] & 1, plain[flags]);
}

/* Any bytes: no time overflows, and whatever is read can be written again. */
static void test_any_bytes_are_refused_or_read(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 11);
    unsigned read = 0;
    for (unsigned i = 0; i < TEST_ROUNDS(20000); i++) {
        uint8_t bytes[64], again[KV_TOLD_BYTES_MAX];
        size_t len = (size_t)prng_below(&p, sizeof bytes);
        for (size_t b = 0; b < len; b++)
            bytes[b] =
                prng_below(&p, 4) == 0 ? (uint8_t)prng_next(&p) : (uint8_t)prng_below(&p, 128);
        struct slice body = slice_of((const char *)bytes, len);
        struct kv_told told;
        struct kv_path path;
        uint32_t rkey;
        if (kv_path_read(body, &path) == ERR_OK)
            assert_in_range(path.count, 1, KV_PATH_POINTS_MAX);
        if (kv_told_read(body, &rkey, &told) != ERR_OK)
            continue;
        read++;
        struct wire_writer w = wire_writer_of(again, sizeof again);
        kv_told_write(&told, rkey, &w);
        assert_false(w.bad);
    }
    assert_true(read > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_survives_in_pieces),
        cmocka_unit_test(test_broken_paths_are_refused),
        cmocka_unit_test(test_an_answer_survives),
        cmocka_unit_test(test_a_chain_follows_the_fields_of_earlier_builds),
        cmocka_unit_test(test_any_bytes_are_refused_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
