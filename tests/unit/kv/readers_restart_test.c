/* Restarts of engines and routers: events of a single restart, and state kept across restarts. */
#include "tests/unit/kv/readers_world.h"

enum { MINUTE = 60 * SECOND };

/* The registry's report and number 0 of the feed belong to the same restart. */
static void a_restart_counts_once(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.replay = SLICE("");
    want(0, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_live(rs, 0, 0, stored(1), SECOND);
    kv_readers_live(rs, 0, 1, stored(2), SECOND);
    w.rkey = 2; /* the first report, long after the feed began */
    want(0, w, 100 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 0);
    kv_readers_live(rs, 0, 0, stored(3), 101 * SECOND);
    w.rkey = 3; /* a report after the feed began anew */
    want(0, w, 102 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 1);
    w.rkey = 4; /* another restart, which the feed does not show yet */
    want(0, w, 103 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 0);
    kv_readers_live(rs, 0, 0, stored(3), 104 * SECOND);
    w.rkey = 5; /* long after the last start: another restart */
    want(0, w, 104 * SECOND + KV_RESTART_MS);
    assert_int_equal(row(0).stats.tree.held, 0);
    assert_int_equal(begins, 0); /* each rkey announced a restart */
}

/* A restart visible only in the feed, by number 0 or by a replay, is announced. The next rkey, and
 * a later rkey from /metrics, belong to the same restart. */
static void a_restart_visible_only_in_the_feed_is_announced(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    want(0, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_replayed(rs, 0, 0, stored(1), SECOND);
    kv_readers_replayed(rs, 0, 1, stored(2), SECOND);
    kv_readers_replay_ended(rs, 0, SECOND);
    kv_readers_live(rs, 0, 2, stored(3), SECOND);
    assert_int_equal(begins, 0); /* no life was known before */
    kv_readers_live(rs, 0, 0, stored(3), 100 * SECOND);
    assert_true(begins == 1 && begins_rkey == 1 && clears == 0);
    for (w.rkey = 2; w.rkey <= 3; w.rkey++) {
        want(0, w, 101 * SECOND);
        assert_int_equal(row(0).stats.tree.held, 1);
    }
    want(0, w, 102 * SECOND); /* another restart */
    assert_int_equal(row(0).stats.tree.held, 0);
    kv_readers_live(rs, 0, 0, stored(3), 103 * SECOND);
    assert_int_equal(begins, 1);
    kv_readers_lost(rs, 0, 200 * SECOND);
    kv_readers_connected(rs, 0, 201 * SECOND);
    kv_readers_replay_ended(rs, 0, 201 * SECOND); /* the replay lacks the last message */
    kv_readers_tick(rs, 203 * SECOND);
    kv_readers_replayed(rs, 0, 0, stored(4), 203 * SECOND);
    assert_true(begins == 2 && begins_rkey == 4);
    want(0, wanted(KV_ROLE_STANDS_BY), 300 * SECOND);
    kv_readers_live(rs, 0, 0, stored(5), 300 * SECOND);
    assert_int_equal(begins, 2); /* another router reports it */
}

/* [0, [["AllBlocksCleared"]], 0] */
static const struct slice clear = {"\x93\x00\x91\x91\xb0"
                                   "AllBlocksCleared\x00",
                                   22};

/* A cache is lost when a live message says so, but not in a replay, and not in the first message:
 * SGLang always sends it first. */
static void only_a_live_clear_loses_the_cache(void **state)
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
    w.rkey = 2; /* because of the clear */
    want(0, w, 101 * SECOND);
    assert_int_equal(row(0).stats.tree.held, 1);
    kv_readers_live(rs, 0, 0, clear, 102 * SECOND);
    assert_int_equal(clears, 1);
    want(0, wanted(KV_ROLE_STANDS_BY), 103 * SECOND);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 1, clear, 103 * SECOND);
    assert_int_equal(clears, 1); /* another router reports it */
}

/* --- trust --- */

/* Reports `count` answers whose prompts were mostly computed, though no block was stored; sent and
 * ended at the given times. */
static void contradict(unsigned count, uint64_t sent_ms, uint64_t ended_ms)
{
    const struct kv_told told = {.end = 1,
                                 .sent_ms = sent_ms,
                                 .ended_ms = ended_ms,
                                 .prompt_tokens = 80,
                                 .cached_tokens = 4,
                                 .output_tokens = 1,
                                 .well = true};
    for (unsigned i = 0; i < count; i++)
        kv_readers_told(rs, &told, ended_ms);
    kv_readers_tick(rs, ended_ms + KV_TOLD_WAIT_MS);
}

static struct kv_wanted begin(void)
{
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.replay = SLICE("");
    want(0, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    kv_readers_live(rs, 0, 0, stored(1), SECOND);
    kv_readers_live(rs, 0, 1, stored(2), SECOND);
    return w;
}

/* Otherwise a lying engine could send number 0 now and then, and never be caught. */
static void comparisons_survive_sequence_number_0(void **state)
{
    (void)state;
    (void)begin();
    for (unsigned i = 1; i <= 4; i++) {
        assert_true(kv_readers_speak(rs, 0));
        contradict(6, i * MINUTE, i * MINUTE);
        kv_readers_live(rs, 0, 0, stored(1), i * MINUTE + 30 * SECOND);
    }
    assert_int_equal(row(0).reading, KV_READING_CONTRADICTS);
}

/* Trust does not return with a new life in the engine's own report, or with a clear. */
static void an_engines_own_restart_report_restores_no_trust(void **state)
{
    (void)state;
    struct kv_wanted w = begin();
    contradict(14, MINUTE, MINUTE);
    kv_readers_live(rs, 0, 2, clear, 2 * MINUTE);
    assert_int_equal(clears, 1);
    kv_readers_live(rs, 0, 3, stored(1), 2 * MINUTE);
    w.rkey++;
    want(0, w, 2 * MINUTE);
    contradict(10, 3 * MINUTE, 3 * MINUTE);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 4, clear, 4 * MINUTE);
    kv_readers_live(rs, 0, 0, stored(1), 4 * MINUTE);
    assert_true(clears == 1 && begins == 0); /* nor is either announced */
    assert_false(kv_readers_speak(rs, 0));
}

/* A restart may have repaired the engine, once. */
static void a_restart_seen_by_metrics_restores_trust_once(void **state)
{
    (void)state;
    struct kv_wanted w = begin();
    contradict(20, MINUTE, MINUTE);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_live(rs, 0, 0, stored(1), 2 * MINUTE);
    assert_false(kv_readers_speak(rs, 0));
    w.rkey++;
    want(0, w, 2 * MINUTE);
    assert_true(kv_readers_speak(rs, 0));
    assert_int_equal(row(0).stats.tree.held, 1);
    contradict(20, 3 * MINUTE, 3 * MINUTE);
    assert_false(kv_readers_speak(rs, 0));
    w.rkey++;
    want(0, w, 5 * MINUTE);
    assert_false(kv_readers_speak(rs, 0));
    kv_readers_tick(rs, row(0).stats.believed_ms);
    assert_true(kv_readers_speak(rs, 0));
}

/* Moving the feed, or another reading with a larger cache, does not restore trust: both depend on
 * the engine's reports. */
static void a_moved_feed_restores_no_trust(void **state)
{
    (void)state;
    struct kv_wanted w = begin();
    contradict(20, MINUTE, MINUTE);
    w.endpoint = SLICE("tcp://a:9");
    want(0, w, MINUTE);
    assert_true(opened == 2 && row(0).reading == KV_READING_AWAY);
    kv_readers_connected(rs, 0, MINUTE);
    assert_int_equal(row(0).reading, KV_READING_CONTRADICTS);
    w.blocks *= 100;
    want(0, w, MINUTE);
    kv_readers_connected(rs, 0, MINUTE);
    assert_true(opened == 3 && row(0).reading == KV_READING_CONTRADICTS);
    want(0, wanted(KV_ROLE_NONE), MINUTE);
    w.named = true; /* an operator names another address: a new chance */
    w.endpoint = SLICE("tcp://b:1");
    want(0, w, MINUTE);
    kv_readers_connected(rs, 0, MINUTE);
    assert_int_equal(row(0).reading, KV_READING_BEGINS);
}

/* A restart ends all requests under way. Requests under way at an engine's first message were sent
 * to the new process. */
static void answers_from_before_a_restart_are_ignored(void **state)
{
    (void)state;
    for (unsigned honest = 0; honest <= 1; honest++) {
        (void)begin();
        kv_readers_live(rs, 0, 2, stored(1), MINUTE + (honest ? 0 : 10 * SECOND));
        kv_readers_live(rs, 0, 0, stored(1), MINUTE + 20 * SECOND);
        contradict(20, MINUTE + 5 * SECOND, MINUTE + 30 * SECOND);
        assert_int_equal(kv_readers_speak(rs, 0), honest);
        kv_readers_destroy(rs);
        assert_int_equal(kv_readers_create(&rs, SLOTS, &secret, &shell, &user), ERR_OK);
    }
}

/* --- over a restart --- */

static struct buf kept;

/* Reads `slot` up to number 1 in a life of the router. Then the next life begins. */
static void live_once(unsigned slot, struct kv_wanted w, uint64_t now_ms)
{
    struct kv_keep keep = {0};
    want(slot, w, now_ms);
    kv_readers_connected(rs, 0, now_ms);
    kv_readers_replayed(rs, 0, 0, stored(1), now_ms);
    kv_readers_replay_ended(rs, 0, now_ms);
    kv_readers_live(rs, 0, 0, stored(1), now_ms); /* without a replay */
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

static void a_feed_resumes_after_a_router_restart(void **state)
{
    (void)state;
    live_once(7, wanted(KV_ROLE_SPEAKS), SECOND);
    want(9, wanted(KV_ROLE_SPEAKS), SECOND); /* the slot may be another */
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
    want(9, wanted(KV_ROLE_NONE), SECOND); /* the kept knowledge is used only once */
    want(9, wanted(KV_ROLE_SPEAKS), SECOND);
    assert_int_equal(row(9).stats.tree.held, 0);
    buf_free(&kept);
}

static void kept_blocks_are_unsure_without_a_replay(void **state)
{
    (void)state;
    struct kv_wanted w = wanted(KV_ROLE_SPEAKS);
    w.replay = SLICE("");
    live_once(7, w, SECOND);
    want(7, w, SECOND);
    kv_readers_connected(rs, 0, SECOND);
    assert_int_equal(row(7).stats.tree.held, 0); /* certain of none */
    assert_int_equal(row(7).stats.tree.blocks, 2);
    assert_false(row(7).stats.tree.whole);
    kv_readers_live(rs, 0, 2, stored(3), SECOND);
    assert_int_equal(row(7).reading, KV_READING_LIVE);
    assert_int_equal(row(7).stats.tree.held, 1);
    assert_false(row(7).stats.tree.whole);
    buf_free(&kept);
}

static void another_cache_is_not_resumed(void **state)
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

static void a_restarted_engine_is_empty(void **state)
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

static void malformed_kept_bytes_are_refused(void **state)
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
    for (unsigned i = 0; i < 2 * KV_READERS_MAX; i++) /* more than the maximum */
        kv_readers_recall_feed(rs, buf_slice(&kept));
    buf_free(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_restart_counts_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restart_visible_only_in_the_feed_is_announced, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(only_a_live_clear_loses_the_cache, setup, teardown),
        cmocka_unit_test_setup_teardown(comparisons_survive_sequence_number_0, setup, teardown),
        cmocka_unit_test_setup_teardown(an_engines_own_restart_report_restores_no_trust, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_restart_seen_by_metrics_restores_trust_once, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_moved_feed_restores_no_trust, setup, teardown),
        cmocka_unit_test_setup_teardown(answers_from_before_a_restart_are_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(a_feed_resumes_after_a_router_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(kept_blocks_are_unsure_without_a_replay, setup, teardown),
        cmocka_unit_test_setup_teardown(another_cache_is_not_resumed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_restarted_engine_is_empty, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_kept_bytes_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
