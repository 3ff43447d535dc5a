/* All replicas of the model are down: the tried replica, and the cases without any. */
#include "tests/lib/router_help.h"

enum { REPLICAS = 2 };

static struct node_router *make_trying(unsigned requests_max)
{
    struct node_config config = config_of("cache_aware");
    config.router.all_down_refuse = false;
    if (requests_max > 0)
        config.router.replica_requests_max = requests_max;
    struct node_router *r = alone_router(&config);
    static const struct slice names[REPLICAS] = {{"a:80", 4}, {"b:80", 4}};
    for (unsigned k = 0; k < REPLICAS; k++) {
        assert_int_equal(node_router_name(r, names[k], NODE_ENGINE_VLLM), (int)k);
        node_router_probed(r, k, (struct node_check){.ok = true}, START_MS);
    }
    return r;
}

static void answer(struct node_router *r, unsigned replica, enum node_outcome outcome)
{
    struct node_request request = request_of(NULL);
    struct node_decision d;
    request.replica_wanted = (int)replica;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    node_router_finish(r, d.booking, outcome, NULL, START_MS);
}

static void go_down(struct node_router *r, bool refused)
{
    for (unsigned k = 0; k < REPLICAS; k++) {
        for (unsigned i = 0; i < 3; i++)
            node_router_probed(r, k, (struct node_check){.refused = refused}, START_MS);
        assert_int_equal(node_router_replica_health(r, k), NODE_HEALTH_DOWN);
    }
}

static unsigned tried(struct node_router *r, uint64_t now_ms)
{
    struct node_decision d = choose(r, prompt(1, 4000), now_ms);
    node_router_finish(r, d.booking, NODE_OUTCOME_NOT_SENT, NULL, now_ms);
    return d.replica;
}

static void equal_down_replicas_take_turns(void **state)
{
    (void)state;
    struct node_router *r = make_trying(0);
    go_down(r, false);
    unsigned first = tried(r, START_MS + 1);
    for (unsigned i = 1; i < 6; i++)
        assert_int_equal(tried(r, START_MS + 1 + i), i % 2 == 0 ? first : 1 - first);
    alone_destroy(r);
}

/* An error answer counts like a failed connection, in any place of the table. */
static void the_replica_with_fewest_failures_is_tried_first(void **state)
{
    (void)state;
    for (unsigned worse = 0; worse < REPLICAS; worse++) {
        struct node_router *r = make_trying(0);
        answer(r, 1 - worse, NODE_OUTCOME_CONNECT_FAILED);
        answer(r, worse, NODE_OUTCOME_CONNECT_FAILED);
        answer(r, worse, NODE_OUTCOME_ENGINE_ERROR);
        go_down(r, false);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(tried(r, START_MS + 1 + i), 1 - worse);
        alone_destroy(r);
    }
}

static void a_replica_with_a_refused_port_is_tried_last(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < REPLICAS; gone++) {
        struct node_router *r = make_trying(0);
        answer(r, 1 - gone, NODE_OUTCOME_ENGINE_ERROR);
        go_down(r, false);
        node_router_probed(r, gone, (struct node_check){.refused = true}, START_MS);
        assert_int_equal(tried(r, START_MS + 1), 1 - gone);
        alone_destroy(r);
    }
}

/* A request waits for a replica that is full and down. Nothing is sent twice to a replica that is
 * down. */
static void a_last_resort_respects_limits_and_is_tried_once(void **state)
{
    (void)state;
    struct node_router *r = make_trying(1);
    go_down(r, true);
    struct node_request request = request_of(prompt(1, 4000));
    struct node_decision d[REPLICAS], more;
    for (unsigned k = 0; k < REPLICAS; k++)
        d[k] = choose(r, prompt(1, 4000), START_MS);
    assert_int_not_equal(d[0].replica, d[1].replica);
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &more), ERR_AGAIN);
    for (unsigned k = 0; k < REPLICAS; k++)
        node_router_finish(r, d[k].booking, NODE_OUTCOME_NOT_SENT, NULL, START_MS);
    request.sent = true;
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &more), ERR_UNREACHABLE);
    alone_destroy(r);
}

/* A replica that never listed models is no resort for a name if another replica would have listed
 * it. */
static void an_unlisted_model_gets_no_last_resort(void **state)
{
    (void)state;
    struct node_router *r = make_trying(0);
    struct node_request request = request_of(prompt(1, 4000));
    struct node_decision d;
    assert_int_equal(node_router_models(r, 0, &(struct slice){"m", 1}, 1), ERR_OK);
    node_router_model_served(r, 1, SLICE("served"));
    node_router_probed(r, 1, (struct node_check){.refused = true}, START_MS);
    request.model = SLICE("typo");
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_NOT_FOUND);
    request.model = SLICE("served");
    assert_int_equal(node_router_place(r, &request, NULL, START_MS, &d), ERR_OK);
    assert_int_equal(d.replica, 1);
    node_router_finish(r, d.booking, NODE_OUTCOME_NOT_SENT, NULL, START_MS);
    /* It is a resort for a request without a model, and for a request without an alternative. */
    const struct node_replica_set excluded = {{1}};
    for (unsigned i = 0; i < 2; i++) {
        request.model = i == 0 ? SLICE("") : SLICE("typo");
        request.replica_wanted = i == 0 ? -1 : 1;
        assert_int_equal(node_router_place(r, &request, &excluded, START_MS, &d), ERR_OK);
        assert_int_equal(d.replica, 1);
        node_router_finish(r, d.booking, NODE_OUTCOME_NOT_SENT, NULL, START_MS);
    }
    alone_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_down_replicas_take_turns),
        cmocka_unit_test(the_replica_with_fewest_failures_is_tried_first),
        cmocka_unit_test(a_replica_with_a_refused_port_is_tried_last),
        cmocka_unit_test(a_last_resort_respects_limits_and_is_tried_once),
        cmocka_unit_test(an_unlisted_model_gets_no_last_resort),
    };
    return cmocka_run_group_tests_name("route/last_resort", tests, NULL, NULL);
}
