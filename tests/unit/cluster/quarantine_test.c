/* A member, ignored for a while because of malformed packets. */
#include "node/cluster/replication.h"

#include "base/err.h"
#include "gossip/gossip_internal.h" /* a quarantine requires many bad packets */
#include "tests/lib/alone.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

/* The member's gauges used to keep the last believed values for as long as bad packets came. */
static void a_quarantined_routers_load_does_not_count(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    struct chain chain;
    world_prompt(&chain, 1, 20000);
    struct node_decision d = world_choose(&c, 2, &chain);
    world_run(&c, 50 * MS);
    assert_true(number_of(&c, 0, "replica-0:8000", "load", "requests_of_others") == 1);
    struct gossip *g = node_replication_gossip(c.nodes[0].node->replication);
    struct gossip_peer *p =
        gossip_peer_find(g, gossip_self(node_replication_gossip(c.nodes[2].node->replication)));
    for (unsigned i = 0; i < 16; i++)
        gossip_watch_malformed(g, p);
    assert_true(number_of(&c, 0, "replica-0:8000", "load", "requests_of_others") == 0);
    assert_true(number_of(&c, 1, "replica-0:8000", "load", "requests_of_others") == 1);
    struct buf json = {0};
    assert_int_equal(node_replication_members_json(c.nodes[0].node->replication,
                                                   world_mono_us(&c.nodes[0]), &json),
                     0);
    assert_non_null(strstr(json.at, "\"quarantined\":true"));
    buf_free(&json);
    world_run(&c, 31 * S);
    assert_true(number_of(&c, 0, "replica-0:8000", "load", "requests_of_others") == 1);
    world_finish(&c, 2, d, &no_usage);
    assert_true(world_until(&c, 5 * S, world_agrees));
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quarantined_routers_load_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
