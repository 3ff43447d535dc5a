/* The replicas that are asked: by the length of their contexts, and by the evidence about a model
 * that no replica serves. */
#include "base/check.h"
#include "node/route/discovered.h"
#include "node/route/router_internal.h"
#include "tests/lib/router_help.h"

enum { SHORT = 4096, LONG = 131072 };

static const struct slice model = SLICE("m");

/* A replica for each context, which lists the model. */
static struct node_router *router_of(const uint32_t *contexts, unsigned count)
{
    struct node_router *r = make("random", count);
    for (unsigned k = 0; k < count; k++) {
        assert_int_equal(node_router_models(r, k, &model, 1), ERR_OK);
        assert_false(node_router_context_listed(r, k, contexts[k]));
    }
    return r;
}

static struct node_request long_request(unsigned tokens, uint32_t output_tokens)
{
    struct node_request request = request_of(prompt(1, tokens));
    request.model = model;
    request.output_tokens_max = output_tokens;
    return request;
}

/* The candidates, a bit each; 0: none, and `err` is returned. */
static unsigned chosen(struct node_router *r, const struct node_request *request, int err)
{
    unsigned set = 0;
    for (unsigned i = 0; i < 60; i++) {
        struct node_decision d;
        int got = node_router_place(r, request, NULL, START_MS, &d);
        assert_int_equal(got, err);
        if (got != ERR_OK)
            return 0;
        set |= 1u << d.replica;
        done(r, d, START_MS);
    }
    return set;
}

/* Requests that surely fit go anywhere, the rest to the longer context, even if only because of the
 * answer. */
static void a_long_request_goes_to_a_long_enough_context(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT, LONG, LONG}, 3);
    static const struct {
        unsigned tokens;
        uint32_t output;
        unsigned among;
    } cases[] = {
        {100, 0, 7},     {1000, 0, 7},   {1000, 700, 7}, {2000, 0, 6},
        {1000, 4000, 6}, {100, 8000, 6}, {40000, 0, 6},  {400000, 0, 6},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_request request = long_request(cases[i].tokens, cases[i].output);
        assert_int_equal(chosen(r, &request, ERR_OK), cases[i].among);
    }
    alone_destroy(r);
}

/* The client gets the engine's own error, from the longest context. */
static void an_oversized_request_goes_to_the_longest_context(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT, 2 * SHORT, 1000}, 3);
    struct node_request request = long_request(1000000, 0);
    assert_int_equal(chosen(r, &request, ERR_OK), 2);
    request = long_request(2000, 0); /* may be too long for all but the second */
    assert_int_equal(chosen(r, &request, ERR_OK), 2);
    request = long_request(4000, 0); /* may be too long for all */
    assert_int_equal(chosen(r, &request, ERR_OK), 2);
    alone_destroy(r);
}

static void an_unknown_context_is_preferred_to_a_short_one(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT, 0, LONG}, 3);
    struct node_request request = long_request(2000, 0);
    assert_int_equal(chosen(r, &request, ERR_OK), 4);
    node_router_probed(r, 2, (struct node_check){.refused = true}, START_MS);
    assert_int_equal(chosen(r, &request, ERR_OK), 2);
    request = long_request(1000, 0);
    assert_int_equal(chosen(r, &request, ERR_OK), 3);
    alone_destroy(r);
}

/* An estimate is no proof: the engine may accept the request, or refuse. */
static void a_short_context_is_tried_if_no_longer_is_up(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT, LONG}, 2);
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
    struct node_request request = long_request(40000, 0);
    assert_int_equal(chosen(r, &request, ERR_OK), 1);
    assert_int_equal(node_router_longer(r, &request, 0, START_MS), NODE_LONGER_SURELY);
    request.context_over = SHORT; /* refused */
    request.too_long = true;
    assert_int_equal(chosen(r, &request, ERR_UNREACHABLE), 0);
    alone_destroy(r);
}

/* The request waits for a free place at the long replica instead. */
static void a_full_replica_with_a_long_context_is_waited_for(void **state)
{
    (void)state;
    struct node_config config = config_of("random");
    config.router.replica_requests_max = 1;
    struct node_router *r = alone_router(&config);
    static const uint32_t contexts[] = {SHORT, LONG};
    for (unsigned k = 0; k < 2; k++) {
        struct slice name = k == 0 ? SLICE("a:80") : SLICE("b:80");
        assert_int_equal(node_router_name(r, name, NODE_ENGINE_VLLM), (int)k);
        node_router_probed(r, k, (struct node_check){.ok = true}, START_MS);
        assert_false(node_router_context_listed(r, k, contexts[k]));
    }
    struct node_request request = long_request(40000, 0);
    struct node_decision d, none;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 1);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &none), ERR_AGAIN);
    done(r, d, START_MS);
    alone_destroy(r);
}

static void after_a_refusal_only_longer_contexts_are_tried(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT, SHORT, LONG, 0}, 4);
    struct node_request request = long_request(500, 0);
    assert_int_equal(chosen(r, &request, ERR_OK), 15);
    assert_int_equal(node_router_longer(r, &request, 0, START_MS), NODE_LONGER_SURELY);
    assert_int_equal(node_router_longer(r, &request, 2, START_MS), NODE_LONGER_MAYBE);
    assert_int_equal(node_router_longer(r, &request, 3, START_MS), NODE_LONGER_MAYBE);
    request.too_long = true;
    request.context_over = SHORT;
    assert_int_equal(chosen(r, &request, ERR_OK), 8);
    struct node_replica_set excluded = {{1u << 3}};
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 2);
    done(r, d, START_MS);
    alone_destroy(r);
    r = router_of((const uint32_t[]){SHORT, SHORT}, 2);
    request = long_request(500, 0);
    assert_int_equal(node_router_longer(r, &request, 0, START_MS), NODE_LONGER_IF_ANEW);
    struct node_labels labels = {.context_tokens = SHORT};
    node_router_labels(r, 1, &labels); /* whatever the list */
    assert_int_equal(node_router_longer(r, &request, 0, START_MS), NODE_LONGER_NONE);
    assert_int_equal(node_router_longer(r, &request, 1, START_MS), NODE_LONGER_IF_ANEW);
    node_router_probed(r, 0, (struct node_check){.refused = true},
                       START_MS); /* no list available */
    assert_int_equal(node_router_longer(r, &request, 1, START_MS), NODE_LONGER_NONE);
    alone_destroy(r);
}

/* The process restarted, so /server_info described an earlier process. */
static void a_new_list_replaces_server_infos_context(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT}, 1);
    node_router_context_told(r, 0, 1000);
    assert_false(node_router_context_listed(r, 0, SHORT));
    assert_int_equal(node_router_context(r, 0), 1000);
    assert_true(node_router_context_listed(r, 0, LONG));
    assert_int_equal(node_router_context(r, 0), LONG);
    alone_destroy(r);
}

/* The label has priority over the two other sources, and the shorter of these counts. */
static void a_context_label_outranks_engines_reports(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){LONG}, 1);
    assert_int_equal(node_router_context(r, 0), LONG);
    node_router_context_told(r, 0, SHORT);
    assert_int_equal(node_router_context(r, 0), SHORT);
    assert_false(node_router_context_listed(r, 0, 0));
    assert_int_equal(node_router_context(r, 0), SHORT);
    struct node_labels labels = {.context_tokens = 32768};
    node_router_labels(r, 0, &labels);
    assert_int_equal(node_router_context(r, 0), 32768);
    assert_int_equal(metric(r, "grapevine_replica_context_length"), 32768);
    alone_destroy(r);
}

/* A batch of embeddings has several prompts: no replica is left out for their total length. */
static void batches_only_prefer_a_long_context(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT, LONG}, 2);
    struct node_request request = long_request(40000, 0);
    struct node_decision d;
    assert_int_equal(node_router_place_by_load(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 1);
    done(r, d, START_MS);
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
    assert_int_equal(node_router_place_by_load(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 0);
    done(r, d, START_MS);
    alone_destroy(r);
}

static const char *left_out(const json_t *root, unsigned row)
{
    const json_t *rows = json_object_get(root, "left_out");
    return json_string_value(json_object_get(json_array_get(rows, row), "why"));
}

static void explain_names_contexts_that_are_too_short(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){SHORT, LONG}, 2);
    struct node_request request = long_request(40000, 0);
    json_t *root = explain(r, &request, START_MS);
    assert_string_equal(left_out(root, 0), "its context of 4096 tokens is too short");
    assert_true(explained(root, 0, "context_tokens") == LONG);
    json_decref(root);
    request = long_request(2000, 0);
    root = explain(r, &request, START_MS);
    assert_string_equal(left_out(root, 0), "its context of 4096 tokens may be too short");
    assert_true(json_number_value(json_object_get(root, "tokens_most")) > SHORT);
    assert_true(json_number_value(json_object_get(root, "tokens_least")) < SHORT);
    json_decref(root);
    node_models_deny(node_router_model_table(r), 0, model, START_MS);
    root = explain(r, &request, START_MS);
    assert_string_equal(left_out(root, 0), "answered lately that it does not know the model");
    json_decref(root);
    alone_destroy(r);
}

/* --- models that nobody serves ---------------------------------------------------------------- */

static int asked_for(struct node_router *r, const char *name, uint64_t now_ms)
{
    struct node_request request = request_of(prompt(1, 100));
    request.model = slice_of_cstr(name);
    struct node_decision d;
    int err = node_router_place(r, &request, NULL, now_ms, &d);
    if (err == ERR_OK)
        done(r, d, now_ms);
    return err;
}

/* Down, and without a list so far: no reason to wait for a name that may be misspelt. */
static void a_down_replica_without_a_list_serves_no_new_model(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    assert_int_equal(node_router_models(r, 0, &model, 1), ERR_OK);
    assert_int_equal(asked_for(r, "typo", START_MS), ERR_OK); /* replica 1 may serve it */
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
    assert_int_equal(asked_for(r, "m", START_MS), ERR_OK);
    assert_int_equal(asked_for(r, "typo", START_MS), ERR_NOT_FOUND);
    /* The list, the answers or the label count as long as the replica exists. */
    node_router_model_served(r, 1, SLICE("learned"));
    assert_int_equal(asked_for(r, "learned", START_MS + 600000), ERR_UNREACHABLE);
    assert_int_equal(asked_for(r, "learned:adapter", START_MS + 600000), ERR_NOT_FOUND);
    assert_true(node_router_engine_found(r, 1, NODE_ENGINE_SGLANG)); /* SGLang's adapter names */
    assert_int_equal(asked_for(r, "learned:adapter", START_MS + 600000), ERR_UNREACHABLE);
    struct node_labels labels = {.model = SLICE("label")};
    node_router_labels(r, 1, &labels);
    assert_int_equal(asked_for(r, "label", START_MS + 600000), ERR_UNREACHABLE);
    node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS);
    assert_int_equal(asked_for(r, "m", START_MS + 600000), ERR_UNREACHABLE);
    alone_destroy(r);
}

static void without_any_list_a_down_replica_may_serve_all(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_OK);
    node_models_deny(node_router_model_table(r), 1, SLICE("x"), START_MS);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_UNREACHABLE);
    assert_int_equal(node_router_models(r, 1, &model, 1), ERR_OK);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_NOT_FOUND);
    node_router_probed(r, 1, (struct node_check){.refused = true},
                       START_MS); /* the list of a replica that is down may be old */
    assert_int_equal(asked_for(r, "x", START_MS), ERR_UNREACHABLE);
    alone_destroy(r);
}

/* A replica that never listed models may serve any: choosing it is a guess, if another replica is
 * known to serve the model. */
static void a_replica_without_a_list_is_a_guess(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct node_request request = request_of(prompt(1, 100));
    request.model = SLICE("new");
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS);
    node_router_probed(r, 1, (struct node_check){.ok = true}, START_MS);
    assert_false(node_router_is_guess(r, &request, 0)); /* the other has no list either */
    assert_int_equal(node_router_models(r, 1, &model, 1), ERR_OK);
    assert_true(node_router_is_guess(r, &request, 0));
    assert_false(node_router_is_guess(r, &request, 1));
    request.replica_wanted = 0;
    assert_false(node_router_is_guess(r, &request, 0));
    request.replica_wanted = -1;
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
    assert_false(node_router_is_guess(r, &request, 0));
    node_router_probed(r, 1, (struct node_check){.ok = true}, START_MS);
    node_router_model_served(r, 0, request.model);
    assert_false(node_router_is_guess(r, &request, 0));
    request.model = SLICE("new:adapter");
    assert_true(node_router_is_guess(r, &request, 0));
    assert_true(node_router_engine_found(r, 0, NODE_ENGINE_SGLANG));
    assert_false(node_router_is_guess(r, &request, 0));
    request.model = SLICE("m");
    assert_false(node_router_is_guess(r, &request, 0));
    request.model = SLICE("");
    assert_false(node_router_is_guess(r, &request, 0));
    alone_destroy(r);
}

/* The replicas chosen at time `now_ms`, a bit each, in many tries. */
static unsigned chosen_at(struct node_router *r, const struct node_request *request,
                          uint64_t now_ms)
{
    unsigned set = 0;
    for (unsigned i = 0; i < 60; i++) {
        struct node_decision d;
        assert_int_equal(node_router_place(r, request, NULL, now_ms, &d), ERR_OK);
        set |= 1u << d.replica;
        done(r, d, now_ms);
    }
    return set;
}

/* Replica 0 lists the model, and replica 1 lists nothing: 1 may be an engine, or a page. */
static void a_listing_replica_precedes_one_without_a_list(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct node_request request = long_request(100, 0);
    uint64_t now = START_MS, tried = 0;
    for (unsigned k = 0; k < 2; k++)
        node_router_probed(r, k, (struct node_check){.ok = true}, now);
    assert_int_equal(node_router_models(r, 0, &model, 1), ERR_OK);
    request.no_guess = true;
    assert_int_equal(chosen_at(r, &request, now), 1);
    request.no_guess = false;
    while (tried == 0) { /* after the first request there, others wait for a second */
        struct node_decision d;
        assert_int_equal(node_router_place(r, &request, NULL, now, &d), ERR_OK);
        tried = d.replica == 1 ? now : 0;
        done(r, d, now);
    }
    assert_int_equal(chosen_at(r, &request, tried + 999), 1);
    request.no_guess = true;
    assert_int_equal(chosen_at(r, &request, tried + 1000), 1);
    json_t *root = explain(r, &request, tried + 1000);
    assert_string_equal(left_out(root, 0), "has listed no models, and others list this one");
    json_decref(root);
    request.no_guess = false;
    root = explain(r, &request, tried + 1000); /* as most requests would be */
    assert_string_equal(left_out(root, 0), "has listed no models, and others list this one");
    json_decref(root);
    assert_int_equal(chosen_at(r, &request, tried + 1000), 3);
    /* If replica 0 is down, only replica 1 is chosen. */
    node_router_probed(r, 0, (struct node_check){.refused = true}, now);
    assert_int_equal(chosen_at(r, &request, tried + 1001), 2);
    node_router_probed(r, 0, (struct node_check){.ok = true}, now);
    assert_int_equal(chosen_at(r, &request, tried + 1002), 1);
    struct node_replica_set excluded = {{1}};
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, &excluded, tried + 1002, &d), ERR_OK);
    assert_int_equal(d.replica, 1);
    done(r, d, tried + 1002);
    /* Once replica 1 has answered for the model, both are chosen. */
    node_router_model_served(r, 1, model);
    assert_int_equal(chosen_at(r, &request, tried + 1002), 3);
    node_models_doubt(node_router_model_table(r), 1, model);
    assert_int_equal(chosen_at(r, &request, tried + 1002), 1);
    assert_true(node_router_engine_found(r, 1, NODE_ENGINE_SGLANG)); /* accepts any name */
    assert_int_equal(chosen_at(r, &request, tried + 1002), 3);
    alone_destroy(r);
}

/* Without a list nothing changes: the others may also serve a model answered by any replica. */
static void an_unlisted_model_goes_to_all_replicas_alike(void **state)
{
    (void)state;
    struct node_router *r = make("random", 3);
    struct node_request request = long_request(100, 0);
    request.no_guess = true;
    node_router_model_served(r, 0, model);
    assert_int_equal(chosen_at(r, &request, START_MS), 7);
    struct slice other = SLICE("other");
    assert_int_equal(node_router_models(r, 1, &other, 1), ERR_OK);
    assert_int_equal(chosen_at(r, &request, START_MS), 5);
    alone_destroy(r);
}

static void a_request_without_a_model_goes_to_all_replicas(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct node_request request = long_request(100, 0);
    assert_int_equal(node_router_models(r, 0, &model, 1), ERR_OK);
    request.model = SLICE("");
    request.no_guess = true;
    assert_int_equal(chosen_at(r, &request, START_MS), 3);
    alone_destroy(r);
}

static bool knows(const struct node_router *r, const char *name)
{
    return node_router_model_known(r, slice_of_cstr(name));
}

static void a_failed_list_clears_the_known_models(void **state)
{
    (void)state;
    struct node_router *r = make("random", 1);
    assert_int_equal(node_router_models(r, 0, &model, 1), ERR_OK);
    assert_false(node_router_context_listed(r, 0, SHORT));
    assert_true(node_router_models_none(r, 0, 404)); /* a different process */
    assert_true(!knows(r, "m") && !node_models_listed(node_router_model_table(r), 0));
    assert_int_equal(node_router_context(r, 0), 0);
    assert_false(node_router_models_none(r, 0, 404)); /* no news */
    node_router_model_served(r, 0, SLICE("own"));
    assert_false(node_router_models_none(r, 0, 404)); /* still: never lists */
    assert_true(knows(r, "own"));
    node_router_models_stale(r, 0, true); /* perhaps a new process */
    assert_false(node_router_models_none(r, 0, 404));
    assert_false(knows(r, "own"));
    struct node_labels labels = {.model = SLICE("label")};
    node_router_labels(r, 0, &labels);
    assert_false(node_router_models_none(r, 0, 404));
    assert_true(knows(r, "label") && node_models_listed(node_router_model_table(r), 0));
    node_router_models_asked(r, 0, START_MS);
    assert_int_equal(node_router_models(r, 0, &model, 1), ERR_OK);
    assert_false(node_router_models_none(r, 0, 404)); /* the label is sufficient */
    assert_true(knows(r, "label") && !knows(r, "m"));
    alone_destroy(r);
}

/* The router has a single source, which lists no replica. */
static struct discover *sourced(struct node_router *r)
{
    static struct log quiet;
    struct discover_host host = node_router_discover_host(r);
    struct discover *d;
    log_init(&quiet, NULL, NULL, NULL);
    quiet.level = LOG_ERROR;
    assert_int_equal(discover_create(&d, &host, &quiet), ERR_OK);
    assert_int_equal(discover_source(d, "dns", SLICE("engines:8000")), 0);
    node_router_sources(r, d);
    return d;
}

/* Scaled to zero. */
static void a_model_named_by_a_source_is_not_unknown(void **state)
{
    (void)state;
    struct node_router *r = make("random", 1);
    assert_int_equal(node_router_models(r, 0, &model, 1), ERR_OK);
    struct discover *d = sourced(r);
    assert_true(node_router_model_away(r, SLICE("x")));
    assert_int_equal(asked_for(r, "x", START_MS), ERR_UNREACHABLE); /* nothing listed yet */
    struct node_labels labels = {.model = SLICE("x")};
    assert_int_equal(discover_source_labels(d, 0, &labels), ERR_OK);
    assert_int_equal(asked_for(r, "typo", START_MS), ERR_NOT_FOUND);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_UNREACHABLE);
    assert_int_equal(asked_for(r, "x:adapter", START_MS), ERR_UNREACHABLE);
    assert_int_equal(asked_for(r, "m", START_MS), ERR_OK);
    assert_true(node_router_model_away(r, SLICE("x")) &&
                node_router_model_away(r, SLICE("x:adapter")));
    assert_false(node_router_model_away(r, SLICE("typo")) || node_router_model_away(r, model));
    labels = (struct node_labels){.model = SLICE("x"), .adapters_on_demand = true};
    assert_int_equal(discover_source_labels(d, 0, &labels), ERR_OK);
    assert_int_equal(asked_for(r, "adapter", START_MS), ERR_UNREACHABLE);
    discover_destroy(d);
    node_router_sources(r, NULL);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_NOT_FOUND);
    assert_false(node_router_model_away(r, SLICE("x")));
    node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS);
    assert_true(node_router_model_away(r, model)); /* all that list it are down */
    alone_destroy(r);
}

/* An SGLang answers any name; a label gives the model to another replica. */
static void sglang_gets_no_model_labelled_for_others(void **state)
{
    (void)state;
    struct node_router *r = make("random", 1);
    struct node_labels zero = {.model = SLICE("x")}, own = {.engine = NODE_ENGINE_SGLANG},
                       loads = {.engine = NODE_ENGINE_SGLANG, .adapters_on_demand = true};
    struct discover *d = sourced(r);
    assert_int_equal(discover_source_labels(d, 0, &zero), ERR_OK);
    node_router_labels(r, 0, &own);
    assert_int_equal(asked_for(r, "typo", START_MS), ERR_OK);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_UNREACHABLE); /* no list yet */
    assert_int_equal(node_router_models(r, 0, &model, 1), ERR_OK);
    assert_int_equal(asked_for(r, "typo", START_MS), ERR_OK);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_UNREACHABLE);
    assert_int_equal(asked_for(r, "x:adapter", START_MS), ERR_UNREACHABLE);
    assert_int_equal(asked_for(r, "m:adapter", START_MS), ERR_OK);
    node_router_labels(r, 0, &loads);
    assert_int_equal(asked_for(r, "adapter", START_MS), ERR_OK);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_UNREACHABLE);
    own.model = SLICE("x"); /* the label means this replica, whatever the list */
    node_router_labels(r, 0, &own);
    assert_int_equal(asked_for(r, "x", START_MS), ERR_OK);
    node_router_sources(r, NULL);
    discover_destroy(d);
    alone_destroy(r);
}

/* The address may have another process by now. */
static void a_stale_list_is_avoided(void **state)
{
    (void)state;
    struct node_router *r = router_of((const uint32_t[]){0, 0}, 2);
    struct node_request request = long_request(100, 0);
    node_router_models_stale(r, 0, true);
    assert_int_equal(chosen(r, &request, ERR_OK), 2);
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
    assert_int_equal(chosen(r, &request, ERR_OK), 1);
    node_router_models_stale(r, 0, false);
    node_router_probed(r, 1, (struct node_check){.ok = true}, START_MS);
    assert_int_equal(chosen(r, &request, ERR_OK), 3);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_request_goes_to_a_long_enough_context),
        cmocka_unit_test(an_oversized_request_goes_to_the_longest_context),
        cmocka_unit_test(an_unknown_context_is_preferred_to_a_short_one),
        cmocka_unit_test(a_short_context_is_tried_if_no_longer_is_up),
        cmocka_unit_test(a_full_replica_with_a_long_context_is_waited_for),
        cmocka_unit_test(after_a_refusal_only_longer_contexts_are_tried),
        cmocka_unit_test(a_new_list_replaces_server_infos_context),
        cmocka_unit_test(a_context_label_outranks_engines_reports),
        cmocka_unit_test(batches_only_prefer_a_long_context),
        cmocka_unit_test(explain_names_contexts_that_are_too_short),
        cmocka_unit_test(a_down_replica_without_a_list_serves_no_new_model),
        cmocka_unit_test(without_any_list_a_down_replica_may_serve_all),
        cmocka_unit_test(a_replica_without_a_list_is_a_guess),
        cmocka_unit_test(a_listing_replica_precedes_one_without_a_list),
        cmocka_unit_test(an_unlisted_model_goes_to_all_replicas_alike),
        cmocka_unit_test(a_request_without_a_model_goes_to_all_replicas),
        cmocka_unit_test(a_failed_list_clears_the_known_models),
        cmocka_unit_test(a_model_named_by_a_source_is_not_unknown),
        cmocka_unit_test(sglang_gets_no_model_labelled_for_others),
        cmocka_unit_test(a_stale_list_is_avoided),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
