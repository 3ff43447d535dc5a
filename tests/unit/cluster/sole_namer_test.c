/* A replica named by a single router, which stalls, dies or returns. */
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

enum { NAMES_TTL_S = 120 };

static const char *const sole = "only-here:8000";

/* Router 2, the last of three, alone names the replica. All routers probe it. */
static void start_with_a_sole_namer(struct world *c)
{
    world_open(c, 4, 1);
    for (unsigned i = 0; i < 4; i++)
        c->nodes[i].config.state.names_ttl_s = NAMES_TTL_S;
    for (unsigned i = 0; i < 3; i++)
        world_start(c, i);
    world_settle(c);
    (void)world_replica(c, 0, "replica-0:8000");
    (void)world_replica(c, 2, sole);
    world_run(c, 500 * MS);
    assert_true(has(c, 0, sole) && told(c, 0, sole) && has(c, 1, sole));
}

static void probe(struct world *c, unsigned node, bool ok)
{
    struct world_node *n = &c->nodes[node];
    int slot = node_router_replica_find(n->node->router, slice_of_cstr(sole));
    assert_true(slot >= 0);
    node_router_probed(n->node->router, (unsigned)slot, (struct node_check){.ok = ok}, world_ms(c));
    world_touch(n);
}

/* True if router `node` uses the replica for the whole time. */
static bool stays(struct world *c, unsigned node, uint64_t us)
{
    for (uint64_t end = c->now_us + us; c->now_us < end; world_run(c, 50 * MS))
        if (!has(c, node, sole))
            return false;
    return true;
}

/* When the only router naming a replica stalled, the others dropped the replica and answered
 * 503. */
static void a_stalled_router_keeps_its_replicas(void **state)
{
    (void)state;
    struct world c;
    start_with_a_sole_namer(&c);
    for (unsigned again = 0; again < 2; again++) { /* without and then with probes from router 0 */
        world_pause(&c.nodes[2], c.now_us + 3 * S);
        assert_true(stays(&c, 0, 3 * S));
        assert_true(c.nodes[0].events[NODE_REPLICATION_MEMBER_DEAD] == again + 1);
        assert_true(stays(&c, 1, 10 * S));
        probe(&c, 0, true);
    }
    /* The death of router 2 is forgotten: only the others' reports count now. */
    world_run(&c, (NAMES_TTL_S + 10) * S);
    assert_true(has(&c, 0, sole) && has(&c, 1, sole) && has(&c, 2, sole));
    world_close(&c);
}

static void a_dead_routers_replica_stays_until_the_name_expires(void **state)
{
    (void)state;
    struct world c;
    start_with_a_sole_namer(&c);
    for (unsigned i = 0; i < 2; i++)
        probe(&c, i, true);
    world_run(&c, S);
    world_kill(&c, 2);
    assert_true(stays(&c, 0, (NAMES_TTL_S - 10) * S));
    assert_true(has(&c, 1, sole));
    /* A joining router gets the name from the routers using the replica, and keeps it no longer
     * than they do. */
    world_start(&c, 3);
    world_settle(&c);
    world_run(&c, S);
    assert_true(has(&c, 3, sole) && told(&c, 3, sole));
    world_run(&c, 15 * S);
    for (unsigned i = 0; i < 4; i += i == 1 ? 2 : 1)
        assert_false(has(&c, i, sole) || told(&c, i, sole));
    assert_true(has(&c, 0, "replica-0:8000"));
    /* The replica comes back when named again. */
    world_start(&c, 2);
    (void)world_replica(&c, 2, sole);
    world_settle(&c);
    world_run(&c, S);
    assert_true(has(&c, 0, sole) && told(&c, 0, sole));
    world_close(&c);
}

/* A joined router has the name only because other routers report using it. */
static void other_routers_reports_survive_their_stall(void **state)
{
    (void)state;
    struct world c;
    start_with_a_sole_namer(&c);
    for (unsigned i = 0; i < 2; i++)
        probe(&c, i, true);
    world_run(&c, S);
    world_kill(&c, 2);
    world_run(&c, 10 * S); /* all other routers see it dead */
    world_start(&c, 3);
    world_settle(&c);
    world_run(&c, S);
    unsigned deaths = c.nodes[3].events[NODE_REPLICATION_MEMBER_DEAD];
    for (unsigned i = 0; i < 2; i++)
        world_pause(&c.nodes[i], c.now_us + 3 * S);
    assert_true(stays(&c, 3, 20 * S));
    assert_int_equal(c.nodes[3].events[NODE_REPLICATION_MEMBER_DEAD], deaths + 2);
    assert_true(has(&c, 0, sole) && has(&c, 1, sole));
    world_close(&c);
}

static void a_dead_routers_replica_is_dropped_if_it_is_down(void **state)
{
    (void)state;
    struct world c;
    start_with_a_sole_namer(&c);
    for (unsigned i = 0; i < 2; i++)
        probe(&c, i, true);
    world_kill(&c, 2);
    world_run(&c, 4 * S);
    for (unsigned n = 0; n < 3; n++)
        probe(&c, 0, false);
    assert_true(stays(&c, 0, 50 * S)); /* the router may be restarting */
    world_run(&c, 15 * S);
    assert_false(has(&c, 0, sole));
    assert_true(has(&c, 1, sole)); /* the replica answers router 1 */
    world_close(&c);
}

static void a_returning_router_names_its_replicas_again(void **state)
{
    (void)state;
    for (unsigned named = 0; named < 2; named++) {
        struct world c;
        start_with_a_sole_namer(&c);
        world_kill(&c, 2);
        world_run(&c, 5 * S);
        world_start(&c, 2);
        if (named)
            (void)world_replica(&c, 2, sole);
        assert_true(stays(&c, 0, 8 * S)); /* the router may have to find replicas first */
        world_run(&c, 15 * S);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(has(&c, i, sole), named);
        world_close(&c);
    }
}

/* The configuration of router 2 changed at run time. */
static void a_withdrawn_name_is_dropped_at_once(void **state)
{
    (void)state;
    struct world c;
    start_with_a_sole_namer(&c);
    struct world_node *n = &c.nodes[2];
    int slot = node_router_replica_find(n->node->router, slice_of_cstr(sole));
    const struct crdt_sight sight = {.configured = false, .health = NODE_HEALTH_UP};
    crdt_state_sight(world_state(n), (unsigned)slot, &sight);
    world_touch(n);
    world_run(&c, 500 * MS);
    assert_false(has(&c, 0, sole) || told(&c, 0, sole) || has(&c, 1, sole));
    world_close(&c);
}

/* --- agreement, and restarts ----------------------------------------------------------------- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stalled_router_keeps_its_replicas),
        cmocka_unit_test(a_dead_routers_replica_stays_until_the_name_expires),
        cmocka_unit_test(other_routers_reports_survive_their_stall),
        cmocka_unit_test(a_dead_routers_replica_is_dropped_if_it_is_down),
        cmocka_unit_test(a_returning_router_names_its_replicas_again),
        cmocka_unit_test(a_withdrawn_name_is_dropped_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
