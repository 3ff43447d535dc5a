/* Several gossips on a network in virtual time: what gossip/gossip.h promises. */
#include "tests/lib/test.h"

#include <stdlib.h>

#include "base/err.h"
#include "gossip/session.h"
#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000 };

static struct net *meshed(unsigned count, uint64_t seed)
{
    struct net *net = net_new(count, seed);
    net_start_all(net);
    assert_true(net_run(net, net->now_us + 10 * SECOND, net_meshed));
    return net;
}

static void finish(struct net *net)
{
    net_check(net);
    net_free(net);
}

/* `items` of them at random nodes, at random times, 5 ms apart on average. */
static void make_items(struct net *net, unsigned items)
{
    for (unsigned i = 0; i < items; i++) {
        unsigned at;
        do
            at = (unsigned)prng_below(&net->prng, net->count);
        while (net->nodes[at].gossip == NULL || net->nodes[at].paused);
        net_item(net, at);
        net_for(net, prng_below(&net->prng, 10 * MS));
    }
}

/* --- deltas ---------------------------------------------------------------------------------- */

static void test_nodes_find_each_other_and_converge(void **state)
{
    (void)state;
    struct net *net = meshed(3, 1);
    assert_true(net->now_us < 1200 * MS); /* it began at 1 s */
    make_items(net, 200);
    assert_true(net_run(net, net->now_us + 100 * MS, net_converged));
    struct gossip_stats s = net_stats(net, 0);
    assert_int_equal(s.sessions, 2);
    assert_int_equal(s.deltas_again, 0);
    assert_int_equal(s.refused_key + s.refused_replay + s.refused_malformed, 0);
    finish(net);
}

static void test_first_delta_is_sent_at_once_and_the_next_at_the_cadence(void **state)
{
    (void)state;
    struct net *net = meshed(3, 2);
    net_for(net, SECOND);
    net->latencies_len = 0;
    net_item(net, 0);
    net_for(net, 1 * MS);
    assert_int_equal(net->latencies_len, 2);
    assert_true(net_latency(net, 1) <= 300); /* one way */
    net_item(net, 0);                        /* 1 ms after the flush: waits for the 10 ms */
    net_for(net, 5 * MS);
    assert_int_equal(net->latencies_len, 2);
    net_for(net, 5 * MS);
    assert_int_equal(net->latencies_len, 4);
    assert_true(net_latency(net, 1) <= 9 * MS + 300);
    finish(net);
}

static void test_loss_duplication_and_reordering_lose_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct net *net = meshed(5, seed);
        net->loss = 0.1;
        net->duplicate = 0.1;
        net->delay_max_us = 8 * MS;
        make_items(net, 300);
        net_check(net);
        assert_true(net_run(net, net->now_us + 3 * SECOND, net_converged));
        uint64_t gaps = 0;
        uint64_t again = 0;
        for (unsigned i = 0; i < 5; i++) {
            gaps += net_stats(net, i).gaps_repaired;
            again += net_stats(net, i).deltas_again;
            assert_int_equal(net_stats(net, i).gaps_lost, 0);
        }
        assert_true(gaps > 0 && again > 0);
        finish(net);
    }
}

/* Drops packets with a delta (longer than a keep-alive) to one node. */
struct drop {
    unsigned to, count;
};

static bool drop_deltas(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    struct drop *d = context;
    (void)from;
    if (to != d->to || d->count == 0 || bytes[0] != GOSSIP_PACKET_DATA || len != 24 + 26)
        return false;
    d->count--;
    return true;
}

static void test_a_lost_last_delta_is_repaired_soon(void **state)
{
    (void)state;
    struct net *net = meshed(3, 3);
    net_for(net, SECOND);
    net_item(net, 0); /* a packet of one item is 24 + 2 + 8 + 16 bytes */
    net_for(net, 50 * MS);
    net->latencies_len = 0;
    struct drop d = {.to = 2, .count = 1};
    net->block = drop_deltas;
    net->block_context = &d;
    net_item(net, 0);
    net_for(net, 20 * MS);
    assert_int_equal(d.count, 0);
    assert_int_equal(net->latencies_len, 2);
    assert_true(net_latency(net, 1) > 10 * MS);
    finish(net);
}

static void test_what_the_ring_no_longer_has_is_told_as_lost(void **state)
{
    (void)state;
    struct net *net = net_new(3, 4);
    net->config.ring_bytes = 4000;
    net_start_all(net);
    assert_true(net_run(net, net->now_us + 10 * SECOND, net_meshed));
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
    assert_int_equal(gossip_member_find(net->nodes[2].gossip, net_node(0), net->now_us, &m), 0);
    assert_int_equal(m.seq_applied, 20); /* the gap is closed */
    assert_int_equal(m.lag_us, 0);
    finish(net);
}

static void test_relays_serve_a_large_cluster(void **state)
{
    (void)state;
    struct net *direct = meshed(40, 5);
    struct net *relayed = net_new(40, 5);
    relayed->config.relay_above = 8;
    net_start_all(relayed);
    assert_true(net_run(relayed, relayed->now_us + 10 * SECOND, net_meshed));
    uint64_t deltas_out[2];
    for (int k = 0; k < 2; k++) {
        struct net *net = k == 0 ? direct : relayed;
        net_for(net, SECOND);
        net->latencies_len = 0;
        for (unsigned i = 0; i < 50; i++) {
            net_item(net, 7);
            net_for(net, 10 * MS);
        }
        assert_true(net_run(net, net->now_us + SECOND, net_converged));
        assert_true(net_latency(net, 1) < 3 * MS); /* nothing had to be repaired */
        deltas_out[k] = net_stats(net, 7).frames_out[GOSSIP_FRAME_DELTA];
    }
    assert_int_equal(deltas_out[0], 50 * 39);
    assert_true(deltas_out[1] <= 50 * 7);
    relayed->loss = 0.05;
    make_items(relayed, 100);
    assert_true(net_run(relayed, relayed->now_us + 2 * SECOND, net_converged));
    net_free(direct);
    finish(relayed);
}

static void test_latency_among_64_with_loss(void **state)
{
    (void)state;
    struct net *net = meshed(64, 6);
    net_for(net, SECOND);
    net->loss = 0.01;
    net->latencies_len = 0;
    make_items(net, 300);
    assert_true(net_run(net, net->now_us + SECOND, net_converged));
    assert_true(net_latency(net, 0.5) < 1 * MS);
    assert_true(net_latency(net, 0.999) < 35 * MS);
    finish(net);
}

/* --- members --------------------------------------------------------------------------------- */

static bool dead_everywhere(struct net *net)
{
    for (unsigned i = 0; i < net->count; i++)
        for (unsigned o = 0; o < net->count; o++)
            if (net->nodes[i].gossip != NULL && net->nodes[o].gossip == NULL &&
                net_state(net, i, o) < GOSSIP_DEAD)
                return false;
    return true;
}

static void test_a_killed_node_is_dead_everywhere_within_three_seconds(void **state)
{
    (void)state;
    for (unsigned count = 2; count <= 32; count *= 4) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct net *net = meshed(count, seed);
            net->loss = 0.01;
            net_for(net, SECOND);
            uint64_t packets = net->packets;
            net_kill(net, 1);
            assert_true(net_run(net, net->now_us + 3 * SECOND, dead_everywhere));
            /* One accuses, or a few; not everybody tells everybody. */
            uint64_t keep_alives = (uint64_t)count * count * 6 * 3;
            assert_true(net->packets - packets < keep_alives + 20 * count);
            for (unsigned i = 0; i < count; i++)
                for (unsigned o = 0; o < count; o++)
                    if (i != 1 && o != 1)
                        assert_int_equal(net_state(net, i, o), GOSSIP_ALIVE);
            finish(net);
        }
    }
}

static bool one_way(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return from == 1 && to == 0;
}

static void test_helpers_save_whom_only_one_cannot_hear(void **state)
{
    (void)state;
    struct net *net = meshed(4, 7);
    net->block = one_way;
    net_for(net, 10 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(net_stats(net, i).died, 0);
        assert_int_equal(net_stats(net, i).suspected, 0);
    }
    assert_true(net_stats(net, 2).frames_out[GOSSIP_FRAME_ACK] > 0);
    finish(net);
}

static void test_a_suspect_refutes(void **state)
{
    (void)state;
    struct net *net = meshed(4, 8);
    net->nodes[3].paused = true;
    net_for(net, 1700 * MS);
    assert_int_equal(net_state(net, 0, 3), GOSSIP_SUSPECT);
    net->nodes[3].paused = false;
    net_for(net, 300 * MS);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(net_state(net, i, 3), GOSSIP_ALIVE);
        assert_int_equal(net_stats(net, i).died, 0);
    }
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[0].gossip, net_node(3), net->now_us, &m), 0);
    assert_true((m.incarnation & 0xffff) > 0);
    assert_int_equal(m.incarnation >> 16, gossip_epoch(net->nodes[3].gossip));
    assert_true(net_stats(net, 3).refuted > 0);
    finish(net);
}

static void test_who_slept_accuses_nobody(void **state)
{
    (void)state;
    struct net *net = meshed(5, 9);
    net->nodes[2].paused = true;
    net_for(net, 20 * SECOND);
    assert_int_equal(net_state(net, 0, 2), GOSSIP_DEAD);
    net->nodes[2].paused = false;
    net_for(net, 12 * SECOND); /* it is called again at most 10 s later, and says hello itself */
    assert_int_equal(net_stats(net, 2).suspected, 0);
    assert_int_equal(net_stats(net, 2).died, 0);
    assert_true(net_meshed(net));
    finish(net);
}

static void test_leave_is_told_at_once(void **state)
{
    (void)state;
    struct net *net = meshed(4, 10);
    gossip_leave(net->nodes[1].gossip, net->now_us);
    net_for(net, 2 * MS);
    for (unsigned i = 0; i < 4; i++)
        if (i != 1)
            assert_int_equal(net_state(net, i, 1), GOSSIP_LEFT);
    gossip_run(net->nodes[1].gossip, net->now_us + 50 * MS);
    gossip_run(net->nodes[1].gossip, net->now_us + 100 * MS);
    assert_int_equal(gossip_due_us(net->nodes[1].gossip), UINT64_MAX);
    net_kill(net, 1);
    net_for(net, 5 * SECOND);
    for (unsigned i = 0; i < 4; i++)
        if (i != 1)
            assert_int_equal(net_stats(net, i).died, 0);
    /* The same name comes back. */
    net_start(net, 1, 1800000000000, true);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
    finish(net);
}

static bool split(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)bytes;
    (void)len;
    unsigned border = *(unsigned *)context;
    return (from < border) != (to < border);
}

static void test_a_partition_heals_by_itself(void **state)
{
    (void)state;
    static const uint64_t lasts_s[] = {5, 40, 400};
    for (unsigned k = 0; k < 3; k++) {
        struct net *net = meshed(6, 11 + k);
        unsigned border = 3;
        net->block = split;
        net->block_context = &border;
        net_for(net, 3 * SECOND);
        make_items(net, 100);
        net_for(net, lasts_s[k] * SECOND);
        assert_int_equal(net_state(net, 0, 5), GOSSIP_DEAD);
        assert_int_equal(net_state(net, 5, 0), GOSSIP_DEAD);
        assert_int_equal(net_state(net, 5, 4), GOSSIP_ALIVE);
        net->block = NULL;
        assert_true(net_run(net, net->now_us + 13 * SECOND, net_meshed));
        assert_true(net_run(net, net->now_us + SECOND, net_converged)); /* from the rings */
        finish(net);
    }
}

static void test_seeds_are_tried_for_ever(void **state)
{
    (void)state;
    struct net *net = net_new(3, 14);
    net_start(net, 2, 1700000000000, true);
    net_for(net, 100 * (uint64_t)SECOND);
    assert_true(net->packets > 16 && net->packets < 40); /* two seeds, every 10 s and a little */
    net_start(net, 0, 1700000000000, true);
    net_start(net, 1, 1700000000001, true);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed)); /* 2 is no seed, but is called */
    finish(net);
}

static void test_a_restart_begins_a_new_stream(void **state)
{
    (void)state;
    struct net *net = meshed(3, 15);
    make_items(net, 60);
    net_kill(net, 2);
    net_for(net, 100 * MS);
    net->nodes[2].made = 100; /* it has forgotten them; others have not */
    net_start(net, 2, 1700000100000, true);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
    assert_int_equal(net_state(net, 0, 2), GOSSIP_ALIVE);
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[0].gossip, net_node(2), net->now_us, &m), 0);
    assert_int_equal(m.incarnation >> 16, 1700000100000);
    assert_int_equal(m.seq_known, 0);
    for (unsigned i = 0; i < 10; i++) {
        net_item(net, 2);
        net_for(net, 11 * MS);
        assert_true(net_has(net, 0, 2, 100 + i) && net_has(net, 1, 2, 100 + i));
    }
    assert_int_equal(net_stats(net, 2).name_conflicts, 0);
    finish(net);
}

static void test_a_clock_that_went_back_takes_what_peers_remember(void **state)
{
    (void)state;
    struct net *net = meshed(3, 16);
    make_items(net, 60);
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[0].gossip, net_node(2), net->now_us, &m), 0);
    uint64_t before = m.incarnation >> 16;
    net_kill(net, 2);
    net_for(net, 5 * SECOND);
    net->nodes[2].made = 100;
    net->nodes[2].self_calls = 0;
    net_start(net, 2, before - 3600000, true);
    /* Its hellos are refused as old; the others call it within 10 s. */
    assert_true(net_run(net, net->now_us + 13 * SECOND, net_meshed));
    assert_int_equal(gossip_epoch(net->nodes[2].gossip), before + 1);
    assert_int_equal(net->nodes[2].self_calls, 1);
    net_item(net, 2);
    net_for(net, 20 * MS);
    assert_true(net_has(net, 0, 2, 100) && net_has(net, 1, 2, 100));
    finish(net);
}

static void test_two_nodes_of_one_name_do_not_flood_the_cluster(void **state)
{
    (void)state;
    struct net *net = net_new(4, 17);
    for (unsigned i = 0; i < 3; i++)
        net_start(net, i, 1700000000000 + i, true);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
    /* Number 3 calls itself node-002, too. */
    struct gossip_config config = {.name = "node-002", .epoch = 1700000900000};
    config.address = net->nodes[3].address;
    assert_int_equal(net_create(net, 3, &config), 0);
    uint64_t packets = net->packets;
    net_for(net, 30 * SECOND);
    /* 4 nodes at 5 keep-alives a second to each other, and as much again for the quarrel. */
    assert_true(net->packets - packets < 30 * 4 * 3 * 5 * 2);
    uint64_t conflicts = 0;
    for (unsigned i = 0; i < 4; i++)
        conflicts += net_stats(net, i).name_conflicts;
    assert_true(conflicts > 0);
    assert_int_equal(net_state(net, 0, 1), GOSSIP_ALIVE);
    assert_int_equal(net_state(net, 1, 0), GOSSIP_ALIVE);
    finish(net);
}

static void test_metadata_reaches_all(void **state)
{
    (void)state;
    struct net *net = meshed(4, 18);
    net->loss = 0.3; /* the push may be lost, the comparison finds it */
    gossip_meta_set(net->nodes[2].gossip, SLICE("admin=10.0.0.2:9000"), net->now_us);
    net_for(net, 5 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        struct gossip_member m;
        assert_int_equal(gossip_member_find(net->nodes[i].gossip, net_node(2), net->now_us, &m), 0);
        assert_int_equal(m.meta_len, 19);
        assert_memory_equal(m.meta, "admin=10.0.0.2:9000", 19);
    }
    finish(net);
}

static void test_the_dead_are_forgotten(void **state)
{
    (void)state;
    struct net *net = net_new(4, 19);
    net->config.forget_us = 20 * SECOND;
    net_start_all(net);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
    net_kill(net, 3);
    net_for(net, 10 * SECOND);
    assert_int_equal(gossip_member_count(net->nodes[0].gossip), 4);
    net_for(net, 20 * SECOND);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(gossip_member_count(net->nodes[i].gossip), 3);
    finish(net);
}

static void test_a_peer_that_roams_is_followed(void **state)
{
    (void)state;
    struct net *net = net_new(4, 20);
    net->advertise = false;
    for (unsigned i = 0; i < 3; i++)
        net_start(net, i, 1700000000000 + i, true);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
    /* Node 2 is now where number 3 would be. */
    struct gossip *g = net->nodes[2].gossip;
    net_alias(net, 3, 2);
    net_for(net, 10 * SECOND);
    assert_ptr_equal(net->nodes[2].gossip, g);
    assert_int_equal(net_stats(net, 0).died, 0);
    assert_true(net_meshed(net));
    net_item(net, 0);
    net_for(net, 30 * MS);
    assert_true(net_has(net, 2, 0, 0));
    finish(net);
}

static void test_a_cold_start_and_a_death_make_no_storm(void **state)
{
    (void)state;
    enum { N = 96 };
    struct net *net = meshed(N, 21);
    assert_true(net->now_us < 4 * SECOND);
    /* Handshake, greetings and some keep-alives for each pair, and lists within their budget. */
    assert_true(net->packets < N * N * 10);
    net_for(net, 3 * SECOND); /* lists */
    uint64_t packets = net->packets;
    net_for(net, 3 * SECOND);
    uint64_t idle = net->packets - packets;
    assert_true(idle < N * N * 5 * 3 * 11 / 10);
    packets = net->packets;
    net_kill(net, 5);
    net_for(net, 3 * SECOND);
    assert_true(dead_everywhere(net));
    /* Keep-alives, a few that accuse, and probes of the victim by everybody. */
    assert_true(net->packets - packets < idle + N * (3 * 3 * 4 + 40));
    packets = net->packets;
    net_start(net, 5, 1700009999999, true);
    assert_true(net_run(net, net->now_us + 2 * SECOND, net_meshed));
    net_for(net, SECOND);
    assert_true(net->packets - packets < 2 * idle + N * 60);
    finish(net);
}

/* --- the network's malice -------------------------------------------------------------------- */

struct captured {
    struct captured_packet {
        unsigned to;
        struct gossip_address from;
        size_t len;
        uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    } * at;
    unsigned count, max;
};

static void capture(void *context, unsigned to, const struct gossip_address *from,
                    const uint8_t *bytes, size_t len)
{
    struct captured *c = context;
    if (c->count == c->max)
        return;
    struct captured_packet *p = &c->at[c->count++];
    p->to = to;
    p->from = *from;
    p->len = len;
    memcpy(p->bytes, bytes, len);
}

static void test_replayed_and_forged_packets_change_nothing_and_get_no_answer(void **state)
{
    (void)state;
    struct captured c = {.max = 3000};
    c.at = calloc(c.max, sizeof *c.at);
    assert_non_null(c.at);
    struct net *net = net_new(3, 22);
    net->tap = capture;
    net->tap_context = &c;
    net_start_all(net);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
    make_items(net, 200);
    net_for(net, SECOND);
    net->tap = NULL;
    uint64_t packets = net->packets;
    uint64_t applied = net->nodes[0].applied + net->nodes[1].applied + net->nodes[2].applied;
    struct gossip_address stranger = {.port = 9, .family = 4};
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < c.count; i++) {
            struct captured_packet p = c.at[i];
            if (round == 1)
                p.bytes[prng_below(&net->prng, p.len)] ^=
                    (uint8_t)(1u << prng_below(&net->prng, 8));
            if (round == 2)
                p.len = prng_below(&net->prng, p.len);
            if (round == 3)
                for (size_t k = 1; k < p.len; k++)
                    p.bytes[k] = (uint8_t)prng_next(&net->prng);
            net_inject(net, p.to, round % 2 == 0 ? &p.from : &stranger, p.bytes, p.len);
        }
    }
    assert_int_equal(net->packets, packets);
    assert_int_equal(net->nodes[0].applied + net->nodes[1].applied + net->nodes[2].applied,
                     applied);
    struct gossip_stats s = net_stats(net, 0);
    assert_true(s.refused_replay > 100 && s.refused_key > 300);
    assert_int_equal(s.refused_malformed, 0);
    net_for(net, 3 * SECOND);
    assert_true(net_meshed(net));
    free(c.at);
    finish(net);
}

static void test_another_key_gets_no_answer(void **state)
{
    (void)state;
    struct net *net = net_new(3, 23);
    memset(net->nodes[2].keyring.keys[0].psk, 7, sizeof net->nodes[2].keyring.keys[0].psk);
    net_start_all(net);
    net_for(net, 5 * SECOND);
    assert_int_equal(gossip_member_count(net->nodes[2].gossip), 1);
    assert_int_equal(gossip_member_count(net->nodes[0].gossip), 2);
    assert_int_equal(net_stats(net, 2).packets_in, 0);
    assert_true(net_stats(net, 0).refused_key > 0);
    finish(net);
}

static void test_keys_rotate_without_losing_anybody(void **state)
{
    (void)state;
    struct net *net = meshed(3, 24);
    struct gossip_keyring old = net->nodes[0].keyring;
    struct gossip_key next = old.keys[0];
    memset(next.psk, 5, sizeof next.psk);
    memset(next.id, 5, sizeof next.id);
    /* Each step reaches the nodes one after the other, and takes longer than a session lasts. */
    for (unsigned step = 0; step < 3; step++) {
        for (unsigned i = 0; i < 3; i++) {
            struct gossip_keyring *k = &net->nodes[i].keyring;
            if (step == 0) {
                k->keys[1] = next;
                k->count = 2;
            } else if (step == 1) {
                k->keys[0] = next;
                k->keys[1] = old.keys[0];
            } else {
                k->count = 1;
            }
            net_for(net, 70 * (uint64_t)SECOND);
        }
        assert_true(net_meshed(net));
    }
    make_items(net, 50);
    assert_true(net_run(net, net->now_us + SECOND, net_converged));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(net_stats(net, i).suspected, 0);
        assert_true(net_stats(net, i).rekeys >= 4);
        assert_int_equal(net_stats(net, i).refused_key, 0);
    }
    finish(net);
}

static void test_a_peer_that_sends_rubbish_is_ignored_for_a_while(void **state)
{
    (void)state;
    struct net *net = meshed(3, 25);
    net->nodes[0].refuse = 16; /* the application finds so many deltas malformed */
    for (unsigned i = 0; i < 20; i++) {
        net_item(net, 2);
        net_for(net, 11 * MS);
    }
    assert_int_equal(net_stats(net, 0).refused_malformed, 16);
    assert_int_equal(net_stats(net, 0).quarantines, 1);
    assert_false(net_has(net, 0, 2, 18)); /* good, but from a peer in quarantine */
    assert_true(net_has(net, 1, 2, 18));
    net_for(net, 29 * SECOND);
    assert_int_equal(net_state(net, 0, 2), GOSSIP_ALIVE);
    net_for(net, 2 * SECOND);
    assert_true(net_has(net, 0, 2, 18)); /* asked for, once it is over */
    finish(net);
}

static void test_the_rate_is_kept(void **state)
{
    (void)state;
    struct net *net = net_new(4, 26);
    net->config.rate_bytes_s = 200000;
    net_start_all(net);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
    net->nodes[0].meltdown = true; /* it always has more */
    uint64_t before = net_stats(net, 0).bytes_out;
    net_item(net, 0);
    net_for(net, 10 * SECOND);
    uint64_t sent = net_stats(net, 0).bytes_out - before;
    assert_in_range(sent, 1700000, 2300000);
    assert_true(net_stats(net, 0).rate_held > 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(net_stats(net, i).suspected, 0);
    finish(net);
}

/* --- messages -------------------------------------------------------------------------------- */

static void test_messages_arrive_whole_and_once(void **state)
{
    (void)state;
    static char text[GOSSIP_MESSAGE_MAX];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 31 >> 3);
    struct net *net = meshed(3, 27);
    struct gossip *g = net->nodes[0].gossip;
    assert_int_equal(gossip_message(g, net_node(1), slice_of(text, sizeof text), net->now_us), 0);
    net_for(net, 30 * MS);
    assert_int_equal(net->nodes[1].messages, 1);
    assert_int_equal(net->nodes[1].messages_settled, 1);
    assert_int_equal(net->nodes[1].message_bytes, sizeof text);
    uint64_t hash = net->nodes[1].message_hash;
    net->loss = 0.2;
    net->duplicate = 0.2;
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(gossip_message(g, net_node(1), slice_of(text, sizeof text), net->now_us),
                         0);
        net_for(net, 1500 * MS);
        assert_int_equal(net->nodes[1].messages, 2 + i);
    }
    assert_int_equal(net->nodes[1].message_hash, 21 * hash);
    assert_int_equal(net_stats(net, 0).messages_failed, 0);
    assert_true(net_stats(net, 0).parts_resent > 0);
    finish(net);
}

static void test_messages_have_limits(void **state)
{
    (void)state;
    static char text[GOSSIP_MESSAGE_MAX + 1];
    struct net *net = meshed(3, 28);
    struct gossip *g = net->nodes[0].gossip;
    assert_int_equal(gossip_message(g, net_node(1), slice_of(text, sizeof text), net->now_us),
                     ERR_LIMIT);
    assert_int_equal(gossip_message(g, 12345, SLICE("x"), net->now_us), ERR_NOT_FOUND);
    assert_int_equal(gossip_message(g, net_node(0), SLICE("x"), net->now_us), ERR_NOT_FOUND);
    net->nodes[1].paused = true;
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(
            gossip_message(g, net_node(1), slice_of(text, GOSSIP_MESSAGE_MAX), net->now_us), 0);
    assert_int_equal(gossip_message(g, net_node(1), SLICE("x"), net->now_us), ERR_FULL);
    net_for(net, 1100 * MS);
    assert_int_equal(net_stats(net, 0).messages_failed, 8);
    assert_int_equal(gossip_message(g, net_node(2), SLICE("x"), net->now_us), 0);
    net_for(net, 10 * MS);
    assert_int_equal(net->nodes[2].messages, 1);
    finish(net);
}

static void test_settled_is_false_while_something_is_on_its_way(void **state)
{
    (void)state;
    struct net *net = meshed(3, 29);
    net_for(net, SECOND);
    net->delay_min_us = net->delay_max_us = 5 * MS;
    net_item(net, 0);
    net_for(net, 1 * MS);
    assert_int_equal(
        gossip_message(net->nodes[1].gossip, net_node(0), SLICE("summary"), net->now_us), 0);
    net_for(net, 20 * MS);
    assert_int_equal(net->nodes[0].messages, 1);
    assert_int_equal(net->nodes[0].messages_settled, 0);
    finish(net);
}

/* --- vectors --------------------------------------------------------------------------------- */

static void test_a_joiner_adopts_a_vector(void **state)
{
    (void)state;
    struct net *net = net_new(3, 30);
    net_start(net, 0, 1700000000000, true);
    net_start(net, 1, 1700000000001, true);
    assert_true(net_run(net, net->now_us + SECOND, net_meshed));
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
    assert_int_equal(gossip_vector_adopt(g, SLICE("nonsense"), net->now_us), ERR_SYNTAX);
    assert_int_equal(gossip_vector_adopt(g, buf_slice(&vector), net->now_us), 0);
    gossip_joining(g, false);
    net_for(net, 1 * SECOND);
    struct gossip_member m;
    assert_int_equal(gossip_member_find(g, net_node(0), net->now_us, &m), 0);
    assert_int_equal(m.seq_applied, 35);
    assert_int_equal(net->nodes[2].lost, 0);
    assert_false(net_has(net, 2, 0, 3)); /* that is what the snapshot brings */
    assert_true(net_has(net, 2, 0, 25)); /* and that the gap repair */
    buf_free(&vector);
    finish(net);
}

static void test_vectors_are_known_to_all(void **state)
{
    (void)state;
    struct net *net = meshed(4, 31);
    net->loss = 0.02;
    make_items(net, 200);
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
    finish(net);
}

/* --- and always ------------------------------------------------------------------------------ */

static void hash_packet(void *context, unsigned to, const struct gossip_address *from,
                        const uint8_t *bytes, size_t len)
{
    uint64_t *hash = context;
    (void)from;
    for (size_t i = 0; i < len; i++)
        *hash = (*hash ^ bytes[i] ^ to) * 0x100000001b3u;
}

static void test_the_same_seed_gives_the_same_packets(void **state)
{
    (void)state;
    uint64_t hashes[2] = {1, 1};
    for (unsigned k = 0; k < 2; k++) {
        struct net *net = net_new(6, 32);
        net->loss = 0.05;
        net->duplicate = 0.02;
        net->tap = hash_packet;
        net->tap_context = &hashes[k];
        net_start_all(net);
        net_for(net, SECOND);
        make_items(net, 100);
        net_kill(net, 3);
        net_for(net, 5 * SECOND);
        finish(net);
    }
    assert_int_equal(hashes[0], hashes[1]);
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
    finish(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_find_each_other_and_converge),
        cmocka_unit_test(test_first_delta_is_sent_at_once_and_the_next_at_the_cadence),
        cmocka_unit_test(test_loss_duplication_and_reordering_lose_nothing),
        cmocka_unit_test(test_a_lost_last_delta_is_repaired_soon),
        cmocka_unit_test(test_what_the_ring_no_longer_has_is_told_as_lost),
        cmocka_unit_test(test_relays_serve_a_large_cluster),
        cmocka_unit_test(test_latency_among_64_with_loss),
        cmocka_unit_test(test_a_killed_node_is_dead_everywhere_within_three_seconds),
        cmocka_unit_test(test_helpers_save_whom_only_one_cannot_hear),
        cmocka_unit_test(test_a_suspect_refutes),
        cmocka_unit_test(test_who_slept_accuses_nobody),
        cmocka_unit_test(test_leave_is_told_at_once),
        cmocka_unit_test(test_a_partition_heals_by_itself),
        cmocka_unit_test(test_seeds_are_tried_for_ever),
        cmocka_unit_test(test_a_restart_begins_a_new_stream),
        cmocka_unit_test(test_a_clock_that_went_back_takes_what_peers_remember),
        cmocka_unit_test(test_two_nodes_of_one_name_do_not_flood_the_cluster),
        cmocka_unit_test(test_metadata_reaches_all),
        cmocka_unit_test(test_the_dead_are_forgotten),
        cmocka_unit_test(test_a_peer_that_roams_is_followed),
        cmocka_unit_test(test_a_cold_start_and_a_death_make_no_storm),
        cmocka_unit_test(test_replayed_and_forged_packets_change_nothing_and_get_no_answer),
        cmocka_unit_test(test_another_key_gets_no_answer),
        cmocka_unit_test(test_keys_rotate_without_losing_anybody),
        cmocka_unit_test(test_a_peer_that_sends_rubbish_is_ignored_for_a_while),
        cmocka_unit_test(test_the_rate_is_kept),
        cmocka_unit_test(test_messages_arrive_whole_and_once),
        cmocka_unit_test(test_messages_have_limits),
        cmocka_unit_test(test_settled_is_false_while_something_is_on_its_way),
        cmocka_unit_test(test_a_joiner_adopts_a_vector),
        cmocka_unit_test(test_vectors_are_known_to_all),
        cmocka_unit_test(test_the_same_seed_gives_the_same_packets),
        cmocka_unit_test(test_wrong_settings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
