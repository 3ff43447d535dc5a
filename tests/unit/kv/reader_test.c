/* What the reader does with feeds that are not an engine's. How well it knows an engine's cache is
 * tests/unit/engine-sim/kv_reader_test.c. */
#include "node/kv/reader.h"

#include "tests/lib/test.h"

#include <msgpack.h>

#include "base/buf.h"
#include "base/check.h"

enum { BLOCK = 4, BLOCKS_MAX = 100000 };

static struct hash_secret secret;
static struct kv_paths *paths;
static struct kv_reader *reader;
static struct buf message;
static uint64_t number;

static void on_replay(void *context, uint64_t from)
{
    (void)context, (void)from;
}

static void on_said(void *context, uint64_t id, uint8_t code)
{
    (void)context, (void)id, (void)code;
}

static void on_cleared(void *context)
{
    (void)context;
}

static const struct kv_reader_user user = {on_replay, on_said, on_said, on_cleared, NULL};

static void begin(void)
{
    number = 0;
    hash_secret_from_seed(&secret, 1);
    assert_int_equal(kv_paths_create(&paths, KV_PATH_LENGTH_MAX + 1), 0);
    assert_int_equal(kv_reader_create(&reader, &user, paths, &secret, BLOCKS_MAX, false, 0), 0);
    kv_reader_speaks(reader, true);
}

static void end(void)
{
    kv_reader_check(reader);
    kv_reader_destroy(reader);
    kv_paths_destroy(paths);
    buf_free(&message);
}

static int append(void *context, const char *bytes, size_t len)
{
    (void)context;
    CHECK(buf_append(&message, bytes, len) == ERR_OK);
    return 0;
}

static void text(msgpack_packer *p, const char *t)
{
    msgpack_pack_str(p, strlen(t));
    msgpack_pack_str_body(p, t, strlen(t));
}

static msgpack_packer batch(unsigned events)
{
    msgpack_packer p;
    buf_clear(&message);
    msgpack_packer_init(&p, NULL, append);
    msgpack_pack_array(&p, 2);
    msgpack_pack_double(&p, 1);
    msgpack_pack_array(&p, events);
    return p;
}

/* Blocks `from` to `to` of one long prompt, each named by its number. */
static void stored(msgpack_packer *p, unsigned from, unsigned to)
{
    msgpack_pack_array(p, 5);
    text(p, "BlockStored");
    msgpack_pack_array(p, to - from);
    for (unsigned i = from; i < to; i++)
        msgpack_pack_uint64(p, i + 1);
    if (from > 0)
        msgpack_pack_uint64(p, from);
    else
        msgpack_pack_nil(p);
    msgpack_pack_array(p, (size_t)(to - from) * BLOCK);
    for (unsigned i = from * BLOCK; i < to * BLOCK; i++)
        msgpack_pack_uint32(p, i);
    msgpack_pack_uint32(p, BLOCK);
}

static void removed(msgpack_packer *p, unsigned block)
{
    msgpack_pack_array(p, 2);
    text(p, "BlockRemoved");
    msgpack_pack_array(p, 1);
    msgpack_pack_uint64(p, block + 1);
}

static void publish(uint64_t now_ms)
{
    kv_reader_live(reader, number++, buf_slice(&message), now_ms);
}

/* The first block of a long prompt goes and comes again and again: each time all that stands behind
 * it does, too. No engine evicts so. */
static void test_a_feed_that_costs_too_much_is_not_read_for_a_while(void **state)
{
    (void)state;
    begin();
    msgpack_packer p = batch(1);
    stored(&p, 0, 50000);
    publish(0);
    assert_int_equal(kv_reader_stats(reader).tree.held, 50000);
    p = batch(200);
    for (unsigned i = 0; i < 100; i++) {
        removed(&p, 0);
        stored(&p, 0, 1);
    }
    publish(10);
    assert_int_equal(kv_reader_stats(reader).shed, 1);
    assert_int_equal(kv_reader_state(reader), KV_READER_DOUBTS);
    p = batch(1);
    stored(&p, 0, 10);
    publish(20); /* passed over */
    assert_true(kv_reader_due_ms(reader) <= KV_WINDOW_MS);
    kv_reader_tick(reader, KV_WINDOW_MS);
    assert_int_equal(kv_reader_state(reader), KV_READER_LIVE);
    assert_int_equal(kv_reader_stats(reader).tree.held, 0);
    assert_false(kv_reader_stats(reader).tree.whole);
    p = batch(1);
    stored(&p, 0, 10);
    publish(KV_WINDOW_MS + 1);
    assert_int_equal(kv_reader_stats(reader).tree.held, 10);
    end();
}

/* Each gap is a walk over all of the tree, so there is one a second. Until then nothing is sure. */
static void test_many_gaps_cost_one_walk(void **state)
{
    (void)state;
    begin();
    msgpack_packer p = batch(1);
    stored(&p, 0, 10);
    publish(0);
    number++;
    publish(1);
    assert_int_equal(kv_reader_state(reader), KV_READER_LIVE);
    assert_int_equal(kv_reader_stats(reader).feed.missed, 1);
    number++;
    publish(2);
    assert_int_equal(kv_reader_state(reader), KV_READER_DOUBTS);
    assert_int_equal(kv_reader_stats(reader).tree.held, 10);
    kv_reader_tick(reader, KV_WINDOW_MS);
    assert_int_equal(kv_reader_state(reader), KV_READER_LIVE);
    assert_int_equal(kv_reader_stats(reader).tree.held, 0);
    end();
}

/* More answers than can wait are passed over. */
static void test_answers_that_wait_are_bounded(void **state)
{
    const struct kv_told told = {.end = 1, .prompt_tokens = 100, .output_tokens = 10, .well = true};
    (void)state;
    begin();
    msgpack_packer p = batch(1);
    stored(&p, 0, 10);
    publish(0);
    for (unsigned i = 0; i < KV_TOLD_MAX + 5; i++)
        kv_reader_told(reader, &told, 1000000);
    kv_reader_tick(reader, 1000000 + KV_TOLD_WAIT_MS);
    assert_int_equal(kv_reader_stats(reader).told, KV_TOLD_MAX + 5);
    assert_int_equal(kv_reader_stats(reader).unmatched, KV_TOLD_MAX + 5);
    end();
}

/* What an earlier life knew is said when a replay has shown that it still holds. */
static void test_nothing_is_said_before_it_is_proven(void **state)
{
    (void)state;
    const uint64_t id = 5;
    const uint8_t code = 0;
    struct buf kept = {0};
    begin();
    msgpack_packer p = batch(1);
    stored(&p, 0, 10);
    publish(0);
    const struct kv_tree *tree = kv_reader_tree(reader);
    assert_true(kv_paths_join(paths, 0, &id, &code, 1));
    assert_int_equal(kv_paths_tie(paths, id, 0, 8 * BLOCK, BLOCK, tree, kv_tree_find_hash(tree, 8)),
                     1);
    assert_int_equal(kv_reader_keep(reader, &kept), 1);
    kv_reader_destroy(reader);
    assert_int_equal(kv_reader_create(&reader, &user, paths, &secret, BLOCKS_MAX, true, 0), 0);
    assert_int_equal(kv_reader_keep(reader, &kept), 0); /* it knows nothing */
    kv_reader_speaks(reader, true);
    assert_true(kv_reader_resume(reader, buf_slice(&kept), 0));
    assert_int_equal(kv_reader_stats(reader).tree.held, 10);
    kv_reader_connected(reader, 10);
    kv_reader_tick(reader, 20);
    kv_reader_tick(reader, 20 + KV_SWEEP_MS);
    assert_int_equal(kv_reader_stats(reader).present, 0);
    kv_reader_replayed(reader, 0, buf_slice(&message), 300);
    kv_reader_replay_ended(reader, 300);
    kv_reader_tick(reader, 300 + KV_SWEEP_MS);
    assert_int_equal(kv_reader_stats(reader).present, 1);
    assert_true(kv_reader_stats(reader).tree.whole);
    buf_free(&kept);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_feed_that_costs_too_much_is_not_read_for_a_while),
        cmocka_unit_test(test_many_gaps_cost_one_walk),
        cmocka_unit_test(test_answers_that_wait_are_bounded),
        cmocka_unit_test(test_nothing_is_said_before_it_is_proven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
