#include "node/route/policy.h"
#include "node/route/router.h"

#include "tests/lib/router_help.h"

/* --- the rule ------------------------------------------------------------------------------- */

static void a_conversation_stays_with_its_cache(void **state)
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

static void costs_match_hand_arithmetic(void **state)
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
    /* o = 256 expected, b = 30 ns, K = 20,000 + 128, n = 1 and at both replicas half as much. */
    assert_near(explained(root, with, "decode_s"),
                (256 * 30e-9 * 20128 + 30e-9 * 4096 * 256 / 2 + 0.4096) * 8 / 8.5, 1e-6);
    assert_near(explained(root, without, "cost_s"), 0.4096, 1e-6);
    assert_true(json_is_false(
        json_object_get(json_array_get(json_object_get(root, "replicas"), 0), "due")));
    assert_string_equal(json_string_value(json_object_get(root, "choice")),
                        without ? "host-1:8000" : "host-0:8000");
    json_decref(root);

    /* Half a minute later the answer is done: the same prompt is cached up to the last
     * checkpoint. */
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

/* A full cache costs the evicted blocks; an empty cache costs nothing. */
static void new_content_goes_to_an_empty_cache(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_request request = request_of(NULL);
    request.replica_wanted = 0;
    for (unsigned i = 0; i < 5; i++) { /* fills the 100,000 tokens of replica 0 */
        struct node_decision d;
        request.chain = prompt(100 + i, 20000);
        request.body_bytes = request.chain->bytes;
        assert_int_equal(node_router_place(r, &request, NULL, START_MS + i * 3000ull, &d), ERR_OK);
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
    /* The oldest prompt is believed evicted once other prompts have taken its place. */
    request.replica_wanted = 0;
    for (unsigned i = 0; i < 4; i++) {
        struct node_decision d;
        request.chain = prompt(300 + i, 20000);
        assert_int_equal(node_router_place(r, &request, NULL, START_MS + 40000 + i * 3000ull, &d),
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

/* Requests without a chain (short, or not understood) displace as much as others do, and must see
 * the present contents. On a machine up for a month, after a start with only such requests, beliefs
 * were never counted at all. */
static void short_prompts_count_evicted_blocks(void **state)
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
    node_router_probed(r, 0, (struct node_check){.refused = true},
                       month_ms + 31000); /* all forgotten */
    node_router_probed(r, 0, (struct node_check){.ok = true}, month_ms + 32000);
    root = explain(r, &request, month_ms + 33000);
    assert_near(explained(root, 0, "displaced_s"), 0, 0);
    json_decref(root);
    root = replicas_json(r, month_ms + 33000);
    assert_near(believed(root, 0, "cache", "present_bytes"), 0, 0);
    json_decref(root);
    alone_destroy(r);
}

static void a_restart_clears_the_believed_cache(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 2);
    struct node_decision d = choose(r, prompt(1, 20000), START_MS);
    done(r, d, START_MS + 1000);
    struct node_scrape s = node_scrape_unknown;
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
    node_router_probed(r, again.replica, (struct node_check){.refused = true},
                       START_MS + 6000); /* the port refuses */
    node_router_probed(r, again.replica, (struct node_check){.ok = true}, START_MS + 7000);
    root = explain(r, &request, START_MS + 7000);
    assert_near(explained(root, again.replica, "cached_tokens"), 0, 0);
    json_decref(root);
    node_router_check(r);
    alone_destroy(r);
}

/* --- learning ------------------------------------------------------------------------------- */

/* An engine of 2,500 tokens a second, 3 bytes a token, steps of 10 ms + 15 ns a token, and answers
 * of 300 tokens. The router starts from other beliefs and learns these. */
static void speeds_and_token_ratio_are_learned(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    uint64_t now = START_MS;
    for (unsigned i = 0; i < 300; i++) {
        unsigned tokens = 3000 + i % 7 * 20000;
        struct chain *chain = prompt(1000 + i, tokens * 3 / 4); /* 3 bytes a token */
        struct node_decision d = choose(r, chain, now);
        now += tokens * 1000ull / 2500;
        node_router_first_byte(r, d.booking, now);
        double context = tokens + 128.0;
        now += (uint64_t)(299 * (10 + context * 15e-6));
        struct node_usage usage = {tokens, 0, 300, {0}};
        node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, now);
        now += 50;
    }
    node_router_tick(r, now);
    json_t *root = replicas_json(r, now);
    assert_near(believed(root, 0, "learned", "prefill_tokens_per_s"), 2500, 0.03);
    assert_near(believed(root, 0, "learned", "decode_step_ms"), 10, 0.05);
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

/* Token ids have four bytes each by definition: the same model's ratio for text does not apply. */
static void token_ids_do_not_teach_bytes_per_token(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_usage usage = {10000, 0, 100, {0}};
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

/* A replica serves two models, of 2 and of 4 bytes a token: the used share of the cache does not
 * depend on the next request's model. */
static void a_belief_does_not_depend_on_the_next_model(void **state)
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
        assert_int_equal(node_router_place(r, &request, NULL, now, &d), ERR_OK);
        struct node_usage usage = {10000, 0, 100, {0}};
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
    assert_near(displaced_s[1], displaced_s[0], 0.25); /* 20 s later */
    alone_destroy(r);
}

/* A default that is far too low must not keep replicas unused for ever: they are believed to be
 * like replicas with evidence. (Seen in the simulator: one of eight replicas was never used.) */
static void untried_replicas_are_believed_like_the_others(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 3);
    struct node_decision d = choose(r, prompt(1, 20000), START_MS);
    node_router_first_byte(r, d.booking, START_MS + 200); /* 100,000 tokens a second */
    struct node_usage usage = {20000, 0, 100, {0}};
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

/* An unknown replica was believed to be like the others. So the first prompt counted as long
 * computed, and prompt after prompt was placed behind it. */
static void a_late_first_token_lowers_the_believed_speed(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_decision d = choose(r, prompt(1, 5000), START_MS);
    struct node_request request = request_of(prompt(2, 1000));
    json_t *root = explain(r, &request, START_MS + 400);
    assert_near(explained(root, 0, "queue_s"), 0.1, 1e-6);
    assert_near(explained(root, 0, "uncached_s"), 0.1, 0.01);
    json_decref(root);
    root = explain(r, &request, START_MS + 10000); /* 500 tokens/s at most */
    assert_near(explained(root, 0, "uncached_s"), 2, 0.01);
    json_decref(root);
    done(r, d, START_MS + 10000);
    alone_destroy(r);
}

/* At a replica known to be fast, a prompt not yet begun proves nothing about speed, but shows an
 * obstacle: a full memory, a stall. The replica had no queue. */
static void a_late_prompt_counts_as_a_queue(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    uint64_t now_ms = START_MS;
    for (unsigned i = 0; i < 10; i++, now_ms += 1000) {
        struct node_decision known = choose(r, prompt(10 + i, 5000), now_ms);
        node_router_first_byte(r, known.booking, now_ms + 500);
        done(r, known, now_ms + 600);
    }
    struct node_decision d = choose(r, prompt(1, 5000), now_ms);
    struct node_request request = request_of(prompt(2, 1000));
    json_t *root = explain(r, &request, now_ms + 700);
    assert_near(explained(root, 0, "queue_s"), 0, 0);
    json_decref(root);
    root = explain(r, &request, now_ms + 5000);
    assert_near(explained(root, 0, "queue_s"), 3.9, 0.01); /* the time twice, and the surplus */
    assert_near(explained(root, 0, "uncached_s"), 0.1, 0.01);
    json_decref(root);
    done(r, d, now_ms + 5000);
    alone_destroy(r);
}

/* Answers of 4xx and 5xx without computing. */
static void refused_requests_teach_nothing(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_scrape s = {.cache_tokens = 100000, .start_time_s = -1};
    assert_false(node_router_scraped(r, 0, &s, START_MS));
    for (unsigned i = 0; i < 50; i++) {
        struct node_decision d = choose(r, prompt(i / 2, 20000), START_MS + i);
        node_router_finish(r, d.booking, i % 2 ? NODE_OUTCOME_OK : NODE_OUTCOME_ENGINE_ERROR, NULL,
                           START_MS + i + 1);
    }
    /* The engine counts as many tokens as were sent, all computed: if the window still had them,
     * the belief would shrink. */
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

/* A retry for which no replica is left passes the first answer on: the request was routed. */
static void a_retry_without_a_replica_is_not_unroutable(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    struct node_request request = request_of(NULL);
    struct node_decision d;
    struct node_replica_set excluded = {{1}}, nobody = {{0}};
    assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_UNREACHABLE);
    assert_int_equal(node_router_place_by_load(r, &request, &excluded, START_MS, &d),
                     ERR_UNREACHABLE);
    assert_near(metric(r, "grapevine_unroutable_total"), 0, 0);
    node_router_replica_drain(r, 0, true);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_UNREACHABLE);
    assert_int_equal(node_router_place(r, &request, &nobody, START_MS, &d), ERR_UNREACHABLE);
    assert_near(metric(r, "grapevine_unroutable_total"), 2, 0);
    alone_destroy(r);
}

/* Sent again a second later, and never cached: whatever the reason, the cache cannot be full of
 * other prompts by then. Once this reduced the believed size to a quarter within minutes. */
static void misses_of_recent_prompts_do_not_shrink_the_cache(void **state)
{
    (void)state;
    struct node_router *r = make("cache_aware", 1);
    double expected = 0;
    for (unsigned i = 0; i < 200; i++) {
        struct node_decision d = choose(r, prompt(1, 20000), START_MS + i * 1000ull);
        expected = (double)d.cached_tokens;
        struct node_usage usage = {20000, 0, 10, {0}}; /* never cached, despite the prediction */
        node_router_first_byte(r, d.booking, START_MS + i * 1000ull + 1);
        node_router_finish(r, d.booking, NODE_OUTCOME_OK, &usage, START_MS + i * 1000ull + 2);
        node_router_tick(r, START_MS + i * 1000ull + 3);
    }
    json_t *root = replicas_json(r, START_MS);
    assert_near(believed(root, 0, "cache", "size_factor"), 1, 1e-9);
    assert_near(believed(root, 0, "cache", "actual_tokens"), 0, 0);
    assert_true(believed(root, 0, "learned", "reuse_share") < 0.2);
    json_decref(root);
    assert_true(expected < 500); /* no hit is expected any more */
    alone_destroy(r);
}

/* The policy gets the session named by the client. */
static void a_session_stays_at_a_single_replica(void **state)
{
    (void)state;
    enum { REPLICAS = 4, SESSIONS = 16 };
    struct node_router *r = make("session", REPLICAS);
    unsigned used = 0;
    for (unsigned s = 0; s < SESSIONS; s++) {
        char name[16];
        struct node_request request = request_of(NULL);
        struct node_decision d, first = {0};
        request.session = slice_of(name, (size_t)snprintf(name, sizeof name, "session-%u", s));
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
            first = i == 0 ? d : first;
            assert_int_equal(d.replica, first.replica);
            done(r, d, START_MS);
        }
        used |= 1u << first.replica;
    }
    assert_int_equal(used, (1u << REPLICAS) - 1);
    alone_destroy(r);
}

/* The name of a router is no live setting. Limits apply to known replicas, too. */
static void changed_settings_apply_at_once(void **state)
{
    (void)state;
    struct node_config config = config_of("cache_aware");
    struct node_state *shared = NULL;
    struct node_router *r = NULL;
    config.state.replicated = true;
    config.state.self = 1;
    config.router.name = "r1";
    config.router.apart = true;
    assert_int_equal(node_state_create(&shared, &config.state), ERR_OK);
    assert_int_equal(node_router_create(&r, &config.router, shared), ERR_OK);
    assert_int_equal(node_router_name(r, SLICE("host:8000"), NODE_ENGINE_VLLM), 0);
    node_router_probed(r, 0, (struct node_check){.ok = true}, START_MS);
    config.router.name = NULL;
    config.router.policy = "random";
    config.router.prior.probe_failures_max = 1;
    config.router.replica_requests_max = 0; /* no limit */
    node_router_renew(r, &config.router);
    node_router_tick(r, START_MS);
    assert_string_equal(node_router_policy(r)->name, "random");
    (void)choose(r, NULL, START_MS);
    assert_int_equal(node_router_name(r, SLICE("127.0.0.1:8000"), NODE_ENGINE_VLLM), 1);
    assert_slice_equal(node_router_replica_name(r, 1), "127.0.0.1:8000@r1");
    node_router_probed(r, 0, (struct node_check){0}, START_MS);
    assert_int_equal(node_router_replica_health(r, 0), NODE_HEALTH_DOWN);
    node_router_destroy(r);
    node_state_destroy(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_stays_with_its_cache),
        cmocka_unit_test(costs_match_hand_arithmetic),
        cmocka_unit_test(new_content_goes_to_an_empty_cache),
        cmocka_unit_test(short_prompts_count_evicted_blocks),
        cmocka_unit_test(a_restart_clears_the_believed_cache),
        cmocka_unit_test(speeds_and_token_ratio_are_learned),
        cmocka_unit_test(token_ids_do_not_teach_bytes_per_token),
        cmocka_unit_test(a_belief_does_not_depend_on_the_next_model),
        cmocka_unit_test(untried_replicas_are_believed_like_the_others),
        cmocka_unit_test(a_late_first_token_lowers_the_believed_speed),
        cmocka_unit_test(a_late_prompt_counts_as_a_queue),
        cmocka_unit_test(refused_requests_teach_nothing),
        cmocka_unit_test(a_retry_without_a_replica_is_not_unroutable),
        cmocka_unit_test(misses_of_recent_prompts_do_not_shrink_the_cache),
        cmocka_unit_test(a_session_stays_at_a_single_replica),
        cmocka_unit_test(changed_settings_apply_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
