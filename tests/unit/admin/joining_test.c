/* Changes for all routers wait until this router has taken over the cluster's state. Before that
 * fix a drain was accepted and lost. To this router the drain was the replica's first change; to
 * all others an earlier second change had undone the first. */
#include "node/admin/admin.h"

#include <stdio.h>

#include "base/check.h"
#include "base/slice.h"
#include "node/admin/calls.h"
#include "node/cluster/replication.h"
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

static struct proxy_world world;

static void open_world(bool joins)
{
    proxy_world_open(&world, &(struct proxy_world_config){
                                 .replicas = 2, .quiet = true, .joins = joins, .seed = 1});
}

/* Returns the status; `answer` becomes the whole answer. */
static int ask(const char *method, const char *target, char *answer, size_t size)
{
    char request[256];
    int len = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n", method,
                       target);
    struct wire *w = proxy_world_connect(&world, PROXY_PORT_ADMIN);
    assert_non_null(w);
    proxy_world_send(&world, w, slice_of(request, (size_t)len));
    proxy_world_wait(&world, 10);
    (void)snprintf(answer, size, "%.*s", (int)w->out.len, w->out.at);
    int status = 0;
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &status), 1);
    return status;
}

static int ask_to_change(const char *method, const char *path, char *answer, size_t size)
{
    char target[128];
    (void)snprintf(target, sizeof target, "%s?replica=%.*s", path,
                   SLICE_ARG(node_router_replica_name(world.node->router, 0)));
    return ask(method, target, answer, size);
}

static bool drains(void)
{
    return node_router_replica_health(world.node->router, 0) == NODE_HEALTH_DRAINING;
}

static const char *const changes[][2] = {
    {"POST", "/drain"},
    {"POST", "/undrain"},
    {"POST", "/replicas"},
    {"DELETE", "/replicas"},
};

static void a_joining_router_refuses_shared_changes(void **state)
{
    (void)state;
    char answer[2048];
    open_world(true);
    assert_false(node_replication_ready(world.node->replication));
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        assert_int_equal(ask_to_change(changes[i][0], changes[i][1], answer, sizeof answer), 503);
        assert_non_null(strstr(answer, "joining the cluster"));
        assert_non_null(strstr(answer, "ask another router"));
        assert_non_null(strstr(answer, "retry-after: 1\r\n"));
    }
    assert_int_equal(ask("DELETE", "/poison?hash=0123456789abcdef", answer, sizeof answer), 503);
    assert_false(drains());
    assert_true(node_router_replica_present(world.node->router, 0));
    /* Calls for this router alone, and calls without changes, need not wait. */
    assert_int_equal(ask("POST", "/log-level?level=debug", answer, sizeof answer), 200);
    assert_int_equal(ask("GET", "/replicas", answer, sizeof answer), 200);
    assert_int_equal(ask("GET", "/poison", answer, sizeof answer), 200);
    proxy_world_close(&world);
}

static void a_joined_router_accepts_shared_changes(void **state)
{
    (void)state;
    char answer[2048];
    open_world(true);
    uint64_t now_us = world.now_ms * 1000;
    while (!node_replication_ready(world.node->replication)) { /* no other router is up */
        assert_in_range(now_us - world.now_ms * 1000, 0, 10000000);
        node_replication_run(world.node->replication, now_us += 100000);
    }
    assert_int_equal(ask_to_change("POST", "/drain", answer, sizeof answer), 200);
    assert_true(drains());
    assert_int_equal(ask("DELETE", "/poison?hash=0123456789abcdef", answer, sizeof answer), 404);
    proxy_world_close(&world);
}

static void a_single_router_accepts_changes_at_once(void **state)
{
    (void)state;
    char answer[2048];
    open_world(false);
    assert_int_equal(ask_to_change("POST", "/drain", answer, sizeof answer), 200);
    assert_true(drains());
    proxy_world_close(&world);
}

/* Each call with a change either concerns this router alone or has to wait. */
static void shared_calls_are_marked_in_the_table(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ADMIN_CALL_COUNT; i++) {
        const struct admin_call_row *row = admin_call_row((enum admin_call)i);
        bool own = i == ADMIN_CALL_LOG_LEVEL;
        assert_int_equal((row->flags & ADMIN_SHARED) != 0,
                         (row->flags & ADMIN_CHANGES) != 0 && !own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_joining_router_refuses_shared_changes),
        cmocka_unit_test(a_joined_router_accepts_shared_changes),
        cmocka_unit_test(a_single_router_accepts_changes_at_once),
        cmocka_unit_test(shared_calls_are_marked_in_the_table),
    };
    return cmocka_run_group_tests_name("joining", tests, NULL, NULL);
}
