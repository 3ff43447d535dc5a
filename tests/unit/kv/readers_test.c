/* A router's open feeds, and the speaking router. */
#include "base/prng.h"
#include "tests/unit/kv/readers_world.h"

enum { MINUTE = 60 * SECOND };

static void a_feed_opens_and_closes(void **state)
{
    (void)state;
    want(7, wanted(KV_ROLE_NONE), SECOND);
    assert_int_equal(opened, 0);
    assert_int_equal(kv_readers_reading(rs, 7), KV_READING_NOT);
    want(7, wanted(KV_ROLE_STANDS_BY), SECOND);
    assert_string_equal(open_at[0], "tcp://a:1 tcp://a:2 t");
    assert_int_equal(kv_readers_reading(rs, 7), KV_READING_AWAY);
    want(7, wanted(KV_ROLE_STANDS_BY), 2 * SECOND); /* unchanged */
    assert_int_equal(opened, 1);
    kv_readers_connected(rs, 0, 2 * SECOND);
    assert_int_equal(replay_from, 0);
    assert_int_equal(kv_readers_reading(rs, 7), KV_READING_DOUBTS); /* unknown history */
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

/* First no message comes; then a message is missing for good. */
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

/* A replay without a reply ends by time. */
static void an_unanswered_replay_times_out(void **state)
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

static void a_router_reports_only_while_subscribed(void **state)
{
    (void)state;
    want(0, wanted(KV_ROLE_STANDS_BY), SECOND);
    kv_readers_connected(rs, 0, SECOND);
    assert_false(row(0).may_speak);
    want(0, wanted(KV_ROLE_SPEAKS), 2 * SECOND); /* the speaking router died */
    assert_true(row(0).may_speak);
    assert_false(kv_readers_speak(rs, 0)); /* it knows nothing yet */
    kv_readers_replay_ended(rs, 0, 2 * SECOND);
    assert_true(kv_readers_speak(rs, 0));
    kv_readers_lost(rs, 0, 10 * SECOND);
    kv_readers_lost(rs, 0, 12 * SECOND); /* the next try failed too */
    kv_readers_tick(rs, 10 * SECOND + KV_LOST_MS - 1);
    assert_true(row(0).may_speak);
    kv_readers_tick(rs, 10 * SECOND + KV_LOST_MS);
    assert_false(row(0).may_speak);
    want(0, wanted(KV_ROLE_SPEAKS), 20 * SECOND);
    assert_false(row(0).may_speak);
    kv_readers_connected(rs, 0, 21 * SECOND);
    assert_true(row(0).may_speak);
    assert_int_equal(row(0).connects, 2);
    want(0, wanted(KV_ROLE_STANDS_BY), 22 * SECOND); /* now another router is ahead */
    assert_false(row(0).may_speak);
}

/* The engine's answers imply blocks missing in the feed: perhaps the feed is another engine's. */
static void contradicted_events_are_not_reported(void **state)
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
    struct kv_told whole = told; /* computed no block, and so stored none */
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
    assert_int_equal(kv_readers_stats(rs).paths.anchors, 0); /* only this engine reported anchors */
    uint64_t again_ms = row(0).stats.believed_ms;
    assert_true(again_ms > MINUTE && !row(0).stats.tree.whole);
    kv_readers_live(rs, 0, 1, stored(2), again_ms - 1);
    kv_readers_tick(rs, again_ms - 1);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_tick(rs, again_ms);
    assert_true(kv_readers_speak(rs, 0));
    assert_int_equal(row(0).stats.tree.held, 1); /* from messages meanwhile */
    for (unsigned i = 0; i < 100; i++) {
        struct kv_told later = told;
        later.cached_tokens = 0; /* the prompt's place is known */
        later.sent_ms = later.ended_ms = again_ms + SECOND;
        kv_readers_told(rs, &later, again_ms + SECOND);
    }
    kv_readers_tick(rs, again_ms + 2 * SECOND);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 0, stored(3), again_ms + 3 * SECOND); /* a new process by the report */
    assert_false(kv_readers_speak(rs, 0));
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
    w.blocks = 40000; /* not twice as many: unchanged */
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
    want(5, w, SECOND); /* the remaining feed */
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

/* Any requests at any time: no feed too many, none at a wrong place, all closed in the end. */
static void random_requests_keep_the_feeds_consistent(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_feed_opens_and_closes, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_replay, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unanswered_replay_times_out, setup, teardown),
        cmocka_unit_test_setup_teardown(a_router_reports_only_while_subscribed, setup, teardown),
        cmocka_unit_test_setup_teardown(contradicted_events_are_not_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(memory_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(feeds_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(random_requests_keep_the_feeds_consistent, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
