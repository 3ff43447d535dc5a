/* Several gossips on a network in virtual time: membership. */
#include "tests/lib/test.h"

#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000 };

static bool dead_everywhere(struct net *net)
{
    for (unsigned i = 0; i < net->world.count; i++)
        for (unsigned o = 0; o < net->world.count; o++)
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
            struct net *net = net_new_meshed(count, seed);
            net->world.net.loss = 0.01;
            net_for(net, SECOND);
            uint64_t packets = net->world.net.packets;
            net_kill(net, 1);
            assert_true(net_run(net, net->world.now_us + 3 * SECOND, dead_everywhere));
            /* Only a few nodes accuse; the nodes do not all report to each other. */
            uint64_t keep_alives = (uint64_t)count * count * 6 * 3;
            assert_true(net->world.net.packets - packets < keep_alives + 20 * count);
            for (unsigned i = 0; i < count; i++)
                for (unsigned o = 0; o < count; o++)
                    if (i != 1 && o != 1)
                        assert_int_equal(net_state(net, i, o), GOSSIP_ALIVE);
            net_finish(net);
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

static void test_helpers_save_a_node_unheard_by_a_single_node(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(4, 7);
    net->world.net.block = one_way;
    net_for(net, 10 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(net_stats(net, i).died, 0);
        assert_int_equal(net_stats(net, i).suspected, 0);
    }
    assert_true(net_stats(net, 2).frames_out[GOSSIP_FRAME_ACK] > 0);
    net_finish(net);
}

static void test_a_suspect_refutes(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(4, 8);
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
    assert_int_equal(gossip_member_find(net->nodes[0].gossip, net_node(3), net->world.now_us, &m),
                     0);
    assert_true((m.incarnation & 0xffff) > 0);
    assert_int_equal(m.incarnation >> 16, gossip_epoch(net->nodes[3].gossip));
    assert_true(net_stats(net, 3).refuted > 0);
    net_finish(net);
}

static bool cut_off(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return from == 3 || to == 3;
}

/* A node without connection believes all others dead. On return it says so before they can object.
 * Nodes in contact with each other all along believed it. */
static void test_a_cut_off_node_kills_no_member(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct net *net = net_new_meshed(4, seed);
        net->world.net.block = cut_off;
        net_for(net, 6 * SECOND);
        for (unsigned i = 0; i < 3; i++) {
            assert_int_equal(net_state(net, 3, i), GOSSIP_DEAD);
            assert_int_equal(net_state(net, i, 3), GOSSIP_DEAD);
        }
        net->world.net.block = NULL;
        assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(net_stats(net, i).died, 1);
        net_finish(net);
    }
}

static void test_a_node_accuses_no_member_after_a_sleep(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(5, 9);
    net->nodes[2].paused = true;
    net_for(net, 20 * SECOND);
    assert_int_equal(net_state(net, 0, 2), GOSSIP_DEAD);
    net->nodes[2].paused = false;
    net_for(net, 12 * SECOND); /* the others call at most 10 s later, and it sends a hello */
    assert_int_equal(net_stats(net, 2).suspected, 0);
    assert_int_equal(net_stats(net, 2).died, 0);
    assert_true(net_meshed(net));
    net_finish(net);
}

/* After SIGCONT both sides measured the pause as round trip. */
static void test_a_sleep_is_no_round_trip(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 9);
    net_for(net, 5 * SECOND);
    world_pause(net->nodes[2].at, net->world.now_us + 1500 * MS);
    net_for(net, 1499 * MS);
    assert_true(net->nodes[2].at->socket_count > 0); /* the packets wait in the socket */
    for (unsigned ms = 0; ms < 3000; ms += 10) {
        net_for(net, 10 * MS);
        for (unsigned i = 0; i < 2; i++) {
            struct gossip_member m;
            assert_int_equal(
                gossip_member_find(net->nodes[i].gossip, net_node(2), net->world.now_us, &m), 0);
            assert_in_range(m.rtt_us, 1, 50 * MS);
            assert_int_equal(
                gossip_member_find(net->nodes[2].gossip, net_node(i), net->world.now_us, &m), 0);
            assert_in_range(m.rtt_us, 1, 50 * MS);
        }
    }
    net_finish(net);
}

static void test_a_leave_is_announced_at_once(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(4, 10);
    gossip_leave(net->nodes[1].gossip, net->world.now_us);
    net_for(net, 2 * MS);
    for (unsigned i = 0; i < 4; i++)
        if (i != 1)
            assert_int_equal(net_state(net, i, 1), GOSSIP_LEFT);
    gossip_run(net->nodes[1].gossip, net->world.now_us + 50 * MS);
    gossip_run(net->nodes[1].gossip, net->world.now_us + 100 * MS);
    assert_int_equal(gossip_due_us(net->nodes[1].gossip), UINT64_MAX);
    net_kill(net, 1);
    net_for(net, 5 * SECOND);
    for (unsigned i = 0; i < 4; i++)
        if (i != 1)
            assert_int_equal(net_stats(net, i).died, 0);
    /* The same name comes back. */
    net_start(net, 1, 1800000000000, true);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    net_finish(net);
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
        struct net *net = net_new_meshed(6, 11 + k);
        unsigned border = 3;
        net->world.net.block = split;
        net->world.net.context = &border;
        net_for(net, 3 * SECOND);
        net_items(net, 100);
        net_for(net, lasts_s[k] * SECOND);
        assert_int_equal(net_state(net, 0, 5), GOSSIP_DEAD);
        assert_int_equal(net_state(net, 5, 0), GOSSIP_DEAD);
        assert_int_equal(net_state(net, 5, 4), GOSSIP_ALIVE);
        net->world.net.block = NULL;
        /* After a partition of any length, a node dials each second (jepsen-lite, partitions, seed
         * 6). */
        assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
        assert_true(net_run(net, net->world.now_us + SECOND, net_converged)); /* from the rings */
        net_finish(net);
    }
}

static void test_seeds_are_retried_for_ever(void **state)
{
    (void)state;
    struct net *net = net_new(3, 14);
    net_start(net, 2, 1700000000000, true);
    net_for(net, 100 * (uint64_t)SECOND);
    uint64_t knocks = net_stats(net, 2).knocks_out; /* at a single seed, every 5 to 6.25 s */
    assert_true(knocks > 14 && knocks <= 20);
    uint64_t hellos = net->world.net.packets - knocks; /* two seeds, every 4 to 5 s */
    assert_true(hellos > 40 && hellos < 70);
    assert_int_equal(net_stats(net, 2).seeds_unknown, 2);
    assert_int_equal(net_stats(net, 2).seeds_answered, 0);
    net_start(net, 0, 1700000000000, true);
    net_start(net, 1, 1700000000001, true);
    assert_true(
        net_run(net, net->world.now_us + SECOND, net_meshed)); /* 2 is no seed, but is called */
    net_for(net, 6 * SECOND);
    assert_int_equal(net_stats(net, 2).seeds_unknown, 0);
    assert_int_equal(net_stats(net, 2).seeds_answered, 2);
    assert_int_equal(net_stats(net, 1).seeds_unknown, 0); /* the node itself is a seed */
    assert_int_equal(net_stats(net, 1).seeds_answered, 1);
    net_finish(net);
}

static bool block_from_1_to_0(void *context, unsigned from, unsigned to, const uint8_t *bytes,
                              size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return from == 1 && to == 0;
}

/* Others vouch for node 1, so it is alive. But this node hears nothing from node 1, and would get
 * no answer. */
static void test_an_unheard_peer_is_not_chosen_at_random(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 19);
    struct gossip *g = net->nodes[0].gossip;
    net->world.net.block = block_from_1_to_0;
    net_for(net, 10 * SECOND);
    assert_int_equal(net_state(net, 0, 1), GOSSIP_ALIVE);
    for (unsigned i = 0; i < 100; i++)
        assert_true(gossip_peer_random(g, 0) == net_node(2));
    net_kill(net, 2);
    assert_true(gossip_peer_random(g, net_node(2)) == net_node(1)); /* if there is no other */
    net_finish(net);
}

static void test_a_restart_begins_a_new_stream(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 15);
    net_items(net, 60);
    net_kill(net, 2);
    net_for(net, 100 * MS);
    net->nodes[2].made = 100; /* the restarted node has forgotten them */
    net_start(net, 2, 1700000100000, true);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    assert_int_equal(net_state(net, 0, 2), GOSSIP_ALIVE);
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[0].gossip, net_node(2), net->world.now_us, &m),
                     0);
    assert_int_equal(m.incarnation >> 16, 1700000100000);
    assert_int_equal(m.seq_known, 0);
    for (unsigned i = 0; i < 10; i++) {
        net_item(net, 2);
        net_for(net, 11 * MS);
        assert_true(net_has(net, 0, 2, 100 + i) && net_has(net, 1, 2, 100 + i));
    }
    assert_int_equal(net_stats(net, 2).name_conflicts, 0);
    net_finish(net);
}

static void test_a_node_with_a_late_clock_raises_its_epoch(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 16);
    net_items(net, 60);
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[0].gossip, net_node(2), net->world.now_us, &m),
                     0);
    uint64_t before = m.incarnation >> 16;
    net_kill(net, 2);
    net_for(net, 5 * SECOND);
    net->nodes[2].made = 100;
    net->nodes[2].self_calls = 0;
    net_start(net, 2, before - 3600000, true);
    /* The others refuse the hellos as old, and call within 10 s. */
    assert_true(net_run(net, net->world.now_us + 13 * SECOND, net_meshed));
    uint64_t epoch = gossip_epoch(net->nodes[2].gossip);
    assert_in_range(epoch, before + 60000,
                    before + 65000); /* so all hellos are above the earlier ones */
    assert_int_equal(net->nodes[2].self_calls, 1);
    net_item(net, 2);
    net_for(net, 20 * MS);
    assert_true(net_has(net, 0, 2, 100) && net_has(net, 1, 2, 100));
    net_finish(net);
}

static bool between_0_and_4(void *context, unsigned from, unsigned to, const uint8_t *bytes,
                            size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return (from == 0 && to == 4) || (from == 4 && to == 0);
}

/* Found by the simulator: a node restarts with the clock set back. The hellos are too old for a
 * peer that could not dial the dead node. The peer learned from others of the new life, and went on
 * sending under the earlier keys until these expired. */
static void test_peers_with_old_keys_dial_a_restarted_node(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(5, 34);
    net_for(net, 125 * (uint64_t)SECOND); /* each sent another hello */
    uint64_t before = gossip_epoch(net->nodes[4].gossip);
    net_kill(net, 4);
    net->world.net.block = between_0_and_4;
    net_start(net, 4, before - 3600000, true);
    net_for(net, 10 * SECOND);
    assert_int_equal(net_state(net, 0, 4), GOSSIP_ALIVE);
    net->world.net.block = NULL;
    assert_true(net_run(net, net->world.now_us + 3 * SECOND, net_meshed));
    uint64_t applied = net->nodes[4].applied;
    net_item(net, 0);
    net_for(net, 20 * MS);
    assert_int_equal(net->nodes[4].applied, applied + 1);
    net_finish(net);
}

static bool apart[8];

static bool only_some(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return apart[from] != apart[to];
}

/* Found by the simulator: two lives, each with the clock set back and each on another side of a
 * partition. Both took the epoch after the last common epoch, and were a single stream. */
static void test_two_restarts_never_take_the_same_epoch(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(3, 35);
    uint64_t epochs[2];
    uint64_t before = gossip_epoch(net->nodes[2].gossip);
    net->world.net.block = only_some;
    for (unsigned side = 0; side < 2; side++) {
        memset(apart, 0, sizeof apart);
        apart[1 - side] = true;
        net_kill(net, 2);
        net_start(net, 2, before - 3600000 - side, true);
        net_for(net, 20 * SECOND);
        epochs[side] = gossip_epoch(net->nodes[2].gossip);
        assert_true(epochs[side] > before);
    }
    assert_true(epochs[0] != epochs[1]);
    net_finish(net);
}

static void test_a_duplicate_name_does_not_flood_the_cluster(void **state)
{
    (void)state;
    struct net *net = net_new(4, 17);
    for (unsigned i = 0; i < 3; i++)
        net_start(net, i, 1700000000000 + i, true);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    /* Node 3 calls itself node-002, too. */
    struct gossip_config config = {.name = "node-002", .epoch = 1700000900000};
    config.address = net->nodes[3].at->address;
    assert_int_equal(net_create(net, 3, &config), 0);
    uint64_t packets = net->world.net.packets;
    net_for(net, 30 * SECOND);
    /* 4 nodes at 5 keep-alives a second to each other, and as much again for the conflict. */
    assert_true(net->world.net.packets - packets < 30 * 4 * 3 * 5 * 2);
    uint64_t conflicts = 0;
    for (unsigned i = 0; i < 4; i++)
        conflicts += net_stats(net, i).name_conflicts;
    assert_true(conflicts > 0);
    for (unsigned i = 0; i < 2; i++) { /* nodes in contact with both see the conflict */
        struct gossip_stats told = net_stats(net, i);
        assert_true(told.name_conflict == net_node(2));
        assert_true(told.name_conflict_at.ip[3] == 2 || told.name_conflict_at.ip[3] == 3);
    }
    assert_int_equal(net_state(net, 0, 1), GOSSIP_ALIVE);
    assert_int_equal(net_state(net, 1, 0), GOSSIP_ALIVE);
    net_finish(net);
}

static void test_metadata_reaches_all(void **state)
{
    (void)state;
    struct net *net = net_new_meshed(4, 18);
    net->world.net.loss = 0.3; /* the push may be lost; the comparison repairs the loss */
    gossip_meta_set(net->nodes[2].gossip, SLICE("admin=10.0.0.2:9000"), net->world.now_us);
    net_for(net, 5 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        struct gossip_member m;
        assert_int_equal(
            gossip_member_find(net->nodes[i].gossip, net_node(2), net->world.now_us, &m), 0);
        assert_int_equal(m.meta_len, 19);
        assert_memory_equal(m.meta, "admin=10.0.0.2:9000", 19);
    }
    net_finish(net);
}

static void test_the_dead_are_forgotten(void **state)
{
    (void)state;
    struct net *net = net_new(4, 19);
    net->config.forget_us = 20 * SECOND;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    net_kill(net, 3);
    net_for(net, 10 * SECOND);
    assert_int_equal(gossip_member_count(net->nodes[0].gossip), 4);
    net_for(net, 20 * SECOND);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(gossip_member_count(net->nodes[i].gossip), 3);
    net_finish(net);
}

static void test_a_roaming_peer_is_followed(void **state)
{
    (void)state;
    struct net *net = net_new(4, 20);
    net->advertise = false;
    for (unsigned i = 0; i < 3; i++)
        net_start(net, i, 1700000000000 + i, true);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    /* Node 2 is now at the address for node 3. */
    struct gossip *g = net->nodes[2].gossip;
    world_move(&net->world, 2, 3);
    net_for(net, 10 * SECOND);
    assert_ptr_equal(net->nodes[2].gossip, g);
    assert_int_equal(net_stats(net, 0).died, 0);
    assert_true(net_meshed(net));
    net_item(net, 0);
    net_for(net, 30 * MS);
    assert_true(net_has(net, 2, 0, 0));
    net_finish(net);
}

static void test_a_cold_start_and_a_death_cost_few_packets(void **state)
{
    (void)state;
    enum { N = 96 };
    struct net *net = net_new_meshed(N, 21);
    assert_true(net->world.now_us < 4 * SECOND);
    /* Handshake, greetings and some keep-alives for each pair, and lists within their budget. */
    assert_true(net->world.net.packets < N * N * 10);
    net_for(net, 3 * SECOND); /* lists */
    uint64_t packets = net->world.net.packets;
    net_for(net, 3 * SECOND);
    uint64_t idle = net->world.net.packets - packets;
    assert_true(idle < N * N * 5 * 3 * 11 / 10);
    packets = net->world.net.packets;
    net_kill(net, 5);
    net_for(net, 3 * SECOND);
    assert_true(dead_everywhere(net));
    /* Keep-alives, a few accusations, and every node's probes of the victim. */
    assert_true(net->world.net.packets - packets < idle + N * (3 * 3 * 4 + 40));
    packets = net->world.net.packets;
    net_start(net, 5, 1700009999999, true);
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    net_for(net, SECOND);
    assert_true(net->world.net.packets - packets < 2 * idle + N * 60);
    net_finish(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_killed_node_is_dead_everywhere_within_three_seconds),
        cmocka_unit_test(test_helpers_save_a_node_unheard_by_a_single_node),
        cmocka_unit_test(test_a_suspect_refutes),
        cmocka_unit_test(test_a_cut_off_node_kills_no_member),
        cmocka_unit_test(test_a_node_accuses_no_member_after_a_sleep),
        cmocka_unit_test(test_a_sleep_is_no_round_trip),
        cmocka_unit_test(test_a_leave_is_announced_at_once),
        cmocka_unit_test(test_a_partition_heals_by_itself),
        cmocka_unit_test(test_seeds_are_retried_for_ever),
        cmocka_unit_test(test_an_unheard_peer_is_not_chosen_at_random),
        cmocka_unit_test(test_a_restart_begins_a_new_stream),
        cmocka_unit_test(test_a_node_with_a_late_clock_raises_its_epoch),
        cmocka_unit_test(test_peers_with_old_keys_dial_a_restarted_node),
        cmocka_unit_test(test_two_restarts_never_take_the_same_epoch),
        cmocka_unit_test(test_a_duplicate_name_does_not_flood_the_cluster),
        cmocka_unit_test(test_metadata_reaches_all),
        cmocka_unit_test(test_the_dead_are_forgotten),
        cmocka_unit_test(test_a_roaming_peer_is_followed),
        cmocka_unit_test(test_a_cold_start_and_a_death_cost_few_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
