/* How long operators see a router after it died or left. */
#include "node/cluster/replication.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

enum { MINUTE = 60 * S };

/* Router 0's view of the member called `name`. */
static struct node_member_look seen(struct world *c, const char *name)
{
    const struct node_replication *n = c->nodes[0].node->replication;
    struct node_member_look m = {.shown = false};
    for (unsigned i = 0; i < node_replication_look_count(n); i++) {
        node_replication_look(n, i, world_mono_us(&c->nodes[0]), &m);
        if (strcmp(m.name, name) == 0)
            return m;
    }
    fail_msg("gossip does not know %s", name);
    return m;
}

static void a_dead_router_is_shown_for_ten_minutes(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    const char *name = c.nodes[2].name;
    assert_true(seen(&c, name).shown);
    world_kill(&c, 2);
    world_run(&c, 9 * MINUTE);
    assert_true(seen(&c, name).shown && seen(&c, name).state == GOSSIP_DEAD);
    assert_false(seen(&c, name).old);
    world_run(&c, 2 * MINUTE);
    assert_false(seen(&c, name).shown); /* gossip still has the member */
    world_close(&c);
}

static void a_router_that_left_is_shown_for_a_minute(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    const char *name = c.nodes[2].name;
    world_leave(&c, 2);
    world_run(&c, 50 * S);
    assert_true(seen(&c, name).shown && seen(&c, name).state == GOSSIP_LEFT);
    world_run(&c, 20 * S);
    assert_false(seen(&c, name).shown);
    world_close(&c);
}

/* Another router started after the member died, perhaps a successor: a grey line remains. */
static void a_dead_router_with_a_successor_is_old(void **state)
{
    (void)state;
    struct world c;
    start(&c, 4, 1);
    const char *name = c.nodes[2].name;
    world_kill(&c, 3);
    world_kill(&c, 2);
    world_run(&c, MINUTE);
    assert_false(seen(&c, name).old);
    world_start(&c, 3);
    world_run(&c, 20 * S);
    assert_true(seen(&c, name).old && seen(&c, name).shown);
    world_close(&c);
}

static void an_operator_hides_a_dead_router(void **state)
{
    (void)state;
    struct world c;
    start(&c, 3, 1);
    const char *name = c.nodes[2].name;
    struct node_replication *n = c.nodes[0].node->replication;
    assert_false(node_replication_forget(n, slice_of_cstr(name))); /* the member is alive */
    world_kill(&c, 2);
    world_run(&c, MINUTE);
    assert_true(seen(&c, name).shown);
    assert_true(node_replication_forget(n, slice_of_cstr(name)));
    assert_false(seen(&c, name).shown);
    assert_false(node_replication_forget(n, SLICE("nobody")));
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_router_is_shown_for_ten_minutes),
        cmocka_unit_test(a_router_that_left_is_shown_for_a_minute),
        cmocka_unit_test(a_dead_router_with_a_successor_is_old),
        cmocka_unit_test(an_operator_hides_a_dead_router),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
