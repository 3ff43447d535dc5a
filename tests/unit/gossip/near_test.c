/* Watching in large clusters in virtual time: few packets while nothing happens, and a death is
 * detected as fast as in a small cluster. */
#include "tests/lib/test.h"

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000 };

static bool near(const struct net *net, unsigned at, unsigned of)
{
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[at].gossip, net_node(of), net->world.now_us, &m),
                     ERR_OK);
    return m.near;
}

static struct net *meshed(unsigned count, uint64_t seed)
{
    struct net *net = net_new(count, seed);
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + 10 * SECOND, net_meshed));
    net_for(net, 5 * SECOND);
    return net;
}

static bool dead_everywhere(struct net *net)
{
    for (unsigned i = 0; i < net->world.count; i++)
        for (unsigned o = 0; o < net->world.count; o++)
            if (net->nodes[i].gossip != NULL && net->nodes[o].gossip == NULL &&
                net_state(net, i, o) < GOSSIP_DEAD)
                return false;
    return true;
}

static void assert_nobody_else_suspected(const struct net *net)
{
    for (unsigned i = 0; i < net->world.count; i++)
        for (unsigned o = 0; o < net->world.count; o++)
            if (net->nodes[i].gossip != NULL && net->nodes[o].gossip != NULL)
                assert_int_equal(net_state(net, i, o), GOSSIP_ALIVE);
}

static void test_watchers_are_mutual_and_few(void **state)
{
    (void)state;
    static const struct {
        unsigned count, near;
    } sizes[] = {{3, 2}, {8, 7}, {9, 4}, {16, 4}, {64, 4}};
    for (unsigned k = 0; k < ARRAY_LEN(sizes); k++) {
        struct net *net = meshed(sizes[k].count, 50 + k);
        for (unsigned i = 0; i < sizes[k].count; i++) {
            unsigned count = 0;
            for (unsigned o = 0; o < sizes[k].count; o++) {
                count += near(net, i, o);
                assert_int_equal(near(net, i, o), near(net, o, i));
            }
            assert_int_equal(count, sizes[k].near);
        }
        /* The number of idle packets does not grow with the cluster. */
        uint64_t packets = net->world.net.packets;
        net_for(net, 20 * SECOND);
        uint64_t each = (net->world.net.packets - packets) / 20 / sizes[k].count;
        assert_in_range(each, sizes[k].count < 8 ? 0 : 20, 38);
        for (unsigned i = 0; i < sizes[k].count; i++)
            assert_int_equal(net_stats(net, i).suspected, 0);
        net_finish(net);
    }
}

static void test_deaths_are_detected_within_three_seconds(void **state)
{
    (void)state;
    static const struct {
        unsigned killed, of;
    } sizes[] = {{1, 32}, {2, 32}, {8, 64}, {16, 32}, {24, 32}};
    for (unsigned k = 0; k < ARRAY_LEN(sizes); k++) {
        struct net *net = meshed(sizes[k].of, 70 + k);
        net->world.net.loss = 0.01;
        for (unsigned i = 0; i < sizes[k].killed; i++)
            net_kill(net, i * sizes[k].of / sizes[k].killed);
        assert_true(net_run(net, net->world.now_us + 3 * SECOND, dead_everywhere));
        assert_nobody_else_suspected(net);
        net_finish(net);
    }
}

/* All watchers of a node die with it. Half of their neighbours' own watchers are silent then, so
 * the neighbours look at all members. */
static void test_a_node_dying_with_its_watchers_is_detected(void **state)
{
    (void)state;
    for (unsigned half = 0; half < 2; half++) {
        struct net *net = meshed(32, 80 + half);
        unsigned left = half ? 2 : 4;
        for (unsigned o = 0; o < 32; o++)
            if (o != 5 && near(net, 5, o) && left > 0) {
                left--;
                net_kill(net, o);
            }
        assert_int_equal(left, 0);
        net_kill(net, 5);
        assert_true(net_run(net, net->world.now_us + 3 * SECOND, dead_everywhere));
        assert_nobody_else_suspected(net);
        net_finish(net);
    }
}

static bool is_near_5[64];

/* Half of node 5's watchers do not get the packets; no watcher may suspect the node. */
static bool half_cannot_hear_5(void *context, unsigned from, unsigned to, const uint8_t *bytes,
                               size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return from == 5 && is_near_5[to];
}

static void test_cut_off_watchers_accuse_no_node(void **state)
{
    (void)state;
    struct net *net = meshed(32, 90);
    unsigned left = 2;
    for (unsigned o = 0; o < 32; o++) {
        is_near_5[o] = o != 5 && near(net, 5, o) && left > 0;
        left -= is_near_5[o];
    }
    net->world.net.block = half_cannot_hear_5;
    net_for(net, 30 * SECOND);
    assert_nobody_else_suspected(net);
    for (unsigned i = 0; i < 32; i++)
        assert_int_equal(net_stats(net, i).suspected, 0);
    net_kill(net, 5);
    assert_true(net_run(net, net->world.now_us + 3 * SECOND, dead_everywhere));
    net_finish(net);
}

static bool halves(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return from % 2 != to % 2;
}

static void test_a_partition_is_detected_and_heals(void **state)
{
    (void)state;
    struct net *net = meshed(32, 91);
    net->world.net.block = halves;
    net_for(net, 3 * SECOND);
    for (unsigned i = 0; i < 32; i++)
        for (unsigned o = 0; o < 32; o++)
            if (i != o)
                assert_int_equal(net_state(net, i, o), i % 2 == o % 2 ? GOSSIP_ALIVE : GOSSIP_DEAD);
    net->world.net.block = NULL;
    assert_true(net_run(net, net->world.now_us + 15 * SECOND, net_meshed));
    net_finish(net);
}

static struct {
    unsigned author, deaf;
    bool all;
} lost;

/* Loses packets from the author to the deaf node: all, or only small ones, which are
 * keep-alives. */
static bool lose(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    return from == lost.author && to == lost.deaf && (lost.all || len < 100);
}

static bool tail_came(struct net *net)
{
    return net_has(net, lost.deaf, lost.author, 0);
}

/* All packets from the author to the deaf node are lost for a moment, then only the keep-alives. */
static void lost_tail_heals(struct net *net, uint64_t within_us)
{
    lost.all = true;
    net->world.net.block = lose;
    net->nodes[lost.author].item_bytes = 300;
    net_item(net, lost.author);
    net_for(net, 100 * MS);
    assert_false(net_has(net, lost.deaf, lost.author, 0));
    lost.all = false;
    assert_true(net_run(net, net->world.now_us + within_us, tail_came));
    assert_true(net_converged(net));
    net_finish(net);
}

/* The last delta of a far author is lost, and so is the announcement. The neighbours' vectors show
 * the gap, well before the author's turn comes to send a keep-alive. */
static void test_the_lost_last_delta_of_a_far_node_is_repaired(void **state)
{
    (void)state;
    struct net *net = meshed(32, 92);
    lost.author = 0;
    lost.deaf = 1;
    while (lost.author == lost.deaf || near(net, lost.author, lost.deaf))
        lost.author++;
    lost_tail_heals(net, 3 * SECOND);
}

static unsigned index_of(const struct net *net, uint64_t node)
{
    unsigned index = 0;
    while (net_node(index) != node)
        assert_true(++index < net->world.count);
    return index;
}

/* With many members, a vector takes two packets, and the author is in the second packet. No other
 * packet shows the gap: the author's own keep-alives are lost for good. */
static void test_a_gap_in_a_vectors_second_packet_is_repaired(void **state)
{
    (void)state;
    enum { MEMBERS = 84, ENTRY = 8 + 6 + 1 }; /* the least bytes of a member in a vector */
    _Static_assert((MEMBERS - 1) * ENTRY > GOSSIP_DATAGRAM_MAX, "one packet has no room for them");
    struct net *net = meshed(MEMBERS, 93);
    struct gossip_member last;
    lost.deaf = 1;
    unsigned at = gossip_member_count(net->nodes[lost.deaf].gossip);
    do {
        gossip_member_at(net->nodes[lost.deaf].gossip, --at, net->world.now_us, &last);
        lost.author = index_of(net, last.node);
    } while (lost.author == lost.deaf || near(net, lost.author, lost.deaf));
    lost_tail_heals(net, 10 * SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watchers_are_mutual_and_few),
        cmocka_unit_test(test_deaths_are_detected_within_three_seconds),
        cmocka_unit_test(test_a_node_dying_with_its_watchers_is_detected),
        cmocka_unit_test(test_cut_off_watchers_accuse_no_node),
        cmocka_unit_test(test_a_partition_is_detected_and_heals),
        cmocka_unit_test(test_the_lost_last_delta_of_a_far_node_is_repaired),
        cmocka_unit_test(test_a_gap_in_a_vectors_second_packet_is_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
