/* A router's state for a replica number, when the number gets another owner. */
#include "node/replica/model.h"
#include "node/route/router.h"

#include "base/prometheus.h"
#include "node/route/affinity.h"
#include "tests/lib/router_help.h"

enum { GENERATION_MS = 1000, FORGOTTEN_MS = 12000 }; /* after ten generations */

static struct node_router *make_small(unsigned names_max)
{
    struct node_config config = config_of("cache_aware");
    config.state.names_max = names_max;
    config.state.generation_ms = GENERATION_MS;
    config.state.ttl_ms = 10 * GENERATION_MS;
    config.state.names_ttl_s = 10 * GENERATION_MS / 1000;
    return alone_router(&config);
}

static uint64_t now_ms;

/* Ticks once a second, as the proxy does. */
static void pass(struct node_router *r, uint64_t ms)
{
    for (uint64_t until = now_ms + ms; now_ms < until; now_ms += 1000)
        node_router_tick(r, now_ms);
    node_router_check(r);
}

static unsigned name(struct node_router *r, const char *text)
{
    int slot = node_router_name(r, slice_of_cstr(text), NODE_ENGINE_VLLM);
    assert_true(slot >= 0);
    node_router_probed(r, (unsigned)slot, (struct node_check){.ok = true}, now_ms);
    return (unsigned)slot;
}

static bool shows(struct node_router *r, const char *text)
{
    struct buf out = {0};
    struct prometheus p = prometheus_of(&out, "grapevine_");
    node_router_metrics(r, now_ms, &p);
    assert_int_equal(prometheus_finish(&p), 0);
    bool found = memmem(out.at, out.len, text, strlen(text)) != NULL;
    buf_free(&out);
    return found;
}

/* The name is used, learned, and forgotten; another name gets the number. */
static void a_reused_slot_number_keeps_no_state(void **state)
{
    (void)state;
    now_ms = START_MS;
    struct node_router *r = make_small(4);
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 1);
    struct node_affinity *affinity = NULL;
    assert_int_equal(node_affinity_create(&affinity, &secret, 64), 0);
    node_affinity_share(affinity, r);
    unsigned slot = name(r, "old:80");
    struct slice model = SLICE("llama");
    assert_int_equal(node_router_models(r, slot, &model, 1), ERR_OK);
    struct node_decision d = choose(r, prompt(1, 20000), now_ms);
    node_router_first_byte(r, d.booking, now_ms + 100);
    node_router_finish(r, d.booking, NODE_OUTCOME_OK, &(struct node_usage){20000, 10000, 100, {0}},
                       now_ms + 3000);
    d = choose(r, prompt(1, 20000), now_ms);
    assert_true(d.cached_tokens > 10000);
    done(r, d, now_ms);
    node_affinity_put(affinity, SLICE("resp_1"), slot);
    node_router_probe_answered(r, slot, NODE_PROBE_METRICS, 403);
    assert_true(shows(r, "old:80"));

    node_router_unname(r, SLICE("old:80"));
    assert_false(node_router_replica_present(r, slot));
    pass(r, FORGOTTEN_MS);
    assert_false(shows(r, "old:80"));
    assert_int_equal(node_router_replica_find(r, SLICE("old:80")), -1);
    assert_true(name(r, "new:80") == slot);
    assert_slice_equal(node_router_replica_name(r, slot), "new:80");
    assert_false(node_models_listed(node_router_model_table(r), slot));
    assert_false(node_router_model_known(r, model));
    assert_int_equal(node_router_replica(r, slot)->server.probes_refused, 0);
    assert_int_equal(node_affinity_get(affinity, SLICE("resp_1")), -1);
    assert_false(shows(r, "answered_prompt_tokens_total{"));
    assert_true(shows(r, "chosen_total{replica=\"new:80\"} 0\n"));
    d = choose(r, prompt(1, 20000), now_ms);
    assert_int_equal(d.replica, slot);
    assert_int_equal(d.cached_tokens, 0);
    done(r, d, now_ms);
    node_affinity_destroy(affinity);
    alone_destroy(r);
}

/* A denial by the old replica lasts a minute, longer than the name. */
static void a_denial_does_not_pass_to_the_next_replica(void **state)
{
    (void)state;
    now_ms = START_MS;
    struct node_router *r = make_small(4);
    unsigned slot = name(r, "old:80");
    node_models_deny(node_router_model_table(r), slot, SLICE("llama"), now_ms);
    node_router_unname(r, SLICE("old:80"));
    pass(r, FORGOTTEN_MS);
    assert_true(name(r, "new:80") == slot);
    struct node_request request = request_of(NULL);
    request.model = SLICE("llama");
    request.model_likely = true; /* leaves out replicas with a denial */
    struct node_decision d;
    assert_int_equal(node_router_place(r, &request, NULL, now_ms, &d), ERR_OK);
    done(r, d, now_ms);
    alone_destroy(r);
}

static bool proxy_idle;
static unsigned asked;

static void on_replica(void *context, unsigned replica, bool present)
{
    (void)context;
    (void)replica;
    (void)present;
}

static bool on_forgotten(void *context, unsigned replica)
{
    (void)context;
    (void)replica;
    asked++;
    return proxy_idle;
}

/* A stream that outlasts the replica's name, and a connection that outlasts the stream. */
static void a_number_is_kept_while_requests_are_in_flight(void **state)
{
    (void)state;
    now_ms = START_MS;
    proxy_idle = false;
    asked = 0;
    struct node_router *r = make_small(4);
    node_router_watch(r, on_replica, on_forgotten, NULL);
    unsigned slot = name(r, "old:80");
    struct node_decision d = choose(r, prompt(1, 20000), now_ms);
    node_router_vanish(r, slot, true);
    assert_true(node_replica_own_requests(node_router_replica(r, slot)) > 0);
    node_router_unname(r, SLICE("old:80"));
    pass(r, FORGOTTEN_MS);
    assert_int_equal(node_router_replica_find(r, SLICE("old:80")), -1);
    unsigned other = name(r, "new:80");
    assert_int_not_equal(other, slot);
    assert_int_equal(asked, 0);
    done(r, d, now_ms); /* under the original name */
    assert_slice_equal(node_router_replica_name(r, slot), "old:80");
    pass(r, 5000);
    assert_int_equal(asked, 5);
    assert_slice_equal(node_router_replica_name(r, slot), "old:80");
    proxy_idle = true;
    pass(r, 1000);
    assert_int_equal(node_router_replica_name(r, slot).len, 0);
    assert_int_equal(name(r, "next:80"), slot);
    alone_destroy(r);
}

/* Named again before all is over: the name gets another number, and the old number ends
 * normally. */
static void a_name_returning_early_gets_another_number(void **state)
{
    (void)state;
    now_ms = START_MS;
    struct node_router *r = make_small(4);
    unsigned slot = name(r, "pod:80");
    struct node_decision d = choose(r, prompt(1, 20000), now_ms);
    node_router_unname(r, SLICE("pod:80"));
    pass(r, FORGOTTEN_MS);
    unsigned again = name(r, "pod:80");
    assert_int_not_equal(again, slot);
    assert_int_equal(node_router_replica_find(r, SLICE("pod:80")), again);
    assert_false(node_router_replica_present(r, slot));
    done(r, d, now_ms);
    pass(r, 2000);
    assert_int_equal(node_router_replica_find(r, SLICE("pod:80")), again);
    assert_int_equal(node_router_replica_name(r, slot).len, 0);
    alone_destroy(r);
}

/* 200 new names a day, each used for an hour and a half. 1,024 was once the total limit. */
static void a_year_of_new_names_leaks_no_state(void **state)
{
    (void)state;
    enum { DAYS = 365, A_DAY = 200, EVERY_MS = 86400000 / A_DAY, LIVES = 12 };
    now_ms = START_MS;
    struct node_config config = config_of("cache_aware");
    struct node_router *r = alone_router(&config);
    char text[32];
    for (unsigned n = 0; n < DAYS * A_DAY; n++, now_ms += EVERY_MS) {
        (void)snprintf(text, sizeof text, "10.%u.%u.%u:8000", n >> 16, n >> 8 & 255, n & 255);
        (void)name(r, text);
        struct node_decision d = choose(r, prompt(n, 4000), now_ms);
        done(r, d, now_ms);
        if (n >= LIVES) {
            unsigned gone = n - LIVES;
            (void)snprintf(text, sizeof text, "10.%u.%u.%u:8000", gone >> 16, gone >> 8 & 255,
                           gone & 255);
            assert_true(node_router_replica_find(r, slice_of_cstr(text)) >= 0);
            node_router_unname(r, slice_of_cstr(text));
        }
        node_router_tick(r, now_ms);
        if (n % 10000 == 0)
            node_router_check(r);
    }
    assert_in_range(node_router_replica_count(r), LIVES, LIVES + 6);
    assert_true(shows(r, "replica_names_waiting 0\n"));
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reused_slot_number_keeps_no_state),
        cmocka_unit_test(a_denial_does_not_pass_to_the_next_replica),
        cmocka_unit_test(a_number_is_kept_while_requests_are_in_flight),
        cmocka_unit_test(a_name_returning_early_gets_another_number),
        cmocka_unit_test(a_year_of_new_names_leaks_no_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
