/* Several gossips on a network in virtual time: deltas, messages and vectors. */
#include "tests/lib/test.h"

#include "base/err.h"
#include "gossip/gossip_internal.h"
#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000 };

/* --- deltas ---------------------------------------------------------------------------------- */

static void test_nodes_find_each_other_and_converge(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 1);
    assert_true(net->world.now_us < 1200 * MS); /* the net began at 1 s */
    net_items(net, 200);
    assert_true(net_run(net, net->world.now_us + 100 * MS, net_converged));
    struct gossip_stats s = net_stats(net, 0);
    assert_int_equal(s.sessions, 2);
    assert_int_equal(s.deltas_again, 0);
    assert_int_equal(s.refused_key + s.refused_replay + s.refused_malformed, 0);
    net_finish(net);
}

static void test_first_delta_is_sent_at_once_and_the_next_at_the_cadence(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 2);
    net_for(net, SECOND);
    net->latencies_len = 0;
    net_item(net, 0);
    net_for(net, 1 * MS);
    assert_int_equal(net->latencies_len, 2);
    assert_true(net_latency(net, 1) <= 300); /* in one direction */
    net_item(net, 0);                        /* 1 ms after a flush, so it waits until 10 ms */
    net_for(net, 5 * MS);
    assert_int_equal(net->latencies_len, 2);
    net_for(net, 5 * MS);
    assert_int_equal(net->latencies_len, 4);
    assert_true(net_latency(net, 1) <= 9 * MS + 300);
    net_finish(net);
}

static void test_loss_duplication_and_reordering_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct net *net = net_new_meshed(5, seed);
        net->world.net.loss = 0.1;
        net->world.net.duplicate = 0.1;
        net->world.net.delay_max_us = 8 * MS;
        net_items(net, 300);
        net_check(net);
        assert_true(net_run(net, net->world.now_us + 3 * SECOND, net_converged));
        uint64_t gaps = 0;
        uint64_t again = 0;
        for (unsigned i = 0; i < 5; i++) {
            gaps += net_stats(net, i).gaps_repaired;
            again += net_stats(net, i).deltas_again;
            assert_int_equal(net_stats(net, i).gaps_lost, 0);
        }
        assert_true(gaps > 0 && again > 0);
        net_finish(net);
    }
}

/* Drops packets with a delta (longer than a keep-alive) to node `to`. */
struct drop {
    unsigned to, count;
};

static bool drop_deltas(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    struct drop *d = context;
    (void)from;
    if (to != d->to || d->count == 0 || bytes[0] != GOSSIP_PACKET_DATA || len != 24 + 27)
        return false;
    d->count--;
    return true;
}

static void test_a_lost_last_delta_is_repaired_soon(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 3);
    net_for(net, SECOND);
    net_item(net, 0); /* a packet with an item is 24 + 2 + 1 + 8 + 16 bytes */
    net_for(net, 50 * MS);
    net->latencies_len = 0;
    struct drop d = {.to = 2, .count = 1};
    net->world.net.block = drop_deltas;
    net->world.net.context = &d;
    net_item(net, 0);
    net_for(net, 20 * MS);
    assert_int_equal(d.count, 0);
    assert_int_equal(net->latencies_len, 2);
    assert_true(net_latency(net, 1) > 10 * MS);
    net_finish(net);
}

static void test_deltas_dropped_from_the_ring_are_reported_lost(void **state)
{
    (void)state;
    struct net *net = net_new(3, 4);
    net->config.ring_bytes = 4000;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + 10 * SECOND, net_meshed));
    for (unsigned i = 0; i < 3; i++)
        net->nodes[i].item_bytes = 1000;
    net->nodes[2].paused = true;
    for (unsigned i = 0; i < 20; i++) {
        net_item(net, 0);
        net_for(net, 20 * MS);
    }
    net->nodes[2].paused = false;
    net_for(net, 2 * SECOND);
    assert_int_equal(net->nodes[2].lost, 1);
    assert_int_equal(net->nodes[1].lost, 0);
    assert_int_equal(net_stats(net, 2).gaps_lost, 20 - 4);
    assert_true(net_has(net, 2, 0, 19) && net_has(net, 2, 0, 16) && !net_has(net, 2, 0, 15));
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[2].gossip, net_node(0), net->world.now_us, &m),
                     0);
    assert_int_equal(m.seq_applied, 20); /* the gap is closed */
    assert_int_equal(m.lag_us, 0);
    net_finish(net);
}

static void test_relays_serve_a_large_cluster(void **state)
{
    (void)state;
    struct net *direct = net_new_meshed(40, 5);
    struct net *relayed = net_new(40, 5);
    relayed->config.relay_above = 8;
    net_start_all(relayed);
    assert_true(net_run(relayed, relayed->world.now_us + 10 * SECOND, net_meshed));
    uint64_t deltas_out[2];
    for (int k = 0; k < 2; k++) {
        struct net *net = k == 0 ? direct : relayed;
        net_for(net, SECOND);
        net->latencies_len = 0;
        for (unsigned i = 0; i < 50; i++) {
            net_item(net, 7);
            net_for(net, 10 * MS);
        }
        assert_true(net_run(net, net->world.now_us + SECOND, net_converged));
        assert_true(net_latency(net, 1) < 3 * MS); /* no repair was necessary */
        deltas_out[k] = net_stats(net, 7).frames_out[GOSSIP_FRAME_DELTA];
    }
    assert_int_equal(deltas_out[0], 50 * 39);
    assert_true(deltas_out[1] <= 50 * 7);
    relayed->world.net.loss = 0.05;
    net_items(relayed, 100);
    assert_true(net_run(relayed, relayed->world.now_us + 2 * SECOND, net_converged));
    net_free(direct);
    net_finish(relayed);
}

static void test_latency_among_64_with_loss(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(64, 6);
    net_for(net, SECOND);
    net->world.net.loss = 0.01;
    net->latencies_len = 0;
    net_items(net, 300);
    assert_true(net_run(net, net->world.now_us + SECOND, net_converged));
    assert_true(net_latency(net, 0.5) < 1 * MS);
    assert_true(net_latency(net, 0.999) < 35 * MS);
    net_finish(net);
}

/* --- messages -------------------------------------------------------------------------------- */

static void test_messages_arrive_whole_and_once(void **state)
{
    (void)state;
    static char text[GOSSIP_MESSAGE_MAX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 31 >> 3);
    struct net *net = net_new_meshed(3, 27);
    struct gossip *g = net->nodes[0].gossip;
    assert_int_equal(gossip_message(g, net_node(1), slice_of(text, sizeof text), net->world.now_us),
                     0);
    net_for(net, 30 * MS);
    assert_int_equal(net->nodes[1].messages, 1);
    assert_int_equal(net->nodes[1].messages_settled, 1);
    assert_int_equal(net->nodes[1].message_bytes, sizeof text);
    uint64_t hash = net->nodes[1].message_hash;
    net->world.net.loss = 0.2;
    net->world.net.duplicate = 0.2;
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(
            gossip_message(g, net_node(1), slice_of(text, sizeof text), net->world.now_us), 0);
        net_for(net, 1500 * MS);
        assert_int_equal(net->nodes[1].messages, 2 + i);
    }
    assert_int_equal(net->nodes[1].message_hash, 21 * hash);
    assert_int_equal(net_stats(net, 0).messages_failed, 0);
    assert_true(net_stats(net, 0).parts_resent > 0);
    net_finish(net);
}

/* A member was dead for an hour and then forgotten, so messages to it were numbered from 1 again. A
 * merely suspended member took them for repeats for as long as they had been counted before. The
 * member compared no states, and the clock stayed wrong. */
static void test_messages_arrive_after_an_hour_of_absence(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 23);
    for (unsigned i = 0; i < 200; i++) {
        assert_int_equal(
            gossip_message(net->nodes[0].gossip, net_node(1), SLICE("before"), net->world.now_us),
            0);
        net_for(net, 20000);
    }
    assert_int_equal(net->nodes[1].messages, 200);
    net->nodes[1].paused = true;
    net_for(net, 3700 * (uint64_t)SECOND);
    assert_int_equal(net_state(net, 0, 1), GOSSIP_LEFT); /* no longer a member */
    net->nodes[1].paused = false;
    world_wake_plan(net->nodes[1].at);
    assert_true(net_run(net, net->world.now_us + 5 * (uint64_t)SECOND, net_meshed));
    for (unsigned i = 1; i <= 3; i++) {
        assert_int_equal(
            gossip_message(net->nodes[0].gossip, net_node(1), SLICE("after"), net->world.now_us),
            0);
        net_for(net, 20000);
        assert_int_equal(net->nodes[1].messages, 200 + i);
    }
    net_finish(net);
}

static void test_messages_have_limits(void **state)
{
    (void)state;
    static char text[GOSSIP_MESSAGE_MAX + 1];
    struct net *net = net_new_meshed(3, 28);
    struct gossip *g = net->nodes[0].gossip;
    assert_int_equal(gossip_message(g, net_node(1), slice_of(text, sizeof text), net->world.now_us),
                     ERR_LIMIT);
    assert_int_equal(gossip_message(g, 12345, SLICE("x"), net->world.now_us), ERR_NOT_FOUND);
    assert_int_equal(gossip_message(g, net_node(0), SLICE("x"), net->world.now_us), ERR_NOT_FOUND);
    net->nodes[1].paused = true;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(
            gossip_message(g, net_node(1), slice_of(text, GOSSIP_MESSAGE_MAX), net->world.now_us),
            0);
    assert_int_equal(gossip_message(g, net_node(1), SLICE("x"), net->world.now_us), ERR_FULL);
    net_for(net, 1100 * MS);
    assert_int_equal(net_stats(net, 0).messages_failed, 8);
    assert_int_equal(gossip_message(g, net_node(2), SLICE("x"), net->world.now_us), 0);
    net_for(net, 10 * MS);
    assert_int_equal(net->nodes[2].messages, 1);
    net_finish(net);
}

static void test_settled_is_false_while_deltas_are_in_flight(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 29);
    net_for(net, SECOND);
    net->world.net.delay_min_us = net->world.net.delay_max_us = 5 * MS;
    net_item(net, 0);
    net_for(net, 1 * MS);
    assert_int_equal(
        gossip_message(net->nodes[1].gossip, net_node(0), SLICE("summary"), net->world.now_us), 0);
    net_for(net, 20 * MS);
    assert_int_equal(net->nodes[0].messages, 1);
    assert_int_equal(net->nodes[0].messages_settled, 0);
    net_finish(net);
}

/* --- vectors --------------------------------------------------------------------------------- */

static void test_a_joiner_adopts_a_vector(void **state)
{
    (void)state;
    struct net *net = net_new(3, 30);
    net_start(net, 0, 1700000000000, true);
    net_start(net, 1, 1700000000001, true);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    for (unsigned i = 0; i < 50; i++) {
        net_item(net, i % 2);
        net_for(net, 11 * MS);
    }
    net_start(net, 2, 1700000000002, true);
    struct gossip *g = net->nodes[2].gossip;
    gossip_joining(g, true);
    struct buf vector;
    buf_init(&vector, 0);
    assert_int_equal(gossip_vector_write(net->nodes[0].gossip, &vector), 0);
    for (unsigned i = 0; i < 20; i++) {
        net_item(net, i % 2);
        net_for(net, 11 * MS);
    }
    assert_int_equal(net_stats(net, 2).gaps, 0);
    assert_true(net_has(net, 2, 0, 34)); /* live */
    assert_int_equal(gossip_vector_adopt(g, SLICE("nonsense"), net->world.now_us), ERR_SYNTAX);
    assert_int_equal(gossip_vector_adopt(g, buf_slice(&vector), net->world.now_us), 0);
    gossip_joining(g, false);
    net_for(net, 1 * SECOND);
    struct gossip_member m;
    assert_int_equal(gossip_member_find(g, net_node(0), net->world.now_us, &m), 0);
    assert_int_equal(m.seq_applied, 35);
    assert_int_equal(net->nodes[2].lost, 0);
    assert_false(net_has(net, 2, 0, 3)); /* the snapshot brings item 3 */
    assert_true(net_has(net, 2, 0, 25)); /* the gap repair brings item 25 */
    buf_free(&vector);
    net_finish(net);
}

static void test_every_node_knows_all_vectors(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(4, 31);
    net->world.net.loss = 0.02;
    net_items(net, 200);
    net_for(net, 3 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned m = 0; m < 4; m++) {
            for (unsigned a = 0; a < 4; a++) {
                uint64_t epoch = 0;
                uint64_t seq = 0;
                assert_int_equal(
                    gossip_vector_of(net->nodes[i].gossip, net_node(m), net_node(a), &epoch, &seq),
                    0);
                assert_int_equal(seq, net_stats(net, a).deltas_produced);
                assert_int_equal(epoch, gossip_epoch(net->nodes[a].gossip));
            }
        }
    }
    net_finish(net);
}

/* --- vectors that arrive late ----------------------------------------------------------------- */

static uint64_t announced(const struct net *net, uint64_t epoch)
{
    uint64_t known = 0, seq = 0;
    assert_int_equal(gossip_vector_of(net->nodes[0].gossip, net_node(1), net_node(2), &known, &seq),
                     ERR_OK);
    assert_int_equal(known, epoch);
    return seq;
}

/* Node 1 announces to node 0 how much it has of node 2. */
static void announce(struct net *net, uint64_t epoch, uint64_t seq)
{
    uint8_t body[64];
    struct wire_writer w = wire_writer_of(body, sizeof body);
    wire_write_u64(&w, net_node(2));
    wire_write_u48(&w, epoch);
    wire_write_varint(&w, seq);
    struct gossip *g = net->nodes[0].gossip;
    gossip_vector_take(g, gossip_peer_find(g, net_node(1)),
                       slice_of((const char *)body, wire_written(&w)));
}

/* Deltas known to all are settled for good: a late, older vector lowers nothing. */
static void test_a_late_vector_lowers_nothing(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 17);
    uint64_t epoch = gossip_epoch(net->nodes[2].gossip);
    announce(net, epoch, 9);
    assert_int_equal(announced(net, epoch), 9);
    announce(net, epoch, 7);
    assert_int_equal(announced(net, epoch), 9);
    announce(net, epoch + 1, 1); /* a later life begins anew */
    assert_int_equal(announced(net, epoch + 1), 1);
    announce(net, epoch, 10);
    assert_int_equal(announced(net, epoch + 1), 1);
    net_finish(net);
}

static void test_the_same_seed_gives_the_same_packets(void **state)
{
    (void)state;
    uint64_t traces[2];
    for (unsigned k = 0; k < 2; k++) {
        struct net *net = net_new(6, 32);
        net->world.net.loss = 0.05;
        net->world.net.duplicate = 0.02;
        net_start_all(net);
        net_for(net, SECOND);
        net_items(net, 100);
        net_kill(net, 3);
        net_for(net, 5 * SECOND);
        traces[k] = net->world.trace;
        net_finish(net);
    }
    assert_int_equal(traces[0], traces[1]);
}

static void test_wrong_settings_are_refused(void **state)
{
    (void)state;
    struct net *net = net_new(1, 33);
    struct gossip_config good = {.name = "a", .epoch = 1};
    struct gossip_config bad[5] = {good, good, good, good, good};
    char name[GOSSIP_NAME_MAX + 2];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = 0;
    bad[0].name = "";
    bad[1].name = name;
    bad[2].epoch = 0;
    bad[3].epoch = UINT64_C(1) << 47;
    bad[4].alive_us = 2 * SECOND;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(net_create(net, 0, &bad[i]), ERR_RANGE);
    assert_int_equal(net_create(net, 0, &good), 0);
    net_finish(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_find_each_other_and_converge),
        cmocka_unit_test(test_first_delta_is_sent_at_once_and_the_next_at_the_cadence),
        cmocka_unit_test(test_loss_duplication_and_reordering_lose_nothing),
        cmocka_unit_test(test_a_lost_last_delta_is_repaired_soon),
        cmocka_unit_test(test_deltas_dropped_from_the_ring_are_reported_lost),
        cmocka_unit_test(test_relays_serve_a_large_cluster),
        cmocka_unit_test(test_latency_among_64_with_loss),
        cmocka_unit_test(test_messages_arrive_whole_and_once),
        cmocka_unit_test(test_messages_arrive_after_an_hour_of_absence),
        cmocka_unit_test(test_messages_have_limits),
        cmocka_unit_test(test_settled_is_false_while_deltas_are_in_flight),
        cmocka_unit_test(test_a_joiner_adopts_a_vector),
        cmocka_unit_test(test_every_node_knows_all_vectors),
        cmocka_unit_test(test_a_late_vector_lowers_nothing),
        cmocka_unit_test(test_the_same_seed_gives_the_same_packets),
        cmocka_unit_test(test_wrong_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
