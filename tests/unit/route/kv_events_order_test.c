/* The router reading an engine's KV-cache events, and the router on standby. */
#include "node/route/router_internal.h"
#include "tests/lib/test.h"
#include "tests/unit/route/kv_events_world.h"

static unsigned ahead_of(struct world *w, unsigned router)
{
    return router_at(w, router)->replicas[0].turn_events.ahead;
}

/* A router without a subscription, or of a release without events, is passed over. */
static void subscribed_routers_are_ordered(void **state)
{
    (void)state;
    struct world w;
    readers_open(&w, ROUTERS);
    unsigned first = 0, last = 0;
    for (unsigned n = 0; n < ROUTERS; n++) {
        assert_int_equal(router_at(&w, n)->replicas[0].turn_events.others, ROUTERS - 1);
        first = ahead_of(&w, n) == 0 ? n : first;
        last = ahead_of(&w, n) == ROUTERS - 1 ? n : last;
    }
    node_router_events_reads(router_at(&w, first), 0, NODE_READS_NOT);
    all_hear(&w, ROUTERS);
    assert_int_equal(ahead_of(&w, last), ROUTERS - 2);
    assert_int_equal(router_at(&w, last)->replicas[0].turn.ahead, ROUTERS - 1);
    assert_int_equal(ahead_of(&w, first), 0); /* goes on trying */
    world_close(&w);
}

/* A late router does not pass a router that knows the contents, and passes others. */
static void informed_routers_keep_the_order(void **state)
{
    (void)state;
    struct world w;
    readers_open(&w, ROUTERS);
    unsigned at[ROUTERS];
    for (unsigned n = 0; n < ROUTERS; n++)
        at[ahead_of(&w, n)] = n;
    for (unsigned i = 1; i < ROUTERS; i++)
        node_router_events_reads(router_at(&w, at[i]), 0, NODE_READS_AHEAD);
    all_hear(&w, ROUTERS);
    for (unsigned i = 0; i < ROUTERS; i++)
        assert_int_equal(ahead_of(&w, at[i]), i > 0 ? i - 1 : ROUTERS - 1);
    node_router_events_reads(router_at(&w, at[0]), 0, NODE_READS_AHEAD);
    all_hear(&w, ROUTERS);
    for (unsigned i = 0; i < ROUTERS; i++)
        assert_int_equal(ahead_of(&w, at[i]), i);
    world_close(&w);
}

/* The router with the engine's connection goes first, whatever the hash. */
static void the_connected_router_goes_first(void **state)
{
    (void)state;
    struct world w;
    readers_open(&w, ROUTERS);
    for (unsigned held = 0; held < ROUTERS; held++) {
        node_router_events_reads(router_at(&w, held), 0, NODE_READS_AHEAD);
        all_hear(&w, ROUTERS);
        for (unsigned n = 0; n < ROUTERS; n++)
            assert_true((ahead_of(&w, n) == 0) == (n == held));
        node_router_events_reads(router_at(&w, held), 0, NODE_READS_TURN);
    }
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subscribed_routers_are_ordered),
        cmocka_unit_test(the_connected_router_goes_first),
        cmocka_unit_test(informed_routers_keep_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
