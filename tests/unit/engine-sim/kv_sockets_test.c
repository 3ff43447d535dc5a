/* An engine's caches, published over real sockets and read as by a router: a belief is either true
 * or marked as doubtful. */
#include "tests/engine-sim/kv_sockets.h"

#include <errno.h>
#include <stdio.h>

#include "base/check.h"
#include "node/io/kv_feed.h"
#include "tests/lib/kv_believed.h"
#include "tests/lib/test.h"

enum {
    RANKS = 2,
    BLOCK = 4,
    PROMPTS = 12,
    CACHE_BLOCKS = 40,
    STEPS = 4000,
    KEPT = 5,
    ALL_KEPT = 10000, /* more messages than are sent before the slowest reader reads */
};

/* How a rank's messages are read. */
struct reading {
    struct io_kv_feed_user user;
    struct io_kv_feed *sockets; /* NULL: not read */
    struct believed believed;
    unsigned heard; /* messages, replayed messages too */
};

static uv_loop_t loop;
static void *zmq;
static struct sim_ranks ranks;
static struct sim_publisher *publisher;
static struct sim_kv_sockets *sockets;
static struct reading readings[RANKS];
static uint64_t now_ns, skipped_ms;

static uint64_t now_ms(void)
{
    return uv_now(&loop) + skipped_ms;
}

/* --- the reader ------------------------------------------------------------------------------ */

static void on_connected(void *context)
{
    struct reading *r = context;
    kv_feed_connected(r->believed.feed, now_ms());
}

static void on_live(void *context, uint64_t number, struct slice payload)
{
    struct reading *r = context;
    r->heard++;
    kv_feed_live(r->believed.feed, number, payload, now_ms());
}

static void on_replayed(void *context, uint64_t number, struct slice payload)
{
    struct reading *r = context;
    r->heard++;
    kv_feed_replayed(r->believed.feed, number, payload, now_ms());
}

static void on_replay_ended(void *context)
{
    struct reading *r = context;
    kv_feed_replay_ended(r->believed.feed, now_ms());
}

static void on_lost(void *context)
{
    (void)context;
}

static void on_replay(void *context, uint64_t from)
{
    struct reading *r = context;
    assert_int_equal(io_kv_feed_replay(r->sockets, from), 0);
}

static void turn(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    for (unsigned i = 0; i < RANKS; i++) {
        if (readings[i].sockets != NULL)
            kv_feed_tick(readings[i].believed.feed, now_ms());
    }
    uv_sleep(1);
}

static void read_rank(unsigned rank, bool replays)
{
    struct reading *r = &readings[rank];
    const struct sim_kv_config *config = sim_publisher_config(publisher);
    char at[64], again[64] = "";
    r->user =
        (struct io_kv_feed_user){on_connected, on_lost, on_live, on_replayed, on_replay_ended, r};
    (void)snprintf(at, sizeof at, "tcp://127.0.0.1:%u", config->port + rank);
    if (replays)
        (void)snprintf(again, sizeof again, "tcp://127.0.0.1:%u", config->again + rank);
    believed_open(&r->believed, 1, replays ? on_replay : NULL, r);
    assert_int_equal(io_kv_feed_open(&r->sockets, &loop, zmq, slice_of_cstr(at),
                                     slice_of_cstr(again), SLICE("kv"), &r->user),
                     0);
}

/* --- the engine ------------------------------------------------------------------------------ */

static void open_engine(const char *form, bool answers, unsigned kept)
{
    const struct sim_model_config model = {.prefill_tokens_per_s = 1e6,
                                           .decode_base_ns = 1e6,
                                           .running_max = 4,
                                           .block_tokens = BLOCK,
                                           .cache_blocks = CACHE_BLOCKS};
    struct sim_kv_config config = {
        .form = form, .topic = "kv", .kept = kept, .answers_again = answers};
    sim_ranks_open(&ranks, &model, RANKS, SIM_LEAST_IN_FLIGHT);
    publisher = sim_publisher_create(&config, &ranks);
    assert_non_null(publisher);
    assert_int_equal(sim_kv_sockets_open(&sockets, &loop, publisher, "127.0.0.1"), 0);
    assert_true(sim_publisher_config(publisher)->port > 0);
}

/* Three prompts at a time begin alike. */
static void prompt_make(struct sim_chain *c, unsigned prompt)
{
    sim_chain_init(c, BLOCK, 0);
    c->keeps_ids = true;
    for (unsigned i = 0; i < 6 * BLOCK; i++)
        sim_chain_add(c, 1000 * (i < 3 * BLOCK ? prompt / 3 : 100 + prompt) + i);
}

static void serve(unsigned rank, unsigned prompt)
{
    struct sim_request r = {.output_seed = prompt, .output_tokens = 5};
    prompt_make(&r.chain, prompt % PROMPTS);
    assert_int_equal(sim_ranks_submit(&ranks, &r, (int)rank, now_ns), 0);
    while (r.state != SIM_DONE) {
        now_ns = sim_ranks_next_event_ns(&ranks);
        sim_ranks_advance(&ranks, now_ns);
        sim_publisher_step(publisher, 1, false);
    }
    (void)sim_ranks_changed(&ranks);
    sim_chain_free(&r.chain);
    free(r.blocks);
}

/* Prompts at both ranks; enough to evict some blocks. */
static void serve_many(void)
{
    for (unsigned i = 0; i < 3 * PROMPTS; i++)
        serve(i % RANKS, i * 7);
}

/* Waits until the reader gets a message: the publisher does not report when a subscription
 * begins. */
static void until_heard(unsigned rank)
{
    unsigned heard = readings[rank].heard;
    for (unsigned i = 0; i < STEPS && readings[rank].heard == heard; i++) {
        serve(rank, i);
        turn();
    }
    assert_true(readings[rank].heard > heard);
}

static bool is_read(unsigned rank)
{
    const struct kv_feed *f = readings[rank].believed.feed;
    return kv_feed_state(f) == KV_FEED_LIVE &&
           kv_feed_next(f) == sim_publisher_number(publisher, rank);
}

static void until_read(unsigned rank)
{
    for (unsigned i = 0; i < STEPS && !is_read(rank); i++)
        turn();
    if (!is_read(rank))
        fail_msg("read %u of %u", (unsigned)kv_feed_next(readings[rank].believed.feed),
                 (unsigned)sim_publisher_number(publisher, rank));
}

/* The number of prompts known exactly. No absent prompt is believed cached. */
static unsigned exact(unsigned rank)
{
    struct believed *b = &readings[rank].believed;
    const struct sim_cache *cache = sim_model_cache(ranks.models[rank]);
    unsigned count = 0;
    until_read(rank);
    kv_tree_check(b->tree);
    kv_feed_check(b->feed);
    for (unsigned i = 0; i < PROMPTS; i++) {
        struct sim_chain prompt;
        prompt_make(&prompt, i);
        struct believed_chains c = believed_chains(b, "vllm-0.24", &prompt);
        struct kv_held h = believed_held(b, &c);
        size_t there = sim_cache_match(cache, prompt.blocks, prompt.block_count);
        assert_true(h.surely <= there);
        assert_true(h.perhaps >= there);
        count += h.surely == there && h.perhaps == there;
        sim_chain_free(&prompt);
    }
    return count;
}

static struct kv_feed_stats stats(unsigned rank)
{
    return kv_feed_stats(readings[rank].believed.feed);
}

/* --- tests ----------------------------------------------------------------------------------- */

static int setup(void **state)
{
    (void)state;
    memset(readings, 0, sizeof readings);
    now_ns = skipped_ms = 0;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(io_kv_open(&zmq), 0);
    return 0;
}

static void close_engine(void)
{
    sim_kv_sockets_close(sockets);
    sim_publisher_destroy(publisher);
    sim_ranks_close(&ranks);
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RANKS; i++) {
        if (readings[i].sockets != NULL)
            io_kv_feed_close(readings[i].sockets);
    }
    close_engine();
    while (uv_run(&loop, UV_RUN_NOWAIT) != 0)
        ;
    for (unsigned i = 0; i < RANKS; i++) {
        if (readings[i].sockets != NULL)
            believed_close(&readings[i].believed);
    }
    assert_int_equal(uv_loop_close(&loop), 0);
    io_kv_close(zmq);
    return 0;
}

/* Reads from the first message on: nothing is in doubt. */
static void begin(const char *form, unsigned kept)
{
    open_engine(form, true, kept);
    for (unsigned i = 0; i < RANKS; i++)
        read_rank(i, true);
    for (unsigned i = 0; i < RANKS; i++) {
        until_heard(i);
        until_read(i);
    }
    skipped_ms += KV_REPLAY_PAUSE_MS;
}

/* No replay is available, so everything is in doubt until the cache is cleared. */
static void begin_without_replays(void)
{
    open_engine("vllm-0.24", false, 100);
    assert_int_equal(sim_publisher_config(publisher)->again, 0);
    read_rank(0, false);
    until_heard(0);
    sim_model_forget(ranks.models[0], true);
    serve(0, 0);
    assert_int_equal(exact(0), PROMPTS);
}

static void test_published_events_are_read(void **state)
{
    static const char *const forms[] = {"vllm-0.9", "vllm-0.25", "sglang-0.5", "sglang-0.5.15"};
    for (unsigned i = 0; i < ARRAY_LEN(forms); i++) {
        setup(state);
        open_engine(forms[i], true, 10000);
        serve_many();
        for (unsigned rank = 0; rank < RANKS; rank++) {
            read_rank(rank, true); /* late: asks for all messages */
            until_heard(rank);
        }
        serve_many();
        for (unsigned rank = 0; rank < RANKS; rank++) {
            assert_int_equal(exact(rank), PROMPTS);
            assert_int_equal(stats(rank).missed, 0);
            assert_true(stats(rank).replayed > 0);
            assert_int_equal(readings[rank].believed.rank, i == 0 ? -1 : (int)rank);
        }
        teardown(state);
    }
}

static void test_a_gap_is_filled(void **state)
{
    (void)state;
    begin("vllm-0.25", ALL_KEPT);
    uint64_t gaps = stats(0).gaps;
    sim_publisher_drop(publisher, 0, 3, false);
    for (unsigned i = 0; i < 4; i++)
        serve(0, 5 * i);
    assert_int_equal(exact(0), PROMPTS);
    assert_int_equal(stats(0).gaps, gaps + 1);
    assert_int_equal(stats(0).missed, 0);
}

/* The missed message was never kept, or is no longer kept. */
static void test_an_unfillable_gap_counts_as_missed(void **state)
{
    for (unsigned lost = 0; lost < 2; lost++) {
        setup(state);
        begin("vllm-0.24", lost == 1 ? ALL_KEPT : KEPT);
        uint64_t missed = stats(0).missed;
        serve_many();
        until_read(0);
        sim_publisher_drop(publisher, 0, KEPT + 1, lost == 1);
        serve_many();
        assert_true(exact(0) < PROMPTS);
        assert_int_equal(stats(0).missed, missed + 1);
        teardown(state);
    }
}

static void test_an_unanswered_replay_counts_as_missed(void **state)
{
    (void)state;
    begin("vllm-0.24", ALL_KEPT);
    sim_publisher_answer(publisher, false);
    sim_publisher_drop(publisher, 0, 1, false);
    serve(0, 0), serve(0, 4);
    for (unsigned i = 0; i < STEPS && kv_feed_state(readings[0].believed.feed) != KV_FEED_REPLAYS;
         i++)
        turn();
    for (unsigned i = 0; i < 50; i++)
        turn();
    assert_int_equal(kv_feed_state(readings[0].believed.feed), KV_FEED_REPLAYS);
    skipped_ms += KV_REPLAY_TIMEOUT_MS;
    (void)exact(0);
    assert_int_equal(stats(0).missed, 1);
}

static void test_without_replays(void **state)
{
    (void)state;
    begin_without_replays();
    uint64_t missed = stats(0).missed;
    serve_many();
    assert_int_equal(exact(0), PROMPTS);
    assert_int_equal(stats(0).missed, missed);
    sim_publisher_drop(publisher, 0, 2, false);
    serve(0, 3), serve(0, 7), serve(0, 11);
    assert_true(exact(0) < PROMPTS);
    assert_int_equal(stats(0).missed, missed + 1);
}

static void test_a_falling_sequence_number_loses_blocks(void **state)
{
    (void)state;
    begin_without_replays();
    uint64_t missed = stats(0).missed;
    serve_many();
    assert_int_equal(exact(0), PROMPTS);
    sim_publisher_renumber(publisher, 0, 2);
    serve(0, 3);
    assert_true(exact(0) < PROMPTS);
    assert_true(stats(0).missed > missed);
}

static void until_connected(unsigned rank, uint64_t times)
{
    for (unsigned i = 0; i < STEPS; i++) {
        if (io_kv_feed_stats(readings[rank].sockets).connects == times)
            return;
        turn();
    }
    fail_msg("not connected %u times", (unsigned)times);
}

static void test_a_restart(void **state)
{
    (void)state;
    begin("vllm-0.25", ALL_KEPT);
    serve_many();
    assert_int_equal(exact(0), PROMPTS);
    uint64_t before = sim_publisher_number(publisher, 0);
    sim_publisher_stop(publisher);
    sim_ranks_reset(&ranks);
    for (unsigned i = 0; i < 20; i++)
        turn();
    assert_false(sim_publisher_replay(publisher, 0, 0, NULL, NULL));
    sim_publisher_start(publisher);
    assert_int_equal(sim_publisher_number(publisher, 0), 0);
    until_connected(0, 2);
    skipped_ms += 2 * KV_REPLAY_PAUSE_MS;
    until_heard(0);
    assert_int_equal(exact(0), PROMPTS);
    assert_true(kv_tree_stats(readings[0].believed.tree).whole);
    assert_true(sim_publisher_number(publisher, 0) < before);
}

static void test_a_cut(void **state)
{
    (void)state;
    begin("sglang-0.5.15", ALL_KEPT);
    serve_many();
    until_read(0);
    sim_publisher_cut(publisher);
    serve_many();
    until_connected(0, 2);
    until_heard(0);
    assert_int_equal(exact(0), PROMPTS);
    assert_int_equal(stats(0).missed, 0);
}

/* --- without a reader ------------------------------------------------------------------------ */

static void test_sglang_publishes_a_clear_at_once(void **state)
{
    for (unsigned sglang = 0; sglang < 2; sglang++) {
        setup(state);
        open_engine(sglang == 1 ? "sglang-0.5" : "vllm-0.25", true, 10);
        sim_publisher_step(publisher, 1, false);
        assert_int_equal(sim_publisher_number(publisher, 0), sglang); /* SGLang's first event */
        serve(0, 1);
        uint64_t before = sim_publisher_number(publisher, 0);
        sim_model_forget(ranks.models[0], true);
        sim_publisher_step(publisher, 1, false);
        assert_int_equal(sim_publisher_number(publisher, 0), before + sglang);
        sim_publisher_step(publisher, 1, true);
        assert_int_equal(sim_publisher_number(publisher, 0), before + 1);
        assert_int_equal(sim_publisher_number(publisher, 1), sglang);
        teardown(state);
    }
}

static void test_a_silent_clear(void **state)
{
    (void)state;
    open_engine("vllm-0.25", false, 10);
    serve(0, 1);
    uint64_t before = sim_publisher_number(publisher, 0);
    assert_true(sim_cache_named(sim_model_cache(ranks.models[0])) > 0);
    sim_publisher_forget(publisher, 0);
    sim_publisher_step(publisher, 1, true);
    assert_int_equal(sim_publisher_number(publisher, 0), before);
    assert_int_equal(sim_cache_named(sim_model_cache(ranks.models[0])), 0);
    serve(0, 1);
    assert_true(sim_publisher_number(publisher, 0) > before);
}

static void test_a_port_in_use_is_an_error(void **state)
{
    (void)state;
    struct sim_kv_sockets *other;
    open_engine("vllm-0.25", true, 10);
    struct sim_publisher *second = sim_publisher_create(sim_publisher_config(publisher), &ranks);
    assert_int_equal(sim_kv_sockets_open(&other, &loop, second, "127.0.0.1"), EADDRINUSE);
    sim_publisher_destroy(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_events_are_read),
        cmocka_unit_test_setup_teardown(test_a_gap_is_filled, setup, teardown),
        cmocka_unit_test(test_an_unfillable_gap_counts_as_missed),
        cmocka_unit_test_setup_teardown(test_an_unanswered_replay_counts_as_missed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_without_replays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_falling_sequence_number_loses_blocks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_cut, setup, teardown),
        cmocka_unit_test(test_sglang_publishes_a_clear_at_once),
        cmocka_unit_test_setup_teardown(test_a_silent_clear, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_port_in_use_is_an_error, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
