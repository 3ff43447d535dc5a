/* Out of memory: a feed is read into a tree, and a message waits for a replay. A message without
 * memory is requested again, or counts as missed. */
#include "tests/lib/failmalloc.h"

#include "base/buf.h"
#include "node/kv/batch.h"
#include "node/kv/feed.h"
#include "node/kv/readers.h"
#include "node/kv/sizes.h"
#include "node/kv/tree.h"
#include "tests/lib/files.h"
#include "tests/lib/test.h"

struct reader {
    struct kv_decoder *decoder;
    struct kv_tree *tree;
    unsigned missed;
};

static struct hash_secret secret;
static struct buf message;

static void on_event(void *context, const struct kv_event *e)
{
    struct reader *r = context;
    kv_tree_apply(r->tree, e);
}

static int on_message(void *context, struct slice payload)
{
    struct reader *r = context;
    struct kv_batch batch;
    return kv_batch_decode(r->decoder, payload, on_event, r, &batch);
}

static void on_missed(void *context)
{
    struct reader *r = context;
    r->missed++;
    kv_tree_doubt(r->tree);
}

static void on_began(void *context, bool again)
{
    (void)again;
    struct reader *r = context;
    kv_tree_clear(r->tree);
}

static void on_replay(void *context, uint64_t from)
{
    (void)context, (void)from;
}

static void read_feed(struct kv_feed *f, struct reader *r, bool may_fail)
{
    struct slice bytes = buf_slice(&message);
    kv_feed_live(f, 0, bytes, 0);
    kv_feed_live(f, 2, bytes, 0); /* waits for message 1 */
    kv_feed_tick(f, KV_REPLAY_PAUSE_MS);
    kv_feed_replayed(f, 0, bytes, KV_REPLAY_PAUSE_MS);
    kv_feed_replayed(f, 1, bytes, KV_REPLAY_PAUSE_MS);
    kv_feed_replay_ended(f, KV_REPLAY_PAUSE_MS);
    kv_feed_live(f, 3, bytes, KV_REPLAY_PAUSE_MS);
    assert_true(kv_feed_next(f) == 4 || (may_fail && kv_feed_state(f) == KV_FEED_REPLAYS));
    assert_true(r->missed == 0 || may_fail);
    assert_true(kv_tree_stats(r->tree).whole == (r->missed == 0));
    kv_feed_check(f);
    kv_tree_check(r->tree);
}

static void one_feed(bool may_fail)
{
    struct reader r = {0};
    struct kv_feed *feed = NULL;
    const struct kv_feed_user user = {on_message, on_missed, on_began, on_replay, &r};
    int err = kv_decoder_create(&r.decoder, &secret);
    if (err == ERR_OK)
        err = kv_tree_create(&r.tree, NULL, &secret, 100);
    if (err == ERR_OK)
        err = kv_feed_create(&feed, &user, &secret, true);
    assert_true(err == ERR_OK || (may_fail && err == ERR_NOMEM));
    if (err == ERR_OK)
        read_feed(feed, &r, may_fail);
    kv_feed_destroy(feed);
    kv_tree_destroy(r.tree);
    kv_decoder_destroy(r.decoder);
}

static void test_one_feed(void **state)
{
    (void)state;
    hash_secret_from_seed(&secret, 1);
    failmalloc_spare(true);
    assert_int_equal(file_read("tests/fuzz/corpus/kv_batch/vllm-0.24-map", &message), 0);
    failmalloc_spare(false);
    (void)failmalloc_each(one_feed);
    buf_free(&message);
}

static void one_reader(bool may_fail)
{
    static const struct kv_reader_user user;
    struct kv_sizes sizes = {0};
    struct kv_reader *reader = NULL;
    int err = kv_sizes_open(&sizes, KV_PATH_LENGTH_MAX + 1);
    if (err == ERR_OK)
        err = kv_reader_create(&reader, &user, &secret, 100, false);
    assert_true(err == ERR_OK || (may_fail && err == ERR_NOMEM));
    assert_true(!kv_sizes_is_open(&sizes) || kv_sizes_find(&sizes, 16, 0) != NULL);
    assert_true(!kv_sizes_is_open(&sizes) || kv_sizes_find(&sizes, 32, 0) != NULL || may_fail);
    kv_reader_destroy(reader);
    kv_sizes_close(&sizes);
}

static void test_one_reader(void **state)
{
    (void)state;
    (void)failmalloc_each(one_reader);
}

static int on_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                   struct slice topic)
{
    (void)context, (void)feed, (void)endpoint, (void)replay, (void)topic;
    return ERR_OK;
}

static void on_close(void *context, unsigned feed)
{
    (void)context, (void)feed;
}

static void some_readers(bool may_fail)
{
    static const struct kv_readers_shell shell = {.open = on_open, .close = on_close};
    struct kv_readers *rs = NULL;
    int err = kv_readers_create(&rs, 4, &secret, &shell, NULL);
    assert_true(err == ERR_OK || (may_fail && err == ERR_NOMEM));
    struct kv_wanted w = {
        .role = KV_ROLE_SPEAKS, .blocks = 1, .endpoint = SLICE("tcp://a:1"), .topic = SLICE("")};
    for (unsigned slot = 0; err == ERR_OK && slot < 3; slot++) {
        kv_readers_want(rs, slot, &w, 1);
        kv_readers_check(rs);
    }
    assert_true(err != ERR_OK || may_fail || kv_readers_stats(rs).feeds == 3);
    kv_readers_destroy(rs);
}

static void test_some_readers(void **state)
{
    (void)state;
    (void)failmalloc_each(some_readers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_feed),
                                       cmocka_unit_test(test_one_reader),
                                       cmocka_unit_test(test_some_readers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
