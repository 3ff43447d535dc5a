/* How the reader treats feeds unlike any engine's. tests/unit/engine-sim/kv_reader_test.c tests the
 * accuracy on an engine's cache. */
#include "node/kv/reader.h"

#include "tests/lib/test.h"

#include "base/checkpoint.h"
#include "node/kv/asked.h"
#include "node/kv/budget.h"
#include "tests/unit/kv/reader_world.h"

/* The first block of a long prompt goes and comes again and again, together with all blocks behind.
 * No engine evicts like this. */
static void test_a_feed_costing_too_much_is_paused(void **state)
{
    (void)state;
    begin();
    msgpack_packer p = kv_message_begin(1);
    stored(&p, 0, 50000);
    publish(0);
    assert_int_equal(kv_reader_stats(reader).tree.held, 50000);
    p = kv_message_begin(200);
    for (unsigned i = 0; i < 100; i++) {
        removed(&p, 0);
        stored(&p, 0, 1);
    }
    publish(10);
    assert_int_equal(kv_reader_stats(reader).shed, 1);
    assert_int_equal(kv_reader_state(reader), KV_READER_DOUBTS);
    p = kv_message_begin(1);
    stored(&p, 0, 10);
    publish(20); /* passed over */
    assert_true(kv_reader_due_ms(reader) <= KV_WINDOW_MS);
    kv_reader_tick(reader, KV_WINDOW_MS);
    assert_int_equal(kv_reader_state(reader), KV_READER_LIVE);
    assert_int_equal(kv_reader_stats(reader).tree.held, 0);
    assert_false(kv_reader_stats(reader).tree.whole);
    p = kv_message_begin(1);
    stored(&p, 0, 10);
    publish(KV_WINDOW_MS + 1);
    assert_int_equal(kv_reader_stats(reader).tree.held, 10);
    end();
}

/* Messages cost by number, and by bytes. */
static void test_a_flood_of_messages_pauses_the_feed(void **state)
{
    (void)state;
    static const char blank[1 << 20];
    for (unsigned large = 0; large <= 1; large++) {
        begin();
        msgpack_packer p = kv_message_begin(1);
        unsigned payload = large ? 1 << 20 : 1;
        msgpack_pack_bin(&p, payload); /* an invalid event */
        msgpack_pack_bin_body(&p, blank, payload);
        unsigned fit = KV_STEPS_MAX / (KV_MESSAGE_STEPS + payload / KV_STEP_BYTES);
        for (unsigned i = 0; i < fit - fit / 8; i++)
            publish(0);
        assert_int_equal(kv_reader_stats(reader).shed, 0);
        for (unsigned i = 0; i < fit / 4; i++)
            publish(0);
        assert_int_equal(kv_reader_stats(reader).shed, 1);
        p = kv_message_begin(1);
        stored(&p, 0, 10);
        publish(KV_WINDOW_MS - 1); /* passed over */
        kv_reader_tick(reader, KV_WINDOW_MS);
        assert_int_equal(kv_reader_stats(reader).tree.held, 0);
        publish(KV_WINDOW_MS);
        assert_int_equal(kv_reader_stats(reader).tree.held, 10);
        end();
    }
}

/* Two runs may be the answer's, so the tie waits, and each look goes over both runs. */
static void test_answers_with_long_runs_are_charged(void **state)
{
    (void)state;
    enum { LONG = 20000 };
    const struct kv_told told = {.end = 1,
                                 .prompt_tokens = 2 * BLOCK,
                                 .output_tokens = (LONG - 2) * BLOCK + 1,
                                 .well = true};
    begin();
    for (unsigned prompt = 0; prompt < 2; prompt++) {
        msgpack_packer p = kv_message_begin(1);
        stored_of(&p, prompt, 0, LONG);
        publish(0);
    }
    for (unsigned i = 0; i < 100; i++)
        kv_reader_told(reader, &told, 1);
    assert_int_equal(kv_reader_stats(reader).shed, 0);
    for (unsigned i = 0; i < KV_STEPS_MAX / (2 * LONG / KV_WALK_BLOCKS); i++)
        kv_reader_told(reader, &told, 1);
    assert_int_equal(kv_reader_stats(reader).shed, 1);
    assert_int_equal(kv_reader_stats(reader).tied, 0);
    end();
}

/* As many messages as an engine keeps, at once. */
static void test_a_long_replay_is_read(void **state)
{
    (void)state;
    enum { KEPT = 10000 };
    begin();
    kv_reader_destroy(reader);
    assert_int_equal(kv_reader_create(&reader, &user, &secret, BLOCKS_MAX, true), 0);
    kv_reader_connected(reader, 0);
    for (unsigned i = 0; i < KEPT; i++) {
        msgpack_packer p = kv_message_begin(1);
        stored_of(&p, 0, i, i + 1);
        kv_reader_replayed(reader, i, buf_slice(&kv_message), 0);
    }
    kv_reader_replay_ended(reader, 0);
    assert_int_equal(kv_reader_stats(reader).shed, 0);
    assert_int_equal(kv_reader_stats(reader).tree.held, KEPT);
    end();
}

/* Each gap is a walk over the whole tree, so at most 1 a second. Until then nothing is sure. */
static void test_many_gaps_cost_one_walk(void **state)
{
    (void)state;
    begin();
    msgpack_packer p = kv_message_begin(1);
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

/* Answers beyond the limit of waiting answers are dropped. */
static void test_waiting_answers_are_bounded(void **state)
{
    const struct kv_told told = {.end = 1, .prompt_tokens = 100, .output_tokens = 10, .well = true};
    (void)state;
    begin();
    msgpack_packer p = kv_message_begin(1);
    stored(&p, 0, 10);
    publish(0);
    for (unsigned i = 0; i < KV_TOLD_MAX + 5; i++)
        kv_reader_told(reader, &told, 1000000);
    kv_reader_tick(reader, 1000000 + KV_TOLD_WAIT_MS);
    assert_int_equal(kv_reader_stats(reader).told, KV_TOLD_MAX + 5);
    assert_int_equal(kv_reader_stats(reader).unmatched, KV_TOLD_MAX + 5);
    end();
}

/* Two first answers cannot be told apart; but the next turns of both go on behind them, and
 * differ. */
static void test_a_later_turn_resolves_an_unclear_answer(void **state)
{
    const uint64_t ids[] = {1, 2};
    const uint8_t codes[] = {1, 1};
    (void)state;
    begin();
    for (unsigned i = 0; i < 2; i++)
        assert_true(kv_paths_join(paths, 0, &ids[i], &codes[i], 1));
    msgpack_packer p = kv_message_begin(2);
    stored_of(&p, 0, 0, 5);
    stored_of(&p, 1, 0, 5);
    publish(1000);
    struct kv_told told = {.sent_ms = 900, .ended_ms = 1100, .output_tokens = 3, .well = true};
    told.prompt_tokens = 18;
    for (told.end = 1; told.end <= 2; told.end++)
        kv_reader_told(reader, &told, 1100);
    kv_reader_tick(reader, 1100 + KV_TOLD_WAIT_MS);
    assert_int_equal(kv_reader_stats(reader).unclear, 2);
    p = kv_message_begin(3);
    stored_of(&p, 0, 5, 9);
    stored_of(&p, 1, 5, 12);
    stored_of(&p, 2, 0, 3);
    publish(60000);
    told = (struct kv_told){.sent_ms = 59900, .ended_ms = 60100, .output_tokens = 3, .well = true};
    told.cached_tokens = 5 * BLOCK;
    told.end = 1, told.prompt_tokens = 35;
    kv_reader_told(reader, &told, 60100);
    told.end = 2, told.prompt_tokens = 47;
    kv_reader_told(reader, &told, 60100);
    assert_int_equal(kv_reader_stats(reader).tied, 2);
    end();
}

/* The chain of the long prompt's first tokens, as in an answer. */
static uint64_t chain_of(unsigned tokens)
{
    struct kv_asked a;
    kv_asked_begin(&a, &secret, BLOCK);
    for (unsigned i = 0; i < tokens; i++)
        kv_asked_token(&a, i);
    assert_int_equal(a.tokens, tokens);
    kv_asked_end(&a);
    return a.chain;
}

/* A prompt of ten blocks, all cached before, so the answer stores no block: structure has no
 * evidence. A chain in the answer ties the prompt, whatever the size of the rest. */
static void test_a_reported_chain_ties_a_prompt(void **state)
{
    (void)state;
    static const uint64_t ids[] = {11, 12, 13};
    static const uint8_t codes[] = {0, 0, 0};
    struct kv_told told = {.end = 13,
                           .sent_ms = 5000,
                           .ended_ms = 5100,
                           .prompt_tokens = 10 * BLOCK + 1,
                           .cached_tokens = 10 * BLOCK,
                           .output_tokens = 1,
                           .well = true};
    begin();
    msgpack_packer p = kv_message_begin(1);
    stored(&p, 0, 12);
    publish(0);
    assert_true(kv_paths_join(paths, 0, ids, codes, 3));
    assert_int_equal(kv_paths_want(paths, ids, 3), KV_WANT_MAYBE);
    kv_reader_told(reader, &told, 5100);
    kv_reader_tick(reader, 5100 + KV_TOLD_WAIT_MS);
    assert_int_equal(kv_reader_stats(reader).unmatched, 1);
    assert_int_equal(kv_paths_want(paths, ids, 3), KV_WANT_SURE);

    told.asked_block = BLOCK; /* other tokens: no such block exists */
    told.asked_chain = chain_of(10 * BLOCK) + 1;
    kv_reader_told(reader, &told, 6000);
    told.asked_chain = chain_of(9 * BLOCK); /* a block in conflict with the length */
    kv_reader_told(reader, &told, 6000);
    told.asked_block = 2 * BLOCK; /* another block size */
    told.asked_chain = chain_of(10 * BLOCK + 1);
    kv_reader_told(reader, &told, 6000);
    kv_reader_tick(reader, 6000 + KV_TOLD_WAIT_MS);
    assert_int_equal(kv_reader_stats(reader).unmatched, 4);

    told.asked_block = BLOCK;
    kv_reader_told(reader, &told, 7000);
    struct kv_reader_stats stats = kv_reader_stats(reader);
    assert_true(stats.tied == 1 && stats.asked == 1 && stats.asked_wrong == 0);
    told.end = 99; /* a checkpoint unreported by routers */
    kv_reader_told(reader, &told, 7000);
    stats = kv_reader_stats(reader);
    assert_true(stats.tied == 1 && stats.asked == 2 && stats.unmatched == 5);
    assert_int_equal(kv_paths_want(paths, ids, 3), KV_WANT_NONE);
    assert_int_equal(kv_paths_anchored(paths, 13), 13);
    kv_reader_tick(reader, 7000 + KV_TOLD_WAIT_MS);
    assert_int_equal(kv_reader_stats(reader).unmatched, 5);
    end();
}

static void test_a_prompts_continuation_is_kept(void **state)
{
    (void)state;
    enum { BLOCKS = KV_FRONT_BLOCKS_MAX + 2 };
    struct kv_asked a;
    begin();
    kv_asked_begin(&a, &secret, BLOCK);
    for (uint32_t i = 0; i < BLOCKS * BLOCK + 1; i++)
        kv_asked_token(&a, i);
    struct kv_front front = kv_asked_front(&a, 4 * BLOCK + 3);
    assert_int_equal(front.blocks, 4);
    assert_true(front.chain == chain_of(4 * BLOCK));
    assert_true(kv_chain(&secret, front.chain, front.digest) == chain_of(5 * BLOCK));
    front = kv_asked_front(&a, BLOCK - 1);
    assert_int_equal(front.blocks, 0);
    front = kv_asked_front(&a, (KV_FRONT_BLOCKS_MAX - 1) * BLOCK);
    assert_int_equal(front.blocks, KV_FRONT_BLOCKS_MAX - 1);
    front = kv_asked_front(&a, KV_FRONT_BLOCKS_MAX * BLOCK); /* nothing is kept that far */
    assert_int_equal(front.blocks, 0);
    kv_asked_end(&a);
    end();
}

/* In doubt a stored block may be a second copy, except for blocks computed by a request sent after
 * the last gap. */
static void test_newly_computed_blocks_are_certain_at_once(void **state)
{
    (void)state;
    for (unsigned after = 0; after <= 1; after++) {
        const struct kv_told told = {.end = 1,
                                     .sent_ms = after ? 1300 : 900,
                                     .ended_ms = 1500,
                                     .prompt_tokens = 10 * BLOCK,
                                     .cached_tokens = 0,
                                     .output_tokens = 1,
                                     .well = true};
        const struct kv_told found = {.cached_tokens = 1, .ended_ms = 1, .well = true};
        static const uint64_t ids[] = {1};
        static const uint8_t codes[] = {0};
        begin();
        number = 5;
        kv_reader_connected(reader, 900);
        msgpack_packer p = kv_message_begin(0);
        publish(1000);                        /* earlier messages were missed */
        kv_reader_told(reader, &found, 1000); /* the answer proves the block */
        assert_true(kv_paths_join(paths, 0, ids, codes, 1));
        p = kv_message_begin(1);
        stored(&p, 0, 10);
        publish(1400);
        kv_reader_told(reader, &told, 1500);
        assert_int_equal(kv_reader_stats(reader).tied, 1);
        gone = 0;
        p = kv_message_begin(1);
        removed(&p, 9);
        publish(1600);
        assert_int_equal(gone, after);
        end();
    }
}

/* Two prompts of the same length run at once, and a single prompt is known here. The other prompt's
 * blocks end at the same place: structure takes them, and the answer's chain contradicts. */
static void test_a_reported_chain_checks_structural_ties(void **state)
{
    (void)state;
    static const uint64_t ids[] = {21}, other[] = {99};
    static const uint8_t codes[] = {0};
    struct kv_told told = {.end = 21,
                           .sent_ms = 1000,
                           .ended_ms = 1400,
                           .prompt_tokens = 10 * BLOCK + 1,
                           .cached_tokens = 4 * BLOCK,
                           .output_tokens = 1,
                           .well = true,
                           .asked_block = BLOCK};
    begin();
    msgpack_packer p = kv_message_begin(1);
    stored(&p, 0, 12);
    publish(0);
    p = kv_message_begin(1); /* behind the fourth block, of other tokens */
    msgpack_pack_array(&p, 5);
    kv_message_text(&p, "BlockStored");
    msgpack_pack_array(&p, 6);
    for (unsigned i = 0; i < 6; i++)
        msgpack_pack_uint64(&p, 1000 + i);
    msgpack_pack_uint64(&p, 4);
    msgpack_pack_array(&p, 6 * BLOCK);
    for (unsigned i = 0; i < 6 * BLOCK; i++)
        msgpack_pack_uint32(&p, 7777 + i);
    msgpack_pack_uint32(&p, BLOCK);
    publish(1200);
    assert_true(kv_paths_join(paths, 0, ids, codes, 1));
    assert_true(kv_paths_join(paths, 0, other, codes, 1));
    told.asked_chain = chain_of(10 * BLOCK + 1);
    kv_reader_told(reader, &told, 1400);
    kv_reader_tick(reader, 1400 + KV_TOLD_WAIT_MS);
    struct kv_reader_stats stats = kv_reader_stats(reader);
    assert_true(stats.tied == 1 && stats.asked == 1 && stats.asked_wrong == 1);
    /* The run still belongs to the other prompt. */
    told = (struct kv_told){.end = 21,
                            .sent_ms = 1000,
                            .ended_ms = 1400,
                            .prompt_tokens = 10 * BLOCK + 1,
                            .cached_tokens = 4 * BLOCK,
                            .output_tokens = 1,
                            .well = true};
    told.end = 99;
    kv_reader_told(reader, &told, 1450);
    stats = kv_reader_stats(reader);
    assert_int_equal(stats.unmatched + stats.unclear, 0);
    kv_reader_tick(reader, 1450 + KV_TOLD_WAIT_MS);
    stats = kv_reader_stats(reader);
    assert_int_equal(stats.unmatched + stats.unclear, 0);
    end();
}

/* A share of the bytes in the long run; the neediest comes first, on credit if necessary. */
static void test_the_budget(void **state)
{
    (void)state;
    struct kv_budget b = {0};
    assert_false(kv_budget_ask(&b, 0.5, KV_BUDGET_BYTES, KV_WANT_MAYBE));
    assert_true(kv_budget_ask(&b, 0.5, 1, KV_WANT_SURE));
    assert_true(kv_budget_ask(&b, 1, KV_BUDGET_BYTES, KV_WANT_MAYBE));
    assert_false(kv_budget_ask(&b, 1, KV_BUDGET_BYTES, KV_WANT_NONE));
    kv_budget_spend(&b, 3 * KV_BUDGET_BYTES);
    assert_false(kv_budget_ask(&b, 1, KV_BUDGET_BYTES, KV_WANT_SURE));
    uint64_t bytes = 0, asked = 0;
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t some = 1000 + i % 5000;
        bool asks = kv_budget_ask(&b, 0.02, some, i % 3 == 0 ? KV_WANT_SURE : KV_WANT_MAYBE);
        if (asks)
            kv_budget_spend(&b, some);
        bytes += some;
        asked += asks ? some : 0;
    }
    assert_true(asked < bytes / 50 + KV_BUDGET_BYTES && asked > bytes / 55);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_feed_costing_too_much_is_paused),
        cmocka_unit_test(test_a_flood_of_messages_pauses_the_feed),
        cmocka_unit_test(test_answers_with_long_runs_are_charged),
        cmocka_unit_test(test_a_long_replay_is_read),
        cmocka_unit_test(test_many_gaps_cost_one_walk),
        cmocka_unit_test(test_waiting_answers_are_bounded),
        cmocka_unit_test(test_a_later_turn_resolves_an_unclear_answer),
        cmocka_unit_test(test_a_reported_chain_ties_a_prompt),
        cmocka_unit_test(test_a_reported_chain_checks_structural_ties),
        cmocka_unit_test(test_a_prompts_continuation_is_kept),
        cmocka_unit_test(test_newly_computed_blocks_are_certain_at_once),
        cmocka_unit_test(test_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
