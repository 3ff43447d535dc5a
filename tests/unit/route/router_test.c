#include "node/route/router.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checkpoint.h"
#include "base/err.h"
#include "base/prng.h"
#include "node/replica/model.h"
#include "tests/lib/alone.h"
#include "tests/lib/test.h"

enum { START_MS = 1000000 };

/* As a daemon has it, but for what the tests reckon with. */
static struct node_config config_of(const char *policy)
{
    struct node_config config = alone_config();
    config.router.policy = policy;
    config.state.index_bytes = 4 << 20;  /* quick to make and to check */
    config.router.cache_tokens = 100000; /* filled by a few prompts */
    return config;
}

/* `up` replicas, probed. */
static struct node_router *make(const char *policy, unsigned up)
{
    struct node_config config = config_of(policy);
    struct node_router *r = alone_router(&config);
    for (unsigned k = 0; k < up; k++) {
        char name[32];
        int len = snprintf(name, sizeof name, "host-%u:8000", k);
        assert_int_equal(node_router_replica_add(r, slice_of(name, (size_t)len), NODE_ENGINE_VLLM),
                         k);
        node_router_probed(r, k, true, false, START_MS);
    }
    return r;
}

/* A prompt of so many tokens; equal seeds share all of their common length. */
static struct chain *prompt(uint64_t seed, unsigned tokens)
{
    static struct chain chain;
    chain = (struct chain){.bytes = tokens * 4ull};
    for (unsigned i = 0; i < CHECKPOINT_MAX; i++) {
        uint32_t blocks = checkpoint_blocks(i);
        if (blocks * 256ull > chain.bytes)
            break;
        chain.points[chain.length++] = (struct chain_point){
            .id = hash_mix(seed * 1000003 + i), .blocks = blocks, .code = checkpoint_code(i)};
    }
    return &chain;
}

static struct node_request request_of(const struct chain *chain)
{
    return (struct node_request){
        .chain = chain, .body_bytes = chain ? chain->bytes : 4000, .replica_wanted = -1};
}

static struct node_decision choose(struct node_router *r, const struct chain *chain,
                                   uint64_t now_ms)
{
    struct node_request request = request_of(chain);
    struct node_decision d;
    assert_int_equal(node_router_choose(r, &request, NULL, now_ms, &d), ERR_OK);
    return d;
}

static const struct node_usage no_usage = {-1, -1, -1};

static void done(struct node_router *r, struct node_decision d, uint64_t now_ms)
{
    node_router_first_byte(r, d.booking, now_ms);
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, &no_usage, now_ms);
}

static void done_with(struct node_router *r, struct node_decision d, const struct node_usage *usage,
                      uint64_t now_ms)
{
    node_router_first_byte(r, d.booking, now_ms);
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, usage, now_ms);
}

static json_t *explain(struct node_router *r, const struct node_request *request, uint64_t now_ms)
{
    struct buf text = {0};
    assert_int_equal(node_router_explain(r, request, now_ms, &text), ERR_OK);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    assert_non_null(root);
    buf_free(&text);
    return root;
}

static double explained(const json_t *root, unsigned candidate, const char *key)
{
    const json_t *row = json_array_get(json_object_get(root, "replicas"), candidate);
    assert_non_null(row);
    return json_number_value(json_object_get(row, key));
}

static json_t *replicas_json(const struct node_router *r, uint64_t now_ms)
{
    struct buf text = {0};
    assert_int_equal(node_router_replicas_json(r, now_ms, &text), ERR_OK);
    json_t *root = json_loadb(text.at, text.len, 0, NULL);
    assert_non_null(root);
    buf_free(&text);
    return root;
}

static double believed(const json_t *root, unsigned replica, const char *group, const char *key)
{
    const json_t *object = json_object_get(json_array_get(root, replica), group);
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static int write_metrics(const struct node_router *r, struct buf *out)
{
    struct prometheus p = prometheus_of(out, "grapevine_");
    node_router_metrics(r, START_MS, &p);
    return prometheus_finish(&p);
}

/* The sum of a metric's series. */
static double metric(const struct node_router *r, const char *name)
{
    struct buf text = {0};
    assert_int_equal(write_metrics(r, &text), ERR_OK);
    struct slice rest = buf_slice(&text);
    double sum = 0;
    bool found = false;
    while (rest.len > 0) {
        struct slice line = slice_cut(&rest, '\n');
        if (!slice_starts_with(line, slice_of_cstr(name)) ||
            (line.at[strlen(name)] != ' ' && line.at[strlen(name)] != '{'))
            continue;
        char number[64];
        while (memchr(line.at, ' ', line.len))
            (void)slice_cut(&line, ' ');
        assert_true(slice_to_cstr(line, number, sizeof number));
        sum += strtod(number, NULL);
        found = true;
    }
    assert_true(found);
    buf_free(&text);
    return sum;
}

static void assert_near(double actual, double expected, double share)
{
    if (fabs(actual - expected) > share * fabs(expected) + 1e-9)
        fail_msg("%g is not near %g", actual, expected);
}

/* --- replicas ------------------------------------------------------------------------------- */

static void replicas_have_unique_names(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    assert_int_equal(node_router_replica_add(r, SLICE("host-1:8000"), NODE_ENGINE_VLLM),
                     ERR_EXISTS);
    assert_int_equal(node_router_replica_add(r, SLICE(""), NODE_ENGINE_VLLM), ERR_RANGE);
    char text[NODE_NAME_MAX + 1];
    memset(text, 'n', sizeof text);
    assert_int_equal(node_router_replica_add(r, slice_of(text, sizeof text), NODE_ENGINE_VLLM),
                     ERR_RANGE);
    assert_int_equal(node_router_replica_add(r, slice_of(text, sizeof text - 1), NODE_ENGINE_AUTO),
                     2);
    for (unsigned i = 3; i < NODE_REPLICAS_MAX; i++) {
        int len = snprintf(text, sizeof text, "more-%u", i);
        assert_int_equal(node_router_replica_add(r, slice_of(text, (size_t)len), NODE_ENGINE_AUTO),
                         i);
    }
    assert_int_equal(node_router_replica_add(r, SLICE("one too many"), NODE_ENGINE_AUTO), ERR_FULL);
    assert_slice_equal(node_router_replica_name(r, 1), "host-1:8000");
    assert_int_equal(node_router_replica_count(r), NODE_REPLICAS_MAX);
    node_router_replica_engine_set(r, 2, NODE_ENGINE_SGLANG);
    assert_int_equal(node_router_replica_engine(r, 2), NODE_ENGINE_SGLANG);
    alone_destroy(r);
}

static void unprobed_replicas_serve_only_when_nothing_better_is_there(void **state)
{
    (void)state;
    struct node_router *r = make("random", 0);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    assert_false(node_router_ready(r));
    assert_int_equal(node_router_replica_add(r, SLICE("a"), NODE_ENGINE_AUTO), 0);
    assert_int_equal(node_router_replica_add(r, SLICE("b"), NODE_ENGINE_AUTO), 1);
    assert_false(node_router_ready(r)); /* nobody has found them up */
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);
    node_router_probed(r, 1, true, false, START_MS);
    assert_true(node_router_ready(r));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);
        assert_int_equal(d.replica, 1);
    }
    uint64_t excluded[NODE_REPLICAS_MAX / 64] = {1u << 1};
    assert_int_equal(node_router_choose(r, &request, excluded, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 0);
    alone_destroy(r);
}

static void requests_go_where_their_model_is(void **state)
{
    (void)state;
    struct node_router *r = make("random", 3);
    struct slice one[] = {SLICE("llama"), SLICE("llama-lora")}, two[] = {SLICE("qwen")};
    assert_int_equal(node_router_models(r, 0, one, 2), ERR_OK);
    assert_int_equal(node_router_models(r, 1, two, 1), ERR_OK);
    assert_int_equal(node_router_models(r, 2, two, 1), ERR_OK);
    assert_true(node_router_model_known(r, SLICE("llama-lora")));
    assert_false(node_router_model_known(r, SLICE("nobody knows")));
    struct node_request request = request_of(NULL);
    struct node_decision d;
    unsigned seen[3] = {0};
    for (int i = 0; i < 100; i++) {
        request.model = SLICE("qwen");
        assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);
        seen[d.replica]++;
        request.model = SLICE("llama-lora");
        assert_int_equal(node_router_choose_by_load(r, &request, NULL, START_MS, &d), ERR_OK);
        assert_int_equal(d.replica, 0);
    }
    assert_true(seen[0] == 0 && seen[1] > 20 && seen[2] > 20);
    request.model = SLICE("nobody knows");
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    request.model = SLICE("llama");
    node_router_probed(r, 0, false, true, START_MS);
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    node_router_check(r);
    alone_destroy(r);
}

static void a_wanted_replica_is_the_only_one(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    request.replica_wanted = 2;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);
        assert_int_equal(d.replica, 2);
    }
    node_router_replica_drain(r, 2, true);
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    request.replica_wanted = 77;
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    alone_destroy(r);
}

static void a_busy_replica_is_avoided_for_a_second(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 2);
    struct node_decision d = choose(r, NULL, START_MS);
    unsigned busy = d.replica;
    node_router_finish(r, d.booking, NODE_OUTCOME_ENGINE_BUSY, NULL, START_MS);
    for (int i = 0; i < 10; i++)
        assert_int_equal(choose(r, NULL, START_MS + 500).replica, 1 - busy);
    uint64_t excluded[NODE_REPLICAS_MAX / 64] = {1u << (1 - busy)};
    struct node_request request = request_of(NULL);
    assert_int_equal(node_router_choose(r, &request, excluded, START_MS + 500, &d), ERR_OK);
    assert_int_equal(d.replica, busy);
    unsigned seen = 0;
    for (int i = 0; i < 10; i++)
        seen += choose(r, NULL, START_MS + 1500).replica == busy;
    assert_int_equal(seen, 5);
    alone_destroy(r);
}

/* A server that drains answers its health check and fails each request at once: its queue is always
 * empty, which must not attract everything. */
static void a_replica_that_fails_at_once_attracts_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    uint64_t now = START_MS;
    unsigned failed = 0;
    for (unsigned i = 0; i < 3000; i++, now += 10) {
        if (i % 100 == 0)
            node_router_probed(r, 1, true, false, now);
        struct node_decision d = choose(r, prompt(i, 2000), now);
        if (d.replica == 1) {
            node_router_finish(r, d.booking, NODE_OUTCOME_ENGINE_ERROR, NULL, now);
            failed++;
        } else {
            done(r, d, now);
        }
    }
    assert_true(failed < 10);
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_UP);
    assert_true(node_router_replica_backing_off(r, 1, now));
    /* Once it works, one request shows it, and the others come too. */
    now += 60000;
    unsigned served = 0;
    for (unsigned i = 0; i < 300; i++, now += 10) {
        struct node_decision d = choose(r, prompt(10000 + i, 2000), now);
        served += d.replica == 1;
        done(r, d, now);
    }
    assert_true(served > 50);
    alone_destroy(r);
}

/* Requests that make every engine answer 500, as many as anybody likes to send. */
static void clients_cannot_take_the_fleet_down(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    for (unsigned i = 0; i < 200; i++) {
        struct node_decision d = choose(r, NULL, START_MS + i);
        node_router_finish(r, d.booking, NODE_OUTCOME_ENGINE_ERROR, NULL, START_MS + i);
    }
    assert_true(node_router_ready(r));
    for (unsigned k = 0; k < 3; k++)
        assert_true(node_router_replica_backing_off(r, k, START_MS + 200));
    unsigned seen[3] = {0};
    for (unsigned i = 0; i < 30; i++) /* all back off: all are usable, side by side */
        seen[choose(r, prompt(i, 2000), START_MS + 200).replica]++;
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
    alone_destroy(r);
}

static unsigned seen_of(struct node_router *r, const char *model, uint64_t now_ms, int tries)
{
    struct node_request request = request_of(NULL);
    request.model = slice_of_cstr(model);
    unsigned seen = 0;
    for (int i = 0; i < tries; i++) {
        struct node_decision d;
        assert_int_equal(node_router_choose(r, &request, NULL, now_ms, &d), ERR_OK);
        seen |= 1u << d.replica;
    }
    return seen;
}

/* Engines that want an API key: who serves what is known from clients' requests alone. */
static void a_replica_that_denied_a_model_is_passed_over(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    for (unsigned k = 0; k < 2; k++)
        node_router_probe_answered(r, k, NODE_PROBE_MODELS, 401);
    assert_int_equal(seen_of(r, "m", START_MS, 50), 3);
    node_router_model_denied(r, 0, SLICE("m"), START_MS);
    node_router_model_served(r, 1, SLICE("m"));
    assert_int_equal(seen_of(r, "m", START_MS, 50), 2);
    assert_int_equal(seen_of(r, "other", START_MS, 50), 3);
    assert_true(node_router_model_known(r, SLICE("m")));
    assert_int_equal(seen_of(r, "m", START_MS + NODE_MODELS_DENIED_MS, 50), 3);
    /* Denied by all: one is asked all the same, but not again for the same request. */
    node_router_model_denied(r, 1, SLICE("m"), START_MS);
    node_router_model_denied(r, 0, SLICE("m"), START_MS);
    assert_int_equal(seen_of(r, "m", START_MS, 50), 3);
    struct node_request request = request_of(NULL);
    request.model = SLICE("m");
    request.model_likely = true;
    struct node_decision d;
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    node_router_check(r);
    alone_destroy(r);
}

static void a_refused_list_is_not_known_any_more(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct slice ids[] = {SLICE("a"), SLICE("b")};
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(node_router_models(r, k, &ids[k], 1), ERR_OK);
    node_router_probe_answered(r, 0, NODE_PROBE_METRICS, 403);
    assert_true(node_router_models_told(r, 0));
    assert_int_equal(node_router_probes_refused(r, 0), 1u << NODE_PROBE_METRICS);
    assert_int_equal(seen_of(r, "b", START_MS, 50), 2);
    node_router_probe_answered(r, 0, NODE_PROBE_MODELS, 401);
    assert_false(node_router_models_told(r, 0));
    assert_int_equal(seen_of(r, "b", START_MS, 50), 3);
    node_router_probe_answered(r, 0, NODE_PROBE_METRICS, 404);
    node_router_probe_answered(r, 0, NODE_PROBE_MODELS, 200);
    assert_int_equal(node_router_probes_refused(r, 0), 0);
    node_router_check(r);
    alone_destroy(r);
}

/* SGLang serves whatever name it is asked for. */
static void a_name_that_nobody_has_goes_to_sglang(void **state)
{
    (void)state;
    struct node_router *r = make("random", 3);
    struct slice ids[] = {SLICE("a"), SLICE("b"), SLICE("c")};
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(node_router_models(r, k, &ids[k], 1), ERR_OK);
    node_router_replica_engine_set(r, 0, NODE_ENGINE_VLLM);
    node_router_replica_engine_set(r, 1, NODE_ENGINE_SGLANG);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    assert_int_equal(seen_of(r, "nope", START_MS, 30), 2);
    assert_int_equal(seen_of(r, "nope:adapter", START_MS, 30), 2);
    assert_int_equal(seen_of(r, "a", START_MS, 30), 1);
    assert_int_equal(seen_of(r, "c", START_MS, 30), 4);
    /* One that has not told may serve the very name: it comes first. */
    node_router_probe_answered(r, 2, NODE_PROBE_MODELS, 401);
    assert_int_equal(seen_of(r, "nope", START_MS, 30), 4);
    node_router_model_denied(r, 2, SLICE("nope"), START_MS);
    assert_int_equal(seen_of(r, "nope", START_MS, 30), 2);
    node_router_model_served(r, 1, SLICE("nope")); /* says nothing */
    assert_false(node_router_model_known(r, SLICE("nope")));
    node_router_replica_engine_set(r, 1, NODE_ENGINE_VLLM);
    request.model = SLICE("nobody");
    node_router_model_denied(r, 2, request.model, START_MS);
    request.model_likely = true;
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    node_router_check(r);
    alone_destroy(r);
}

static void an_adapter_goes_where_its_base_is(void **state)
{
    (void)state;
    struct node_router *r = make("random", 4);
    struct slice ids[] = {SLICE("base"), SLICE("other")};
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(node_router_models(r, k, ids, 1), ERR_OK);
    assert_int_equal(node_router_models(r, 3, &ids[1], 1), ERR_OK);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    request.model = SLICE("base:poems"); /* all are vLLM, which would have listed it */
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    node_router_replica_engine_set(r, 1, NODE_ENGINE_SGLANG);
    node_router_replica_engine_set(r, 2, NODE_ENGINE_AUTO);
    node_router_replica_engine_set(r, 3, NODE_ENGINE_SGLANG);
    unsigned seen[4] = {0};
    for (int i = 0; i < 50; i++) {
        assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);
        seen[d.replica]++;
    }
    assert_true(seen[0] == 0 && seen[1] > 10 && seen[2] > 10 && seen[3] == 0);
    struct slice listed[] = {SLICE("base"), SLICE("base:poems")};
    assert_int_equal(node_router_models(r, 0, listed, 2), ERR_OK); /* now one tells the whole */
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 0);
    alone_destroy(r);
}

/* --- the rule ------------------------------------------------------------------------------- */

static void a_conversation_stays_where_its_cache_is(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 8);
    for (unsigned c = 0; c < 8; c++) {
        uint64_t now = START_MS + c * 60000ull;
        struct node_decision first = choose(r, prompt(c, 8000), now);
        assert_int_equal(first.cached_tokens, 0);
        done(r, first, now + 900);
        for (unsigned turn = 1; turn < 6; turn++) {
            struct node_decision d = choose(r, prompt(c, 8000 + turn * 500), now + turn * 5000ull);
            assert_int_equal(d.replica, first.replica);
            assert_true(d.cached_tokens > 7500 && d.cached_tokens < d.prompt_tokens);
            done(r, d, now + turn * 5000ull + 100);
        }
    }
    node_router_check(r);
    alone_destroy(r);
}

static void terms_are_what_hand_arithmetic_says(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decision d = choose(r, prompt(1, 20000), START_MS);
    struct node_request request = request_of(prompt(2, 4096));
    json_t *root = explain(r, &request, START_MS + 500);
    unsigned with = d.replica, without = 1 - d.replica;
    /* 20,000 tokens at 10,000 a second, half a second of it gone; 4,096 tokens uncached. */
    assert_near(explained(root, with, "queue_s"), 1.5, 1e-6);
    assert_near(explained(root, with, "uncached_s"), 0.4096, 1e-6);
    assert_near(explained(root, with, "displaced_s"), 0, 0);
    /* o = 256 expected, b = 30 ns, K = 20,000 + 128, n = 1. */
    assert_near(explained(root, with, "decode_s"),
                256 * 30e-9 * 20128 + 30e-9 * 4096 * 256 / 2 + 0.4096, 1e-6);
    assert_near(explained(root, without, "cost_s"), 0.4096, 1e-6);
    assert_string_equal(json_string_value(json_object_get(root, "choice")),
                        without ? "host-1:8000" : "host-0:8000");
    json_decref(root);

    /* Half a minute later it is done: the same prompt is cached up to its last checkpoint. */
    done(r, d, START_MS + 2000);
    request = request_of(prompt(1, 20000));
    root = explain(r, &request, START_MS + 30000);
    assert_true(explained(root, with, "cached_tokens") > 20000 * 0.95);
    assert_near(explained(root, without, "cached_tokens"), 0, 0);
    assert_near(explained(root, with, "uncached_s"),
                (20000 - explained(root, with, "cached_tokens")) / 10000, 1e-3);
    json_decref(root);
    alone_destroy(r);
}

/* A full cache costs what would have to go; an empty one does not. */
static void new_content_goes_where_there_is_room(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_request request = request_of(NULL);
    request.replica_wanted = 0;
    for (unsigned i = 0; i < 5; i++) { /* fills the 100,000 tokens of replica 0 */
        struct node_decision d;
        request.chain = prompt(100 + i, 20000);
        request.body_bytes = request.chain->bytes;
        assert_int_equal(node_router_choose(r, &request, NULL, START_MS + i * 3000ull, &d), ERR_OK);
        done(r, d, START_MS + i * 3000ull + 2000);
    }
    request = request_of(prompt(200, 20000));
    json_t *root = explain(r, &request, START_MS + 15000);
    assert_true(explained(root, 0, "displaced_s") > 1.5);
    assert_near(explained(root, 1, "displaced_s"), 0, 0);
    json_decref(root);
    for (int i = 0; i < 3; i++) {
        struct node_decision d = choose(r, prompt(200, 20000), START_MS + 15000);
        assert_int_equal(d.replica, 1);
        done(r, d, START_MS + 15000);
    }
    /* The oldest is believed gone once others have taken its place. */
    request.replica_wanted = 0;
    for (unsigned i = 0; i < 4; i++) {
        struct node_decision d;
        request.chain = prompt(300 + i, 20000);
        assert_int_equal(node_router_choose(r, &request, NULL, START_MS + 40000 + i * 3000ull, &d),
                         ERR_OK);
        done(r, d, START_MS + 42000 + i * 3000ull);
    }
    request = request_of(prompt(303, 20000));
    root = explain(r, &request, START_MS + 60000);
    assert_true(explained(root, 0, "cached_tokens") > 19000);
    json_decref(root);
    request = request_of(prompt(100, 20000));
    root = explain(r, &request, START_MS + 60000);
    assert_true(explained(root, 0, "cached_tokens") < 5000);
    json_decref(root);
    alone_destroy(r);
}

/* Requests without a chain (short ones, or not understood) displace as much as others do, and must
 * see what the replicas hold now: on a machine that has been up for a month, after a start, with
 * nothing but such requests, beliefs were never counted at all. */
static void short_prompts_see_what_is_there(void **state)
{
    (void)state;
    const uint64_t month_ms = 30ull * 86400 * 1000;
    struct node_router *r = make("cache_aware", 1);
    for (unsigned i = 0; i < 5; i++)
        done(r, choose(r, prompt(i, 20000), month_ms + i * 3000ull), month_ms + i * 3000ull + 2000);
    node_router_tick(r, month_ms + 30000);
    struct node_request request = request_of(NULL);
    request.body_bytes = 40000;
    json_t *root = explain(r, &request, month_ms + 30000);
    double displaced_s = explained(root, 0, "displaced_s");
    json_decref(root);
    assert_true(displaced_s > 0.5 && displaced_s < 2.1); /* W x 10,256 tokens, not quite fresh */
    node_router_probed(r, 0, false, true, month_ms + 31000); /* all forgotten */
    node_router_probed(r, 0, true, false, month_ms + 32000);
    root = explain(r, &request, month_ms + 33000);
    assert_near(explained(root, 0, "displaced_s"), 0, 0);
    json_decref(root);
    root = replicas_json(r, month_ms + 33000);
    assert_near(believed(root, 0, "cache", "present_bytes"), 0, 0);
    json_decref(root);
    alone_destroy(r);
}

static void a_restart_forgets(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decision d = choose(r, prompt(1, 20000), START_MS);
    done(r, d, START_MS + 1000);
    struct node_scrape s = node_scrape_untold;
    s.start_time_s = 1000;
    assert_false(node_router_scraped(r, d.replica, &s, START_MS + 2000));
    struct node_request request = request_of(prompt(1, 20000));
    json_t *root = explain(r, &request, START_MS + 2000);
    assert_true(explained(root, d.replica, "cached_tokens") > 19000);
    json_decref(root);
    s.start_time_s = 1060;
    assert_true(node_router_scraped(r, d.replica, &s, START_MS + 3000));
    root = explain(r, &request, START_MS + 3000);
    assert_near(explained(root, d.replica, "cached_tokens"), 0, 0);
    json_decref(root);

    struct node_decision again = choose(r, prompt(1, 20000), START_MS + 4000);
    done(r, again, START_MS + 5000);
    node_router_probed(r, again.replica, false, true, START_MS + 6000); /* its port refuses */
    node_router_probed(r, again.replica, true, false, START_MS + 7000);
    root = explain(r, &request, START_MS + 7000);
    assert_near(explained(root, again.replica, "cached_tokens"), 0, 0);
    json_decref(root);
    node_router_check(r);
    alone_destroy(r);
}

/* --- learning ------------------------------------------------------------------------------- */

/* An engine of 2,500 tokens a second, 3 bytes a token, steps of 10 ms + 100 ns a token, that
 * answers with 300 tokens. The router starts from other beliefs and finds out. */
static void it_learns_what_the_engine_is_like(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    uint64_t now = START_MS;
    for (unsigned i = 0; i < 300; i++) {
        unsigned tokens = 3000 + i % 7 * 20000;
        struct chain *chain = prompt(1000 + i, tokens * 3 / 4); /* bytes are 3 a token */
        struct node_decision d = choose(r, chain, now);
        now += tokens * 1000ull / 2500;
        node_router_first_byte(r, d.booking, now);
        double context = tokens + 128.0;
        now += (uint64_t)(299 * (10 + context * 100e-6));
        struct node_usage usage = {tokens, 0, 300};
        node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, now);
        now += 50;
    }
    node_router_tick(r, now);
    json_t *root = replicas_json(r, now);
    assert_near(believed(root, 0, "learned", "prefill_tokens_per_s"), 2500, 0.03);
    assert_near(believed(root, 0, "learned", "decode_step_ms"), 10, 0.05);
    assert_near(believed(root, 0, "learned", "decode_step_ns_per_context_token"), 100, 0.05);
    json_decref(root);
    struct node_request request = request_of(prompt(9, 7500)); /* 30,000 bytes */
    root = explain(r, &request, now);
    assert_near(json_number_value(json_object_get(root, "prompt_tokens")), 10000, 0.03);
    assert_near(json_number_value(json_object_get(root, "output_tokens")), 300, 0.03);
    json_decref(root);
    request.output_tokens_max = 16;
    struct chain *ids = prompt(9, 7500);
    ids->token_ids = true;
    root = explain(r, &request, now);
    assert_near(json_number_value(json_object_get(root, "prompt_tokens")), 7500, 1e-6);
    assert_near(json_number_value(json_object_get(root, "output_tokens")), 16, 1e-6);
    json_decref(root);
    alone_destroy(r);
}

/* Token ids have four bytes each by definition: the same model's ratio of text is none of theirs.
 */
static void token_ids_do_not_teach_bytes_per_token(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_usage usage = {10000, 0, 100};
    for (unsigned i = 0; i < 50; i++) { /* text of 2 bytes a token */
        struct chain *chain = prompt(i, 5000);
        done_with(r, choose(r, chain, START_MS + i), &usage, START_MS + i);
    }
    struct node_request request = request_of(prompt(99, 5000));
    json_t *root = explain(r, &request, START_MS + 100);
    double text_tokens = json_number_value(json_object_get(root, "prompt_tokens"));
    assert_near(text_tokens, 10000, 0.02);
    json_decref(root);
    for (unsigned i = 0; i < 200; i++) {
        struct chain *chain = prompt(1000 + i, 10000);
        chain->token_ids = true;
        done_with(r, choose(r, chain, START_MS + 200 + i), &usage, START_MS + 200 + i);
    }
    request = request_of(prompt(99, 5000));
    root = explain(r, &request, START_MS + 500);
    assert_near(json_number_value(json_object_get(root, "prompt_tokens")), text_tokens, 1e-9);
    json_decref(root);
    alone_destroy(r);
}

/* A replica that serves two models, of 2 and of 4 bytes a token: how much of its cache is taken
 * does not depend on which of them is asked for next. */
static void a_belief_does_not_flip_between_models(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct slice ids[] = {SLICE("two"), SLICE("four")};
    assert_int_equal(node_router_models(r, 0, ids, 2), ERR_OK);
    struct node_decision d;
    uint64_t now = START_MS;
    for (unsigned i = 0; i < 200; i++, now += 2000) {
        struct node_request request = request_of(prompt(i, i % 2 ? 10000 : 5000));
        request.model = ids[i % 2];
        assert_int_equal(node_router_choose(r, &request, NULL, now, &d), ERR_OK);
        struct node_usage usage = {10000, 0, 100};
        done_with(r, d, &usage, now + 1000);
    }
    double present[2], displaced_s[2];
    for (unsigned i = 0; i < 2; i++) {
        now += 20000; /* another generation: beliefs are counted again */
        struct node_request request = request_of(prompt(1000, i ? 10000 : 5000));
        request.model = ids[i];
        json_t *root = explain(r, &request, now);
        displaced_s[i] = explained(root, 0, "displaced_s");
        json_decref(root);
        root = replicas_json(r, now);
        present[i] = believed(root, 0, "cache", "present_bytes");
        json_decref(root);
    }
    assert_near(present[0], 100000 * 3, 0.05); /* half of the tokens have 2 bytes, half have 4 */
    assert_near(present[1], present[0], 1e-9);
    assert_near(displaced_s[1], displaced_s[0], 0.25); /* it is 20 s later */
    alone_destroy(r);
}

/* A default that is far too low must not keep replicas from ever being asked: they are believed to
 * be like those that have shown what they can do. (Seen in the simulator: one of eight replicas was
 * never used.) */
static void replicas_not_tried_are_believed_to_be_like_the_others(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    struct node_decision d = choose(r, prompt(1, 20000), START_MS);
    node_router_first_byte(r, d.booking, START_MS + 200); /* 100,000 tokens a second */
    struct node_usage usage = {20000, 0, 100};
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, START_MS + 1200);
    node_router_tick(r, START_MS + 1200);
    json_t *root = replicas_json(r, START_MS);
    double shown = believed(root, d.replica, "learned", "prefill_tokens_per_s");
    assert_true(shown > 12000);
    for (unsigned k = 0; k < 3; k++)
        assert_near(believed(root, k, "learned", "prefill_tokens_per_s"), shown, 1e-9);
    json_decref(root);
    alone_destroy(r);
}

/* Answers of 4xx and 5xx that computed nothing, even if the shell reported their bytes. */
static void refused_requests_teach_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_scrape s = {.cache_tokens = 100000, .start_time_s = -1};
    assert_false(node_router_scraped(r, 0, &s, START_MS));
    for (unsigned i = 0; i < 50; i++) {
        struct node_decision d = choose(r, prompt(i / 2, 20000), START_MS + i);
        node_router_first_byte(r, d.booking, START_MS + i + 1);
        node_router_finish(r, d.booking, i % 2 ? NODE_OUTCOME_OK : NODE_OUTCOME_ENGINE_ERROR, NULL,
                           START_MS + i + 1);
    }
    /* As many tokens as were sent, all of them computed: were the window still to hold them, the
     * belief would shrink. */
    s.prefix_queries = 1000000;
    assert_false(node_router_scraped(r, 0, &s, START_MS + 1000));
    json_t *root = replicas_json(r, START_MS);
    assert_near(believed(root, 0, "learned", "prefill_tokens_per_s"), 10000, 1e-9);
    assert_near(believed(root, 0, "learned", "bytes_per_token"), 4, 1e-9);
    assert_near(believed(root, 0, "cache", "size_factor"), 1, 1e-9);
    json_decref(root);
    assert_near(metric(r, "grapevine_prediction_ttft_count_total"), 0, 0);
    assert_near(metric(r, "grapevine_prediction_ttft_seconds_total"), 0, 0);
    assert_near(metric(r, "grapevine_prediction_cached_tokens_total"), 0, 0);
    assert_int_equal(node_router_replica_health(r, 0), NODE_HEALTH_UP);
    alone_destroy(r);
}

/* A retry that finds nobody left passes the first answer on: the request was routed. */
static void a_retry_without_a_replica_is_not_unroutable(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    uint64_t excluded[NODE_REPLICAS_MAX / 64] = {1}, nobody[NODE_REPLICAS_MAX / 64] = {0};
    assert_int_equal(node_router_choose(r, &request, excluded, START_MS, &d), ERR_UNREACHABLE);
    assert_int_equal(node_router_choose_by_load(r, &request, excluded, START_MS, &d),
                     ERR_UNREACHABLE);
    assert_near(metric(r, "grapevine_unroutable_total"), 0, 0);
    node_router_replica_drain(r, 0, true);
    assert_int_equal(node_router_choose(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    assert_int_equal(node_router_choose(r, &request, nobody, START_MS, &d), ERR_UNREACHABLE);
    assert_near(metric(r, "grapevine_unroutable_total"), 2, 0);
    alone_destroy(r);
}

static void wrong_predictions_shrink_the_belief(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    for (unsigned i = 0; i < 200; i++) {
        struct node_decision d = choose(r, prompt(1, 20000), START_MS + i * 1000ull);
        struct node_usage usage = {20000, 0, 10}; /* never cached, whatever was predicted */
        node_router_first_byte(r, d.booking, START_MS + i * 1000ull + 1);
        node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, START_MS + i * 1000ull + 2);
    }
    json_t *root = replicas_json(r, START_MS);
    assert_true(believed(root, 0, "cache", "size_factor") < 0.3);
    assert_true(believed(root, 0, "cache", "predicted_tokens") > 1e6);
    assert_near(believed(root, 0, "cache", "actual_tokens"), 0, 0);
    json_decref(root);
    alone_destroy(r);
}

/* --- invariants under random lives ---------------------------------------------------------- */

enum { REPLICAS = 7, OPEN_MAX = 50 };

/* What the test itself knows of who may be chosen. */
struct shadow {
    bool up[REPLICAS], draining[REPLICAS];
};

static bool may_serve(const struct shadow *s, unsigned k, const uint64_t *excluded, bool model_b)
{
    bool serves = !model_b || k % 2 == 0; /* even ones serve "b" too */
    return serves && !s->draining[k] && !(excluded[0] >> k & 1) && s->up[k];
}

static void check_choice(const struct shadow *s, int err, unsigned replica,
                         const uint64_t *excluded, bool model_b)
{
    bool any = false;
    for (unsigned k = 0; k < REPLICAS; k++)
        any = any || may_serve(s, k, excluded, model_b);
    assert_int_equal(err, any ? ERR_OK : ERR_UNREACHABLE);
    assert_true(!any || may_serve(s, replica, excluded, model_b));
}

static void random_life(const char *policy, uint64_t seed)
{
    struct node_router *r = make(policy, REPLICAS);
    struct shadow s = {0};
    struct prng prng;
    struct {
        struct node_booking b;
        unsigned replica;
    } open[OPEN_MAX];
    unsigned count = 0;
    uint64_t now = START_MS;
    prng_seed(&prng, seed);
    for (unsigned k = 0; k < REPLICAS; k++) {
        struct slice ids[] = {SLICE("a"), SLICE("b")};
        assert_int_equal(node_router_models(r, k, ids, k % 2 == 0 ? 2 : 1), ERR_OK);
        s.up[k] = true;
    }
    for (unsigned i = 0; i < 4000 || count > 0; i++) {
        now += prng_below(&prng, 400);
        unsigned k = (unsigned)prng_below(&prng, REPLICAS);
        uint64_t what = prng_below(&prng, 10);
        if (what < 4 && count < OPEN_MAX && i < 4000) {
            uint64_t excluded[NODE_REPLICAS_MAX / 64] = {prng_below(&prng, 1 << REPLICAS)};
            bool model_b = prng_below(&prng, 2) != 0;
            struct node_request request = request_of(
                prng_below(&prng, 4) ? prompt(prng_below(&prng, 20), 500 << prng_below(&prng, 6))
                                     : NULL);
            request.model = model_b ? SLICE("b") : SLICE("a");
            request.session = prng_below(&prng, 2) ? SLICE("me") : SLICE("");
            request.answer_whole = prng_below(&prng, 3) == 0;
            struct node_decision d = {0};
            int err = prng_below(&prng, 5)
                          ? node_router_choose(r, &request, excluded, now, &d)
                          : node_router_choose_by_load(r, &request, excluded, now, &d);
            check_choice(&s, err, d.replica, excluded, model_b);
            if (err == ERR_OK) {
                open[count].b = d.booking;
                open[count++].replica = d.replica;
            }
        } else if (what < 6 && count > 0) {
            node_router_first_byte(r, open[prng_below(&prng, count)].b, now);
        } else if (what < 8 && count > 0) {
            unsigned at = (unsigned)prng_below(&prng, count);
            enum node_outcome outcome = (enum node_outcome)prng_below(&prng, 6);
            if (outcome == NODE_OUTCOME_ENGINE_BUSY)
                outcome = NODE_OUTCOME_OK; /* has a test of its own */
            struct node_usage usage = {(int64_t)prng_below(&prng, 30000),
                                       (int64_t)prng_below(&prng, 30000),
                                       (int64_t)prng_below(&prng, 1000)};
            node_router_finish(r, open[at].b, outcome, prng_below(&prng, 2) ? &usage : NULL, now);
            unsigned replica = open[at].replica;
            bool down = node_router_replica_health(r, replica) == NODE_HEALTH_DOWN;
            if (outcome == NODE_OUTCOME_CONNECT_FAILED || outcome == NODE_OUTCOME_BROKEN)
                s.up[replica] = s.up[replica] && !down; /* replica_test tells when */
            assert_true(down == !s.up[replica]);
            open[at] = open[--count];
        } else if (what == 8) {
            bool ok = prng_below(&prng, 3) != 0;
            node_router_probed(r, k, ok, !ok, now);
            bool down = node_router_replica_health(r, k) == NODE_HEALTH_DOWN;
            assert_true(ok ? !(down && s.up[k]) : down);
            s.up[k] = !down;
        } else if (prng_below(&prng, 2)) {
            s.draining[k] = prng_below(&prng, 3) == 0;
            node_router_replica_drain(r, k, s.draining[k]);
        } else {
            node_router_tick(r, now);
        }
        if (i % 97 == 0)
            node_router_check(r);
    }
    node_router_check(r);
    json_t *root = replicas_json(r, now);
    for (unsigned k = 0; k < REPLICAS; k++) {
        assert_near(believed(root, k, "load", "requests"), 0, 0);
        assert_near(believed(root, k, "load", "prefill_tokens"), 0, 0);
        assert_near(believed(root, k, "load", "context_tokens"), 0, 0);
    }
    json_decref(root);
    alone_destroy(r);
}

static void no_policy_ever_breaks_the_invariants(void **state)
{
    (void)state;
    for (const char *const *name = node_policy_names(); *name; name++)
        for (uint64_t seed = 1; seed <= 3; seed++)
            random_life(*name, seed);
}

/* --- what operators see --------------------------------------------------------------------- */

static void explaining_changes_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("round_robin", 3);
    struct node_request request = request_of(prompt(1, 3000));
    for (unsigned i = 0; i < 6; i++) {
        json_t *first = explain(r, &request, START_MS), *second = explain(r, &request, START_MS);
        assert_true(json_equal(first, second));
        struct node_decision d = choose(r, NULL, START_MS);
        assert_string_equal(json_string_value(json_object_get(first, "choice")),
                            d.replica == 0   ? "host-0:8000"
                            : d.replica == 1 ? "host-1:8000"
                                             : "host-2:8000");
        json_decref(first);
        json_decref(second);
    }
    struct slice ids[] = {SLICE("a")};
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(node_router_models(r, k, ids, 1), ERR_OK);
    request.model = SLICE("\"b\"");
    json_t *root = explain(r, &request, START_MS);
    assert_string_equal(json_string_value(json_object_get(root, "error")),
                        "no replica serves the model");
    json_decref(root);
    alone_destroy(r);
}

/* Every line is a comment or `name{labels} value`, each name has HELP and TYPE before it. */
static void metrics_are_well_formed(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    assert_int_equal(node_router_replica_add(r, SLICE("a\"b\\c\nd"), NODE_ENGINE_AUTO), 2);
    done(r, choose(r, prompt(1, 5000), START_MS), START_MS + 700);
    struct buf text = {0};
    assert_int_equal(write_metrics(r, &text), ERR_OK);
    struct slice rest = buf_slice(&text), name = SLICE("");
    unsigned series = 0;
    while (rest.len > 0) {
        struct slice line = slice_cut(&rest, '\n');
        assert_true(line.len > 0);
        if (slice_starts_with(line, SLICE("# HELP "))) {
            line = slice_skip(line, 7);
            name = slice_cut(&line, ' ');
            assert_true(line.len > 0);
            struct slice type = slice_cut(&rest, '\n');
            assert_true(slice_starts_with(type, SLICE("# TYPE ")));
            type = slice_skip(type, 7);
            assert_true(slice_equal(slice_cut(&type, ' '), name));
            assert_true(slice_equal(type, SLICE("gauge")) || slice_equal(type, SLICE("counter")));
            continue;
        }
        assert_true(slice_starts_with(line, name));
        assert_true(line.at[name.len] == '{' || line.at[name.len] == ' ');
        char number[64], *end;
        size_t space = line.len;
        while (line.at[space - 1] != ' ')
            space--;
        assert_true(slice_to_cstr(slice_skip(line, space), number, sizeof number));
        double value = strtod(number, &end);
        assert_true(*end == '\0' && isfinite(value));
        series++;
    }
    assert_true(series > 100);
    assert_int_equal(buf_append_char(&text, '\0'), ERR_OK);
    assert_non_null(
        strstr(text.at, "grapevine_replica_health{replica=\"host-0:8000\",state=\"up\"} 1"));
    assert_non_null(
        strstr(text.at, "grapevine_replica_scrape_age_seconds{replica=\"host-0:8000\"} -1"));
    assert_non_null(strstr(text.at, "grapevine_model_bytes_per_token{bound=\"max\"} 4\n"));
    assert_non_null(strstr(text.at, "grapevine_replica_up{replica=\"a\\\"b\\\\c\\nd\"} 0\n"));
    buf_free(&text);

    struct buf tight;
    buf_init(&tight, 1000);
    assert_int_equal(write_metrics(r, &tight), ERR_LIMIT);
    assert_int_equal(tight.len, 0);
    buf_free(&tight);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_have_unique_names),
        cmocka_unit_test(unprobed_replicas_serve_only_when_nothing_better_is_there),
        cmocka_unit_test(requests_go_where_their_model_is),
        cmocka_unit_test(a_wanted_replica_is_the_only_one),
        cmocka_unit_test(a_busy_replica_is_avoided_for_a_second),
        cmocka_unit_test(a_replica_that_fails_at_once_attracts_nothing),
        cmocka_unit_test(clients_cannot_take_the_fleet_down),
        cmocka_unit_test(a_replica_that_denied_a_model_is_passed_over),
        cmocka_unit_test(a_refused_list_is_not_known_any_more),
        cmocka_unit_test(a_name_that_nobody_has_goes_to_sglang),
        cmocka_unit_test(an_adapter_goes_where_its_base_is),
        cmocka_unit_test(a_conversation_stays_where_its_cache_is),
        cmocka_unit_test(terms_are_what_hand_arithmetic_says),
        cmocka_unit_test(new_content_goes_where_there_is_room),
        cmocka_unit_test(short_prompts_see_what_is_there),
        cmocka_unit_test(a_restart_forgets),
        cmocka_unit_test(it_learns_what_the_engine_is_like),
        cmocka_unit_test(token_ids_do_not_teach_bytes_per_token),
        cmocka_unit_test(a_belief_does_not_flip_between_models),
        cmocka_unit_test(replicas_not_tried_are_believed_to_be_like_the_others),
        cmocka_unit_test(refused_requests_teach_nothing),
        cmocka_unit_test(a_retry_without_a_replica_is_not_unroutable),
        cmocka_unit_test(wrong_predictions_shrink_the_belief),
        cmocka_unit_test(no_policy_ever_breaks_the_invariants),
        cmocka_unit_test(explaining_changes_nothing),
        cmocka_unit_test(metrics_are_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
