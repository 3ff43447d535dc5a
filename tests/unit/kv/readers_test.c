/* Which feeds a router has open, who speaks, and what a restart does. */
#include "node/kv/readers.h"

#include <stdio.h>

#include "base/prng.h"
#include "tests/lib/test.h"

enum { SLOTS = 300, SECOND = 1000, MINUTE = 60 * SECOND };

static const struct hash_secret secret = {{1}};
static struct kv_readers *rs;
static char open_at[KV_READERS_MAX][64]; /* "endpoint replay topic"; empty: it is closed */
static unsigned opened, closed;
static uint64_t replay_from;
static int refuses; /* the shell: with this error */

static int on_open(void *context, unsigned feed, struct slice endpoint, struct slice replay,
                   struct slice topic)
{
    (void)context;
    if (refuses != 0)
        return refuses;
    assert_true(feed < KV_READERS_MAX && open_at[feed][0] == '\0');
    (void)snprintf(open_at[feed], sizeof open_at[feed], "%.*s %.*s %.*s", SLICE_ARG(endpoint),
                   SLICE_ARG(replay), SLICE_ARG(topic));
    opened++;
    return ERR_OK;
}

static void on_close(void *context, unsigned feed)
{
    (void)context;
    assert_true(open_at[feed][0] != '\0');
    open_at[feed][0] = '\0';
    closed++;
}

static int on_replay(void *context, unsigned feed, uint64_t from)
{
    (void)context;
    assert_true(open_at[feed][0] != '\0');
    replay_from = from;
    return ERR_OK;
}

static uint64_t on_malformed(void *context, unsigned feed)
{
    (void)context;
    return feed + 100;
}

static const struct kv_readers_shell shell = {on_open, on_close, on_replay, on_malformed, NULL};

static unsigned clears;

static void on_mark(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    (void)context, (void)slot, (void)id, (void)code;
}

static bool on_gone(void *context, unsigned slot, uint64_t id, uint8_t code)
{
    on_mark(context, slot, id, code);
    return true;
}

static void on_cleared(void *context, unsigned slot)
{
    (void)context;
    assert_int_equal(slot, 0);
    clears++;
}

static const struct kv_readers_user user = {on_gone, on_mark, on_cleared, NULL};

static int setup(void **state)
{
    (void)state;
    memset(open_at, 0, sizeof open_at);
    opened = closed = 0;
    replay_from = UINT64_MAX;
    refuses = 0;
    clears = 0;
    return kv_readers_create(&rs, SLOTS, &secret, &shell, &user);
}

static int teardown(void **state)
{
    (void)state;
    kv_readers_destroy(rs);
    assert_int_equal(opened, closed);
    return 0;
}

static struct kv_wanted wanted(enum kv_role role)
{
    return (struct kv_wanted){.role = role,
                              .rkey = 1,
                              .blocks = 1000,
                              .endpoint = SLICE("tcp://a:1"),
                              .replay = SLICE("tcp://a:2"),
                              .topic = SLICE("t")};
}

static void want(unsigned slot, struct kv_wanted w, uint64_t now_ms)
{
    kv_readers_want(rs, slot, &w, now_ms);
    kv_readers_check(rs);
}

static struct kv_reading_row row(unsigned slot)
{
    struct kv_reading_row r;
    assert_true(kv_readers_row(rs, slot, &r));
    return r;
}

/* One block stored: [0, [["BlockStored", [hash], nil, [1, 2, 3, 4], 4, nil, "GPU"]], 0]. */
static struct slice stored(uint8_t hash)
{
    static char bytes[] = "\x93\x00\x91\x97\xab"
                          "BlockStored\x91\x01\xc0\x94\x01\x02\x03\x04\x04\xc0\xa3GPU\x00";
    bytes[17] = (char)(hash & 0x7f);
    return slice_of(bytes, sizeof bytes - 1);
}

static void a_feed_opens_and_closes(void **state)
{
    (void)state;
    want(7, wanted(KV_ROLE_NONE), SECOND);
    assert_int_equal(opened, 0);
    assert_int_equal(kv_readers_reading(rs, 7), KV_READING_NOT);
    want(7, wanted(KV_ROLE_STANDS_BY), SECOND);
    assert_string_equal(open_at[0], "tcp://a:1 tcp://a:2 t");
    assert_int_equal(kv_readers_reading(rs, 7), KV_READING_AWAY);
    want(7, wanted(KV_ROLE_STANDS_BY), 2 * SECOND); /* as it is */
    assert_int_equal(opened, 1);
    kv_readers_connected(rs, 0, 2 * SECOND);
    assert_int_equal(replay_from, 0);
    assert_int_equal(kv_readers_reading(rs, 7), KV_READING_DOUBTS); /* what was before? */
    kv_readers_replayed(rs, 0, 0, stored(1), 2 * SECOND);
    kv_readers_replay_ended(rs, 0, 2 * SECOND);
    kv_readers_live(rs, 0, 1, stored(2), 2 * SECOND);
    assert_int_equal(row(7).reading, KV_READING_LIVE);
    assert_int_equal(row(7).stats.tree.held, 2);
    assert_int_equal(row(7).malformed, 100);
    struct kv_wanted elsewhere = wanted(KV_ROLE_STANDS_BY);
    elsewhere.topic = SLICE("u");
    want(7, elsewhere, 3 * SECOND);
    assert_true(opened == 2 && closed == 1);
    assert_string_equal(open_at[0], "tcp://a:1 tcp://a:2 u");
    want(7, wanted(KV_ROLE_NONE), 4 * SECOND);
    assert_int_equal(closed, 2);
    struct kv_reading_row r;
    assert_false(kv_readers_row(rs, 7, &r));
}

/* Nothing came yet; and one that is missing for good. */
static void without_a_replay(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.replay = SLICE("");
    want(0, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    assert_int_equal(row(0).reading, KV_READING_BEGINS);
    kv_readers_live(rs, 0, 0, stored(1), SECOND);
    assert_true(row(0).stats.tree.whole);
    kv_readers_live(rs, 0, 2, stored(2), SECOND);
    assert_int_equal(row(0).stats.feed.missed, 1);
    assert_false(row(0).stats.tree.whole);
}

/* A replay that is not answered ends by time. */
static void time_passes(void **state)
{
    (void)state;
    want(0, wanted(KV_ROLE_SPEAKS), SECOND);
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_live(rs, 0, 5, stored(1), SECOND);
    assert_int_equal(row(0).stats.feed.messages, 0);
    kv_readers_tick(rs, SECOND + KV_REPLAY_TIMEOUT_MS - 1);
    assert_int_equal(row(0).stats.feed.messages, 0);
    kv_readers_tick(rs, SECOND + KV_REPLAY_TIMEOUT_MS);
    assert_int_equal(row(0).stats.feed.messages, 1);
}

static void one_speaks_while_its_subscription_stands(void **state)
{
    (void)state;
    want(0, wanted(KV_ROLE_STANDS_BY), SECOND);
    kv_readers_connected(rs, 0, SECOND);
    assert_false(row(0).may_speak);
    want(0, wanted(KV_ROLE_SPEAKS), 2 * SECOND); /* the one before it died */
    assert_true(row(0).may_speak);
    assert_false(kv_readers_speak(rs, 0)); /* of nothing yet */
    kv_readers_replay_ended(rs, 0, 2 * SECOND);
    assert_true(kv_readers_speak(rs, 0));
    kv_readers_lost(rs, 0, 10 * SECOND);
    kv_readers_lost(rs, 0, 12 * SECOND); /* the next try failed, too */
    kv_readers_tick(rs, 10 * SECOND + KV_LOST_MS - 1);
    assert_true(row(0).may_speak);
    kv_readers_tick(rs, 10 * SECOND + KV_LOST_MS);
    assert_false(row(0).may_speak);
    want(0, wanted(KV_ROLE_SPEAKS), 20 * SECOND);
    assert_false(row(0).may_speak);
    kv_readers_connected(rs, 0, 21 * SECOND);
    assert_true(row(0).may_speak);
    assert_int_equal(row(0).connects, 2);
    want(0, wanted(KV_ROLE_STANDS_BY), 22 * SECOND); /* another one stands in front now */
    assert_false(row(0).may_speak);
}

/* The registry's word and number 0 of the feed are of one restart. */
static void a_restart_counts_once(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.replay = SLICE("");
    want(0, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_live(rs, 0, 0, stored(1), SECOND);
    kv_readers_live(rs, 0, 1, stored(2), SECOND);
    w.rkey = 2; /* heard of first, long after the feed began */
    want(0, w, 100 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 0);
    kv_readers_live(rs, 0, 0, stored(3), 101 * SECOND);
    w.rkey = 3; /* heard of after the feed began anew */
    want(0, w, 102 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 1);
    w.rkey = 4; /* a further one, of which the feed shows nothing yet */
    want(0, w, 103 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 0);
    kv_readers_live(rs, 0, 0, stored(3), 104 * SECOND);
    w.rkey = 5; /* what began so long ago is another matter */
    want(0, w, 104 * SECOND + KV_RESTART_MS);
    assert_int_equal(row(0).stats.tree.held, 0);
}

/* [0, [["AllBlocksCleared"]], 0] */
static const struct slice clear = {"\x93\x00\x91\x91\xb0"
                                   "AllBlocksCleared\x00",
                                   22};

/* A cache is lost when the engine says so now, not when a replay tells of it, or the first message:
 * SGLang begins with one. */
static void a_clear_counts_when_it_comes(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    want(0, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_replayed(rs, 0, 0, clear, SECOND);
    kv_readers_replayed(rs, 0, 1, stored(1), SECOND);
    kv_readers_replayed(rs, 0, 2, clear, SECOND);
    kv_readers_replay_ended(rs, 0, SECOND);
    assert_int_equal(clears, 0);
    kv_readers_live(rs, 0, 3, stored(1), 100 * SECOND);
    kv_readers_live(rs, 0, 4, clear, 100 * SECOND);
    assert_int_equal(clears, 1);
    kv_readers_live(rs, 0, 5, stored(2), 100 * SECOND);
    w.rkey = 2; /* which came of that */
    want(0, w, 101 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 1);
    kv_readers_live(rs, 0, 0, clear, 102 * SECOND);
    assert_int_equal(clears, 1);
    want(0, wanted(KV_ROLE_STANDS_BY), 103 * SECOND);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 1, clear, 103 * SECOND);
    assert_int_equal(clears, 1); /* another router says it */
}

/* Its answers are of blocks that never came: another engine's feed, perhaps. */
static void one_that_contradicts_does_not_speak(void **state)
{
    const struct kv_told told = {.end = 1,
                                 .sent_ms = 5 * SECOND,
                                 .ended_ms = 5 * SECOND,
                                 .prompt_tokens = 80,
                                 .cached_tokens = 4,
                                 .output_tokens = 1,
                                 .well = true};
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.replay = SLICE("");
    want(0, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_live(rs, 0, 0, stored(1), SECOND);
    assert_true(kv_readers_speak(rs, 0));
    struct kv_path path = {.count = 1, .ids = {1}};
    kv_readers_path(rs, &path);
    struct kv_told first = told;
    first.sent_ms = first.ended_ms = SECOND;
    first.prompt_tokens = 4;
    first.cached_tokens = 0;
    kv_readers_told(rs, &first, SECOND);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 1);
    struct kv_told whole = told; /* it computed no block, and so stored none */
    whole.cached_tokens = 80;
    for (unsigned i = 0; i < 100; i++)
        kv_readers_told(rs, &whole, 5 * SECOND);
    kv_readers_tick(rs, 5 * SECOND + KV_TOLD_WAIT_MS);
    assert_true(kv_readers_speak(rs, 0));
    for (unsigned i = 0; i < 100; i++)
        kv_readers_told(rs, &told, 6 * SECOND);
    assert_true(kv_readers_speak(rs, 0));
    kv_readers_tick(rs, 6 * SECOND + KV_TOLD_WAIT_MS);
    assert_int_equal(row(0).reading, KV_READING_CONTRADICTS);
    assert_string_equal(kv_reading_text(row(0).reading), "contradicts");
    assert_false(kv_readers_speak(rs, 0));
    assert_int_equal(row(0).stats.disbelieved, 1);
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 0); /* it alone said so */
    uint64_t again_ms = row(0).stats.believed_ms;
    assert_true(again_ms > MINUTE && !row(0).stats.tree.whole);
    kv_readers_live(rs, 0, 1, stored(2), again_ms - 1);
    kv_readers_tick(rs, again_ms - 1);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_tick(rs, again_ms);
    assert_true(kv_readers_speak(rs, 0));
    assert_int_equal(row(0).stats.tree.held, 1); /* what it said meanwhile */
    for (unsigned i = 0; i < 100; i++) {
        struct kv_told later = told;
        later.cached_tokens = 0; /* its place is known, wherever */
        later.sent_ms = later.ended_ms = again_ms + SECOND;
        kv_readers_told(rs, &later, again_ms + SECOND);
    }
    kv_readers_tick(rs, again_ms + 2 * SECOND);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 0, stored(3), again_ms + 3 * SECOND); /* a new process */
    assert_true(kv_readers_speak(rs, 0));
}

static void memory_is_bounded(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.blocks = 1;
    want(0, w, SECOND);
    assert_int_equal(row(0).blocks_max, KV_BLOCKS_MIN);
    w.blocks = 0;
    want(1, w, SECOND);
    assert_int_equal(row(1).blocks_max, KV_BLOCKS_UNKNOWN);
    w.blocks = 40000; /* not twice as many: it stays */
    want(1, w, SECOND);
    assert_int_equal(row(1).blocks_max, KV_BLOCKS_UNKNOWN);
    w.blocks = 70000;
    want(1, w, SECOND);
    assert_true(row(1).blocks_max == 140000 && closed == 1);
    w.blocks = 1e12;
    for (unsigned slot = 2; slot < 5; slot++) {
        want(slot, w, SECOND);
        assert_int_equal(row(slot).blocks_max, KV_BLOCKS_MAX);
    }
    want(5, w, SECOND); /* what is left */
    assert_int_equal(row(5).blocks_max, KV_BLOCKS_ALL_MAX - 3 * KV_BLOCKS_MAX - 140000 - 4096);
    assert_int_equal(kv_readers_stats(rs).blocks, KV_BLOCKS_ALL_MAX);
    want(6, w, SECOND);
    assert_int_equal(kv_readers_reading(rs, 6), KV_READING_NOT);
    assert_int_equal(kv_readers_stats(rs).refused, 1);
    want(2, wanted(KV_ROLE_NONE), 2 * SECOND);
    want(6, w, SECOND + KV_OPEN_AGAIN_MS - 1);
    assert_int_equal(kv_readers_reading(rs, 6), KV_READING_NOT);
    want(6, w, SECOND + KV_OPEN_AGAIN_MS);
    assert_int_equal(kv_readers_reading(rs, 6), KV_READING_AWAY);
}

static void feeds_are_bounded(void **state)
{
    (void)state;
    refuses = ERR_NOMEM;
    want(0, wanted(KV_ROLE_SPEAKS), SECOND);
    assert_int_equal(kv_readers_stats(rs).feeds, 0);
    assert_int_equal(kv_readers_stats(rs).refused, 1);
    refuses = 0;
    for (unsigned slot = 0; slot < SLOTS; slot++)
        want(slot, wanted(KV_ROLE_SPEAKS), SECOND + KV_OPEN_AGAIN_MS);
    assert_int_equal(kv_readers_stats(rs).feeds, KV_READERS_MAX);
    assert_int_equal(kv_readers_stats(rs).refused, 1 + SLOTS - KV_READERS_MAX);
}

/* Whatever is wanted when: no feed too many, none at a wrong place, all closed in the end. */
static void drawn(void **state)
{
    (void)state;
    struct prng p;
    prng_seed(&p, 76);
    uint64_t now = SECOND;
    for (unsigned i = 0; i < TEST_ROUNDS(4000); i++) {
        unsigned slot = (unsigned)prng_below(&p, SLOTS);
        struct kv_wanted w = wanted((enum kv_role)prng_below(&p, 3));
        char at[32];
        (void)snprintf(at, sizeof at, "tcp://a:%u", (unsigned)prng_below(&p, 3) + 1);
        w.endpoint = slice_of_cstr(at);
        w.rkey = (uint32_t)prng_below(&p, 2);
        now += prng_below(&p, SECOND);
        refuses = prng_below(&p, 10) == 0 ? ERR_NOMEM : 0;
        kv_readers_want(rs, slot, &w, now);
        unsigned feed = (unsigned)prng_below(&p, KV_READERS_MAX);
        if (open_at[feed][0] != '\0') {
            uint64_t what = prng_below(&p, 4);
            if (what == 0)
                kv_readers_connected(rs, feed, now);
            else if (what == 1)
                kv_readers_lost(rs, feed, now);
            else
                kv_readers_live(rs, feed, prng_below(&p, 5), stored((uint8_t)i), now);
        }
        kv_readers_tick(rs, now);
        if (i % 16 == 0)
            kv_readers_check(rs);
        assert_int_equal(kv_readers_stats(rs).feeds, opened - closed);
    }
}

/* --- over a restart --- */

static struct buf kept;

/* A life in which `slot` was read up to number 1. Then the next life begins. */
static void live_once(unsigned slot, struct kv_wanted w, uint64_t now_ms)
{
    struct kv_keep keep = {0};
    want(slot, w, now_ms);
    kv_readers_connected(rs, 0, now_ms);
    kv_readers_replayed(rs, 0, 0, stored(1), now_ms);
    kv_readers_replay_ended(rs, 0, now_ms);
    kv_readers_live(rs, 0, 0, stored(1), now_ms); /* where there is no replay */
    kv_readers_live(rs, 0, 1, stored(2), now_ms);
    assert_int_equal(row(slot).stats.tree.held, 2);
    buf_clear(&kept);
    assert_int_equal(kv_readers_keep_feed(rs, &keep, &kept), 1);
    size_t len = kept.len;
    assert_int_equal(kv_readers_keep_feed(rs, &keep, &kept), 0);
    assert_int_equal(kept.len, len);
    kv_readers_destroy(rs);
    assert_int_equal(kv_readers_create(&rs, SLOTS, &secret, &shell, &user), ERR_OK);
    kv_readers_recall_feed(rs, buf_slice(&kept));
    replay_from = UINT64_MAX;
}

static void a_feed_goes_on_in_the_next_life(void **state)
{
    (void)state;
    live_once(7, wanted(KV_ROLE_SPEAKS), SECOND);
    want(9, wanted(KV_ROLE_SPEAKS), SECOND); /* its slot may be another one */
    assert_int_equal(row(9).stats.tree.held, 2);
    assert_int_equal(row(9).reading, KV_READING_AWAY);
    kv_readers_connected(rs, 0, SECOND);
    assert_int_equal(replay_from, 1);
    assert_int_equal(row(9).reading, KV_READING_DOUBTS);
    kv_readers_replayed(rs, 0, 1, stored(2), SECOND);
    kv_readers_replayed(rs, 0, 2, stored(3), SECOND);
    kv_readers_replay_ended(rs, 0, SECOND);
    assert_int_equal(row(9).reading, KV_READING_LIVE);
    assert_int_equal(row(9).stats.tree.held, 3);
    assert_true(row(9).stats.tree.whole);
    assert_int_equal(row(9).stats.feed.missed, 0);
    want(9, wanted(KV_ROLE_NONE), SECOND); /* only once: then it is of the past */
    want(9, wanted(KV_ROLE_SPEAKS), SECOND);
    assert_int_equal(row(9).stats.tree.held, 0);
    buf_free(&kept);
}

static void without_a_replay_it_may_be_gone(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.replay = SLICE("");
    live_once(7, w, SECOND);
    want(7, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    assert_int_equal(row(7).stats.tree.held, 0); /* of none is it certain */
    assert_int_equal(row(7).stats.tree.blocks, 2);
    assert_false(row(7).stats.tree.whole);
    kv_readers_live(rs, 0, 2, stored(3), SECOND);
    assert_int_equal(row(7).reading, KV_READING_LIVE);
    assert_int_equal(row(7).stats.tree.held, 1);
    assert_false(row(7).stats.tree.whole);
    buf_free(&kept);
}

static void another_cache_is_not_gone_on_with(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
        live_once(7, w, SECOND);
        w.rkey += i == 0;
        w.endpoint = i == 1 ? SLICE("tcp://b:1") : w.endpoint;
        w.topic = i == 2 ? SLICE("u") : w.topic;
        if (i == 3) { /* too late */
            kv_readers_tick(rs, SECOND);
            kv_readers_tick(rs, SECOND + KV_KEPT_MS);
        }
        want(7, w, SECOND + KV_KEPT_MS);
        assert_int_equal(row(7).stats.tree.held, 0);
        assert_int_equal(row(7).stats.tree.blocks, 0);
        kv_readers_connected(rs, 0, SECOND + KV_KEPT_MS);
        assert_int_equal(replay_from, 0);
        kv_readers_destroy(rs);
        assert_int_equal(kv_readers_create(&rs, SLOTS, &secret, &shell, &user), ERR_OK);
    }
    buf_free(&kept);
}

static void an_engine_that_restarts_is_empty(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    live_once(7, w, SECOND);
    want(7, w, SECOND);
    w.rkey++;
    want(7, w, SECOND);
    assert_int_equal(row(7).stats.tree.blocks, 0);
    buf_free(&kept);
}

static void other_bytes_are_no_feed(void **state)
{
    (void)state;
    live_once(7, wanted(KV_ROLE_SPEAKS), SECOND);
    for (size_t i = 0; i < kept.len; i++) {
        kv_readers_destroy(rs);
        assert_int_equal(kv_readers_create(&rs, SLOTS, &secret, &shell, &user), ERR_OK);
        kv_readers_recall_feed(rs, slice_of(kept.at, i));
        kept.at[i] = (char)(kept.at[i] ^ 1);
        kv_readers_recall_feed(rs, buf_slice(&kept));
        want(7, wanted(KV_ROLE_SPEAKS), SECOND);
        kept.at[i] = (char)(kept.at[i] ^ 1);
    }
    for (unsigned i = 0; i < 2 * KV_READERS_MAX; i++) /* more than there may be */
        kv_readers_recall_feed(rs, buf_slice(&kept));
    buf_free(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_feed_opens_and_closes, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_replay, setup, teardown),
        cmocka_unit_test_setup_teardown(time_passes, setup, teardown),
        cmocka_unit_test_setup_teardown(one_speaks_while_its_subscription_stands, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_counts_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_clear_counts_when_it_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_contradicts_does_not_speak, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(feeds_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_feed_goes_on_in_the_next_life, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_replay_it_may_be_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(another_cache_is_not_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown(an_engine_that_restarts_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(other_bytes_are_no_feed, setup, teardown),
        cmocka_unit_test_setup_teardown(drawn, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
