/* Several gossips on a network in virtual time: forged and old packets, and floods. */
#include "tests/lib/test.h"

#include <stdlib.h>

#include "gossip/gossip_internal.h"
#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000 };

struct captured {
    struct captured_packet {
        unsigned to;
        struct gossip_address from;
        size_t len;
        uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    } * at;
    unsigned count, max;
};

static void capture(void *context, struct world_node *to, const struct world_datagram *d)
{
    struct captured *c = context;
    if (c->count == c->max)
        return;
    struct captured_packet *p = &c->at[c->count++];
    p->to = to->number;
    p->from = d->source;
    p->len = d->len;
    memcpy(p->bytes, d->bytes, d->len);
}

static void test_replayed_and_forged_packets_change_nothing_and_get_no_answer(void **state)
{
    (void)state;
    struct captured c = {.max = 3000};
    c.at = calloc(c.max, sizeof *c.at);
    assert_non_null(c.at);
    struct net *net = net_new(3, 22);
    net->world.net.tap = capture;
    net->world.net.context = &c;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    net_items(net, 200);
    net_for(net, SECOND);
    net->world.net.tap = NULL;
    uint64_t packets = net->world.net.packets;
    uint64_t applied = net->nodes[0].applied + net->nodes[1].applied + net->nodes[2].applied;
    struct gossip_address stranger = {.port = 9, .family = 4};
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < c.count; i++) {
            struct captured_packet p = c.at[i];
            if (round == 1)
                p.bytes[prng_below(&net->world.prng, p.len)] ^=
                    (uint8_t)(1u << prng_below(&net->world.prng, 8));
            if (round == 2)
                p.len = prng_below(&net->world.prng, p.len);
            if (round == 3)
                for (size_t k = 1; k < p.len; k++)
                    p.bytes[k] = (uint8_t)prng_next(&net->world.prng);
            net_inject(net, p.to, round % 2 == 0 ? &p.from : &stranger, p.bytes, p.len);
        }
    }
    assert_int_equal(net->world.net.packets, packets);
    assert_int_equal(net->nodes[0].applied + net->nodes[1].applied + net->nodes[2].applied,
                     applied);
    struct gossip_stats s = net_stats(net, 0);
    assert_true(s.refused_replay > 100 && s.refused_key > 300);
    assert_int_equal(s.refused_malformed, 0);
    net_for(net, 3 * SECOND);
    assert_true(net_meshed(net));
    free(c.at);
    net_finish(net);
}

/* A hello of an earlier life, from which node 0 has received nothing since it restarted. Only the
 * earlier session keeps the hello from being the beginning of an earlier life (stamps.h). */
static void test_a_hello_older_than_the_session_is_refused(void **state)
{
    (void)state;
    struct captured c = {.max = 100};
    c.at = calloc(c.max, sizeof *c.at);
    assert_non_null(c.at);
    struct net *net = net_new(2, 28);
    net->seeds = NET_SEEDS_ONE; /* 1 dials, 0 answers */
    net->world.net.tap = capture;
    net->world.net.context = &c;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    net->world.net.tap = NULL;
    unsigned hello = 0;
    while (c.at[hello].to != 0 || c.at[hello].bytes[0] != GOSSIP_PACKET_HELLO ||
           gossip_address_equal(&c.at[hello].from, &net->nodes[0].at->address))
        assert_true(++hello < c.count);
    net_kill(net, 0);
    net_kill(net, 1);
    net_start(net, 0, 1800000000000, true);
    net_start(net, 1, 1800000000001, true);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    net_kill(net, 1);
    net_for(net, GOSSIP_SESSION_REJECT_US + GOSSIP_STAMPS_EARLIER_US);
    assert_int_equal(gossip_peer_find(net->nodes[0].gossip, net_node(1))->session.sending, 0);
    struct gossip_stats before = net_stats(net, 0);
    net_inject(net, 0, &c.at[hello].from, c.at[hello].bytes, c.at[hello].len);
    assert_int_equal(net_stats(net, 0).refused_replay, before.refused_replay + 1);
    assert_int_equal(net_stats(net, 0).packets_out, before.packets_out);
    free(c.at);
    net_finish(net);
}

static struct {
    unsigned count;
    size_t len[2];
    uint8_t bytes[2][GOSSIP_DATAGRAM_MAX];
} welcomes;

static bool keep_welcomes(void *context, unsigned from, unsigned to, const uint8_t *bytes,
                          size_t len)
{
    (void)context;
    (void)from;
    if (to != 1 || bytes[0] != GOSSIP_PACKET_WELCOME)
        return false;
    assert_true(welcomes.count < 2);
    welcomes.len[welcomes.count] = len;
    memcpy(welcomes.bytes[welcomes.count++], bytes, len);
    return true;
}

/* Node 1 dials node 0 as a seed and as a member, and the second welcome arrives first. Then the
 * keys of the first welcome are void: node 0 has those of the second hello. */
static void test_a_late_welcome_changes_nothing(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(2, 29);
    struct gossip *g = net->nodes[1].gossip;
    struct gossip_peer *p = gossip_peer_find(g, net_node(0));
    const struct gossip_address *at = &net->nodes[0].at->address;
    uint64_t rekeys = net_stats(net, 1).rekeys;
    welcomes.count = 0;
    net->world.net.block = keep_welcomes;
    assert_true(gossip_link_dial(g, &g->seeds[0].dial, at, GOSSIP_SLOTS, 0));
    net_for(net, MS);
    p->dialled = *at;
    assert_true(gossip_link_dial(g, &p->dial, at, p->slot, 0));
    net_for(net, MS);
    net->world.net.block = NULL;
    assert_int_equal(welcomes.count, 2);
    for (unsigned i = 2; i-- > 0;)
        net_inject(net, 1, at, welcomes.bytes[i], welcomes.len[i]);
    assert_int_equal(net_stats(net, 1).rekeys, rekeys + 1);
    net_item(net, 0);
    net_item(net, 1);
    assert_true(net_run(net, net->world.now_us + 100 * MS, net_converged));
    net_finish(net);
}

static void test_an_unknown_key_gets_no_answer(void **state)
{
    (void)state;
    struct net *net = net_new(3, 23);
    memset(net->nodes[2].at->keyring.keys[0].psk, 7, sizeof net->nodes[2].at->keyring.keys[0].psk);
    net_start_all(net);
    net_for(net, 5 * SECOND);
    assert_int_equal(gossip_member_count(net->nodes[2].gossip), 1);
    assert_int_equal(gossip_member_count(net->nodes[0].gossip), 2);
    assert_int_equal(net_stats(net, 2).packets_in, 0);
    assert_true(net_stats(net, 0).refused_key > 0);
    net_finish(net);
}

static void test_key_rotation_loses_no_member(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 24);
    struct gossip_keyring old = net->nodes[0].at->keyring;
    struct gossip_key next = old.keys[0];
    memset(next.psk, 5, sizeof next.psk);
    memset(next.id, 5, sizeof next.id);
    /* Each step reaches the nodes in turn, and takes longer than a session lasts. */
    for (unsigned step = 0; step < 3; step++) {
        for (unsigned i = 0; i < 3; i++) {
            struct gossip_keyring *k = &net->nodes[i].at->keyring;
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
    net_items(net, 50);
    assert_true(net_run(net, net->world.now_us + SECOND, net_converged));
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(net_stats(net, i).suspected, 0);
        assert_true(net_stats(net, i).rekeys >= 4);
        assert_int_equal(net_stats(net, i).refused_key, 0);
    }
    net_finish(net);
}

/* A pod starts with a key file two steps ahead of the others. The pod begins sessions with a key
 * unknown to the others. Before the fix, the pod was alone for ever, though both sides have the
 * other key. */
static void test_one_common_key_is_enough(void **state)
{
    (void)state;
    struct net *net = net_new(3, 25);
    net->seeds = NET_SEEDS_ONE;
    struct gossip_keyring *ahead = &net->nodes[2].at->keyring;
    ahead->keys[1] = ahead->keys[0];
    memset(&ahead->keys[0], 5, sizeof ahead->keys[0]);
    ahead->count = 2;
    net_start(net, 0, 1700000000000, true);
    net_start(net, 1, 1700000000001, true);
    net_for(net, 5 * SECOND);
    net_start(net, 2, 1700000005000, true);
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    net_for(net, 400 * (uint64_t)SECOND); /* new keys, several times */
    assert_true(net_meshed(net));
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(net_stats(net, i).suspected, 0);
    net_finish(net);
}

static void test_a_peer_sending_malformed_packets_is_quarantined(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 25);
    net->nodes[0].refuse = 16; /* the application finds 16 deltas malformed */
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
    assert_true(net_has(net, 0, 2, 18)); /* requested once the quarantine is over */
    net_finish(net);
}

/* A malicious node must not be able to have all others shut out: the sender is to blame. */
static void test_the_sender_of_a_malformed_relay_is_blamed(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 27);
    struct gossip *liar = net->nodes[1].gossip;
    struct gossip_peer *victim = gossip_peer_find(liar, net_node(0));
    net->nodes[0].refuse = 16;
    for (unsigned i = 0; i < 16; i++) {
        struct gossip_packet packet;
        gossip_packet_begin(&packet);
        struct gossip_frame_delta f = {.epoch = gossip_epoch(net->nodes[2].gossip),
                                       .seq = i + 1,
                                       .relayed = true,
                                       .author = net_node(2),
                                       .bytes = SLICE("rubbish")};
        assert_true(gossip_frame_write_delta(&packet.w, &f));
        assert_true(gossip_link_send(liar, victim, &packet));
    }
    net_for(net, 20 * MS);
    assert_int_equal(net_stats(net, 0).refused_malformed, 16);
    assert_int_equal(net_stats(net, 0).quarantines, 1);
    for (unsigned i = 0; i < 20; i++) {
        net_item(net, 1);
        net_item(net, 2);
        net_for(net, 11 * MS);
    }
    assert_true(net_has(net, 0, 2, 18));
    assert_false(net_has(net, 0, 1, 18));
    net_finish(net);
}

static void test_the_send_rate_is_limited(void **state)
{
    (void)state;
    struct net *net = net_new(4, 26);
    net->config.rate_bytes_s = 200000;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    net->nodes[0].meltdown = true; /* never runs out */
    uint64_t before = net_stats(net, 0).bytes_out;
    net_item(net, 0);
    net_for(net, 10 * SECOND);
    uint64_t sent = net_stats(net, 0).bytes_out - before;
    assert_in_range(sent, 1700000, 2300000);
    assert_true(net_stats(net, 0).rate_held > 0);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(net_stats(net, i).suspected, 0);
    net_finish(net);
}

/* Node 0 sends no hellos, so a session is proof of an accepted hello. */
static bool hellos_of_0(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)to;
    (void)len;
    return from == 0 && bytes[0] == GOSSIP_PACKET_HELLO;
}

enum forger { FORGER_ONE, FORGER_MANY, FORGER_MEMBER };

/* Forges 100 hellos each millisecond, with the key's id but without a proof, until all have met. */
static bool meet_under_flood(struct net *net, enum forger forger, unsigned ms)
{
    uint8_t bytes[GOSSIP_HELLO_BYTES] = {GOSSIP_PACKET_HELLO};
    memcpy(bytes + 1, net->world.keyring.keys[0].id, 4);
    for (unsigned t = 0; t < ms; t++) {
        for (unsigned i = 0; i < 100; i++) {
            struct gossip_address from = {.ip = {192, 0, 2, 1}, .port = 9, .family = 4};
            uint32_t random = (uint32_t)prng_next(&net->world.prng);
            if (forger == FORGER_MANY)
                memcpy(from.ip, &random, 4);
            else if (forger == FORGER_MEMBER)
                from = world_address(1, 0);
            bytes[40] = (uint8_t)random;
            net_inject(net, 0, &from, bytes, sizeof bytes);
            net_for(net, MS / 100);
        }
        if (net_meshed(net))
            return true;
    }
    return false;
}

/* Opening a forged hello costs time; 100,000 a second would take all the time. The router opens
 * only a few of them, but still opens the members' hellos. */
static void test_a_flood_of_forged_hellos_keeps_no_member_out(void **state)
{
    (void)state;
    for (enum forger forger = FORGER_ONE; forger <= FORGER_MEMBER; forger++) {
        struct net *net = net_new(4, 40 + forger);
        net->seeds = NET_SEEDS_ONE;
        for (unsigned i = 0; i < 3; i++)
            net_start(net, i, 1700000000000 + i, true);
        assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
        net_for(net, 5 * SECOND);
        (void)meet_under_flood(net, forger, 1);
        uint64_t before = net_stats(net, 0).refused_hellos, began_us = net->world.now_us;
        /* A member returns, and a new node joins, unless the flood comes from everywhere. */
        net_kill(net, 2);
        for (unsigned i = 0; i < 300; i++)
            (void)meet_under_flood(net, forger, 1);
        net->world.net.block = hellos_of_0;
        net_start(net, 2, 1700000100000, true);
        if (forger != FORGER_MANY)
            net_start(net, 3, 1700000100001, true);
        assert_true(meet_under_flood(net, forger, 2000));
        struct gossip_stats s = net_stats(net, 0);
        uint64_t passed_ms = (net->world.now_us - began_us) / MS;
        uint64_t rate_s = forger == FORGER_MANY ? GOSSIP_HELLOS_OTHERS_S : GOSSIP_HELLOS_SOURCE_S;
        assert_true(s.refused_hellos - before <= rate_s * (passed_ms + 500) / 1000);
        assert_true(s.hellos_held > 20000);
        net_finish(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replayed_and_forged_packets_change_nothing_and_get_no_answer),
        cmocka_unit_test(test_a_hello_older_than_the_session_is_refused),
        cmocka_unit_test(test_a_late_welcome_changes_nothing),
        cmocka_unit_test(test_an_unknown_key_gets_no_answer),
        cmocka_unit_test(test_key_rotation_loses_no_member),
        cmocka_unit_test(test_one_common_key_is_enough),
        cmocka_unit_test(test_a_peer_sending_malformed_packets_is_quarantined),
        cmocka_unit_test(test_the_sender_of_a_malformed_relay_is_blamed),
        cmocka_unit_test(test_a_flood_of_forged_hellos_keeps_no_member_out),
        cmocka_unit_test(test_the_send_rate_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
