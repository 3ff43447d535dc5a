/* The times at which a reader reports findings and knows the cache's contents. */
#include "base/checkpoint.h"
#include "tests/unit/kv/reader_world.h"

/* A checkpoint of a prompt of four blocks, just computed. */
static void prompt_is_known(uint64_t now_ms)
{
    const uint64_t id = 7;
    const uint8_t code = checkpoint_code(0);
    assert_true(kv_paths_join(paths, 0, &id, &code, 1));
    msgpack_packer p = kv_message_begin(1);
    stored(&p, 0, 4);
    publish(now_ms);
    const struct kv_told told = {.end = id,
                                 .sent_ms = now_ms,
                                 .ended_ms = now_ms,
                                 .prompt_tokens = 4 * BLOCK,
                                 .output_tokens = 1,
                                 .well = true};
    kv_reader_told(reader, &told, now_ms);
    assert_int_equal(kv_reader_stats(reader).tied, 1);
}

static void block_comes_and_goes(bool comes, uint64_t now_ms)
{
    msgpack_packer p = kv_message_begin(1);
    if (comes)
        stored(&p, 0, 1);
    else
        removed(&p, 0);
    publish(now_ms);
}

/* This generation's budget is used up: the report is made once there is a new budget. */
static void test_refused_reports_are_repeated_later(void **state)
{
    (void)state;
    begin();
    prompt_is_known(1000);
    gone = 0;
    block_comes_and_goes(false, 2000);
    assert_int_equal(gone, 1);
    block_comes_and_goes(true, 2000);
    refuses = true;
    block_comes_and_goes(false, 2000);
    block_comes_and_goes(true, 2000);
    block_comes_and_goes(false, 2000);
    for (uint64_t now_ms = 3000; now_ms < 9000; now_ms += KV_SWEEP_MS)
        kv_reader_tick(reader, now_ms);
    assert_int_equal(gone, 1);
    refuses = false;
    kv_reader_tick(reader, 9000);
    assert_int_equal(gone, 2);
    kv_reader_tick(reader, 10000); /* once */
    assert_int_equal(gone, 2);
    assert_int_equal(kv_reader_stats(reader).gone, 2);
    refuses = true;
    block_comes_and_goes(true, 11000);
    block_comes_and_goes(false, 11000);
    block_comes_and_goes(true, 11000); /* the block is back: nothing to report */
    refuses = false;
    kv_reader_tick(reader, 12000);
    assert_int_equal(gone, 2);
    end();
}

/* Messages were missed twice in a second, so reports stop until the next second: refused reports
 * wait. */
static void test_refused_reports_wait_for_the_end_of_a_doubt(void **state)
{
    (void)state;
    begin();
    prompt_is_known(1000);
    kv_reader_tick(reader, 1000); /* first reports the blocks already present */
    gone = 0;
    refuses = true;
    block_comes_and_goes(false, 1000);
    refuses = false;
    for (unsigned i = 1; i <= 2; i++) {
        msgpack_packer p = kv_message_begin(1);
        stored_of(&p, i, 0, 1);
        number++;
        publish(1000);
    }
    assert_int_equal(kv_reader_state(reader), KV_READER_DOUBTS);
    kv_reader_tick(reader, 1000 + KV_SWEEP_MS);
    assert_int_equal(gone, 0);
    kv_reader_tick(reader, 2000);
    assert_int_equal(kv_reader_state(reader), KV_READER_LIVE);
    assert_int_equal(gone, 1);
    end();
}

/* The block went while events were distrusted. */
static void test_removals_during_distrust_are_reported_later(void **state)
{
    (void)state;
    const struct kv_trust lost = {.lost = true, .until_ms = 5000, .times = 1};
    for (unsigned i = 0; i < 2; i++) {
        begin();
        prompt_is_known(1000);
        kv_reader_tick(reader, 1000);
        gone = 0;
        kv_reader_trusts(reader, &lost);
        block_comes_and_goes(false, 2000);
        kv_reader_tick(reader, 3000);
        assert_int_equal(gone, 0);
        if (i == 0)
            kv_reader_restart_is_seen(reader);
        kv_reader_tick(reader, i == 0 ? 4000 : 5000);
        assert_int_equal(gone, 1);
        end();
    }
}

/* An answer found blocks that are gone by the events: a tier without events has them. */
static void test_a_tier_without_events_contradicts_nothing(void **state)
{
    (void)state;
    const struct kv_told told = {.end = 7,
                                 .sent_ms = 10000,
                                 .ended_ms = 10000,
                                 .prompt_tokens = 4 * BLOCK,
                                 .cached_tokens = 3 * BLOCK,
                                 .output_tokens = 1,
                                 .well = true};
    for (unsigned silent = 0; silent < 2; silent++) {
        begin();
        prompt_is_known(1000);
        block_comes_and_goes(false, 3000);
        kv_reader_has_tier(reader, silent);
        assert_true(kv_reader_is_silent(reader) == silent);
        kv_reader_told(reader, &told, 10000);
        kv_reader_tick(reader, 10000 + KV_TOLD_WAIT_MS);
        assert_int_equal(kv_reader_stats(reader).contradicted, !silent);
        end();
    }
}

/* An earlier life's knowledge is reported once a replay has proven it still true. */
static void test_kept_knowledge_is_reported_after_a_replay(void **state)
{
    (void)state;
    const uint64_t id = 5;
    const uint8_t code = 0;
    struct buf kept = {0};
    begin();
    msgpack_packer p = kv_message_begin(1);
    stored(&p, 0, 10);
    publish(0);
    const struct kv_tree *tree = kv_reader_tree(reader);
    assert_true(kv_paths_join(paths, 0, &id, &code, 1));
    assert_int_equal(kv_paths_tie(paths, &(struct kv_anchor_user){0}, id, 0, 8 * BLOCK, BLOCK, tree,
                                  kv_tree_find_hash(tree, 8)),
                     1);
    assert_int_equal(kv_reader_keep(reader, &kept), 1);
    kv_reader_destroy(reader);
    assert_int_equal(kv_reader_create(&reader, &user, &secret, BLOCKS_MAX, true), 0);
    assert_int_equal(kv_reader_keep(reader, &kept), 0); /* knows nothing */
    kv_reader_speaks(reader, true);
    assert_true(kv_reader_resume(reader, buf_slice(&kept), 0));
    assert_int_equal(kv_reader_stats(reader).tree.held, 10);
    kv_reader_connected(reader, 10);
    kv_reader_tick(reader, 20);
    kv_reader_tick(reader, 20 + KV_SWEEP_MS);
    assert_int_equal(kv_reader_stats(reader).present, 0);
    kv_reader_replayed(reader, 0, buf_slice(&kv_message), 300);
    kv_reader_replay_ended(reader, 300);
    kv_reader_tick(reader, 300 + KV_SWEEP_MS);
    assert_int_equal(kv_reader_stats(reader).present, 1);
    assert_true(kv_reader_stats(reader).tree.whole);
    buf_free(&kept);
    end();
}

/* A late reader knows the contents once the cache has turned over, if new blocks had a place. Texts
 * always in the cache have no events, so blocks behind them have no place. */
static void test_when_a_reader_covers_the_cache(void **state)
{
    (void)state;
    begin();
    number = 7;
    uint64_t now_ms = 0;
    for (unsigned i = 0; i < 3; i++, now_ms += KV_WINDOW_MS) {
        store(1, 1, 1 + BLOCKS_MAX / 4, now_ms);
        assert_false(kv_reader_covers(reader));
    }
    store(2, 0, BLOCKS_MAX / 4, now_ms);
    assert_false(kv_reader_covers(reader)); /* half of the new blocks had no place */
    store(3, 0, BLOCKS_MAX / 4, now_ms += KV_WINDOW_MS);
    store(3, 0, BLOCKS_MAX / 4, now_ms += KV_WINDOW_MS);
    assert_true(kv_reader_covers(reader));
    store(4, 1, 1000, now_ms += KV_WINDOW_MS);
    assert_true(kv_reader_covers(reader));
    number++; /* a gap */
    store(4, 1000, 2000, now_ms += KV_WINDOW_MS);
    assert_false(kv_reader_covers(reader));
    number = 0; /* the cache is empty, so all of it is known again */
    store(5, 0, 10, now_ms + KV_WINDOW_MS);
    assert_true(kv_reader_covers(reader));
    end();
}

/* A replay brings blocks, and no ties. */
static void test_a_replay_covers_nothing(void **state)
{
    (void)state;
    begin();
    kv_reader_destroy(reader);
    assert_int_equal(kv_reader_create(&reader, &user, &secret, BLOCKS_MAX, true), 0);
    kv_reader_connected(reader, 0);
    msgpack_packer p = kv_message_begin(1);
    stored(&p, 0, 10);
    kv_reader_replayed(reader, 0, buf_slice(&kv_message), 1);
    kv_reader_replay_ended(reader, 1);
    assert_true(kv_reader_stats(reader).tree.whole && !kv_reader_covers(reader));
    kv_reader_restarted(reader, 2);
    assert_true(kv_reader_covers(reader));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_when_a_reader_covers_the_cache),
        cmocka_unit_test(test_a_replay_covers_nothing),
        cmocka_unit_test(test_refused_reports_are_repeated_later),
        cmocka_unit_test(test_refused_reports_wait_for_the_end_of_a_doubt),
        cmocka_unit_test(test_kept_knowledge_is_reported_after_a_replay),
        cmocka_unit_test(test_a_tier_without_events_contradicts_nothing),
        cmocka_unit_test(test_removals_during_distrust_are_reported_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
