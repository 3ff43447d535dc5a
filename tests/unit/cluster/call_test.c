/* Calls between routers: where they go. */
#include "tests/lib/test.h"
#include "tests/lib/world/world.h"

enum { S = 1000000 };

/* The seed advertises an address at which nothing listens: datagrams find their way by its packets,
 * and so must the connection that brings the snapshot. */
static void a_call_goes_where_the_member_is(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 12);
    c.nodes[0].unadvertised = true;
    c.nodes[0].config.replication.gossip.address_also = world_address(400, 0);
    world_start(&c, 0);
    world_run(&c, 4 * S);
    for (unsigned i = 1; i < 3; i++)
        world_start(&c, i);
    world_run(&c, 2 * S);
    for (unsigned i = 1; i < 3; i++)
        assert_true(node_replication_ready(c.nodes[i].node->replication));
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_goes_where_the_member_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
