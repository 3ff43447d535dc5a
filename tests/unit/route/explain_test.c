/* /explain and the table of replicas: the weighed replicas, the replicas left out with the reason,
 * and the refused probes. */
#include "base/check.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

enum { RANKS = 2 };

/* The reason for which the replica is left out; NULL: not left out. */
static const char *left_out(const json_t *root, const char *name)
{
    const json_t *rows = json_object_get(root, "left_out"), *row;
    size_t i;
    assert_true(json_is_array(rows));
    json_array_foreach(rows, i, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "replica")), name) == 0)
            return json_string_value(json_object_get(row, "why"));
    }
    return NULL;
}

/* The left-out list has no weighed replica, no address of a chosen rank, and no replica out of
 * use. */
static void only_unweighed_replicas_are_listed_as_left_out(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 5);
    struct slice other = SLICE("other"), asked = SLICE("asked");
    struct node_labels labels = {.ranks = RANKS};
    node_router_labels(r, 0, &labels);
    node_router_tick(r, START_MS);
    assert_int_equal(node_router_replica_count(r), 5 + RANKS);
    for (unsigned k = 0; k < 5; k++)
        assert_int_equal(node_router_models(r, k, k == 2 ? &other : &asked, 1), ERR_OK);
    node_router_probed(r, 3, (struct node_check){.refused = true}, START_MS);
    node_router_unname(r, SLICE("host-4:8000"));
    struct node_request request = request_of(prompt(1, 4000));
    request.model = asked;
    json_t *root = explain(r, &request, START_MS);
    assert_int_equal(json_array_size(json_object_get(root, "replicas")), RANKS + 1);
    assert_int_equal(json_array_size(json_object_get(root, "left_out")), 2);
    assert_null(left_out(root, "host-0:8000"));
    assert_null(left_out(root, "host-0:8000@1"));
    assert_null(left_out(root, "host-1:8000"));
    assert_string_equal(left_out(root, "host-2:8000"), "does not serve the model");
    assert_string_equal(left_out(root, "host-3:8000"), "down: its port refuses connections");
    json_decref(root);
    alone_destroy(r);
}

/* The list is most needed when no replica may be chosen. */
static void all_replicas_are_listed_if_none_can_be_chosen(void **state)
{
    (void)state;
    struct node_config config = config_of("cache_aware");
    config.router.replica_requests_max = 1;
    struct node_router *r = alone_router(&config);
    assert_int_equal(node_router_name(r, SLICE("a:80"), NODE_ENGINE_VLLM), 0);
    assert_int_equal(node_router_name(r, SLICE("b:80"), NODE_ENGINE_VLLM), 1);
    for (unsigned k = 0; k < 2; k++)
        node_router_probed(r, k, (struct node_check){.ok = true}, START_MS);
    node_router_replica_drain(r, 1, true);
    struct node_request request = request_of(prompt(1, 4000));
    struct node_decision d = choose(r, prompt(1, 4000), START_MS);
    json_t *root = explain(r, &request, START_MS);
    assert_string_equal(
        json_string_value(json_object_get(root, "error")),
        "every replica is full: at replica-requests-max, or without room for another connection");
    assert_string_equal(left_out(root, "a:80"), "at replica-requests-max");
    assert_string_equal(left_out(root, "b:80"), "draining: by an operator");
    json_decref(root);
    done(r, d, START_MS);
    node_router_replica_drain(r, 0, true);
    root = explain(r, &request, START_MS);
    assert_string_equal(json_string_value(json_object_get(root, "error")),
                        "no replica can be chosen now");
    assert_string_equal(left_out(root, "a:80"), "draining: by an operator");
    assert_int_equal(json_array_size(json_object_get(root, "left_out")), 2);
    json_decref(root);
    alone_destroy(r);
}

/* An unserved model is a reason; rejections count only for requests like the present request. */
static void rejections_of_other_requests_are_no_reason(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct slice models[] = {SLICE("one"), SLICE("two")};
    assert_int_equal(node_router_models(r, 0, models, 2), ERR_OK);
    assert_int_equal(node_router_models(r, 1, models, 1), ERR_OK);
    struct node_rejection x = {
        .replica = 1, .kind = 8, .status = 401, .from = {.client = 7}, .sent_ms = START_MS};
    assert_true(node_router_reject_contradicted(r, &x, START_MS));
    assert_false(node_router_context_listed(r, 0, 1000000));
    assert_false(node_router_context_listed(r, 1, 100));
    struct node_request request = request_of(prompt(1, 4000));
    request.again = true;
    static const struct {
        unsigned model;
        uint8_t kind;
        const char *why;
    } cases[] = {
        {0, 8, "avoided: it answers 401 to chat requests where its peers accept the key"},
        {0, 16, "its context of 100 tokens is too short"},
        {1, 8, "does not serve the model"},
        {1, 16, "does not serve the model"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        request.model = models[cases[i].model];
        request.kind = cases[i].kind;
        json_t *root = explain(r, &request, START_MS);
        assert_string_equal(left_out(root, "host-1:8000"), cases[i].why);
        json_decref(root);
    }
    alone_destroy(r);
}

/* A choice of a replica that is down looked like any other. */
static void a_last_resort_choice_is_marked(void **state)
{
    (void)state;
    struct node_config config = config_of("cache_aware");
    config.router.all_down_refuse = false;
    struct node_router *r = alone_router(&config);
    assert_int_equal(node_router_name(r, SLICE("a:80"), NODE_ENGINE_VLLM), 0);
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS);
    struct node_request request = request_of(prompt(1, 4000));
    json_t *root = explain(r, &request, START_MS);
    assert_string_equal(json_string_value(json_object_get(root, "last_resort")), "");
    json_decref(root);
    node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS);
    root = explain(r, &request, START_MS);
    assert_string_equal(json_string_value(json_object_get(root, "choice")), "a:80");
    assert_string_equal(json_string_value(json_object_get(root, "last_resort")),
                        "down: its port refuses connections");
    json_decref(root);
    alone_destroy(r);
}

static void expect_refused(struct node_router *r, const char *path, unsigned count)
{
    json_t *root = replicas_json(r, START_MS);
    const json_t *refused = json_object_get(json_array_get(root, 0), "probes_refused");
    assert_int_equal(json_array_size(refused), count);
    if (count > 0)
        assert_string_equal(json_string_value(json_array_get(refused, 0)), path);
    json_decref(root);
}

static void refused_probes_are_shown_by_path(void **state)
{
    (void)state;
    static const char *const paths[NODE_PROBES] = {"/health",      "/metrics", "/v1/models",
                                                   "/server_info", "/ping",    "/kv_event_sources"};
    struct node_router *r = make("cache_aware", 1);
    expect_refused(r, "", 0);
    for (unsigned probe = 0; probe < NODE_PROBES; probe++) {
        node_router_probe_answered(r, 0, (enum node_probe)probe, probe % 2 == 0 ? 401 : 403);
        expect_refused(r, paths[probe], 1);
        node_router_probe_answered(r, 0, (enum node_probe)probe, 404);
        expect_refused(r, "", 0);
    }
    node_router_probe_answered(r, 0, NODE_PROBE_PING, 401);
    node_router_probe_answered(r, 0, NODE_PROBE_METRICS, 401);
    expect_refused(r, "/metrics", 2);
    alone_destroy(r);
}

/* The first replica's tokens in /replicas: HELD of gvctl. */
static double held_tokens(struct node_router *r, uint64_t now_ms)
{
    json_t *root = replicas_json(r, now_ms);
    const json_t *one = json_array_get(root, 0);
    double bytes =
        json_number_value(json_object_get(json_object_get(one, "cache"), "present_bytes"));
    double per_token =
        json_number_value(json_object_get(json_object_get(one, "learned"), "bytes_per_token"));
    json_decref(root);
    return bytes / per_token;
}

/* Cached tokens were counted when the last request was weighed, and shown so until the next
 * request. */
static void both_views_agree_on_cached_tokens_after_a_change(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    assert_near(held_tokens(r, START_MS), 0, 0);
    for (unsigned i = 1; i < 4; i++) {
        struct chain chain = *prompt(i, 4000);
        done(r, choose(r, &chain, START_MS + i), START_MS + i);
        double held = held_tokens(r, START_MS + i); /* before another request is weighed */
        struct node_request request = request_of(&chain);
        json_t *root = explain(r, &request, START_MS + i);
        assert_near(explained(root, 0, "cached_tokens"), 4000, 0.05);
        json_decref(root);
        assert_near(held, 4000 * i, 0.05);
        assert_near(held_tokens(r, START_MS + i), held, 0);
    }
    node_router_probed(r, 0, (struct node_check){.refused = true},
                       START_MS + 10); /* the engine's process is gone */
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS + 20);
    assert_near(held_tokens(r, START_MS + 20), 0, 0);
    alone_destroy(r);
}

/* An engine reported more cached tokens than the prompt had. All of them went into the metric, and
 * the learned values were nonsense, too. */
static void impossible_usage_is_counted_and_not_learned(void **state)
{
    (void)state;
    static const char *const compared = "grapevine_prediction_cached_tokens_total";
    static const char *const impossible = "grapevine_replica_usage_impossible_total";
    struct node_router *r = make("cache_aware", 1);
    struct node_usage usage = {4000, 3984, 10, {0}};
    for (unsigned i = 0; i < 2; i++)
        done_with(r, choose(r, prompt(1, 4000), START_MS + i), &usage, START_MS + i);
    double before = metric(r, compared), held = held_tokens(r, START_MS + 2);
    assert_true(before > 0);
    assert_near(metric(r, impossible), 0, 0);
    usage.cached_tokens = 1000000;
    done_with(r, choose(r, prompt(1, 4000), START_MS + 2), &usage, START_MS + 2);
    assert_near(metric(r, impossible), 1, 0);
    assert_near(metric(r, compared), before, 0);
    assert_near(held_tokens(r, START_MS + 2), held, 0);
    assert_near(metric(r, "grapevine_answered_prompt_tokens_total"), 12000, 0);
    assert_near(metric(r, "grapevine_answered_cached_tokens_total"), 3984 * 2 + 4000, 0);
    alone_destroy(r);
}

/* At most the prompt counts as cached, whatever was learned of the replica's tokens, even from
 * prompts shorter than the cached text. */
static void believed_cached_tokens_never_exceed_the_prompt(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    for (unsigned i = 0; i < 60; i++) {
        unsigned tokens = 40 + (i * 977) % 9000;
        struct node_usage usage = {tokens * (1 + i % 3), tokens, 10, {0}};
        struct chain chain = *prompt(i % 4, tokens);
        struct node_request request = request_of(&chain);
        json_t *root = explain(r, &request, START_MS + i);
        assert_true(explained(root, 0, "cached_tokens") <=
                    json_number_value(json_object_get(root, "prompt_tokens")));
        json_decref(root);
        done_with(r, choose(r, &chain, START_MS + i), &usage, START_MS + i);
    }
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_unweighed_replicas_are_listed_as_left_out),
        cmocka_unit_test(all_replicas_are_listed_if_none_can_be_chosen),
        cmocka_unit_test(rejections_of_other_requests_are_no_reason),
        cmocka_unit_test(a_last_resort_choice_is_marked),
        cmocka_unit_test(refused_probes_are_shown_by_path),
        cmocka_unit_test(both_views_agree_on_cached_tokens_after_a_change),
        cmocka_unit_test(impossible_usage_is_counted_and_not_learned),
        cmocka_unit_test(believed_cached_tokens_never_exceed_the_prompt),
    };
    return cmocka_run_group_tests_name("route/explain", tests, NULL, NULL);
}
