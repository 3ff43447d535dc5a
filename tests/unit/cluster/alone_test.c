/* A router reports why it is alone: an operator finds each cause by the words. */
#include "node/cluster/replication.h"

#include "base/err.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

static const char *why(struct world *c, unsigned node)
{
    struct world_node *n = &c->nodes[node];
    const char *text = node_replication_alone(n->node->replication, world_mono_us(n));
    return text != NULL ? text : "";
}

static void no_reason_is_given_after_contact_or_without_seeds(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    world_run(&c, 20 * S);
    for (unsigned i = 0; i < 2; i++)
        assert_string_equal(why(&c, i), "");
    world_kill(&c, 1);
    world_run(&c, 20 * S);
    assert_string_equal(why(&c, 0), ""); /* no seed is configured, so no other router is expected */
    world_close(&c);
}

static void a_silent_seed_is_reported(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 2, 1);
    world_start(&c, 1);
    world_run(&c, 2500 * MS);
    assert_string_equal(why(&c, 1), ""); /* router 1 has only just begun to ask */
    world_run(&c, 1 * S);
    assert_non_null(strstr(why(&c, 1), "no seed has answered: check its address"));
    assert_non_null(strstr(why(&c, 1), "the same key file and cluster-name"));
    world_close(&c);
}

static void lost_peers_are_reported(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    world_kill(&c, 0);
    world_run(&c, 10 * S);
    assert_string_equal(why(&c, 1), "the routers that it has met are gone");
    world_close(&c);
}

static void a_key_mismatch_is_reported(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 2, 1);
    c.seeds = 2; /* each router asks the other */
    c.nodes[0].config.replication.has_seeds = true;
    c.nodes[1].keyring.keys[0].psk[0] ^= 1;
    c.nodes[1].keyring.keys[0].id[0] ^= 1;
    for (unsigned i = 0; i < 2; i++)
        world_start(&c, i);
    world_run(&c, 10 * S);
    for (unsigned i = 0; i < 2; i++)
        assert_non_null(strstr(why(&c, i), "others ask with another key"));
    world_close(&c);
}

static void a_full_cluster_is_reported(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 1);
    for (unsigned i = 0; i < 3; i++) {
        c.nodes[i].config.replication.gossip.routers_max = 2;
        world_start(&c, i);
        world_run(&c, 1 * S);
    }
    world_run(&c, 70 * S); /* router 1 asks again, and is refused again */
    for (unsigned i = 0; i < 3; i++)
        assert_string_equal(why(&c, i),
                            i == 2 ? "the cluster is full and refuses this router" : "");
    world_close(&c);
}

/* If several routers start together, the first takes over no state, and logs the reason. */
static void the_first_router_logs_why_it_is_ready(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 3);
    c.seeds = 2;
    c.nodes[0].config.replication.has_seeds = true;
    for (unsigned i = 0; i < 3; i++)
        world_start(&c, i);
    world_settle(&c);
    unsigned first = 0;
    for (unsigned i = 0; i < 3; i++) {
        const char *detail = c.nodes[i].detail[NODE_REPLICATION_READY];
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_READY], 1);
        assert_true(detail[0] == '\0' ||
                    strcmp(detail, "the first of those that know each other") == 0);
        first += detail[0] != '\0';
    }
    assert_int_equal(first, 1);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_reason_is_given_after_contact_or_without_seeds),
        cmocka_unit_test(a_silent_seed_is_reported),
        cmocka_unit_test(lost_peers_are_reported),
        cmocka_unit_test(a_key_mismatch_is_reported),
        cmocka_unit_test(a_full_cluster_is_reported),
        cmocka_unit_test(the_first_router_logs_why_it_is_ready),
    };
    return cmocka_run_group_tests_name("alone", tests, NULL, NULL);
}
