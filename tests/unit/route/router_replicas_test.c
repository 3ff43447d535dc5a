/* Possible choices of a router: names, health, models, drains. */
#include "node/route/router_internal.h"

#include "base/check.h"
#include "node/replica/model.h"
#include "tests/lib/router_help.h"

/* --- replicas ------------------------------------------------------------------------------- */

static void replicas_have_unique_names(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    assert_int_equal(node_router_name(r, SLICE("host-1:8000"), NODE_ENGINE_VLLM), 1);
    assert_int_equal(node_router_name(r, SLICE(""), NODE_ENGINE_VLLM), ERR_RANGE);
    char text[NODE_NAME_MAX + 1];
    memset(text, 'n', sizeof text);
    assert_int_equal(node_router_name(r, slice_of(text, sizeof text), NODE_ENGINE_VLLM), ERR_RANGE);
    assert_int_equal(node_router_name(r, slice_of(text, sizeof text - 1), NODE_ENGINE_AUTO), 2);
    for (unsigned i = 3; i < 1024; i++) { /* by default */
        int len = snprintf(text, sizeof text, "more-%u", i);
        assert_int_equal(node_router_name(r, slice_of(text, (size_t)len), NODE_ENGINE_AUTO), i);
    }
    node_router_tick(r, START_MS + 60000); /* so that the names differ in age */
    assert_int_equal(node_router_name(r, SLICE("one too many"), NODE_ENGINE_AUTO), ERR_FULL);
    assert_slice_equal(node_router_replica_name(r, 1), "host-1:8000");
    assert_int_equal(node_router_replica_count(r), 1024);
    node_router_replica_engine_set(r, 2, NODE_ENGINE_SGLANG);
    assert_int_equal(node_router_replica_engine(r, 2), NODE_ENGINE_SGLANG);
    alone_destroy(r);
}

static void unprobed_replicas_serve_only_as_a_last_choice(void **state)
{
    (void)state;
    struct node_router *r = make("random", 0);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    assert_false(node_router_ready(r));
    assert_int_equal(node_router_name(r, SLICE("a"), NODE_ENGINE_AUTO), 0);
    assert_int_equal(node_router_name(r, SLICE("b"), NODE_ENGINE_AUTO), 1);
    assert_false(node_router_ready(r)); /* none seen up yet */
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    node_router_probed(r, 1, (struct node_check){.ok = true}, START_MS);
    assert_true(node_router_ready(r));
    for (int i = 0; i < 20; i++) {
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
        assert_int_equal(d.replica, 1);
    }
    struct node_replica_set excluded = {{1u << 1}};
    assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 0);
    alone_destroy(r);
}

/* Full is not down: ERR_AGAIN only if all candidates are at their limit. An avoided replica is not
 * taken instead. */
static void a_full_replica_is_skipped(void **state)
{
    (void)state;
    static const char *const policies[] = {"cache_aware", "random", "session"};
    for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
        struct node_config config = config_of(policies[i]);
        config.router.replica_requests_max = 2;
        struct node_router *r = alone_router(&config);
        static const struct slice names[] = {{"a", 1}, {"b", 1}, {"c", 1}};
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(node_router_name(r, names[k], NODE_ENGINE_VLLM), (int)k);
            node_router_probed(r, k, (struct node_check){.ok = true}, START_MS);
        }
        node_router_replica_at(r, 2)->trouble.failing.until_ms = START_MS + 1000;
        struct node_request request = request_of(prompt(1, 4000));
        request.session = SLICE("me");
        struct node_decision d[6];
        unsigned taken[3] = {0};
        for (unsigned n = 0; n < 4; n++) {
            assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[n]), ERR_OK);
            taken[d[n].replica]++;
        }
        assert_int_equal(taken[0], 2);
        assert_int_equal(taken[1], 2);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[4]), ERR_AGAIN);
        assert_int_equal(node_router_place_by_load(r, &request, NULL, START_MS, &d[4]), ERR_AGAIN);
        done(r, d[3], START_MS);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[3]), ERR_OK);
        node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS);
        node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[4]), ERR_OK);
        assert_int_equal(d[4].replica, 2); /* no other replica */
        node_router_probed(r, 2, (struct node_check){.refused = true}, START_MS);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[5]), ERR_UNREACHABLE);
        for (unsigned n = 0; n < 5; n++)
            done(r, d[n], START_MS);
        alone_destroy(r);
    }
}

/* A replica that warms up, or was busy, does work: it is used before any request waits. */
static void no_request_waits_while_a_replica_has_capacity(void **state)
{
    (void)state;
    struct node_config config = config_of("cache_aware");
    config.router.replica_requests_max = 6;
    struct node_router *r = alone_router(&config);
    static const struct slice names[] = {{"a", 1}, {"b", 1}};
    for (unsigned k = 0; k < 2; k++) {
        assert_int_equal(node_router_name(r, names[k], NODE_ENGINE_VLLM), (int)k);
        node_router_probed(r, k, (struct node_check){.ok = true}, START_MS);
    }
    struct node_replica *b = node_router_replica_at(r, 1);
    b->trouble.back_ms = START_MS; /* takes 4 in the first second */
    struct node_request request = request_of(prompt(1, 4000));
    struct node_decision d[13];
    unsigned taken[2] = {0};
    for (unsigned n = 0; n < 12; n++) {
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[n]), ERR_OK);
        taken[d[n].replica]++;
        assert_true(taken[1] <= 4 || taken[0] == 6); /* more than 4 only if the other is full */
    }
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d[12]), ERR_AGAIN);
    unsigned there = d[11].replica == 1 ? 11 : 10;
    node_router_finish(r, d[there].booking, NODE_OUTCOME_ENGINE_BUSY, NULL, START_MS);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS + 249, &d[there]), ERR_AGAIN);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS + 250, &d[there]), ERR_OK);
    assert_int_equal(d[there].replica, 1);
    node_router_finish(r, d[there].booking, NODE_OUTCOME_ENGINE_BUSY, NULL, START_MS + 250);
    for (unsigned n = 0; n < 12; n++) { /* a request there ends, so there is room */
        if (n == there || d[n].replica != 1)
            continue;
        done(r, d[n], START_MS + 251);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS + 251, &d[n]), ERR_OK);
        assert_int_equal(d[n].replica, 1);
        break;
    }
    for (unsigned n = 0; n < 12; n++) {
        if (n != there)
            done(r, d[n], START_MS + 252);
    }
    alone_destroy(r);
}

static void requests_go_to_replicas_with_their_model(void **state)
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
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
        seen[d.replica]++;
        request.model = SLICE("llama-lora");
        assert_int_equal(node_router_place_by_load(r, &request, NULL, START_MS, &d), ERR_OK);
        assert_int_equal(d.replica, 0);
    }
    assert_true(seen[0] == 0 && seen[1] > 20 && seen[2] > 20);
    request.model = SLICE("nobody knows");
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    request.model = SLICE("llama");
    node_router_probed(r, 0, (struct node_check){.refused = true}, START_MS);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    node_router_check(r);
    alone_destroy(r);
}

static void a_requested_replica_is_the_only_choice(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    request.replica_wanted = 2;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
        assert_int_equal(d.replica, 2);
    }
    node_router_replica_drain(r, 2, true);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    request.replica_wanted = 77;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
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
    struct node_replica_set excluded = {{1u << (1 - busy)}};
    struct node_request request = request_of(NULL);
    assert_int_equal(node_router_place(r, &request, &excluded, START_MS + 500, &d), ERR_OK);
    assert_int_equal(d.replica, busy);
    unsigned seen = 0;
    for (int i = 0; i < 10; i++)
        seen += choose(r, NULL, START_MS + 1500).replica == busy;
    assert_int_equal(seen, 5);
    alone_destroy(r);
}

/* A draining server answers the health check and fails each request at once: the queue is always
 * empty, which must not attract everything. */
static void an_instantly_failing_replica_attracts_no_requests(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    uint64_t now = START_MS;
    unsigned failed = 0;
    for (unsigned i = 0; i < 3000; i++, now += 10) {
        if (i % 100 == 0)
            node_router_probed(r, 1, (struct node_check){.ok = true}, now);
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
    /* Once the server works, a single request shows it, and the others come too. */
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

enum { THIRD = 3 };

/* 100 requests a second for 30 s. At the first `bad` replicas of four, every third request ends
 * with `outcome`, after the first token. Returns the number of such requests. */
static unsigned ends_every_third(struct node_router *r, unsigned bad, enum node_outcome outcome,
                                 uint64_t *now)
{
    unsigned at[4] = {0}, failed = 0;
    for (unsigned i = 0; i < 3000; i++, *now += 10) {
        struct node_decision d = choose(r, prompt(i, 2000), *now);
        if (d.replica < bad && ++at[d.replica] % THIRD == 0) {
            node_router_first_byte(r, d.booking, *now);
            node_router_finish(r, d.booking, outcome, NULL, *now);
            failed++;
        } else {
            done(r, d, *now);
        }
    }
    return failed;
}

/* The replica has no failures in a row. */
static void a_replica_breaking_some_answers_is_avoided(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 4);
    uint64_t now = START_MS;
    assert_in_range(ends_every_third(r, 1, NODE_OUTCOME_BROKEN, &now), 1, 60); /* not 250 */
    assert_int_equal(node_router_replica_health(r, 0), NODE_HEALTH_UP);
    /* A replica is used as before once it works again: the failures are old by then. */
    now += 60000;
    unsigned served = 0;
    for (unsigned i = 0; i < 3000; i++, now += 10) {
        struct node_decision d = choose(r, prompt(10000 + i, 2000), now);
        served += d.replica == 0;
        done(r, d, now);
    }
    assert_true(served > 500);
    assert_false(node_router_replica_backing_off(r, 0, now));
    alone_destroy(r);
}

/* Failures of all replicas alike are no reason to avoid one. Nor are failures that a request may
 * cause, nor a full queue: a client could empty a replica that way. */
static void common_failures_do_not_make_a_replica_avoided(void **state)
{
    (void)state;
    static const enum node_outcome outcomes[] = {NODE_OUTCOME_ENGINE_ERROR, NODE_OUTCOME_IN_DOUBT,
                                                 NODE_OUTCOME_ENGINE_BUSY,
                                                 NODE_OUTCOME_CLIENT_GONE};
    for (size_t i = 0; i <= ARRAY_LEN(outcomes); i++) {
        struct node_router *r = make("cache_aware", 4);
        uint64_t now = START_MS;
        bool all = i == ARRAY_LEN(outcomes);
        (void)ends_every_third(r, all ? 4 : 1, all ? NODE_OUTCOME_BROKEN : outcomes[i], &now);
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(node_router_replica_at(r, k)->trouble.failing.level, 0);
        alone_destroy(r);
    }
}

/* Removing and adding a replica means it is repaired or replaced. */
static void a_re_added_replica_starts_clean(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct slice name = node_router_replica_name(r, 1);
    struct node_decision d;
    struct node_request request = request_of(NULL);
    struct node_replica_set excluded = {{1u}};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_OK);
        node_router_finish(r, d.booking, NODE_OUTCOME_ENGINE_ERROR, NULL, START_MS);
    }
    assert_true(node_router_replica_backing_off(r, 1, START_MS));
    assert_int_equal(node_router_replica_wish(r, name, NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO), 1);
    assert_int_equal(node_router_replica_wish(r, name, NODE_REPLICA_ADD, NODE_ENGINE_AUTO), 1);
    assert_false(node_router_replica_backing_off(r, 1, START_MS));
    assert_int_equal(node_router_replica_health(r, 1), NODE_HEALTH_UNKNOWN);
    alone_destroy(r);
}

/* Requests answered with 500 by every engine, in any number. */
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
    for (unsigned i = 0; i < 30; i++) /* all back off: all are usable together */
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
        assert_int_equal(node_router_place(r, &request, NULL, now_ms, &d), ERR_OK);
        seen |= 1u << d.replica;
    }
    return seen;
}

/* Engines with a required API key: clients' requests are the only evidence of their models. */
static void a_replica_that_denied_a_model_is_skipped(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    for (unsigned k = 0; k < 2; k++)
        node_router_probe_answered(r, k, NODE_PROBE_MODELS, 401);
    assert_int_equal(seen_of(r, "m", START_MS, 50), 3);
    node_models_deny(node_router_model_table(r), 0, SLICE("m"), START_MS);
    node_router_model_served(r, 1, SLICE("m"));
    assert_int_equal(seen_of(r, "m", START_MS, 50), 2);
    assert_int_equal(seen_of(r, "other", START_MS, 50), 3);
    assert_true(node_router_model_known(r, SLICE("m")));
    assert_int_equal(seen_of(r, "m", START_MS + NODE_MODELS_DENIED_MS, 50), 3);
    /* All replicas denied the model: the router still asks a replica, but not again for the same
     * request. */
    node_models_deny(node_router_model_table(r), 1, SLICE("m"), START_MS);
    node_models_deny(node_router_model_table(r), 0, SLICE("m"), START_MS);
    assert_int_equal(seen_of(r, "m", START_MS, 50), 3);
    struct node_request request = request_of(NULL);
    request.model = SLICE("m");
    request.model_likely = true;
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    node_router_check(r);
    alone_destroy(r);
}

/* The replica may be repaired since: it is asked once before a request is refused. */
static void a_denying_replica_is_asked_if_no_other_is_up(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct slice m = SLICE("m");
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(node_router_models(r, k, &m, 1), ERR_OK);
    node_models_deny(node_router_model_table(r), 0, m, START_MS);
    assert_int_equal(seen_of(r, "m", START_MS, 50), 2);
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS); /* the port refuses */
    assert_int_equal(seen_of(r, "m", START_MS, 50), 1);
    struct node_request request = request_of(NULL);
    request.model = m;
    request.model_likely = true;
    struct node_decision d;
    assert_int_not_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    alone_destroy(r);
}

static void a_refused_list_forgets_the_models(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct slice ids[] = {SLICE("a"), SLICE("b")};
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(node_router_models(r, k, &ids[k], 1), ERR_OK);
    node_router_probe_answered(r, 0, NODE_PROBE_METRICS, 403);
    assert_true(node_models_listed(node_router_model_table(r), 0));
    assert_int_equal(node_router_replica(r, 0)->server.probes_refused, 1u << NODE_PROBE_METRICS);
    assert_int_equal(seen_of(r, "b", START_MS, 50), 2);
    node_router_probe_answered(r, 0, NODE_PROBE_MODELS, 401);
    assert_false(node_models_listed(node_router_model_table(r), 0));
    assert_int_equal(seen_of(r, "b", START_MS, 50), 3);
    node_router_probe_answered(r, 0, NODE_PROBE_METRICS, 404);
    node_router_probe_answered(r, 0, NODE_PROBE_MODELS, 200);
    assert_int_equal(node_router_replica(r, 0)->server.probes_refused, 0);
    node_router_check(r);
    alone_destroy(r);
}

/* SGLang serves any name in a request. */
static void an_unknown_model_goes_to_sglang(void **state)
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
    /* A replica without a list may serve the very name: it comes first. */
    node_router_probe_answered(r, 2, NODE_PROBE_MODELS, 401);
    assert_int_equal(seen_of(r, "nope", START_MS, 30), 4);
    node_models_deny(node_router_model_table(r), 2, SLICE("nope"), START_MS);
    assert_int_equal(seen_of(r, "nope", START_MS, 30), 2);
    node_router_model_served(r, 1, SLICE("nope")); /* says nothing */
    assert_false(node_router_model_known(r, SLICE("nope")));
    node_router_replica_engine_set(r, 1, NODE_ENGINE_VLLM);
    request.model = SLICE("nobody");
    node_models_deny(node_router_model_table(r), 2, request.model, START_MS);
    request.model_likely = true;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    node_router_check(r);
    alone_destroy(r);
}

static void an_adapter_goes_to_its_base_model(void **state)
{
    (void)state;
    struct node_router *r = make("random", 4);
    struct slice ids[] = {SLICE("base"), SLICE("other")};
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(node_router_models(r, k, ids, 1), ERR_OK);
    assert_int_equal(node_router_models(r, 3, &ids[1], 1), ERR_OK);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    request.model = SLICE("base:poems"); /* all are vLLM, which would have listed the name */
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    node_router_replica_engine_set(r, 1, NODE_ENGINE_SGLANG);
    node_router_replica_engine_set(r, 2, NODE_ENGINE_AUTO);
    node_router_replica_engine_set(r, 3, NODE_ENGINE_SGLANG);
    unsigned seen[4] = {0};
    for (int i = 0; i < 50; i++) {
        assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
        seen[d.replica]++;
    }
    assert_true(seen[0] == 0 && seen[1] > 10 && seen[2] > 10 && seen[3] == 0);
    struct slice listed[] = {SLICE("base"), SLICE("base:poems")};
    assert_int_equal(node_router_models(r, 0, listed, 2), ERR_OK); /* now it lists everything */
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 0);
    alone_destroy(r);
}

/* An engine that loads adapters on demand is asked for unlisted names, and for names that others of
 * the same base list; a 404 there counts. */
static void unlisted_adapters_go_to_engines_with_loading_on_demand(void **state)
{
    (void)state;
    struct node_router *r = make("random", 4);
    struct slice llama[] = {SLICE("llama"), SLICE("sql")}, qwen[] = {SLICE("qwen")};
    struct node_labels on_demand = {.adapters_on_demand = true};
    assert_int_equal(node_router_models(r, 0, llama, 2), ERR_OK);
    node_models_adapter(node_router_model_table(r), SLICE("sql"), SLICE("llama"));
    for (unsigned k = 1; k < 3; k++)
        assert_int_equal(node_router_models(r, k, llama, 1), ERR_OK);
    assert_int_equal(node_router_models(r, 3, qwen, 1), ERR_OK);
    assert_int_equal(seen_of(r, "sql", START_MS, 30), 1);
    node_router_labels(r, 1, &on_demand);
    node_router_labels(r, 3, &on_demand);
    assert_int_equal(seen_of(r, "sql", START_MS, 60), 1 | 2);   /* not if the base differs */
    assert_int_equal(seen_of(r, "poems", START_MS, 60), 2 | 8); /* the base is unknown */
    assert_int_equal(seen_of(r, "llama", START_MS, 60), 1 | 2 | 4);
    node_models_deny(node_router_model_table(r), 3, SLICE("poems"), START_MS);
    assert_int_equal(seen_of(r, "poems", START_MS + 1000, 60), 2);
    assert_int_equal(seen_of(r, "poems", START_MS + 61000, 60), 2 | 8);
    assert_int_equal(seen_of(r, "qwen", START_MS, 60), 8);
    on_demand.adapters_on_demand = false;
    node_router_labels(r, 1, &on_demand);
    assert_int_equal(seen_of(r, "sql", START_MS, 30), 1);
    node_router_check(r);
    alone_destroy(r);
}

/* A replica with a cut list may have the model: it is asked, and the engine decides about a 404. */
static void models_beyond_a_cut_list_are_requested(void **state)
{
    (void)state;
    struct node_router *r = make("random", 2);
    struct slice ids[] = {SLICE("base"), SLICE("first")};
    for (unsigned k = 0; k < 2; k++)
        assert_int_equal(node_router_models(r, k, ids, 2), ERR_OK);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    request.model = SLICE("last");
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    node_models_unlist(node_router_model_table(r), 1);
    assert_int_equal(seen_of(r, "last", START_MS, 30), 2);
    assert_int_equal(seen_of(r, "first", START_MS, 60), 3);
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_have_unique_names),
        cmocka_unit_test(a_re_added_replica_starts_clean),
        cmocka_unit_test(unprobed_replicas_serve_only_as_a_last_choice),
        cmocka_unit_test(a_full_replica_is_skipped),
        cmocka_unit_test(no_request_waits_while_a_replica_has_capacity),
        cmocka_unit_test(requests_go_to_replicas_with_their_model),
        cmocka_unit_test(a_requested_replica_is_the_only_choice),
        cmocka_unit_test(a_busy_replica_is_avoided_for_a_second),
        cmocka_unit_test(an_instantly_failing_replica_attracts_no_requests),
        cmocka_unit_test(a_replica_breaking_some_answers_is_avoided),
        cmocka_unit_test(common_failures_do_not_make_a_replica_avoided),
        cmocka_unit_test(clients_cannot_take_the_fleet_down),
        cmocka_unit_test(a_replica_that_denied_a_model_is_skipped),
        cmocka_unit_test(a_denying_replica_is_asked_if_no_other_is_up),
        cmocka_unit_test(a_refused_list_forgets_the_models),
        cmocka_unit_test(an_unknown_model_goes_to_sglang),
        cmocka_unit_test(an_adapter_goes_to_its_base_model),
        cmocka_unit_test(unlisted_adapters_go_to_engines_with_loading_on_demand),
        cmocka_unit_test(models_beyond_a_cut_list_are_requested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
