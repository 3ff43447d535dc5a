/* Nodes with several versions of the protocol in the same group. */
#include "tests/lib/test.h"

#include "base/err.h"
#include "gossip/gossip_internal.h" /* bytes as sent by a peer of another version */
#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000, EPOCH = 1700000000 };

static struct gossip_member member(const struct net *net, unsigned at, unsigned of)
{
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[at].gossip, net_node(of), net->world.now_us, &m),
                     0);
    return m;
}

/* Node i speaks speaks[i]. */
static struct net *group(unsigned count, const struct gossip_versions *speaks, uint64_t seed)
{
    struct net *net = net_new(count, seed);
    for (unsigned i = 0; i < count; i++) {
        net->config.speaks = speaks[i];
        net_start(net, i, EPOCH + i, true);
    }
    assert_true(net_run(net, 10 * (uint64_t)SECOND, net_meshed));
    return net;
}

static void the_greatest_common_version_is_spoken(void **state)
{
    (void)state;
    const struct gossip_versions speaks[] = {{1, 2}, {2, 3}, {1, 3}};
    struct net *net = group(3, speaks, 1);
    net_items(net, 50);
    assert_true(net_run(net, net->world.now_us + SECOND, net_converged));
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned of = 0; of < 3; of++) {
            struct gossip_member m = member(net, i, of);
            assert_true(m.understood);
            assert_int_equal(m.speaks.least, speaks[of].least);
            assert_int_equal(m.speaks.greatest, speaks[of].greatest);
            assert_int_equal(m.version, gossip_versions_common(speaks[i], speaks[of]));
        }
    }
    net_finish(net);
}

static void a_node_of_an_unknown_version_is_only_a_member(void **state)
{
    (void)state;
    const struct gossip_versions speaks[] = {{1, 1}, {1, 2}, {3, 3}};
    struct net *net = group(3, speaks, 2);
    for (unsigned i = 0; i < 30; i++) {
        for (unsigned n = 0; n < 3; n++)
            net_item(net, n);
        net_for(net, 11 * MS);
    }
    net_for(net, 5 * SECOND);
    for (unsigned i = 0; i < 2; i++) {
        struct gossip_stats s = net_stats(net, i);
        assert_true(net_has(net, i, 1 - i, 29));
        assert_false(net_has(net, i, 2, 0));
        assert_false(net_has(net, 2, i, 0));
        assert_int_equal(net_state(net, i, 2), GOSSIP_ALIVE);
        assert_false(member(net, i, 2).understood);
        assert_int_equal(member(net, i, 2).speaks.least, 3);
        assert_int_equal(s.refused_malformed + s.quarantines + s.suspected, 0);
        assert_int_equal(s.frames_out[GOSSIP_FRAME_NACK] + s.gaps_lost, 0);
        assert_int_equal(s.frames_out[GOSSIP_FRAME_DELTA], s.deltas_produced); /* 1 receiver */
        for (unsigned k = 0; k < 50; k++)
            assert_int_equal(gossip_peer_random(net->nodes[i].gossip, 0), net_node(1 - i));
        assert_int_equal(gossip_message(net->nodes[i].gossip, net_node(2),
                                        SLICE("what do you hold?"), net->world.now_us),
                         ERR_NOT_FOUND);
    }
    /* The death of node 2 is detected as usual. */
    net_kill(net, 2);
    net_for(net, 4 * SECOND);
    assert_int_equal(net_state(net, 0, 2), GOSSIP_DEAD);
    /* The node comes back with a build known to the others. */
    net->config.speaks = (struct gossip_versions){2, 2};
    net_start(net, 2, EPOCH + 100000, true);
    net_for(net, 5 * SECOND);
    assert_false(member(net, 0, 2).understood);
    assert_true(member(net, 1, 2).understood);
    net_kill(net, 2);
    net->config.speaks = (struct gossip_versions){1, 2};
    net_start(net, 2, EPOCH + 200000, true);
    net_for(net, 5 * SECOND);
    net_items(net, 30);
    net_for(net, SECOND);
    for (unsigned i = 0; i < 3; i++)
        for (unsigned of = 0; of < 3; of++)
            assert_true(member(net, i, of).understood);
    net_item(net, 2);
    net_for(net, 100 * MS);
    assert_true(net_has(net, 0, 2, net->nodes[2].made - 1));
    net_finish(net);
}

static void send_all(struct net *net, unsigned from, unsigned to, struct slice frames)
{
    struct gossip *g = net->nodes[from].gossip;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    wire_write_bytes(&packet.w, frames.at, frames.len);
    struct gossip_peer *p = gossip_peer_find(g, net_node(to));
    uint8_t out[GOSSIP_DATAGRAM_MAX];
    struct slice plain = slice_of((char *)packet.bytes, wire_written(&packet.w));
    assert_int_equal(gossip_session_seal(&p->session, plain, net->world.now_us, out), 0);
    net_inject(net, to, &net->nodes[from].at->address, out, plain.len + GOSSIP_DATA_OVERHEAD);
}

/* No packet in an unknown version counts against the sender. Nor does a frame of an unknown type
 * from a peer with a known version. */
static void packets_of_an_unknown_version_are_skipped(void **state)
{
    (void)state;
    const struct gossip_versions speaks[] = {{1, 1}, {1, 1}, {2, 2}};
    struct net *net = group(3, speaks, 3);
    uint64_t before = net_stats(net, 0).frames_skipped;
    for (unsigned i = 0; i < 40; i++) {
        send_all(net, 2, 0, SLICE("\x00\x03odd"));           /* not a delta of version 1 */
        send_all(net, 2, 0, SLICE("\x07\x04what\xc8\x01!")); /* not a part, and an unknown type */
        send_all(net, 2, 0, SLICE("\x04\x03odd"));           /* even the base frame differs */
        send_all(net, 1, 0, SLICE("\xc8\x04what"));
    }
    struct gossip_stats s = net_stats(net, 0);
    assert_int_equal(s.refused_malformed + s.quarantines, 0);
    assert_int_equal(s.frames_skipped - before, 40 * (1 + 2 + 1 + 1));
    net_items(net, 20);
    net_for(net, SECOND);
    assert_int_equal(net_state(net, 0, 2), GOSSIP_ALIVE);
    send_all(net, 1, 0, SLICE("\x00\x03odd"));
    assert_int_equal(net_stats(net, 0).refused_malformed, 1);
    net_finish(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_greatest_common_version_is_spoken),
        cmocka_unit_test(a_node_of_an_unknown_version_is_only_a_member),
        cmocka_unit_test(packets_of_an_unknown_version_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
