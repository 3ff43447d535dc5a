#include "tests/lib/test.h"

#include <stdio.h>

/* The simulator's files are no library: the tests include them whole. */
#include "tests/engine-sim/cache.c" // NOLINT(bugprone-suspicious-include)
#include "tests/engine-sim/model.c" // NOLINT(bugprone-suspicious-include)
#undef NONE
#include "tests/engine-sim/text.c" // NOLINT(bugprone-suspicious-include)

#include "base/prng.h"
#include "tests/lib/sim_help.h"

#define MS 1000000u

/* 1 token of prefill = 0.1 ms; a step = 10 ms and 0.01 ms per context token. */
static const struct sim_model_config plain = {
    .prefill_tokens_per_s = 10000,
    .decode_base_ns = 10 * MS,
    .decode_context_token_ns = 10000,
    .prefill_chunk = 0,
    .running_max = 4,
    .block_tokens = 16,
    .cache_blocks = 100,
};

static void assert_next(struct sim_model *m, uint64_t ns)
{
    uint64_t next = sim_model_next_event_ns(m);
    if (next + 2 < ns || next > ns + 2)
        fail_msg("next event at %llu, not %llu", (unsigned long long)next, (unsigned long long)ns);
    sim_model_advance(m, next);
    sim_model_check(m);
}

static void test_one_request(void **state)
{
    (void)state;
    struct sim_model *m = sim_model_create(&plain);
    struct sim_request r;
    assert_true(sim_model_next_event_ns(m) == SIM_NEVER);
    request_init(&r, 1, 100, 3);
    assert_int_equal(sim_model_submit(m, &r, 5 * MS), 0);
    assert_int_equal(sim_model_running(m), 1);
    assert_next(m, 15 * MS); /* 100 tokens: 10 ms */
    assert_ptr_equal(sim_model_changed(m), &r);
    assert_null(sim_model_changed(m));
    assert_int_equal(r.generated, 1);
    assert_next(m, 15 * MS + 11010000); /* 101 tokens of context */
    assert_next(m, 15 * MS + 11010000 + 11020000);
    assert_int_equal(r.generated, 3);
    assert_int_equal(r.state, SIM_DONE);
    assert_true(sim_model_next_event_ns(m) == SIM_NEVER);
    assert_int_equal(sim_cache_used(sim_model_cache(m)), 0);
    assert_int_equal(sim_cache_named(sim_model_cache(m)), 6); /* 103 tokens: 6 full blocks */
    assert_int_equal(r.created_tokens, 96);
    request_free(&r);
    sim_model_destroy(m);
}

/* The second turn includes the first turn's prompt and answer, and pays only for new tokens. */
static void test_second_turn_is_cached(void **state)
{
    (void)state;
    struct sim_model *m = sim_model_create(&plain);
    struct sim_request a;
    struct sim_request b;
    struct sim_request c;
    request_init(&a, 1, 96, 20);
    request_init(&b, 1, 96, 1);
    request_init(&c, 1, 96, 1);
    for (uint64_t i = 0; i < 20; i++)
        sim_chain_add(&b.chain, sim_token_id(sim_output_token(1, i)));
    assert_int_equal(sim_model_submit(m, &a, 0), 0);
    sim_model_advance(m, SIM_NEVER - 1);
    uint64_t now = 3600ull * 1000 * MS;
    assert_int_equal(sim_model_submit(m, &b, now), 0);
    assert_int_equal(b.cached_tokens, 112);
    assert_next(m, now + 400000); /* 116 - 112 tokens */
    /* The same prompt again: the last token is computed anyway, so the last block is no hit. */
    assert_int_equal(sim_model_submit(m, &c, now + MS), 0);
    assert_int_equal(c.cached_tokens, 80);
    assert_next(m, now + MS + 1600000);
    assert_int_equal(sim_model_counters(m)->prefix_queries, 96 + 116 + 96);
    assert_int_equal(sim_model_counters(m)->prefix_hits, 112 + 80);
    request_free(&a);
    request_free(&b);
    request_free(&c);
    sim_model_destroy(m);
}

static void test_prefill_is_one_queue(void **state)
{
    (void)state;
    struct sim_model *m = sim_model_create(&plain);
    struct sim_request r[3];
    for (uint64_t i = 0; i < 3; i++) {
        request_init(&r[i], i, 100, 1);
        assert_int_equal(sim_model_submit(m, &r[i], 0), 0);
    }
    assert_int_equal(sim_model_running(m), 1);
    assert_int_equal(sim_model_waiting(m), 2);
    assert_next(m, 10 * MS);
    assert_next(m, 20 * MS);
    sim_model_abort(m, &r[2], 25 * MS);
    sim_model_check(m);
    assert_int_equal(r[2].generated, 0);
    /* Half was computed: the 50 tokens left three full blocks behind. */
    assert_int_equal(sim_cache_match(sim_model_cache(m), r[2].chain.blocks, 6), 3);
    assert_true(sim_model_next_event_ns(m) == SIM_NEVER);
    for (int i = 0; i < 3; i++)
        request_free(&r[i]);
    sim_model_destroy(m);
}

/* A step during a prefill carries a chunk of the prefill. */
static void test_prefill_slows_decode(void **state)
{
    (void)state;
    struct sim_model_config config = plain;
    config.prefill_chunk = 200;
    config.decode_context_token_ns = 0;
    struct sim_model *m = sim_model_create(&config);
    struct sim_request a;
    struct sim_request b;
    request_init(&a, 1, 10, 100);
    request_init(&b, 2, 500, 3);
    assert_int_equal(sim_model_submit(m, &a, 0), 0);
    assert_next(m, MS);
    assert_int_equal(sim_model_submit(m, &b, MS), 0); /* until 51 ms */
    assert_next(m, 11 * MS);                          /* the step in progress */
    assert_next(m, 41 * MS);                          /* 10 ms and 200 tokens */
    assert_next(m, 51 * MS);                          /* the prefill ends */
    assert_next(m, 61 * MS);                          /* 10 ms and the remaining 100 tokens */
    assert_int_equal(b.generated, 1); /* a request during a step waits for the next step */
    assert_next(m, 71 * MS);
    assert_int_equal(a.generated, 5);
    assert_int_equal(b.generated, 2);
    sim_model_abort(m, &b, 72 * MS);
    sim_model_abort(m, &a, 72 * MS);
    sim_model_check(m);
    request_free(&a);
    request_free(&b);
    sim_model_destroy(m);
}

/* An adapter is loaded before the first prefill, and replaces the adapter unused for longest. */
static void test_adapters_have_slots(void **state)
{
    (void)state;
    struct sim_model_config config = plain;
    config.adapters_max = 2;
    config.adapter_load_ns = 100 * MS;
    struct sim_model *m = sim_model_create(&config);
    const uint64_t asked[] = {7, 8, 7, 9, 7, 8};
    const unsigned loads[] = {1, 2, 2, 3, 3, 4};
    uint64_t now = 0;
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        struct sim_request r;
        request_init(&r, i + 1, 100, 1);
        r.adapter = asked[i];
        bool held = sim_adapters_has(sim_model_adapters(m), asked[i]);
        assert_int_equal(sim_model_submit(m, &r, now), 0);
        assert_next(m, now + (held ? 10 : 110) * MS);
        now += 1000ull * MS;
        assert_int_equal(r.state, SIM_DONE);
        assert_int_equal(sim_model_counters(m)->adapter_loads, loads[i]);
        request_free(&r);
    }
    sim_model_destroy(m);
}

/* A slot in use is not taken: a request without a slot waits, and lets others go first. */
static void test_an_adapter_waits_for_a_slot(void **state)
{
    (void)state;
    struct sim_model_config config = plain;
    config.adapters_max = 1;
    config.adapter_load_ns = 100 * MS;
    struct sim_model *m = sim_model_create(&config);
    struct sim_request r[3];
    for (uint64_t i = 0; i < 3; i++) {
        request_init(&r[i], i + 1, 100, 20);
        r[i].adapter = i == 2 ? 0 : i + 1;
        assert_int_equal(sim_model_submit(m, &r[i], i), 0);
    }
    const struct sim_request *at = NULL;
    assert_int_equal(sim_model_adapter_waiting(m, &at), 2);
    assert_int_equal(sim_model_adapter_waiting(m, &at), 0);
    sim_model_advance(m, 200 * MS);
    assert_int_equal(r[0].state, SIM_DECODE);
    assert_int_equal(r[1].state, SIM_WAITING);
    assert_int_equal(r[2].state, SIM_DECODE);
    sim_model_abort(m, &r[0], 200 * MS);
    assert_int_equal(r[1].state, SIM_PREFILL);
    sim_model_advance(m, 3600ull * 1000 * MS);
    assert_int_equal(r[1].state, SIM_DONE);
    assert_int_equal(sim_model_counters(m)->adapter_loads, 2);
    for (int i = 0; i < 3; i++)
        request_free(&r[i]);
    sim_model_destroy(m);
}

static void test_limits(void **state)
{
    (void)state;
    struct sim_model_config config = plain;
    config.queued_max = 2;
    config.running_max = 1;
    struct sim_model *m = sim_model_create(&config);
    struct sim_request r[4];
    request_init(&r[0], 1, 10, 2);
    request_init(&r[1], 2, 10, 2);
    request_init(&r[2], 3, 10, 2);
    request_init(&r[3], 4, 1600, 1);
    assert_int_equal(sim_model_submit(m, &r[3], 0), ERR_LIMIT);
    assert_int_equal(sim_model_submit(m, &r[0], 0), 0);
    assert_int_equal(sim_model_submit(m, &r[1], 0), 0);
    assert_int_equal(sim_model_submit(m, &r[2], 0), ERR_FULL);
    assert_next(m, MS);
    assert_int_equal(r[1].state, SIM_WAITING); /* the batch is full */
    sim_model_advance(m, SIM_NEVER - 1);
    assert_int_equal(r[1].state, SIM_DONE);
    assert_int_equal(sim_model_counters(m)->rejected, 1);
    for (int i = 0; i < 4; i++)
        request_free(&r[i]);
    sim_model_destroy(m);
}

/* Evicted blocks come back from the tier, at the tier's pace, and count as cached. */
static void test_tier(void **state)
{
    (void)state;
    struct sim_model_config config = plain;
    config.cache_blocks = 20;
    config.tier_blocks = 60;
    config.tier_tokens_per_s = 100000;
    struct sim_model *m = sim_model_create(&config);
    static const struct {
        uint64_t family, cached, tier, ns;
    } turns[] = {
        {1, 0, 0, 30 * MS},
        {2, 0, 0, 30 * MS},               /* evicts all blocks of 1 but the first */
        {1, 288, 272, 2720000 + 1200000}, /* 272 come back at 0.01 ms each, 12 are computed */
        {1, 288, 0, 1200000},
    };
    uint64_t now = 0;
    for (size_t i = 0; i < ARRAY_LEN(turns); i++) {
        struct sim_request r;
        request_init(&r, turns[i].family, 300, 1);
        assert_int_equal(sim_model_submit(m, &r, now), 0);
        assert_next(m, now += turns[i].ns);
        assert_ptr_equal(sim_model_changed(m), &r);
        assert_int_equal(r.state, SIM_DONE);
        assert_int_equal(r.cached_tokens, turns[i].cached);
        assert_int_equal(r.tier_tokens, turns[i].tier);
        request_free(&r);
    }
    assert_int_equal(sim_model_counters(m)->prefix_hits, 16 + 288);
    assert_int_equal(sim_model_counters(m)->tier_hits, 272);
    sim_model_reset(m);
    sim_model_destroy(m);
}

/* 96 tokens of the prompt are three parts of two blocks each, named by their contents. */
static void parts_init(struct sim_request *r, uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t parts[] = {a, b, c};
    request_init(r, a, 100, 1);
    for (unsigned i = 0; i < 6; i++)
        r->chain.blocks[i] = parts[i / 2] * 10 + i % 2;
}

/* A part is reused at any place, even behind a missing part, and is then partly computed again. */
static void test_parts_are_reused_at_any_place(void **state)
{
    (void)state;
    struct sim_model_config config = plain;
    config.any_place = true;
    config.again = 0.25;
    struct sim_model *m = sim_model_create(&config);
    struct sim_request a, b;
    parts_init(&a, 1, 2, 3);
    parts_init(&b, 9, 3, 1);
    assert_int_equal(sim_model_reusable(m, &b.chain), 0);
    assert_int_equal(sim_model_submit(m, &a, 0), 0);
    sim_model_advance(m, SIM_NEVER - 1);
    assert_int_equal(sim_model_reusable(m, &b.chain), 4);
    assert_true(sim_model_displaced(m, &b.chain, 4, 1e18) < 1e-9); /* nothing needs to be evicted */
    uint64_t now = 3600ull * 1000 * MS;
    assert_int_equal(sim_model_submit(m, &b, now), 0);
    assert_int_equal(b.cached_tokens, 64);
    assert_next(m, now + 5200000); /* 36 tokens, and a quarter of 64 */
    assert_int_equal(sim_model_reusable(m, &b.chain), 6);
    sim_model_advance(m, SIM_NEVER - 1);
    assert_int_equal(sim_cache_named(sim_model_cache(m)), 8);
    request_free(&a);
    request_free(&b);
    sim_model_destroy(m);
}

/* Random traffic on a far too small cache: everything ends, nothing is lost. */
static void test_random_traffic(void **state)
{
    (void)state;
    enum { REQUESTS = 12 };
    struct prng random;
    prng_seed(&random, 7);
    struct sim_model_config config = plain;
    config.cache_blocks = 30;
    config.prefill_chunk = 64;
    struct sim_model *m = sim_model_create(&config);
    struct sim_request r[REQUESTS] = {{.generated = 0}};
    uint64_t now = 0;
    unsigned done = 0;
    uint64_t tokens = 0;
    for (unsigned step = 0; step < 30000; step++) {
        struct sim_request *one = &r[prng_below(&random, REQUESTS)];
        now += prng_below(&random, 8 * MS);
        if (one->state == SIM_NEW) {
            request_init(one, prng_below(&random, 4), 1 + prng_below(&random, 200),
                         1 + (uint32_t)prng_below(&random, 150));
            assert_int_equal(sim_model_submit(m, one, now), 0);
        } else if (prng_below(&random, 20) == 0) {
            sim_model_abort(m, one, now);
        }
        sim_model_advance(m, now);
        sim_model_check(m);
        while (sim_model_changed(m) != NULL)
            ;
        for (int i = 0; i < REQUESTS; i++)
            if (r[i].state == SIM_DONE) {
                done++;
                tokens += r[i].generated;
                request_free(&r[i]);
                r[i] = (struct sim_request){.generated = 0};
            }
    }
    sim_model_advance(m, SIM_NEVER - 1);
    sim_model_check(m);
    for (int i = 0; i < REQUESTS; i++) {
        assert_true(r[i].state == SIM_NEW || r[i].generated == r[i].output_tokens);
        tokens += r[i].generated;
        request_free(&r[i]);
    }
    const struct sim_counters *c = sim_model_counters(m);
    assert_int_equal(c->generation_tokens, tokens);
    assert_true(c->preemptions > 20);
    assert_true(c->aborted > 100);
    assert_true(c->prefix_hits > 1000);
    assert_true(done > 500);
    sim_model_reset(m);
    assert_int_equal(sim_cache_named(sim_model_cache(m)), 0);
    sim_model_destroy(m);
}

static void test_tokens(void **state)
{
    (void)state;
    static const char *const wanted[] = {"Hello", " world",       ",",        " 12",  "\n  ",
                                         " if",   " (",           "x_y",      "());", "  ",
                                         " {",    " internation", "alisation"};
    struct slice text = SLICE("Hello world, 12\n   if (x_y());   { internationalisation");
    size_t i = 0;
    for (; text.len > 0; i++) {
        struct slice token = sim_token_cut(&text);
        assert_slice_equal(token, wanted[i]);
    }
    assert_int_equal(i, sizeof wanted / sizeof wanted[0]);
}

/* Long texts are cut by other code than short texts, but into the same tokens. */
static void test_long_texts_are_cut_alike(void **state)
{
    (void)state;
    static const char *const pieces[] = {" ",
                                         "  ",
                                         "\n",
                                         "\t",
                                         "word",
                                         "a",
                                         "_",
                                         "12",
                                         "7",
                                         "{",
                                         "();",
                                         "\xc3\xa9",
                                         "internationalisation",
                                         "                  ",
                                         "1234567",
                                         "!!!!!!!!!!!!!!!!!!!!"};
    struct prng random;
    prng_seed(&random, 3);
    for (unsigned round = 0; round < 1000; round++) {
        char text[4000];
        size_t len = 0;
        size_t wanted = prng_below(&random, sizeof text - 32);
        while (len < wanted) {
            char byte = (char)prng_below(&random, 256);
            const char *piece = pieces[prng_below(&random, sizeof pieces / sizeof pieces[0])];
            size_t n = round % 4 == 0 ? 1 : strlen(piece);
            memcpy(text + len, round % 4 == 0 ? &byte : piece, n);
            len += n;
        }
        struct sim_chain fast;
        struct sim_chain slow;
        sim_chain_init(&fast, 16, 0);
        sim_chain_init(&slow, 16, 0);
        sim_chain_add_text(&fast, slice_of(text, len));
        for (struct slice rest = slice_of(text, len); rest.len > 0;)
            sim_chain_add(&slow, sim_token_id(sim_token_cut(&rest)));
        assert_int_equal(fast.tokens, slow.tokens);
        assert_true(fast.hash == slow.hash);
        sim_chain_free(&fast);
        sim_chain_free(&slow);
    }
}

/* Generated words must be cut into exactly the generated tokens. */
static void test_output_text_is_cut_into_the_same_tokens(void **state)
{
    (void)state;
    char text[4096];
    size_t len = 0;
    struct sim_chain generated;
    struct sim_chain read;
    sim_chain_init(&generated, 16, 5);
    sim_chain_init(&read, 16, 5);
    for (uint64_t i = 0; i < 400; i++) {
        struct slice token = sim_output_token(99, i);
        memcpy(text + len, token.at, token.len);
        len += token.len;
        sim_chain_add(&generated, sim_token_id(token));
    }
    sim_chain_add_text(&read, slice_of(text, len));
    assert_int_equal(read.tokens, 400);
    assert_int_equal(sim_text_tokens(slice_of(text, len)), 400);
    assert_true(read.hash == generated.hash && read.block_count == 25);
    sim_chain_free(&generated);
    sim_chain_init(&generated, 16, 6);
    sim_chain_add_text(&generated, slice_of(text, len));
    assert_true(read.blocks[0] != generated.blocks[0]); /* another salt */
    sim_chain_free(&generated);
    sim_chain_free(&read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_request),
        cmocka_unit_test(test_second_turn_is_cached),
        cmocka_unit_test(test_prefill_is_one_queue),
        cmocka_unit_test(test_prefill_slows_decode),
        cmocka_unit_test(test_adapters_have_slots),
        cmocka_unit_test(test_an_adapter_waits_for_a_slot),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_tier),
        cmocka_unit_test(test_parts_are_reused_at_any_place),
        cmocka_unit_test(test_random_traffic),
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_long_texts_are_cut_alike),
        cmocka_unit_test(test_output_text_is_cut_into_the_same_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
