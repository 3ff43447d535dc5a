/* The replicas receiving a control path, and the replicas named as left out. */
#include "tests/lib/proxy_world.h"
#include "tests/lib/test.h"

#define LEFT_OUT                                                                                   \
    "{\"replica\":\"127.0.0.1:8000@r9\",\"left_out\":\"only router r9 can reach it: send this "    \
    "call to that router\"}"

static struct proxy_world world;

static bool says(const struct wire *wire, const char *text)
{
    return memmem(wire->out.at, wire->out.len, text, strlen(text)) != NULL;
}

/* The client's answer, once `engine`, the only engine with the request, has answered. */
static const struct wire *ask(struct slice request, const char *engine)
{
    struct wire *client = proxy_world_connect(&world, PROXY_PORT_CLIENT);
    assert_non_null(client);
    proxy_world_send(&world, client, request);
    struct wire *wire = proxy_world_find(&world, slice_of_cstr(engine));
    assert_non_null(wire);
    proxy_world_accept(&world, wire, 0);
    proxy_world_send(&world, wire, SLICE("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert_true(says(client, "\"replica\":\"10.0.0.1:8000\",\"status\":200"));
    return client;
}

/* This router does not know the models of the other router's replica. Before the fix, a request
 * with a model still named the replica. */
static void another_routers_replica_is_named_only_if_concerned(void **state)
{
    (void)state;
    static const char *const settings[] = {"engine-control-paths", "all", NULL};
    proxy_world_open(&world, &(struct proxy_world_config){.replicas = 1,
                                                          .engine = NODE_ENGINE_VLLM,
                                                          .quiet = true,
                                                          .strangers = true,
                                                          .settings = settings});
    struct node_router *r = world.node->router;
    struct slice m = SLICE("m");
    assert_int_equal(node_router_models(r, 0, &m, 1), 0);
    int elsewhere =
        node_router_replica_wish(r, SLICE("127.0.0.1:8000@r9"), NODE_REPLICA_ADD, NODE_ENGINE_VLLM);
    assert_int_equal(elsewhere, 1);
    assert_slice_equal(node_router_only_at(r, 1), "r9");
    assert_true(says(ask(SLICE("POST /sleep HTTP/1.1\r\nHost: g\r\n\r\n"), "1a"), LEFT_OUT));
    assert_false(
        says(ask(SLICE("POST /sleep?model=m HTTP/1.1\r\nHost: g\r\n\r\n"), "1b"), "left_out"));
    assert_int_equal(node_router_models(r, 1, &m, 1), 0);
    assert_true(
        says(ask(SLICE("POST /sleep?model=m HTTP/1.1\r\nHost: g\r\n\r\n"), "1c"), LEFT_OUT));
    proxy_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_routers_replica_is_named_only_if_concerned),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
