/* From an engine's cache to what is believed of it: the engine simulator publishes what its cache
 * stores and removes, in the form of a release; that is read, and kept in a tree. The cache is the
 * truth. */
#include "tests/lib/test.h"

#include <stdio.h>

#include "base/prng.h"
#include "tests/engine-sim/kv_events.h"
#include "tests/lib/kv_believed.h"

enum { BLOCK = 4, PROMPT = 12, AT_ONCE = 4, STEPS = 2000, CACHE_BLOCKS = 60 };

struct played {
    struct prng prng;
    struct believed believed;
    struct sim_kv_events *events;
    struct sim_model *model;
    uint64_t number; /* of the next message */
    unsigned losses; /* of messages, in % */
};

static void publish(struct played *p)
{
    struct buf payload = {0};
    if (sim_kv_events_take(p->events, 0.5, &payload)) {
        if (prng_below(&p->prng, 100) >= p->losses)
            kv_feed_live(p->believed.feed, p->number, buf_slice(&payload), 0);
        p->number++;
    }
    buf_free(&payload);
}

/* --- prompts --------------------------------------------------------------------------------- */

/* Each block is one of two or three behind what is in front of it, so that many begin alike. */
static void prompt_draw(struct prng *prng, struct sim_chain *c)
{
    uint64_t blocks = 1 + prng_below(prng, PROMPT);
    sim_chain_init(c, BLOCK, 0);
    c->keeps_ids = true;
    for (uint64_t i = 0; i < blocks * BLOCK; i++)
        sim_chain_add(c, i % BLOCK == 0 ? 100000 * (uint32_t)prng_below(prng, i < 2 * BLOCK ? 2 : 3)
                                        : (uint32_t)i);
}

/* --- a play ---------------------------------------------------------------------------------- */

struct outcome {
    unsigned asked, exact;
};

static struct outcome ask(struct played *p)
{
    struct sim_chain prompt;
    prompt_draw(&p->prng, &prompt);
    struct believed_chains c = believed_chains(&p->believed, &prompt);
    struct kv_held h = believed_held(&p->believed, &c);
    size_t there = sim_cache_match(sim_model_cache(p->model), prompt.blocks, prompt.block_count);
    assert_true(h.surely <= there);
    assert_true(h.perhaps >= there);
    sim_chain_free(&prompt);
    return (struct outcome){1, h.surely == there && h.perhaps == there};
}

static void submit(struct played *p, struct sim_request *r, uint64_t now_ns)
{
    *r = (struct sim_request){.output_seed = prng_next(&p->prng) % 3,
                              .output_tokens = 1 + (uint32_t)prng_below(&p->prng, 6)};
    prompt_draw(&p->prng, &r->chain);
    assert_int_equal(sim_model_submit(p->model, r, now_ns), 0);
}

/* The answer has ended, and tells how much of its prompt was cached: all was held until now. */
static void tell(struct played *p, const struct sim_request *r)
{
    struct believed_chains c = believed_chains(&p->believed, &r->chain);
    uint32_t found = (uint32_t)(r->cached_tokens / BLOCK);
    bool known = found == 0 || kv_tree_found(p->believed.tree, c.at[found - 1], found);
    assert_true(known || p->losses > 0);
}

static struct outcome play(uint64_t seed, const char *form, bool bytes, bool copies,
                           unsigned losses)
{
    const struct sim_model_config config = {.prefill_tokens_per_s = 1e6,
                                            .decode_base_ns = 1e6,
                                            .running_max = AT_ONCE,
                                            .block_tokens = BLOCK,
                                            .cache_blocks = CACHE_BLOCKS};
    struct sim_request requests[AT_ONCE] = {0};
    struct outcome o = {0};
    struct played p = {.losses = losses};
    prng_seed(&p.prng, seed);
    believed_open(&p.believed, seed, NULL, NULL);
    kv_tree_clear(p.believed.tree); /* the engine begins with it */
    p.events = sim_kv_events_create(form, 0, bytes);
    assert_non_null(p.events);
    p.model = sim_model_create(&config);
    sim_model_watch(p.model, sim_kv_events_watch(p.events), copies);
    for (uint64_t step = 0, now_ns = 0; step < STEPS; step++, now_ns += 500000) {
        struct sim_request *r = &requests[prng_below(&p.prng, AT_ONCE)];
        sim_model_advance(p.model, now_ns);
        for (struct sim_request *c; (c = sim_model_changed(p.model)) != NULL;) {
            if (c->state == SIM_DONE)
                tell(&p, c);
        }
        if (r->state == SIM_DONE || r->chain.block_tokens == 0) {
            sim_chain_free(&r->chain);
            free(r->blocks);
            submit(&p, r, now_ns);
        }
        if (step % 500 == 499)
            sim_model_forget(p.model, false);
        publish(&p);
        /* A lost message is noticed with the next one: until then the answer may be wrong. */
        if (p.number == kv_feed_next(p.believed.feed)) {
            struct outcome one = ask(&p);
            o.asked += one.asked;
            o.exact += one.exact;
        }
        if (step % 100 == 0)
            kv_tree_check(p.believed.tree);
    }
    for (unsigned i = 0; i < AT_ONCE; i++) {
        if (requests[i].chain.block_tokens > 0)
            sim_model_abort(p.model, &requests[i], UINT64_MAX / 2);
        sim_chain_free(&requests[i].chain);
        free(requests[i].blocks);
    }
    sim_model_destroy(p.model);
    sim_kv_events_destroy(p.events);
    believed_close(&p.believed);
    return o;
}

static const char *const forms[] = {"vllm-0.9",   "vllm-0.10",     "vllm-0.14",
                                    "vllm-0.17",  "vllm-0.20",     "vllm-0.22",
                                    "sglang-0.5", "sglang-0.5.15", "vllm-0.24"};
enum { FORMS = sizeof forms / sizeof *forms };

static void test_what_is_believed_is_there(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FORMS; i++) {
        struct outcome o = play(i + 1, forms[i], i % 2 == 1, false, 0);
        assert_int_equal(o.asked, STEPS);
        assert_int_equal(o.exact, STEPS);
    }
}

/* What was stored twice may be one copy that was announced again. */
static void test_second_copies(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FORMS; i += 2) {
        struct outcome o = play(i + 1, forms[i], true, true, 0);
        assert_int_equal(o.asked, STEPS);
        assert_true(o.exact > STEPS * 0.85);
    }
}

static void test_lost_messages(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FORMS; i += 2) {
        struct outcome o = play(i + 1, forms[i], false, i % 4 == 0, 1);
        assert_true(o.asked > STEPS * 0.9 && o.exact > STEPS / 5);
    }
}

static void test_no_such_form(void **state)
{
    (void)state;
    assert_null(sim_kv_events_create("vllm-9", 0, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_believed_is_there),
        cmocka_unit_test(test_second_copies),
        cmocka_unit_test(test_lost_messages),
        cmocka_unit_test(test_no_such_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
