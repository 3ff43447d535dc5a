/* Calls between routers: their targets and responders. */
#include <stdio.h>

#include "tests/lib/test.h"
#include "tests/lib/world/world.h"

enum { S = 1000000 };

/* The seed advertises an address at which nothing listens. Datagrams are sent to the source address
 * of the seed's packets, and the snapshot's connection must go there, too. */
static void a_call_goes_to_the_address_of_the_packets(void **state)
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

/* --- events of all routers ------------------------------------------------------------------- */

static int write_events(void *context, struct slice request, struct buf *out)
{
    return buf_printf(out, "{\"of\":\"%s\",\"asked\":\"%.*s\"}", (const char *)context,
                      SLICE_ARG(request));
}

static char answers[1024];
static uint64_t answered_us;

static void on_answers(void *context, struct slice json)
{
    const struct world *c = context;
    answered_us = c->now_us;
    (void)snprintf(answers, sizeof answers, "%.*s", SLICE_ARG(json));
}

static void ask(struct world *c, unsigned node)
{
    struct world_node *n = &c->nodes[node];
    answers[0] = '\0';
    assert_int_equal(node_replication_ask(n->node->replication, NODE_CALL_EVENTS, SLICE("all"),
                                          2 * S, world_mono_us(n), on_answers, c),
                     0);
    world_touch(n);
    world_run(c, 3 * S);
}

/* A router keeps no events, like an older version. Another router does not answer; the caller waits
 * 2 s. */
static void events_are_requested_from_all_routers(void **state)
{
    (void)state;
    static char one[] = "one", two[] = "two";
    struct world c;
    world_open(&c, 3, 12);
    for (unsigned i = 0; i < 3; i++)
        world_start(&c, i);
    world_run(&c, 5 * S);
    node_replication_events(c.nodes[0].node->replication, write_events, one);
    ask(&c, 0);
    assert_string_equal(answers, "{\"router-0\":{\"of\":\"one\",\"asked\":\"all\"},"
                                 "\"router-1\":{\"error\":\"not supported\"},"
                                 "\"router-2\":{\"error\":\"not supported\"}}");
    node_replication_events(c.nodes[1].node->replication, write_events, two);
    world_pause(&c.nodes[2], c.now_us + 60 * (uint64_t)S);
    uint64_t asked_us = c.now_us;
    ask(&c, 0);
    assert_non_null(strstr(answers, "\"router-1\":{\"of\":\"two\",\"asked\":\"all\"}"));
    assert_non_null(strstr(answers, "\"router-2\":{\"error\":"));
    assert_in_range(answered_us - asked_us, 1, 2 * S + 200000);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_goes_to_the_address_of_the_packets),
        cmocka_unit_test(events_are_requested_from_all_routers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
