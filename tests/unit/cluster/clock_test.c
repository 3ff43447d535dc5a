/* Wrong clocks, and how the cluster corrects them. */
#include "node/cluster/replication.h"

#include <stdlib.h>

#include "base/check.h"
#include "node/cluster/replication_internal.h"
#include "node/route/share.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"
#include <stdio.h>

static uint32_t generation_at(struct world *c, unsigned node)
{
    return crdt_index_now(node_state_index(c->nodes[node].node->state));
}

static bool clocks_agree(struct world *c)
{
    for (unsigned i = 1; i < c->count; i++) {
        uint32_t a = generation_at(c, 0), b = generation_at(c, i);
        if (c->nodes[i].up && (a > b ? a - b : b - a) > 1)
            return false;
    }
    return true;
}

/* A jump of the wall clock takes effect at a restart. */
static void a_clock_off_by_an_hour_is_corrected(void **state)
{
    (void)state;
    static const int64_t offs_ms[] = {3600000, -3600000};
    for (unsigned k = 0; k < 2; k++) {
        struct world c;
        start(&c, 3, 2);
        say(&c, 0, 1);
        world_kill(&c, 2);
        world_run(&c, 3 * S);
        c.nodes[2].wall_offset_us = offs_ms[k] * MS;
        world_start(&c, 2);
        for (unsigned i = 0; i < 2; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "replica-%u:8000", i);
            (void)world_replica(&c, 2, name);
        }
        say(&c, 2, 9); /* before the clock is corrected */
        world_settle(&c);
        assert_true(clocks_agree(&c));
        say(&c, 2, 2);
        for (unsigned i = 0; i < 3; i++) {
            struct chain chain;
            world_prompt(&chain, 1, 8000);
            assert_true(world_choose(&c, i, &chain).cached_tokens > 7000);
            world_prompt(&chain, 2, 8000);
            assert_true(world_choose(&c, i, &chain).cached_tokens > 7000);
            /* A prompt served before the router was ready is still cached, although the router's
             * clock was wrong. */
            world_prompt(&chain, 9, 8000);
            if (offs_ms[k] > 0)
                assert_true(world_choose(&c, i, &chain).cached_tokens > 7000);
        }
        assert_true(world_until(&c, 10 * S, world_agrees));
        world_close(&c);
    }
}

/* All routers are ready before they meet: a router an hour ahead or behind gives way to the
 * majority. */
static void the_majority_sets_the_time(void **state)
{
    (void)state;
    static const int64_t offs_ms[] = {3600000, -3600000};
    for (unsigned k = 0; k < 2; k++) {
        struct world c;
        world_open(&c, 4, 7 + k);
        c.nodes[1].wall_offset_us = offs_ms[k] * MS;
        for (unsigned i = 0; i < 4; i++) {
            world_start(&c, i);
            for (unsigned j = 0; j < 4; j++)
                world_link(&c, i, j)->cut = i == 1 || j == 1;
        }
        for (unsigned i = 0; i < 4; i++)
            (void)world_replica(&c, i, "replica-0:8000");
        world_run(&c, 5 * S);
        for (unsigned i = 0; i < 4; i++)
            assert_true(node_replication_ready(c.nodes[i].node->replication));
        say(&c, 0, 1);
        say(&c, 1, 2);
        world_heal(&c);
        assert_true(world_until(&c, 40 * S, clocks_agree));
        world_settle(&c);
        assert_int_equal(c.nodes[1].events[k == 0 ? NODE_REPLICATION_CLOCK_BACK
                                                  : NODE_REPLICATION_CLOCK_FORWARD],
                         1);
        for (unsigned i = 0; i < 4; i++) {
            if (i != 1)
                assert_int_equal(c.nodes[i].events[NODE_REPLICATION_CLOCK_BACK] +
                                     c.nodes[i].events[NODE_REPLICATION_CLOCK_FORWARD],
                                 0);
        }
        say(&c, 1, 3);
        assert_true(world_until(&c, 10 * S, world_agrees));
        assert_true(cached(&c, 1, 1) > 7000);
        assert_true(cached(&c, 0, 3) > 7000);
        world_close(&c);
    }
}

/* Two routers reach all others but not each other, so each believes the other alive. Before the
 * fix, router 1 waited for the other's time for ever. */
static void an_unreachable_member_does_not_preserve_a_wrong_time(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 5, 3);
    c.nodes[1].wall_offset_us = 3600000 * (int64_t)MS;
    for (unsigned i = 0; i < 5; i++) {
        world_start(&c, i);
        for (unsigned j = 0; j < 5; j++)
            world_link(&c, i, j)->cut = i == 1 || j == 1;
    }
    world_run(&c, 5 * S);
    world_heal(&c);
    world_link(&c, 1, 4)->cut = world_link(&c, 4, 1)->cut = true;
    assert_true(world_until(&c, 40 * S, clocks_agree));
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_CLOCK_BACK], i == 1);
    world_close(&c);
}

/* The first router heard may have the wrong time, and may be the only router heard for a while. */
static void the_first_router_heard_is_no_majority(void **state)
{
    (void)state;
    for (unsigned seed = 88; seed < 100; seed++) {
        struct world c;
        world_open(&c, 5, seed);
        c.nodes[1].wall_offset_us = 3600000 * (int64_t)MS;
        for (unsigned i = 0; i < 5; i++) {
            world_start(&c, i);
            for (unsigned j = 0; j < 5; j++)
                world_link(&c, i, j)->cut = true;
        }
        world_run(&c, 5 * S);
        world_heal(&c);
        assert_true(world_until(&c, 40 * S, clocks_agree));
        world_settle(&c);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(c.nodes[i].events[NODE_REPLICATION_CLOCK_FORWARD], 0);
        world_close(&c);
    }
}

/* If two routers disagree, the router with the longer uptime gives the time. */
static void a_returning_seed_an_hour_ahead_is_corrected(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    world_run(&c, 20 * S);
    say(&c, 1, 1);
    world_kill(&c, 0);
    world_run(&c, 3 * S);
    c.nodes[0].wall_offset_us = 3600000 * (int64_t)MS;
    world_start(&c, 0); /* without seeds: ready at once, with the wrong time */
    (void)world_replica(&c, 0, "replica-0:8000");
    assert_true(node_replication_ready(c.nodes[0].node->replication));
    world_settle(&c);
    assert_true(world_until(&c, 20 * S, clocks_agree));
    assert_int_equal(c.nodes[0].events[NODE_REPLICATION_CLOCK_BACK], 1);
    assert_int_equal(c.nodes[1].events[NODE_REPLICATION_CLOCK_FORWARD], 0);
    world_settle(&c);
    assert_true(cached(&c, 0, 1) > 7000);
    assert_true(cached(&c, 1, 1) > 7000);
    world_close(&c);
}

/* A machine wakes up after a long sleep, with a late clock. The other members have forgotten the
 * router (after a minute here; after an hour: tests/unit/gossip/gossip_test.c). Before the fix, the
 * router took new messages for repeats of old messages. For as long as the members had run before,
 * the router's clock stayed wrong, and nothing was compared. */
static void a_suspended_machine_recovers_within_seconds(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 6);
    for (unsigned i = 0; i < 3; i++) {
        c.nodes[i].config.replication.gossip.forget_us = 60 * S;
        world_start(&c, i);
        world_run(&c, 100 * MS);
        (void)world_replica(&c, i, "replica-0:8000");
    }
    world_run(&c, 120 * S);
    struct world_node *n = &c.nodes[2];
    struct world_program sleeper = world_router;
    sleeper.late = NULL; /* the monotonic clock stopped too: nothing shows the sleep */
    n->program = &sleeper;
    uint64_t until_us = c.now_us + 400 * S, mono_us = world_mono_us(n);
    world_pause(n, until_us);
    n->mono_base_us = mono_us;
    n->mono_since_us = until_us;
    world_run_until(&c, until_us);
    say(&c, 0, 1);
    assert_true(world_until(&c, 8 * S, clocks_agree));
    assert_int_equal(n->events[NODE_REPLICATION_CLOCK_FORWARD], 1);
    assert_true(world_until(&c, 5 * S, world_agrees));
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(c.nodes[i].events[NODE_REPLICATION_CLOCK_FORWARD] +
                             c.nodes[i].events[NODE_REPLICATION_CLOCK_BACK],
                         0);
    world_close(&c);
}

/* A router is stopped for minutes; the packets of the first seconds wait in the socket. The router
 * took them for new, set the clock back by the length of the stop, and gave up the index. With an
 * odd seed the router is stopped again before an answer corrects the clock. */
static void packets_delayed_in_the_socket_do_not_set_the_clock(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 8; seed++) {
        struct world c;
        world_open(&c, 3, seed);
        for (unsigned i = 0; i < 3; i++) {
            c.nodes[i].config.state.generation_ms = 1000;
            c.nodes[i].config.state.ttl_ms = 200000;
            c.nodes[i].config.replication.reconcile_us = 300 * MS;
            world_start(&c, i);
        }
        world_settle(&c);
        world_run(&c, 10 * S);
        for (unsigned times = 0; times <= seed % 2; times++) {
            world_run(&c, 10 * MS);
            world_pause(&c.nodes[2], c.now_us + 30 * S);
            world_run(&c, 30 * S);
        }
        assert_true(world_until(&c, 30 * S, world_agrees));
        world_run(&c, 10 * S);
        assert_true(clocks_agree(&c));
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(c.nodes[i].events[NODE_REPLICATION_CLOCK_FORWARD] +
                                 c.nodes[i].events[NODE_REPLICATION_CLOCK_BACK],
                             0);
        world_close(&c);
    }
}

/* A slow snapshot carries a time already past on arrival. The joining router believed the time and
 * set the clock back. Then the router refused new observations because they came from the future.
 * (Simulation, seed 12 of join.) */
static void a_slow_snapshot_does_not_set_the_clock_back(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 8; seed++) {
        struct world c;
        world_open(&c, 3, seed);
        for (unsigned i = 0; i < 3; i++) {
            c.nodes[i].config.state.generation_ms = 1000;
            c.nodes[i].config.state.ttl_ms = 200000;
        }
        for (unsigned i = 0; i < 2; i++)
            world_start(&c, i);
        world_settle(&c);
        c.call_bytes_max = 100; /* less than the snapshot's head */
        c.call_pause_us = 2500 * MS;
        world_start(&c, 2);
        world_run(&c, 20 * S);
        assert_true(node_replication_ready(c.nodes[2].node->replication));
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(c.nodes[i].events[NODE_REPLICATION_CLOCK_FORWARD] +
                                 c.nodes[i].events[NODE_REPLICATION_CLOCK_BACK],
                             0);
        world_close(&c);
    }
}

static void small_differences_of_clocks_are_slewed(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 5);
    c.nodes[2].wall_offset_us = -4000 * (int64_t)MS;
    for (unsigned i = 0; i < 3; i++)
        world_start(&c, i);
    world_settle(&c);
    world_run(&c, 20 * S);
    uint64_t a = node_state_cluster_ms(c.nodes[0].node->state, world_ms(&c));
    uint64_t b = node_state_cluster_ms(c.nodes[2].node->state, world_ms(&c));
    assert_true((a > b ? a - b : b - a) < 200);
    world_close(&c);
}

static int64_t apart_ms(struct world *c)
{
    uint64_t ms[2];
    for (unsigned i = 0; i < 2; i++)
        ms[i] = node_state_cluster_ms(c->nodes[i].node->state, c->now_us / 1000);
    return (int64_t)(ms[1] - ms[0]);
}

/* A message has two bytes for a router's age, at most 18 h. If two routers had both been up for
 * longer, each took itself for the older router, and neither gave way. */
static void two_long_running_routers_agree_on_the_time(void **state)
{
    (void)state;
    static const unsigned hours[][2] = {{10, 15}, {15, 10}, {19, 24}, {24, 19}, {18, 90}};
    for (unsigned k = 0; k < ARRAY_LEN(hours); k++) {
        struct world c;
        world_open(&c, 2, 7);
        c.nodes[1].wall_offset_us = 300 * (int64_t)S;
        for (unsigned i = 0; i < 2; i++) {
            world_start(&c, i);
            for (unsigned j = 0; j < 2; j++)
                world_link(&c, i, j)->cut = true;
        }
        world_run(&c, 5 * S);
        /* These times may be before the start of the simulation; only the difference counts, modulo
         * 2^64. */
        for (unsigned i = 0; i < 2; i++)
            c.nodes[i].node->replication->ready_us = c.now_us - hours[k][i] * UINT64_C(3600) * S;
        world_heal(&c);
        world_run(&c, 120 * S);
        assert_true(llabs(apart_ms(&c)) < 1000);
        world_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_off_by_an_hour_is_corrected),
        cmocka_unit_test(the_majority_sets_the_time),
        cmocka_unit_test(an_unreachable_member_does_not_preserve_a_wrong_time),
        cmocka_unit_test(the_first_router_heard_is_no_majority),
        cmocka_unit_test(a_returning_seed_an_hour_ahead_is_corrected),
        cmocka_unit_test(a_suspended_machine_recovers_within_seconds),
        cmocka_unit_test(packets_delayed_in_the_socket_do_not_set_the_clock),
        cmocka_unit_test(a_slow_snapshot_does_not_set_the_clock_back),
        cmocka_unit_test(small_differences_of_clocks_are_slewed),
        cmocka_unit_test(two_long_running_routers_agree_on_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
