/* The gossip port is open for UDP only: datagrams arrive, and no call gets through. */
#include "node/cluster/replication.h"

#include "base/err.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"
#include <stdio.h>

static json_t *member_json(struct world *c, unsigned node, unsigned of)
{
    struct buf text = {0};
    assert_int_equal(node_replication_members_json(c->nodes[node].node->replication,
                                                   world_mono_us(&c->nodes[node]), &text),
                     0);
    json_t *rows = json_loadb(text.at, text.len, 0, NULL);
    buf_free(&text);
    json_t *found = NULL;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        if (strcmp(json_string_value(json_object_get(row, "name")), c->nodes[of].name) == 0)
            found = json_incref(row);
    }
    json_decref(rows);
    assert_non_null(found);
    return found;
}

static bool filtered(struct world *c, unsigned node, unsigned of)
{
    json_t *row = member_json(c, node, of);
    bool so = json_is_string(json_object_get(row, "tcp_filtered"));
    json_decref(row);
    return so;
}

static void observe(struct world *c, unsigned node, unsigned seed)
{
    struct chain chain;
    world_prompt(&chain, seed, 8000);
    struct node_decision d = world_choose(c, node, &chain);
    world_finish(c, node, d, &no_usage);
}

static double cached_at(struct world *c, unsigned node, unsigned seed)
{
    struct chain chain;
    struct node_decision d;
    world_prompt(&chain, seed, 8000);
    d = world_choose(c, node, &chain);
    world_finish(c, node, d, &no_usage);
    return (double)d.cached_tokens;
}

static void a_joiner_without_tcp_gets_ready_and_exchanges_news(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 1);
    for (unsigned i = 0; i < 2; i++)
        world_start(&c, i);
    world_settle(&c);
    for (unsigned i = 0; i < 2; i++)
        (void)world_replica(&c, i, "replica:8000");
    observe(&c, 0, 1);
    world_run(&c, 2 * S);

    for (unsigned i = 0; i < 3; i++)
        c.nodes[i].calls_refused = true;
    world_start(&c, 2);
    world_run(&c, 8 * S);
    assert_false(node_replication_ready(c.nodes[2].node->replication));
    world_run(&c, 4 * S);
    assert_true(node_replication_ready(c.nodes[2].node->replication));
    assert_int_equal(c.nodes[2].events[NODE_REPLICATION_READY], 1);
    assert_non_null(strstr(c.nodes[2].detail[NODE_REPLICATION_READY], "TCP"));
    assert_in_range(c.nodes[2].events[NODE_REPLICATION_SNAPSHOT_FAILED], 1, 2); /* 1 per member */
    assert_int_equal(c.nodes[2].events[NODE_REPLICATION_TCP_FILTERED], 2);
    assert_true(filtered(&c, 2, 0) && filtered(&c, 2, 1));

    (void)world_replica(&c, 2, "replica:8000");
    world_run(&c, 5 * S);
    assert_true(cached_at(&c, 2, 1) > 0); /* observed before the join */
    observe(&c, 2, 2);
    observe(&c, 1, 3);
    world_run(&c, 2 * S);
    assert_true(cached_at(&c, 0, 2) > 0 && cached_at(&c, 2, 3) > 0);
    assert_true(world_until(&c, 20 * S, world_agrees));

    world_run(&c, 180 * S);
    assert_in_range(c.nodes[2].events[NODE_REPLICATION_TCP_FILTERED], 4, 8);
    assert_in_range(c.nodes[2].events[NODE_REPLICATION_SNAPSHOT_FAILED], 1, 2);
    for (unsigned i = 0; i < 3; i++)
        c.nodes[i].calls_refused = false;
    world_run(&c, 70 * S);
    assert_false(filtered(&c, 2, 0) && filtered(&c, 2, 1));
    unsigned told = c.nodes[2].events[NODE_REPLICATION_TCP_FILTERED];
    world_run(&c, 180 * S);
    assert_int_equal(c.nodes[2].events[NODE_REPLICATION_TCP_FILTERED], told);
    world_close(&c);
}

/* All routers are ready, and no router calls another: a closed port was noticed only at the next
 * necessary call. */
static void a_port_closed_later_is_noticed(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 1);
    for (unsigned i = 0; i < 3; i++)
        world_start(&c, i);
    world_settle(&c);
    world_run(&c, 180 * S);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_TCP_FILTERED], 0);
    c.nodes[1].calls_refused = true;
    world_run(&c, 150 * S);
    for (unsigned i = 0; i < 3; i += 2) {
        assert_true(filtered(&c, i, 1) && !filtered(&c, i, 2 - i));
        assert_in_range(c.nodes[i].events[NODE_REPLICATION_TCP_FILTERED], 1, 2);
    }
    assert_false(filtered(&c, 1, 0) || filtered(&c, 1, 2));
    assert_true(node_replication_ready(c.nodes[0].node->replication));
    c.nodes[1].calls_refused = false;
    world_run(&c, 130 * S); /* 1 call a minute to two members */
    assert_false(filtered(&c, 0, 1) || filtered(&c, 2, 1));
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_joiner_without_tcp_gets_ready_and_exchanges_news),
        cmocka_unit_test(a_port_closed_later_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
