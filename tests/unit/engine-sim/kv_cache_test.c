/* From an engine's cache to the beliefs about it. The engine simulator publishes the cache's stores
 * and removals in the form of a release; a reader keeps them in a tree. The cache is the truth. */
#include "tests/lib/test.h"

#include <stdio.h>

#include "base/prng.h"
#include "node/kv/batch.h"
#include "tests/engine-sim/kv_events.h"
#include "tests/lib/kv_believed.h"

enum { BLOCK = 4, PROMPT = 12, AT_ONCE = 4, STEPS = 2000, CACHE_BLOCKS = 60 };

struct played {
    struct prng prng;
    struct believed believed;
    const char *form;
    unsigned spaces; /* prompts have a salt (2), or a salt or an adapter or both (4) */
    struct sim_kv_events *events;
    struct sim_model *model;
    uint64_t number; /* the next message's number */
    unsigned losses; /* share of lost messages, in % */
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

/* After each block come two or three possible blocks, so many prompts begin alike. */
static void prompt_draw(struct played *p, struct sim_chain *c)
{
    struct prng *prng = &p->prng;
    uint64_t blocks = 1 + prng_below(prng, PROMPT);
    uint64_t space = p->spaces > 0 ? prng_below(prng, p->spaces) : 0;
    sim_chain_init(c, BLOCK, space);
    c->keeps_ids = true;
    if (space % 2 == 1)
        strcpy(c->salt, "salt");
    if (space >= 2)
        strcpy(c->adapter, "adapter");
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
    prompt_draw(p, &prompt);
    struct believed_chains c = believed_chains(&p->believed, p->form, &prompt);
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
    prompt_draw(p, &r->chain);
    assert_int_equal(sim_model_submit(p->model, r, now_ns), 0);
}

/* The answer has ended, and reports the cached tokens. All blocks were in use until now. */
static void tell(struct played *p, const struct sim_request *r)
{
    struct believed_chains c = believed_chains(&p->believed, p->form, &r->chain);
    uint32_t found = (uint32_t)(r->cached_tokens / BLOCK);
    struct kv_tree_place place = {.depth = 0};
    if (found > 0)
        place = kv_tree_find(p->believed.tree, c.at[found - 1]);
    bool known = kv_tree_found(p->believed.tree, place, found, 0);
    assert_true(known || p->losses > 0);
}

static struct outcome play_with(struct played *p, uint64_t seed, bool bytes, bool copies)
{
    const struct sim_model_config config = {.prefill_tokens_per_s = 1e6,
                                            .decode_base_ns = 1e6,
                                            .running_max = AT_ONCE,
                                            .block_tokens = BLOCK,
                                            .cache_blocks = CACHE_BLOCKS};
    struct sim_request requests[AT_ONCE] = {0};
    struct outcome o = {0};
    prng_seed(&p->prng, seed);
    believed_open(&p->believed, seed, NULL, NULL);
    kv_tree_clear(p->believed.tree); /* the engine begins with an empty cache */
    p->events = sim_kv_events_create(p->form, 0, bytes);
    assert_non_null(p->events);
    p->model = sim_model_create(&config);
    sim_model_watch(p->model, sim_kv_events_watch(p->events), copies);
    for (uint64_t step = 0, now_ns = 0; step < STEPS; step++, now_ns += 500000) {
        struct sim_request *r = &requests[prng_below(&p->prng, AT_ONCE)];
        sim_model_advance(p->model, now_ns);
        for (struct sim_request *c; (c = sim_model_changed(p->model)) != NULL;) {
            if (c->state == SIM_DONE)
                tell(p, c);
        }
        if (r->state == SIM_DONE || r->chain.block_tokens == 0) {
            sim_chain_free(&r->chain);
            free(r->blocks);
            submit(p, r, now_ns);
        }
        if (step % 500 == 499)
            sim_model_forget(p->model, false);
        publish(p);
        /* The next message shows a lost message: until then the answer may be wrong. */
        if (p->number == kv_feed_next(p->believed.feed)) {
            struct outcome one = ask(p);
            o.asked += one.asked;
            o.exact += one.exact;
        }
        if (step % 100 == 0)
            kv_tree_check(p->believed.tree);
    }
    for (unsigned i = 0; i < AT_ONCE; i++) {
        if (requests[i].chain.block_tokens > 0)
            sim_model_abort(p->model, &requests[i], UINT64_MAX / 2);
        sim_chain_free(&requests[i].chain);
        free(requests[i].blocks);
    }
    sim_model_destroy(p->model);
    sim_kv_events_destroy(p->events);
    believed_close(&p->believed);
    return o;
}

static struct outcome play(uint64_t seed, const char *form, bool bytes, bool copies,
                           unsigned losses)
{
    struct played p = {.form = form, .losses = losses};
    return play_with(&p, seed, bytes, copies);
}

static const char *const forms[] = {"vllm-0.9",   "vllm-0.10",     "vllm-0.14",
                                    "vllm-0.17",  "vllm-0.20",     "vllm-0.22",
                                    "sglang-0.5", "sglang-0.5.15", "vllm-0.24"};
enum { FORMS = sizeof forms / sizeof *forms };

static void test_believed_blocks_are_cached(void **state)
{
    (void)state;
    for (unsigned i = 0; i < FORMS; i++) {
        struct outcome o = play(i + 1, forms[i], i % 2 == 1, false, 0);
        assert_int_equal(o.asked, STEPS);
        assert_int_equal(o.exact, STEPS);
    }
}

/* A block stored twice may be a single copy, announced again. */
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

/* Equal tokens behind another salt or adapter are other blocks. vLLM publishes an adapter's name
 * from 0.14 on, and a salt from 0.17 on; SGLang publishes no adapter. */
static void test_spaces(void **state)
{
    static const struct {
        const char *form;
        unsigned spaces;
    } with[] = {{"vllm-0.17", 4}, {"vllm-0.22", 4}, {"vllm-0.24", 4}, {"sglang-0.5.15", 2}};
    (void)state;
    for (unsigned i = 0; i < sizeof with / sizeof *with; i++) {
        struct played p = {.form = with[i].form, .spaces = with[i].spaces};
        struct outcome o = play_with(&p, i + 1, false, false);
        assert_int_equal(o.asked, STEPS);
        assert_int_equal(o.exact, STEPS);
    }
}

struct digests {
    uint64_t space, at[2];
};

static void on_digests(void *context, const struct kv_event *e)
{
    struct digests *d = context;
    assert_int_equal(e->count, 2);
    *d = (struct digests){e->space, {e->digests[0], e->digests[1]}};
}

/* Digests of two equal blocks with the given salt and adapter, as vLLM publishes them. */
static struct digests told(const char *salt, const char *adapter)
{
    struct sim_chain c;
    struct digests d;
    struct kv_batch batch;
    struct believed b;
    struct buf payload = {.at = NULL};
    struct sim_kv_events *k = sim_kv_events_create("vllm-0.24", 0, false);
    sim_chain_init(&c, BLOCK, 0);
    c.keeps_ids = true;
    (void)snprintf(c.salt, sizeof c.salt, "%s", salt);
    (void)snprintf(c.adapter, sizeof c.adapter, "%s", adapter);
    for (unsigned i = 0; i < 2 * BLOCK; i++)
        sim_chain_add(&c, 7);
    sim_kv_events_watch(k)->stored(k, &c, 0, 2);
    assert_true(sim_kv_events_take(k, 1, &payload));
    believed_open(&b, 1, NULL, NULL);
    assert_int_equal(kv_batch_decode(b.decoder, buf_slice(&payload), on_digests, &d, &batch), 0);
    believed_close(&b);
    buf_free(&payload);
    sim_kv_events_destroy(k);
    sim_chain_free(&c);
    return d;
}

/* A salt is in the first block alone; an adapter is in each block, together with the adapter's
 * name. */
static void test_salts_and_adapters_change_block_digests(void **state)
{
    (void)state;
    struct digests none = told("", ""), salt = told("s", ""), adapter = told("", "a");
    assert_int_equal(none.at[0], none.at[1]);
    assert_int_not_equal(salt.at[0], none.at[0]);
    assert_int_equal(salt.at[1], none.at[1]);
    assert_int_equal(salt.space, none.space);
    assert_int_not_equal(adapter.at[0], none.at[0]);
    assert_int_equal(adapter.at[1], adapter.at[0]);
    assert_int_not_equal(adapter.space, none.space);
    assert_int_not_equal(told("s", "a").at[0], told("t", "a").at[0]);
    assert_int_not_equal(told("s", "a").at[1], told("s", "b").at[1]);
}

static void test_unknown_event_formats_are_refused(void **state)
{
    (void)state;
    assert_null(sim_kv_events_create("vllm-9", 0, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_believed_blocks_are_cached),
        cmocka_unit_test(test_second_copies),
        cmocka_unit_test(test_lost_messages),
        cmocka_unit_test(test_spaces),
        cmocka_unit_test(test_salts_and_adapters_change_block_digests),
        cmocka_unit_test(test_unknown_event_formats_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
