/* Out of memory: a router is made, learns replicas and models, chooses, explains and is
 * displayed. */
#include "node/replica/model.h"
#include "tests/lib/failmalloc.h"

#include "base/err.h"
#include "tests/lib/router_help.h"

static bool fine(int err, bool may_fail)
{
    assert_true(err >= 0 ||
                (may_fail && (err == ERR_NOMEM || err == ERR_FULL || err == ERR_EXISTS ||
                              err == ERR_NOT_FOUND || err == ERR_UNREACHABLE)));
    return err >= 0;
}

static void check(const struct node_router *r)
{
    failmalloc_spare(true);
    node_router_check(r);
    failmalloc_spare(false);
}

static void replicas(struct node_router *r, bool may_fail)
{
    struct slice models[] = {SLICE("m"), SLICE("n")};
    for (unsigned k = 0; k < 3; k++) {
        char name[32];
        int len = snprintf(name, sizeof name, "host-%u:8000", k);
        int at = node_router_name(r, slice_of(name, (size_t)len), NODE_ENGINE_VLLM);
        if (!fine(at, may_fail))
            continue;
        node_router_probed(r, (unsigned)at, (struct node_check){.ok = true}, START_MS);
        (void)fine(node_router_models(r, (unsigned)at, models, 2), may_fail);
    }
}

static void requests(struct node_router *r, bool may_fail)
{
    for (unsigned i = 0; i < 6; i++) {
        struct node_request request = request_of(prompt(i, 4000));
        request.model = i % 2 ? SLICE("m") : SLICE("other");
        request.session = SLICE("me");
        struct node_decision d;
        int err = node_router_place(r, &request, NULL, START_MS + i, &d);
        if (err < 0) /* no replica lists "other" */
            continue;
        node_router_model_served(r, d.replica, request.model);
        node_router_bind(r, SLICE("response"), d.replica);
        struct node_usage usage = {1000, 500, 20, {0}};
        done_with(r, d, &usage, START_MS + 100 + i);
    }
    node_models_deny(node_router_model_table(r), 0, SLICE("adapter"), START_MS);
    struct buf text = {0};
    struct node_request request = request_of(prompt(1, 4000));
    (void)fine(node_router_explain(r, &request, START_MS, &text), may_fail);
    (void)fine(node_router_replicas_json(r, START_MS, &text), may_fail);
    (void)fine(write_metrics(r, &text), may_fail);
    buf_free(&text);
    node_router_tick(r, START_MS + 1000);
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    memset(out, 1, len);
}

static void life(bool may_fail, const char *policy, bool in_shadow)
{
    failmalloc_spare(true);
    struct node_config config = config_of(policy);
    config.router.shadow = in_shadow;
    failmalloc_spare(false);
    config.state.index_bytes = 16 << 20;
    struct node_replication_io io = {.random = on_random};
    struct node *node = NULL;
    if (!fine(node_create(&node, &config, &io, 0), may_fail))
        return;
    struct node_router *r = node->router;
    replicas(r, may_fail);
    if (node_router_replica_count(r) > 0)
        requests(r, may_fail);
    check(r);
    failmalloc_enough();
    replicas(r, true); /* most are there already */
    if (node_router_replica_count(r) > 0) {
        struct node_request request = request_of(prompt(1, 4000));
        struct node_decision d;
        assert_int_equal(node_router_place(r, &request, NULL, START_MS + 2000, &d), 0);
        done(r, d, START_MS + 2100);
    }
    node_check(node);
    node_destroy(node);
}

static void cache_aware(bool may_fail)
{
    life(may_fail, "cache_aware", false);
}

static void session(bool may_fail)
{
    life(may_fail, "session", false);
}

static void shadow(bool may_fail)
{
    life(may_fail, "cache_aware", true);
}

static void test_cache_aware(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(cache_aware));
}

static void test_session(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(session));
}

static void test_shadow(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(shadow));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cache_aware),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_shadow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
