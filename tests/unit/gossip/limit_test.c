/* More gossips on a network in virtual time than a group may have. */
#include "tests/lib/test.h"

#include <stdio.h>

#include "base/check.h"
#include "gossip/gossip_internal.h"
#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000, LIMIT = 6 };

static struct net *net_limited(unsigned count, uint64_t seed)
{
    struct net *net = net_new(count, seed);
    net->config.routers_max = LIMIT;
    net->advertise = seed % 2 == 0;
    return net;
}

/* Numbers are ages: node 0 began first. */
static void start(struct net *net, unsigned index)
{
    net_start(net, index, 1700000000000 + index, true);
}

/* The admitted nodes see each other and no others. */
static bool the_oldest_agree(struct net *net)
{
    bool may[NET_NODES_MAX] = {0};
    unsigned room = LIMIT;
    for (unsigned i = 0; i < net->world.count && room > 0; i++) {
        may[i] = net->nodes[i].gossip != NULL;
        room -= may[i];
    }
    for (unsigned i = 0; i < net->world.count; i++) {
        for (unsigned o = 0; may[i] && o < net->world.count; o++) {
            struct gossip_member m;
            bool known =
                gossip_member_find(net->nodes[i].gossip, net_node(o), net->world.now_us, &m) == 0 &&
                m.state <= GOSSIP_SUSPECT;
            if (may[o] ? !known || m.state != GOSSIP_ALIVE || (i != o && !m.session) : known)
                return false;
        }
    }
    return true;
}

static void agree_for_long(struct net *net, unsigned first_refused)
{
    char name[32];
    assert_true(net_run(net, net->world.now_us + 40 * (uint64_t)SECOND, the_oldest_agree));
    net_for(net, 5 * SECOND);
    uint64_t packets = net->world.net.packets;
    uint64_t died[LIMIT];
    for (unsigned i = 0; i < LIMIT; i++)
        died[i] = net_stats(net, i).died;
    for (unsigned second = 0; second < 90; second++) {
        net_for(net, SECOND);
        assert_true(the_oldest_agree(net));
    }
    for (unsigned i = 0; i < LIMIT; i++)
        assert_int_equal(net_stats(net, i).died, died[i]);
    /* Keep-alives; each refused node asks twice a minute. */
    assert_true(net->world.net.packets - packets < 90 * LIMIT * (LIMIT - 1) * 5 * 12 / 10);
    net_item(net, 1);
    net_for(net, 100 * MS);
    for (unsigned i = 0; i < LIMIT; i++)
        assert_true(net_has(net, i, 1, net->nodes[1].made - 1));
    for (unsigned i = first_refused; i < net->world.count; i++) {
        struct gossip_stats stats = net_stats(net, i);
        (void)snprintf(name, sizeof name, "node-%03u", i);
        assert_true(stats.routers_refused > 0);
        assert_string_equal(stats.router_refused, name);
        assert_int_equal(stats.routers_limit, LIMIT);
        assert_true(net_state(net, i, 0) >= GOSSIP_DEAD);
    }
}

static void test_the_youngest_routers_are_refused(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct net *net = net_limited(9, seed);
        for (unsigned i = 0; i < 9; i++) {
            start(net, seed % 4 < 2 ? 8 - i : i);
            net_for(net, prng_below(&net->world.prng, seed <= 4 ? 20 * MS : 3 * SECOND));
        }
        agree_for_long(net, LIMIT);
        struct gossip_stats stats = net_stats(net, 0);
        assert_true(stats.routers_refused > 0);
        assert_true(strcmp(stats.router_refused, "node-005") > 0);
        net_finish(net);
    }
}

static bool odd_from_even(void *context, unsigned from, unsigned to, const uint8_t *bytes,
                          size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return from % 2 != to % 2;
}

static void test_two_halves_over_the_limit_agree_after_merging(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct net *net = net_limited(10, 20 + seed);
        net->world.net.block = odd_from_even;
        for (unsigned i = 0; i < 10; i++)
            start(net, i);
        net_for(net, 10 * SECOND);
        assert_int_equal(net_stats(net, 0).routers_refused, 0);
        net->world.net.block = NULL;
        agree_for_long(net, LIMIT);
        net_finish(net);
    }
}

static void test_a_refused_router_joins_when_a_member_dies(void **state)
{
    (void)state;
    struct net *net = net_limited(8, 30);
    for (unsigned i = 0; i < 8; i++)
        start(net, i);
    net_for(net, 20 * SECOND);
    assert_true(the_oldest_agree(net));
    net_item(net, 2);
    net_kill(net, 3);
    assert_true(net_run(net, net->world.now_us + 40 * (uint64_t)SECOND, the_oldest_agree));
    assert_int_equal(net_state(net, 6, 0), GOSSIP_ALIVE);
    net_item(net, 6);
    net_for(net, SECOND);
    assert_true(net_has(net, 0, 6, 0) && net_has(net, 6, 2, 0));
    net_finish(net);
}

/* A node died; on return it is older than the successor. */
static void test_a_sleeping_router_regains_its_membership(void **state)
{
    (void)state;
    struct net *net = net_limited(7, 31);
    for (unsigned i = 0; i < 7; i++)
        start(net, i);
    net_for(net, 10 * SECOND);
    net->nodes[4].paused = true;
    net_for(net, 60 * (uint64_t)SECOND);
    assert_int_equal(net_state(net, 0, 4), GOSSIP_DEAD);
    assert_int_equal(net_state(net, 0, 6), GOSSIP_ALIVE);
    net->nodes[4].paused = false;
    assert_true(net_run(net, net->world.now_us + 30 * (uint64_t)SECOND, the_oldest_agree));
    agree_for_long(net, LIMIT);
    net_finish(net);
}

/* A member of a small cluster refuses all others, by mistake or because of another build. The
 * others stay. */
static void test_a_single_members_refusals_are_doubted(void **state)
{
    (void)state;
    static const uint32_t limits[] = {2, 512, UINT16_MAX};
    for (unsigned k = 0; k < ARRAY_LEN(limits); k++) {
        struct net *net = net_new_meshed(5, 40);
        struct gossip *bad = net->nodes[4].gossip;
        uint32_t own = bad->config.routers_max;
        for (unsigned times = 0; times < 5; times++) {
            bad->config.routers_max = limits[k];
            for (unsigned i = 0; i < 4; i++)
                gossip_announce_refusal(bad, gossip_peer_find(bad, net_node(i)));
            bad->config.routers_max = own;
            net_for(net, 500 * MS);
            assert_true(net_meshed(net));
        }
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(net_stats(net, i).refusals_doubted, 5);
            assert_int_equal(net_stats(net, i).routers_refused, 0);
            assert_int_equal(net_stats(net, i).self_refused_us, 0);
        }
        net_finish(net);
    }
}

static void test_sent_and_received_refusals_are_counted_separately(void **state)
{
    (void)state;
    struct net *net = net_limited(7, 32);
    for (unsigned i = 0; i < 7; i++)
        start(net, i);
    net_for(net, 20 * SECOND);
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(net_stats(net, i).self_refused_us != 0, i == 6);
    assert_true(net_stats(net, 0).routers_refused > 0);
    net_finish(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_youngest_routers_are_refused),
        cmocka_unit_test(test_two_halves_over_the_limit_agree_after_merging),
        cmocka_unit_test(test_a_refused_router_joins_when_a_member_dies),
        cmocka_unit_test(test_a_sleeping_router_regains_its_membership),
        cmocka_unit_test(test_a_single_members_refusals_are_doubted),
        cmocka_unit_test(test_sent_and_received_refusals_are_counted_separately),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
