#include "node/replica/answered.h"
#include "node/replica/model.h"

#include <stdio.h>

#include "base/check.h"
#include "base/err.h"
#include "node/route/router.h"
#include "tests/lib/alone.h"
#include "tests/lib/test.h"

static struct node_answered *make(void)
{
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 7);
    struct node_answered *a = NULL;
    assert_int_equal(node_answered_create(&a, &secret), ERR_OK);
    return a;
}

static void rows_sum_up_per_replica_and_model(void **state)
{
    (void)state;
    struct node_answered *a = make();
    unsigned at = 0;
    struct node_answered_row row;
    assert_false(node_answered_next(a, &at, &row));
    node_answered_add(a, 3, SLICE("m"), 100, 0);
    node_answered_add(a, 3, SLICE("m"), 200, 150);
    node_answered_add(a, 4, SLICE("m"), 10, 5);
    node_answered_add(a, 3, SLICE("m2"), 20, 20);
    node_answered_add(a, 3, SLICE(""), 7, 1);
    static const struct {
        unsigned replica;
        const char *model;
        uint64_t prompt, cached;
    } wanted[] = {{3, "m", 300, 150}, {4, "m", 10, 5}, {3, "m2", 20, 20}, {3, "", 7, 1}};
    at = 0;
    for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_true(node_answered_next(a, &at, &row));
        assert_int_equal(row.replica, wanted[i].replica);
        assert_slice_equal(row.model, wanted[i].model);
        assert_int_equal(row.prompt_tokens, wanted[i].prompt);
        assert_int_equal(row.cached_tokens, wanted[i].cached);
    }
    assert_false(node_answered_next(a, &at, &row));
    node_answered_destroy(a);
}

/* Whatever an engine reports, the share is at most 1. */
static void cached_tokens_never_exceed_prompt_tokens(void **state)
{
    (void)state;
    struct node_answered *a = make();
    node_answered_add(a, 0, SLICE("m"), 10, 448);
    unsigned at = 0;
    struct node_answered_row row;
    assert_true(node_answered_next(a, &at, &row));
    assert_int_equal(row.prompt_tokens, 10);
    assert_int_equal(row.cached_tokens, 10);
    node_answered_destroy(a);
}

static void models_beyond_the_limit_share_a_nameless_row(void **state)
{
    (void)state;
    enum { REPLICAS = 1024, MODELS = 6 };
    _Static_assert(REPLICAS * MODELS > NODE_ANSWERED_ROWS_MAX, "more than fit");
    struct node_answered *a = make();
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < REPLICAS * MODELS; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "model-%u", i / REPLICAS);
            node_answered_add(a, i % REPLICAS, slice_of_cstr(name), 2, 1);
        }
    }
    unsigned named = 0, nameless = 0, at = 0;
    uint64_t prompt = 0, cached = 0;
    struct node_answered_row row;
    while (node_answered_next(a, &at, &row)) {
        named += row.model.len > 0;
        nameless += row.model.len == 0;
        assert_int_equal(row.prompt_tokens, row.model.len > 0 ? 4 : 2 * 4);
        prompt += row.prompt_tokens;
        cached += row.cached_tokens;
    }
    assert_int_equal(named, NODE_ANSWERED_ROWS_MAX);
    assert_int_equal(nameless, REPLICAS);
    assert_int_equal(prompt, 2 * 2 * REPLICAS * MODELS);
    assert_int_equal(cached, 2 * REPLICAS * MODELS);
    node_answered_destroy(a);
}

enum { START_MS = 1000000 };

static void write_metrics(const struct node_router *r, struct buf *out)
{
    struct prometheus p = prometheus_of(out, "grapevine_");
    node_router_metrics(r, START_MS, &p);
    assert_int_equal(prometheus_finish(&p), ERR_OK);
}

static struct node_router *make_router(void)
{
    struct node_config config = alone_config();
    config.router.policy = "round_robin";
    struct node_router *r = alone_router(&config);
    assert_int_equal(node_router_name(r, SLICE("host-0:8000"), NODE_ENGINE_VLLM), 0);
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS);
    return r;
}

/* The share served from cache: cached tokens over prompt tokens, whatever each answer reports. */
static void answered_tokens_have_one_denominator(void **state)
{
    (void)state;
    struct node_router *r = make_router();
    struct slice models[] = {SLICE("llama"), SLICE("a\"b")};
    assert_int_equal(node_router_models(r, 0, models, 2), ERR_OK);
    static const struct {
        const char *model;
        struct node_usage usage;
        enum node_outcome outcome;
        bool reached;
    } answers[] = {
        {"llama", {5000, -1, 5, {0}}, NODE_OUTCOME_OK, true}, /* no cached tokens so far */
        {"llama", {1000, 0, 5, {0}}, NODE_OUTCOME_OK, true},
        {"llama", {1100, 1024, 5, {0}}, NODE_OUTCOME_OK, true},
        {"llama", {1200, 1024, -1, {0}}, NODE_OUTCOME_CLIENT_GONE, true},
        {"llama", {700, -1, 5, {0}}, NODE_OUTCOME_OK, true},  /* reported some before; now none */
        {"llama", {700, -1, -1, {0}}, NODE_OUTCOME_OK, true}, /* not a generation */
        {"llama", {-1, -1, 5, {0}}, NODE_OUTCOME_OK, true},   /* a stream without usage */
        {"llama", {0}, NODE_OUTCOME_ENGINE_BUSY, false},
        {"a\"b", {10, 448, 5, {0}}, NODE_OUTCOME_OK, true}, /* more than the prompt: all of it */
        {"", {40, 16, 5, {0}}, NODE_OUTCOME_OK, true},
    };
    for (unsigned i = 0; i < ARRAY_LEN(answers); i++) {
        struct node_request request = {
            .model = slice_of_cstr(answers[i].model), .body_bytes = 4000, .replica_wanted = -1};
        struct node_decision d;
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
        node_router_finish(r, d.booking, answers[i].outcome,
                           answers[i].reached ? &answers[i].usage : NULL, START_MS + 10);
    }
    struct buf text = {0};
    write_metrics(r, &text);
    assert_int_equal(buf_append_char(&text, '\0'), ERR_OK);
    const char *at = strstr(text.at, "# HELP grapevine_answered_prompt_tokens_total");
    assert_non_null(at);
    struct slice rest = slice_of_cstr(at);
    static const char *const wanted[] = {
        "# TYPE grapevine_answered_prompt_tokens_total counter",
        "grapevine_answered_prompt_tokens_total{replica=\"host-0:8000\",model=\"llama\"} 4000",
        "grapevine_answered_prompt_tokens_total{replica=\"host-0:8000\",model=\"a\\\"b\"} 10",
        "grapevine_answered_prompt_tokens_total{replica=\"host-0:8000\"} 40",
        NULL,
        "# TYPE grapevine_answered_cached_tokens_total counter",
        "grapevine_answered_cached_tokens_total{replica=\"host-0:8000\",model=\"llama\"} 2048",
        "grapevine_answered_cached_tokens_total{replica=\"host-0:8000\",model=\"a\\\"b\"} 10",
        "grapevine_answered_cached_tokens_total{replica=\"host-0:8000\"} 16",
    };
    (void)slice_cut(&rest, '\n');
    for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
        struct slice line = slice_cut(&rest, '\n');
        if (wanted[i] != NULL)
            assert_slice_equal(line, wanted[i]);
    }
    buf_free(&text);
    /* A removed replica shows in no metric, and the counts show again on return. */
    for (unsigned back = 0; back < 2; back++) {
        assert_int_equal(node_router_replica_wish(r, SLICE("host-0:8000"),
                                                  back ? NODE_REPLICA_ADD : NODE_REPLICA_REMOVE,
                                                  NODE_ENGINE_VLLM),
                         0);
        write_metrics(r, &text);
        assert_int_equal(buf_append_char(&text, '\0'), ERR_OK);
        assert_int_equal(strstr(text.at, "tokens_total{replica=\"host-0:8000\"") != NULL, back);
        buf_free(&text);
    }
    alone_destroy(r);
}

static void answer(struct node_router *r, const char *model)
{
    struct node_request request = {
        .model = slice_of_cstr(model), .body_bytes = 4000, .replica_wanted = -1};
    struct node_usage usage = {1000, 600, 5, {0}};
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    node_router_model_served(r, d.replica, request.model);
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, START_MS + 10);
}

/* An engine that does not list models to the router may accept any name, and rows would stay for
 * good. */
static void invented_model_names_get_no_rows(void **state)
{
    (void)state;
    struct node_router *r = make_router();
    for (unsigned turn = 0; turn < 2; turn++) {
        for (unsigned i = 0; i < NODE_ANSWERED_ROWS_MAX + 4; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "made-up-%u", i);
            node_router_model_served(r, 0, slice_of_cstr(name));
            answer(r, name);
        }
    }
    node_models_learn(node_router_model_table(r), 0, SLICE("real"), true); /* listed to a client */
    answer(r, "real");
    node_router_replica_engine_set(r, 0, NODE_ENGINE_SGLANG);
    node_models_learn(node_router_model_table(r), 0, SLICE("of SGLang"), true);
    answer(r, "of SGLang");
    struct slice told = SLICE("told");
    assert_int_equal(node_router_models(r, 0, &told, 1), ERR_OK); /* listed to the router */
    answer(r, "told");
    struct buf text = {0};
    write_metrics(r, &text);
    assert_int_equal(buf_append_char(&text, '\0'), ERR_OK);
    assert_null(strstr(text.at, "made-up"));
    static const char *const wanted[] = {"model=\"real\"} 1000\n", "model=\"of SGLang\"} 1000\n",
                                         "model=\"told\"} 1000\n",
                                         "prompt_tokens_total{replica=\"host-0:8000\"} 8200000\n"};
    for (unsigned i = 0; i < ARRAY_LEN(wanted); i++)
        assert_non_null(strstr(text.at, wanted[i]));
    buf_free(&text);
    node_router_check(r);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_sum_up_per_replica_and_model),
        cmocka_unit_test(cached_tokens_never_exceed_prompt_tokens),
        cmocka_unit_test(answered_tokens_have_one_denominator),
        cmocka_unit_test(invented_model_names_get_no_rows),
        cmocka_unit_test(models_beyond_the_limit_share_a_nameless_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
