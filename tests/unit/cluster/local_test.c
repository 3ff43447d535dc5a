/* Replicas on a loopback address: shared while all routers are on the same machine, otherwise
 * separate for each router. */
#include "node/cluster/replication.h"

#include "base/check.h"
#include "base/err.h"
#include "crdt/state.h"
#include "node/replica/local.h"
#include "node/settings/options.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"
#include <stdio.h>

static const struct slice loopback = SLICE("127.0.0.1:8000");

static void names_are_split_into_address_and_owner(void **state)
{
    (void)state;
    static const struct {
        const char *name, *address, *owner;
        bool local, good;
    } cases[] = {
        {"10.0.0.1:8000", "10.0.0.1:8000", "", false, true},
        {"10.0.0.1:8000@3", "10.0.0.1:8000", "", false, true},
        {"10.0.0.1:8000@r1", "10.0.0.1:8000", "r1", false, false},
        {"127.0.0.1:8000", "127.0.0.1:8000", "", true, true},
        {"127.9.0.1:8000@r1:7490", "127.9.0.1:8000", "r1:7490", true, true},
        {"127.0.0.1:8000@r1@63", "127.0.0.1:8000", "r1", true, true},
        {"https://localhost:80@r1", "https://localhost:80", "r1", true, true},
        {"LOCALHOST.:80", "LOCALHOST.:80", "", true, true},
        {"localhost.example:80", "localhost.example:80", "", false, true},
        {"[::1]:80@r1@2", "[::1]:80", "r1", true, true},
        {"[fe80::1%eth0]:80@r1", "[fe80::1%eth0]:80", "r1", true, true},
        {"[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", "", true, true},
        {"169.254.0.1:80", "169.254.0.1:80", "", true, true},
        {"0.0.0.0:80", "0.0.0.0:80", "", true, true},
        {"[2001:db8::1]:80", "[2001:db8::1]:80", "", false, true},
        {"127.0.0.1:8000@r\x1b", "127.0.0.1:8000", "r\x1b", true, false},
        {"junk", "junk", "", false, false},
        {"[", "[", "", false, false},
        {"@", "", "", false, false},
        {"", "", "", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct node_local_name n;
        assert_int_equal(node_local_name_parse(slice_of_cstr(cases[i].name), &n), cases[i].local);
        assert_slice_equal(n.address, cases[i].address);
        assert_slice_equal(n.owner, cases[i].owner);
        assert_int_equal(node_replica_is_name(slice_of_cstr(cases[i].name)), cases[i].good);
    }
    char text[NODE_NAME_MAX];
    assert_slice_equal(node_local_name_write(loopback, SLICE("r1"), text), "127.0.0.1:8000@r1");
    assert_slice_equal(node_local_name_write(loopback, SLICE("7"), text), "127.0.0.1:8000@7.");
}

static bool uses(struct world *c, unsigned i, const char *name)
{
    const struct node_router *r = c->nodes[i].node->router;
    for (unsigned k = 0; k < node_router_replica_count(r); k++)
        if (node_router_replica_present(r, k) &&
            slice_equal(node_router_replica_name(r, k), slice_of_cstr(name)))
            return true;
    return false;
}

/* All routers list the replica, and all but the owner name the owner. */
static void assert_only_at(struct world *c, unsigned i, const char *name, unsigned owner)
{
    json_t *row = replica_json(c, i, name);
    assert_non_null(row);
    assert_string_equal(json_string_value(json_object_get(row, "only_at")),
                        i == owner ? "" : c->nodes[owner].name);
    bool elsewhere = strcmp(json_string_value(json_object_get(row, "health")), "elsewhere") == 0;
    assert_int_equal(elsewhere, i != owner);
    json_decref(row);
}

static void open_two_hosts(struct world *c)
{
    world_open(c, 3, 1);
    c->net.host[0] = c->net.host[1] = 1;
    c->net.host[2] = 2;
}

static void loopback_replicas_are_shared_only_on_their_machine(void **state)
{
    (void)state;
    struct world c;
    open_two_hosts(&c);
    world_start(&c, 0);
    world_start(&c, 1);
    world_run(&c, 2 * S);
    struct node_router *r0 = c.nodes[0].node->router;
    assert_true(node_router_name(r0, loopback, NODE_ENGINE_VLLM) >= 0);
    assert_true(node_router_replica_wish(c.nodes[1].node->router, SLICE("localhost:9000"),
                                         NODE_REPLICA_ADD, NODE_ENGINE_AUTO) >= 0);
    world_run(&c, 2 * S);
    for (unsigned i = 0; i < 2; i++)
        assert_true(uses(&c, i, "127.0.0.1:8000") && uses(&c, i, "localhost:9000"));

    world_start(&c, 2);
    assert_true(node_router_name(c.nodes[2].node->router, loopback, NODE_ENGINE_VLLM) >= 0);
    world_run(&c, 5 * S);
    char own[3][96], added[96];
    for (unsigned i = 0; i < 3; i++)
        (void)snprintf(own[i], sizeof own[i], "127.0.0.1:8000@%s", c.nodes[i].name);
    (void)snprintf(added, sizeof added, "localhost:9000@%s", c.nodes[1].name);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(uses(&c, i, "127.0.0.1:8000") || uses(&c, i, "localhost:9000"));
        assert_int_equal(uses(&c, i, own[0]), i == 0);
        assert_int_equal(uses(&c, i, own[2]), i == 2);
        assert_int_equal(uses(&c, i, added), i == 1);
        assert_only_at(&c, i, own[0], 0);
        assert_only_at(&c, i, own[2], 2);
        assert_only_at(&c, i, added, 1);
    }
    /* A router of an older build uses the plain name, and elsewhere the address means another
     * engine. */
    DISCARD(crdt_state_add(world_state(&c.nodes[2]), SLICE("[::1]:7000")));
    node_replication_run(c.nodes[2].node->replication, c.now_us);
    world_run(&c, 2 * S);
    assert_true(node_router_replica_find(r0, SLICE("[::1]:7000")) >= 0);
    assert_false(uses(&c, 0, "[::1]:7000") || uses(&c, 1, "[::1]:7000"));
    /* Router 0 and the sources of replicas still find the replica by the plain name. */
    int slot = node_router_replica_find(r0, loopback);
    assert_slice_equal(node_router_replica_name(r0, (unsigned)slot), own[0]);
    assert_int_equal(node_router_replica_engine(r0, (unsigned)slot), NODE_ENGINE_VLLM);
    /* A restarted router uses the same name again. */
    world_kill(&c, 0);
    world_run(&c, 5 * S);
    world_start(&c, 0);
    world_run(&c, 2 * S);
    assert_true(node_router_name(c.nodes[0].node->router, loopback, NODE_ENGINE_VLLM) >= 0);
    world_run(&c, 2 * S);
    assert_true(uses(&c, 0, own[0]) && !uses(&c, 1, own[0]) && !uses(&c, 2, own[0]));
    node_router_unname(c.nodes[0].node->router, loopback);
    world_run(&c, 2 * S);
    assert_false(uses(&c, 0, own[0]));
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_split_into_address_and_owner),
        cmocka_unit_test(loopback_replicas_are_shared_only_on_their_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
