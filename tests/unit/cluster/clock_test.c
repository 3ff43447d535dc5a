/* Clocks that are wrong, and what a cluster makes of them. */
#include "node/cluster/replication.h"

#include "node/route/share.h"
#include "tests/lib/cluster_help.h"
#include "tests/lib/test.h"
#include <stdio.h>

static uint32_t generation_at(struct cluster *c, unsigned node)
{
    return crdt_index_now(node_state_index(c->nodes[node].node->state));
}

static bool clocks_agree(struct cluster *c)
{
    for (unsigned i = 1; i < c->count; i++) {
        uint32_t a = generation_at(c, 0), b = generation_at(c, i);
        if (c->nodes[i].up && (a > b ? a - b : b - a) > 1)
            return false;
    }
    return true;
}

/* A restart is when a wall clock that jumped takes effect. */
static void a_clock_that_is_an_hour_off_heals(void **state)
{
    (void)state;
    static const int64_t offs_ms[] = {3600000, -3600000};
    for (unsigned k = 0; k < 2; k++) {
        struct cluster c;
        start(&c, 3, 2);
        say(&c, 0, 1);
        cluster_kill(&c, 2);
        cluster_run(&c, 3 * S);
        c.nodes[2].wall_off_ms = offs_ms[k];
        cluster_start(&c, 2);
        for (unsigned i = 0; i < 2; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "replica-%u:8000", i);
            (void)cluster_replica(&c, 2, name);
        }
        say(&c, 2, 9); /* before it knows better */
        cluster_settle(&c);
        assert_true(clocks_agree(&c));
        say(&c, 2, 2);
        for (unsigned i = 0; i < 3; i++) {
            struct chain chain;
            cluster_prompt(&chain, 1, 8000);
            assert_true(cluster_choose(&c, i, &chain).cached_tokens > 7000);
            cluster_prompt(&chain, 2, 8000);
            assert_true(cluster_choose(&c, i, &chain).cached_tokens > 7000);
        }
        assert_true(cluster_until(&c, 10 * S, cluster_agrees));
        cluster_free(&c);
    }
}

/* Everybody is ready before they meet: the odd one gives way to the majority, ahead or behind. */
static void the_majority_tells_the_time(void **state)
{
    (void)state;
    static const int64_t offs_ms[] = {3600000, -3600000};
    for (unsigned k = 0; k < 2; k++) {
        struct cluster c;
        cluster_init(&c, 4, 7 + k);
        c.nodes[1].wall_off_ms = offs_ms[k];
        for (unsigned i = 0; i < 4; i++) {
            cluster_start(&c, i);
            for (unsigned j = 0; j < 4; j++)
                c.cut[i][j] = i == 1 || j == 1;
        }
        for (unsigned i = 0; i < 4; i++)
            (void)cluster_replica(&c, i, "replica-0:8000");
        cluster_run(&c, 5 * S);
        for (unsigned i = 0; i < 4; i++)
            assert_true(node_replication_ready(c.nodes[i].node->replication));
        say(&c, 0, 1);
        say(&c, 1, 2);
        memset(c.cut, 0, sizeof c.cut);
        assert_true(cluster_until(&c, 40 * S, clocks_agree));
        cluster_settle(&c);
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
        assert_true(cluster_until(&c, 10 * S, cluster_agrees));
        assert_true(cached(&c, 1, 1) > 7000);
        assert_true(cached(&c, 0, 3) > 7000);
        cluster_free(&c);
    }
}

/* The one that is heard first may be the odd one. */
static void the_first_that_is_heard_is_no_majority(void **state)
{
    (void)state;
    for (unsigned seed = 0; seed < 8; seed++) {
        struct cluster c;
        cluster_init(&c, 5, seed);
        c.nodes[1].wall_off_ms = 3600000;
        for (unsigned i = 0; i < 5; i++) {
            cluster_start(&c, i);
            for (unsigned j = 0; j < 5; j++)
                c.cut[i][j] = true;
        }
        cluster_run(&c, 5 * S);
        memset(c.cut, 0, sizeof c.cut);
        assert_true(cluster_until(&c, 40 * S, clocks_agree));
        cluster_settle(&c);
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(c.nodes[i].events[NODE_REPLICATION_CLOCK_FORWARD], 0);
        cluster_free(&c);
    }
}

/* Of two that disagree the one that has been there longer tells the time. */
static void a_seed_that_comes_back_an_hour_ahead_gives_way(void **state)
{
    (void)state;
    struct cluster c;
    start(&c, 2, 1);
    cluster_run(&c, 20 * S);
    say(&c, 1, 1);
    cluster_kill(&c, 0);
    cluster_run(&c, 3 * S);
    c.nodes[0].wall_off_ms = 3600000;
    cluster_start(&c, 0); /* it has no seeds: it is ready at once, and wrong */
    (void)cluster_replica(&c, 0, "replica-0:8000");
    assert_true(node_replication_ready(c.nodes[0].node->replication));
    cluster_settle(&c);
    assert_true(cluster_until(&c, 20 * S, clocks_agree));
    assert_int_equal(c.nodes[0].events[NODE_REPLICATION_CLOCK_BACK], 1);
    assert_int_equal(c.nodes[1].events[NODE_REPLICATION_CLOCK_FORWARD], 0);
    cluster_settle(&c);
    assert_true(cached(&c, 0, 1) > 7000);
    assert_true(cached(&c, 1, 1) > 7000);
    cluster_free(&c);
}

static void small_differences_of_clocks_are_slewed(void **state)
{
    (void)state;
    struct cluster c;
    cluster_init(&c, 3, 5);
    c.nodes[2].wall_off_ms = -4000;
    for (unsigned i = 0; i < 3; i++)
        cluster_start(&c, i);
    cluster_settle(&c);
    cluster_run(&c, 20 * S);
    uint64_t a = node_state_cluster_ms(c.nodes[0].node->state, cluster_ms(&c));
    uint64_t b = node_state_cluster_ms(c.nodes[2].node->state, cluster_ms(&c));
    assert_true((a > b ? a - b : b - a) < 200);
    cluster_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_is_an_hour_off_heals),
        cmocka_unit_test(the_majority_tells_the_time),
        cmocka_unit_test(the_first_that_is_heard_is_no_majority),
        cmocka_unit_test(a_seed_that_comes_back_an_hour_ahead_gives_way),
        cmocka_unit_test(small_differences_of_clocks_are_slewed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
