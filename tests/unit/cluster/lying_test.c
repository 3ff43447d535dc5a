/* A member announces malformed names, and many names without a replica. */
#include "node/cluster/replication.h"

#include "base/err.h"
#include "crdt/state.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"
#include <stdio.h>

enum { LIAR = 3, ROUTERS = 4, NAMES_MAX = 8, NAMES_TTL_S = 16 };

static void start_them(struct world *c)
{
    world_open(c, ROUTERS, 1);
    for (unsigned i = 0; i < ROUTERS; i++) {
        struct node_state_config *config = &c->nodes[i].config.state;
        config->names_max = i == LIAR ? 0 : NAMES_MAX;
        config->generation_ms = 1000;
        config->ttl_ms = 16000;
        config->names_ttl_s = NAMES_TTL_S;
        if (i == LIAR)
            config->is_name = NULL;
        world_start(c, i);
        world_run(c, 100 * MS);
    }
    world_settle(c);
}

/* Announces the lies before the configured names, so that the lies are older. */
static void lie(struct world *c)
{
    static const char *const strange[] = {"\x1b[2Jjunk", "no-port", "10.0.0.1:8000@r9", "a b:1"};
    struct crdt_state *s = world_state(&c->nodes[LIAR]);
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++)
        DISCARD(crdt_state_add(s, slice_of_cstr(strange[i])));
    for (unsigned i = 0; i < 200; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "lie-%u:8000", i);
        DISCARD(crdt_state_add(s, slice_of_cstr(name)));
    }
    node_replication_run(c->nodes[LIAR].node->replication, c->now_us);
    world_run(c, 2 * S);
}

static struct crdt_registry_stats names_of(struct world *c, unsigned i)
{
    struct crdt_registry_stats stats =
        *crdt_registry_stats(crdt_state_registry(world_state(&c->nodes[i])));
    return stats;
}

static void configure(struct world *c, unsigned i)
{
    static const char *const names[] = {"one:8000", "two:8000"};
    struct node_router *r = c->nodes[i].node->router;
    for (unsigned k = 0; k < 2; k++) {
        assert_true(node_router_name(r, slice_of_cstr(names[k]), NODE_ENGINE_VLLM) >= 0);
        assert_true(has(c, i, names[k]));
    }
}

static void invented_names_displace_nothing_and_expire(void **state)
{
    (void)state;
    struct world c;
    start_them(&c);
    lie(&c);
    for (unsigned i = 0; i < LIAR; i++) {
        assert_int_equal(names_of(&c, i).names, NAMES_MAX);
        assert_true(names_of(&c, i).no_names >= 4);
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_NAME_REFUSED], 1);
        json_t *row = replica_json(&c, i, "no-port");
        assert_null(row);
        configure(&c, i);
        /* A listed name can be removed. */
        assert_true(node_router_replica_listed(c.nodes[i].node->router, SLICE("lie-7:8000")));
    }
    assert_true(node_router_replica_wish(c.nodes[1].node->router, SLICE("lie-7:8000"),
                                         NODE_REPLICA_REMOVE, NODE_ENGINE_AUTO) >= 0);
    world_run(&c, 2 * S);

    /* The liar dies. The others restart in turn; together the restarts take longer than a name's
     * TTL. */
    world_kill(&c, LIAR);
    for (unsigned i = 0; i < LIAR; i++) {
        world_kill(&c, i);
        world_run(&c, 2 * S);
        world_start(&c, i);
        configure(&c, i);
        world_run(&c, (NAMES_TTL_S / 2) * S);
        for (unsigned k = 0; k < LIAR; k++)
            assert_true(has(&c, k, "one:8000") && has(&c, k, "two:8000"));
    }
    world_run(&c, NAMES_TTL_S * S);
    for (unsigned i = 0; i < LIAR; i++) {
        assert_int_equal(names_of(&c, i).names, 2);
        assert_int_equal(names_of(&c, i).waiting, 0);
    }
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invented_names_displace_nothing_and_expire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
