/* Engines with blocks of different sizes, and engines without any usable events. */
#include "node/kv/sizes.h"

#include "tests/unit/kv/readers_world.h"

static uint8_t first_token = 1;

/* A block of `tokens` tokens: [0, [["BlockStored", [1], nil, [1, 2 ..], tokens, nil, "GPU"]],
 * 0]. */
static struct slice block_of(uint32_t tokens)
{
    static const char head[] = "\x93\x00\x91\x97\xab"
                               "BlockStored\x91\x01\xc0",
                      tail[] = "\xc0\xa3GPU\x00";
    static char bytes[64];
    size_t len = sizeof head - 1;
    assert_true(tokens < 16);
    memcpy(bytes, head, len);
    bytes[len++] = (char)(0x90 | tokens);
    for (uint32_t i = 0; i < tokens; i++)
        bytes[len++] = (char)(first_token + i);
    bytes[len++] = (char)tokens;
    memcpy(bytes + len, tail, sizeof tail - 1);
    return slice_of(bytes, len + sizeof tail - 1);
}

static void opens(unsigned slot, enum kv_role role, uint32_t rkey, bool has_tier)
{
    const struct kv_wanted w = {.role = role,
                                .rkey = rkey,
                                .blocks = 1000,
                                .has_tier = has_tier,
                                .endpoint = SLICE("tcp://a:1")};
    kv_readers_want(rs, slot, &w, SECOND);
}

/* An engine begins, as after a restart. */
static void engine_begins(unsigned slot, uint32_t tokens)
{
    if (kv_readers_feed(rs, slot) < 0) {
        opens(slot, KV_ROLE_SPEAKS, 1, false);
        kv_readers_connected(rs, (unsigned)kv_readers_feed(rs, slot), SECOND);
    }
    kv_readers_live(rs, (unsigned)kv_readers_feed(rs, slot), 0, block_of(tokens), SECOND);
}

/* The answer to a prompt of a single block. */
static void answers_to(unsigned slot, uint32_t tokens, uint64_t id)
{
    const struct kv_path path = {.count = 1, .ids = {id}, .codes = {1}};
    const struct kv_told told = {.slot = (uint16_t)slot,
                                 .end = id,
                                 .prompt_tokens = tokens,
                                 .output_tokens = 1,
                                 .sent_ms = SECOND,
                                 .ended_ms = SECOND,
                                 .well = true};
    kv_readers_path(rs, &path);
    kv_readers_told(rs, &told, SECOND);
}

static void answers(unsigned slot, uint32_t tokens)
{
    answers_to(slot, tokens, 7);
}

/* The same model: the same checkpoint is in chains of both sizes. */
static void engines_with_two_block_sizes(void **state)
{
    (void)state;
    engine_begins(0, 4);
    engine_begins(1, 2);
    answers(0, 4);
    answers(1, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(row(i).stats.tied, 1);
        assert_int_equal(row(i).reading, KV_READING_LIVE);
        assert_int_equal(row(i).block_tokens, i == 0 ? 4 : 2);
        assert_true(row(i).speaks);
    }
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 2);
    assert_int_equal(kv_readers_want_asked(rs, &(uint64_t){7}, 1), KV_WANT_NONE);
    assert_int_equal(kv_readers_want_asked(rs, &(uint64_t){8}, 1), KV_WANT_MAYBE);
    answers_to(1, 2, 8); /* engine 1 has no blocks */
    kv_readers_tick(rs, SECOND + KV_TOLD_WAIT_MS);
    assert_int_equal(kv_readers_want_asked(rs, &(uint64_t){8}, 1), KV_WANT_SURE);
    for (unsigned i = 3; i < 9; i++) /* both remain at engine 0 */
        kv_readers_tick(rs, SECOND + i * KV_SWEEP_MS);
    assert_int_equal(gone, 0);
}

/* The engine gets the known prompts, and reports none of them as cached. */
static void a_second_engine_with_the_same_block_size(void **state)
{
    (void)state;
    engine_begins(0, 4);
    answers(0, 4);
    first_token = 9;
    engine_begins(1, 4);
    first_token = 1;
    kv_readers_tick(rs, SECOND);
    assert_int_equal(gone, 1);
}

static void an_engine_restarts_with_another_block_size(void **state)
{
    (void)state;
    engine_begins(0, 4);
    answers(0, 4);
    opens(0, KV_ROLE_SPEAKS, 2, false); /* the new life is still unknown */
    kv_readers_tick(rs, SECOND);
    assert_int_equal(row(0).block_tokens, 4);
    engine_begins(0, 2);
    answers(0, 2); /* before any other event */
    assert_true(row(0).reading == KV_READING_LIVE && row(0).speaks);
    assert_int_equal(row(0).block_tokens, 2);
    assert_int_equal(row(0).stats.tied, 2);
    assert_int_equal(kv_readers_stats(rs).odd, 0);
}

/* The last engine has no room until another engine goes. */
static void block_sizes_beyond_the_limit_wait(void **state)
{
    (void)state;
    for (unsigned slot = 0; slot < KV_SIZES_MAX + 1; slot++) {
        engine_begins(slot, 2 + slot);
        answers(slot, 2 + slot);
    }
    kv_readers_tick(rs, SECOND);
    assert_true(kv_readers_speak(rs, 0) && kv_readers_speak(rs, KV_SIZES_MAX - 1));
    assert_int_equal(row(KV_SIZES_MAX).reading, KV_READING_BLOCK_SIZE);
    assert_true(row(KV_SIZES_MAX).may_speak && !row(KV_SIZES_MAX).speaks);
    assert_int_equal(kv_readers_stats(rs).odd, 1);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, KV_SIZES_MAX);
    opens(1, KV_ROLE_NONE, 1, false);
    kv_readers_tick(rs, 2 * SECOND);
    assert_int_equal(row(KV_SIZES_MAX).reading, KV_READING_LIVE);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, KV_SIZES_MAX - 1);
    answers(KV_SIZES_MAX, 2 + KV_SIZES_MAX);
    assert_int_equal(row(KV_SIZES_MAX).stats.tied, 1);
}

/* The engine takes nothing from others, and costs a bounded amount. */
static void an_engine_often_changing_its_block_size_is_harmless(void **state)
{
    unsigned odd = 0;
    (void)state;
    engine_begins(0, 4);
    answers(0, 4);
    for (unsigned i = 0; i < 100; i++) {
        engine_begins(1, 5 + i % 10);
        odd += row(1).reading == KV_READING_BLOCK_SIZE;
    }
    assert_true(odd > 50); /* in the same second */
    kv_readers_live(rs, (unsigned)kv_readers_feed(rs, 1), 0, block_of(15), 3 * SECOND);
    assert_int_equal(row(1).reading, KV_READING_LIVE);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 1);
    assert_true(kv_readers_speak(rs, 0));
}

/* The earlier life's knowledge exists for each size, and for a checkpoint twice. */
static void kept_paths_cover_each_block_size(void **state)
{
    struct buf pieces[2] = {{0}};
    struct kv_keep keep = {0};
    (void)state;
    for (unsigned slot = 0; slot < 2; slot++) {
        engine_begins(slot, 4 - slot);
        answers(slot, 4 - slot);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(kv_readers_keep_paths(rs, &keep, &pieces[i]), 1);
    kv_readers_destroy(rs);
    assert_int_equal(kv_readers_create(&rs, SLOTS, &secret, &shell, &user), ERR_OK);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(kv_readers_recall_paths(rs, buf_slice(&pieces[i])), i == 0);
        assert_int_equal(kv_readers_stats(rs).paths.anchors, i + 1);
        buf_free(&pieces[i]);
    }
    engine_begins(0, 2);
    answers(0, 2);
    assert_int_equal(row(0).reading, KV_READING_LIVE);
    assert_true(row(0).stats.tied == 1 && row(0).speaks);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 3);
}

/* An engine brings blocks back from a tier, until the events include the tier. */
static void no_reports_while_a_tier_has_no_events(void **state)
{
    static const char bytes[] = "\x93\x00\x91\x97\xab"
                                "BlockStored\x91\x02\xc0\x94\x01\x02\x03\x04\x04\xc0\xa3"
                                "CPU\x00";
    (void)state;
    engine_begins(0, 4);
    assert_true(kv_readers_speak(rs, 0));
    opens(0, KV_ROLE_SPEAKS, 1, true);
    assert_int_equal(row(0).reading, KV_READING_SILENT_TIER);
    assert_false(row(0).speaks || kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 1, slice_of(bytes, sizeof bytes - 1), 3 * SECOND);
    assert_true(row(0).speaks && kv_readers_speak(rs, 0));
}

/* A single event of a shared pool is enough, with any content. */
static void no_reports_for_engines_sharing_a_pool(void **state)
{
    static const char bytes[] = "\x93\x00\x91\x84\xa4type\xac"
                                "BlockRemoved\xac"
                                "block_hashes\x91\x01\xa6medium\xa3"
                                "CPU\xa8locality\xa6REMOTE\x00";
    (void)state;
    engine_begins(0, 4);
    assert_true(kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 1, slice_of(bytes, sizeof bytes - 1), SECOND);
    assert_int_equal(row(0).reading, KV_READING_SILENT_TIER);
    assert_false(row(0).speaks || kv_readers_speak(rs, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(engines_with_two_block_sizes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_second_engine_with_the_same_block_size, setup, teardown),
        cmocka_unit_test_setup_teardown(an_engine_restarts_with_another_block_size, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(block_sizes_beyond_the_limit_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(an_engine_often_changing_its_block_size_is_harmless, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(kept_paths_cover_each_block_size, setup, teardown),
        cmocka_unit_test_setup_teardown(no_reports_while_a_tier_has_no_events, setup, teardown),
        cmocka_unit_test_setup_teardown(no_reports_for_engines_sharing_a_pool, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
