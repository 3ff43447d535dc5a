/* Start times of engines: all routers notice a restart once, and mistake nothing else for a
 * restart. */
#include "node/cluster/replication.h"
#include "tests/lib/test.h"
#include "tests/lib/world/look.h"

static void all_routers_notice_a_restart_once(void **state)
{
    (void)state;
    for (unsigned told_start = 0; told_start < 2; told_start++) {
        struct world c;
        start(&c, 3, 1);
        for (unsigned i = 0; i < 3; i++)
            scrape(&c, i, told_start ? 1000 : -1, 5000);
        world_run(&c, 200 * MS);
        say(&c, 0, 1);
        for (unsigned i = 0; i < 3; i++)
            assert_true(cached(&c, i, 1) > 7000);
        /* Router 1 sees the new process first; the others learn of the restart at once. */
        scrape(&c, 1, told_start ? 2000.1 : -1, 10);
        world_run(&c, 50 * MS);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(cached(&c, i, 1), 0);
        /* Observations count from then on, though the others also notice the restart later. */
        say(&c, 1, 2);
        scrape(&c, 0, told_start ? 2000.9 : -1, 20);
        scrape(&c, 2, told_start ? 2000.4 : -1, 30);
        world_run(&c, 200 * MS);
        for (unsigned i = 0; i < 3; i++)
            assert_true(cached(&c, i, 2) > 7000);
        /* A second restart counts as well. */
        scrape(&c, 0, told_start ? 3000 : -1, 1);
        world_run(&c, 50 * MS);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(cached(&c, i, 2), 0);
        assert_true(world_until(&c, 5 * S, world_agrees));
        world_close(&c);
    }
}

/* Router 0 was stopped while the engine restarted, and an answer of the old process waited in the
 * socket. Or a router without connection had last reported the old process. */
static void late_answers_of_an_old_process_are_no_restart(void **state)
{
    (void)state;
    struct world c;
    start(&c, 2, 1);
    for (unsigned i = 0; i < 2; i++)
        scrape(&c, i, 1000, 5000);
    world_run(&c, 200 * MS);
    scrape(&c, 1, 2000, 10);
    world_run(&c, 50 * MS);
    scrape(&c, 0, 2000, 20);
    say(&c, 0, 1);
    scrape(&c, 0, 1000, 5001);
    scrape(&c, 0, 2000, 30);
    world_run(&c, 200 * MS);
    for (unsigned i = 0; i < 2; i++)
        assert_true(cached(&c, i, 1) > 7000);
    /* If an engine repeats the old start time, it did restart, with the clock set back. */
    scrape(&c, 0, 1000, 5);
    scrape(&c, 0, 1000, 6);
    world_run(&c, 200 * MS);
    say(&c, 0, 2);
    scrape(&c, 0, 1000, 7);
    scrape(&c, 0, 1000, 8);
    world_run(&c, 200 * MS);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(cached(&c, i, 1), 0);
        assert_true(cached(&c, i, 2) > 7000);
    }
    world_close(&c);
}

static void a_refused_port_counts_once_and_only_without_a_start_time(void **state)
{
    (void)state;
    for (unsigned told_start = 0; told_start < 2; told_start++) {
        struct world c;
        start(&c, 2, 1);
        for (unsigned i = 0; i < 2; i++)
            scrape(&c, i, told_start ? 1000 : -1, 5000);
        world_run(&c, 100 * MS);
        say(&c, 0, 1);
        unsigned slot[2];
        for (unsigned i = 0; i < 2; i++) {
            slot[i] = (unsigned)node_router_replica_find(c.nodes[i].node->router,
                                                         SLICE("replica-0:8000"));
            node_router_probed(c.nodes[i].node->router, slot[i],
                               (struct node_check){.refused = true}, world_ms(&c));
            node_router_probed(c.nodes[i].node->router, slot[i], (struct node_check){.ok = true},
                               world_ms(&c));
            node_replication_run(c.nodes[i].node->replication, c.now_us);
            world_run(&c, 50 * MS);
            if (i == 0)
                say(&c, 0, 2);
        }
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(cached(&c, i, 1) > 7000, told_start);
            if (!told_start)
                assert_true(number_of(&c, i, "replica-0:8000", "incarnation", "raises") >= 1);
        }
        world_close(&c);
    }
}

/* The router's present time, in seconds. */
static double time_of(const struct world *c, unsigned node)
{
    return (double)node_state_cluster_ms(c->nodes[node].node->state, world_ms(c)) / 1000;
}

/* The start time of a used replica became known. Routers took this for a restart, though no start
 * time had been known before, and forgot the replica's prompts. */
static void a_first_known_start_time_is_no_restart(void **state)
{
    (void)state;
    static const double ago_s[] = {3600, 5.5, 4.5};
    for (unsigned reader = 0; reader < 2; reader++) {
        for (unsigned k = 0; k < 3; k++) {
            struct world c;
            start(&c, 2, 1);
            double used_s = time_of(&c, 0);
            say(&c, 0, 1);
            for (unsigned i = 0; i < 2; i++)
                assert_true(cached(&c, i, 1) > 7000);
            world_run(&c, 700 * MS);
            scrape(&c, reader, used_s - ago_s[k], 5000);
            world_run(&c, 200 * MS);
            bool earlier_process = ago_s[k] < CRDT_EARLY_SKEW_MS / 1000.0;
            for (unsigned i = 0; i < 2; i++)
                assert_int_equal(cached(&c, i, 1) > 7000, !earlier_process);
            assert_true(world_until(&c, 5 * S, world_agrees));
            scrape(&c, reader, time_of(&c, 0), 5); /* this is a restart */
            world_run(&c, 200 * MS);
            for (unsigned i = 0; i < 2; i++)
                assert_int_equal(cached(&c, i, 1), 0);
            world_close(&c);
        }
    }
}

/* A restarted router answers before it knows the cluster's time and the engine's start time. The
 * observations until then were lost everywhere, even at the router itself. */
static void observations_before_readiness_are_kept(void **state)
{
    (void)state;
    static const int64_t offs_ms[] = {0, 3600000, -3600000};
    for (unsigned k = 0; k < 6; k++) {
        struct world c;
        world_open(&c, 3, 1);
        c.nodes[2].wall_offset_us = offs_ms[k / 2] * MS;
        for (unsigned i = 0; i < 2; i++) {
            world_start(&c, i);
            world_run(&c, 100 * MS);
        }
        world_settle(&c);
        for (unsigned i = 0; i < 2; i++)
            (void)world_replica(&c, i, "replica-0:8000");
        double started_s = time_of(&c, 0) - 60;
        scrape(&c, 0, started_s, 5000);
        world_run(&c, S);
        world_start(&c, 2);
        (void)world_replica(&c, 2, "replica-0:8000");
        struct chain chain;
        world_prompt(&chain, 1, 8000);
        world_finish(&c, 2, world_choose(&c, 2, &chain), &no_usage);
        assert_true(cached(&c, 2, 1) > 7000);
        if (k % 2 == 1)
            scrape(&c, 2, started_s, 5001);
        assert_false(node_replication_ready(c.nodes[2].node->replication));
        world_run(&c, 2 * S);
        assert_true(node_replication_ready(c.nodes[2].node->replication));
        for (unsigned i = 0; i < 3; i++)
            assert_true(cached(&c, i, 1) > 7000);
        assert_true(world_until(&c, 10 * S, world_agrees));
        world_close(&c);
    }
}

/* An engine restarted within the resolution of the start time: all routers know the first start,
 * and a raise. A returning router reads the second start before the cluster's state arrives. The
 * router took it for another restart, and all routers forgot the later observations. (jepsen-lite,
 * seed 72.) */
static void start_times_read_before_readiness_are_no_restart(void **state)
{
    (void)state;
    struct world c;
    world_open(&c, 3, 1);
    for (unsigned i = 0; i < 2; i++) {
        world_start(&c, i);
        world_run(&c, 100 * MS);
    }
    world_settle(&c);
    for (unsigned i = 0; i < 2; i++)
        (void)world_replica(&c, i, "replica-0:8000");
    double started_s = time_of(&c, 0) - 60;
    scrape(&c, 0, started_s - 1.5, 5000);
    scrape(&c, 0, started_s, 3); /* fewer queries than before */
    world_run(&c, S);
    say(&c, 0, 1);
    world_run(&c, S);
    world_start(&c, 2);
    (void)world_replica(&c, 2, "replica-0:8000");
    scrape(&c, 2, started_s, 50);
    assert_false(node_replication_ready(c.nodes[2].node->replication));
    world_run(&c, 2 * S);
    assert_true(node_replication_ready(c.nodes[2].node->replication));
    for (unsigned i = 0; i < 3; i++) {
        scrape(&c, i, started_s, 60);
        assert_true(cached(&c, i, 1) > 7000);
    }
    assert_true(world_until(&c, 10 * S, world_agrees));
    /* A later start time is a restart. */
    scrape(&c, 2, started_s + 10, 1);
    world_run(&c, 200 * MS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(cached(&c, i, 1), 0);
    world_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_routers_notice_a_restart_once),
        cmocka_unit_test(late_answers_of_an_old_process_are_no_restart),
        cmocka_unit_test(a_refused_port_counts_once_and_only_without_a_start_time),
        cmocka_unit_test(a_first_known_start_time_is_no_restart),
        cmocka_unit_test(observations_before_readiness_are_kept),
        cmocka_unit_test(start_times_read_before_readiness_are_no_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
