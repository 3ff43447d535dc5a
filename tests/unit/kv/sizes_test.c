/* Engines with blocks of different sizes, and others of whose events nothing can be said. */
#include "node/kv/sizes.h"

#include "tests/unit/kv/readers_world.h"

/* A block of two tokens, or of four. */
static struct slice block_of(uint32_t tokens)
{
    static const char two[] = "\x93\x00\x91\x97\xab"
                              "BlockStored\x91\x01\xc0\x92\x01\x02\x02\xc0\xa3GPU\x00";
    static const char four[] = "\x93\x00\x91\x97\xab"
                               "BlockStored\x91\x01\xc0\x94\x01\x02\x03\x04\x04\xc0\xa3GPU\x00";
    return tokens == 2 ? slice_of(two, sizeof two - 1) : slice_of(four, sizeof four - 1);
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

/* An engine that begins; so it does again after a restart. */
static void engine_begins(unsigned slot, uint32_t tokens)
{
    if (kv_readers_feed(rs, slot) < 0) {
        opens(slot, KV_ROLE_SPEAKS, 1, false);
        kv_readers_connected(rs, (unsigned)kv_readers_feed(rs, slot), SECOND);
    }
    kv_readers_live(rs, (unsigned)kv_readers_feed(rs, slot), 0, block_of(tokens), SECOND);
}

/* An answer of a prompt of one block. */
static void answers(unsigned slot, uint32_t tokens)
{
    const struct kv_path path = {.count = 1, .ids = {7}, .codes = {1}};
    const struct kv_told told = {.slot = (uint16_t)slot,
                                 .end = 7,
                                 .prompt_tokens = tokens,
                                 .output_tokens = 1,
                                 .sent_ms = SECOND,
                                 .ended_ms = SECOND,
                                 .well = true};
    kv_readers_path(rs, &path);
    kv_readers_told(rs, &told, SECOND);
}

static void no_word_of_blocks_of_another_size(void **state)
{
    (void)state;
    engine_begins(0, 4);
    engine_begins(1, 2);
    assert_true(kv_readers_speak(rs, 0) && kv_readers_speak(rs, 1));
    answers(0, 4);
    assert_int_equal(row(0).stats.tied, 1);
    kv_readers_tick(rs, SECOND);
    assert_true(kv_readers_speak(rs, 0) && row(0).speaks);
    assert_int_equal(row(1).reading, KV_READING_BLOCK_SIZE);
    assert_true(row(1).may_speak && !row(1).speaks && !kv_readers_speak(rs, 1));
    assert_true(row(1).block_tokens == 2 && row(1).others_tokens == 4);
    answers(1, 2);
    assert_int_equal(kv_readers_stats(rs).paths.foreign, 1);
    for (unsigned i = 1; i < 8; i++) /* a prompt of other blocks is not there, nor is it gone */
        kv_readers_tick(rs, SECOND + i * KV_SWEEP_MS);
    assert_int_equal(gone, 0);
}

/* The engine's new life has another size, and no other engine has the old one. */
static void an_engine_restarts_with_another_size(void **state)
{
    (void)state;
    engine_begins(0, 4);
    answers(0, 4);
    kv_readers_tick(rs, SECOND);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 1);
    opens(0, KV_ROLE_SPEAKS, 2, false); /* nothing is known of the new life yet */
    kv_readers_tick(rs, SECOND);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 1);
    engine_begins(0, 2);
    answers(0, 2); /* before anything else */
    assert_true(row(0).reading == KV_READING_LIVE && row(0).speaks);
    assert_int_equal(row(0).stats.tied, 2);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 1);
    assert_int_equal(kv_readers_stats(rs).paths.foreign, 0);
}

/* It was first, and does not decide for all. */
static void one_odd_engine(void **state)
{
    (void)state;
    engine_begins(0, 2);
    answers(0, 2);
    for (unsigned slot = 1; slot < 3; slot++)
        engine_begins(slot, 4);
    kv_readers_tick(rs, SECOND);
    assert_true(kv_readers_speak(rs, 0) && !kv_readers_speak(rs, 2));
    engine_begins(3, 4);
    kv_readers_tick(rs, SECOND);
    assert_true(!kv_readers_speak(rs, 0) && kv_readers_speak(rs, 3));
    for (unsigned slot = 1; slot < 4; slot++) /* those that have gone do not count */
        opens(slot, KV_ROLE_NONE, 1, false);
    kv_readers_tick(rs, SECOND);
    assert_true(kv_readers_speak(rs, 0));
}

/* Feeds of an earlier life that are not open yet may have the size that its ties had. */
static void the_earlier_life_had_another_size(void **state)
{
    struct buf paths = {0}, feed = {0};
    struct kv_keep keep = {0};
    (void)state;
    engine_begins(0, 4);
    kv_readers_live(rs, (unsigned)kv_readers_feed(rs, 0), 1, block_of(4), SECOND);
    answers(0, 4);
    assert_int_equal(kv_readers_keep_paths(rs, &keep, &paths), 1);
    assert_int_equal(kv_readers_keep_feed(rs, &keep, &feed), 1);
    kv_readers_destroy(rs);
    assert_int_equal(kv_readers_create(&rs, SLOTS, &secret, &shell, &user), ERR_OK);
    assert_true(kv_readers_recall_paths(rs, buf_slice(&paths)));
    kv_readers_recall_feed(rs, buf_slice(&feed));
    buf_free(&paths);
    buf_free(&feed);
    opens(0, KV_ROLE_SPEAKS, 2, false); /* another cache than the one that was kept */
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_live(rs, 0, 0, block_of(2), SECOND);
    kv_readers_tick(rs, SECOND);
    assert_int_equal(row(0).reading, KV_READING_BLOCK_SIZE);
    kv_readers_tick(rs, SECOND + KV_KEPT_MS);
    assert_int_equal(row(0).reading, KV_READING_LIVE);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 0);
}

/* Of an engine that brings blocks back from a tier, until events tell of that. */
static void no_word_where_a_tier_is_not_told_of(void **state)
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

static void test_the_choice(void **state)
{
    static const struct {
        uint32_t sizes[8], current, chosen;
    } cases[] = {
        {{0}, 0, 0},
        {{0}, 16, 16}, /* of no feed is it known */
        {{16}, 0, 16},
        {{64, 16, 16}, 0, 16},      /* the one that most have, */
        {{64, 16}, 0, 64},          /* else the first */
        {{64, 64}, 16, 64},         /* none has it any more */
        {{16, 64, 64}, 16, 16},     /* as many as that are no reason, */
        {{16, 64, 64, 64}, 16, 64}, /* but these are */
        {{16, 16, 64, 64, 64, 0}, 64, 64},
        {{32, 64, 64}, 16, 64},
    };
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(kv_sizes_choose(cases[i].sizes, 8, cases[i].current), cases[i].chosen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_choice),
        cmocka_unit_test_setup_teardown(no_word_of_blocks_of_another_size, setup, teardown),
        cmocka_unit_test_setup_teardown(an_engine_restarts_with_another_size, setup, teardown),
        cmocka_unit_test_setup_teardown(one_odd_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(the_earlier_life_had_another_size, setup, teardown),
        cmocka_unit_test_setup_teardown(no_word_where_a_tier_is_not_told_of, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
