/* Several gossips on a network in virtual time: how a node learns the others' addresses. */
#include "tests/lib/test.h"

#include <stdio.h>

#include "gossip/gossip_internal.h"
#include "tests/lib/gossip_net.h"

enum { MS = 1000, SECOND = 1000000 };

static struct gossip_member member_at(const struct net *net, unsigned at, unsigned of)
{
    struct gossip_member m;
    assert_int_equal(gossip_member_find(net->nodes[at].gossip, net_node(of), net->world.now_us, &m),
                     0);
    return m;
}

/* Pairs of nodes without a connection: a bit for each. */
static bool walls[8][8];

static bool wall(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return walls[from][to];
}

static void wall_set(unsigned a, unsigned b, bool there)
{
    walls[a][b] = walls[b][a] = there;
}

/* The handshake of each pair takes the most time. So only a few large clusters are tried: a cluster
 * with loss and a cluster with advertised addresses. */
static bool tried(unsigned count, uint64_t seed)
{
    return count < 16 || (count == 16 ? seed <= 6 : seed == 2 || seed == 3);
}

/* Routers listening on 0.0.0.0 knew each other without an address, and without a session. When the
 * common seed left, each believed all others dead, for ever. */
static void test_a_mesh_survives_the_death_of_its_seed(void **state)
{
    (void)state;
    static const unsigned counts[] = {3, 4, 16, 64};
    for (unsigned k = 0; k < 4; k++) {
        for (uint64_t seed = 1; seed <= 6; seed++) {
            if (!tried(counts[k], seed))
                continue;
            struct net *net = net_new(counts[k], 40 + seed);
            net->advertise = seed % 3 == 0;
            net->world.net.loss = seed % 2 == 0 ? 0.02 : 0;
            net->seeds = NET_SEEDS_ONE;
            net_start_all(net);
            assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
            assert_int_equal(net->world.net.astray, 0);
            net_kill(net, 0);
            net_for(net, 15 * SECOND);
            for (unsigned i = 1; i < net->world.count; i++)
                assert_true(net_stats(net, i).died <=
                            1); /* the seed, unless another node reported it */
            assert_true(net_meshed(net));
            net_item(net, 1);
            assert_true(net_run(net, net->world.now_us + SECOND, net_converged));
            net_finish(net);
        }
    }
}

/* All routers have the same seed, a virtual address in front of all of them. A router stopped
 * looking once it had met another router. Two pairs never learned of each other, and a router asked
 * again every five seconds after meeting itself. */
static void test_a_shared_virtual_address_makes_a_mesh(void **state)
{
    (void)state;
    static const unsigned counts[] = {2, 3, 4, 16};
    for (unsigned pinned = 0; pinned < 2; pinned++) {
        for (unsigned k = 0; k < 4; k++) {
            for (uint64_t seed = 1; seed <= 25; seed++) {
                if (!tried(counts[k], seed))
                    continue;
                struct net *net = net_new(counts[k], 200 + seed);
                net->advertise = false;
                net->seeds = NET_SEEDS_VIRTUAL;
                net->world.net.virtual_ip = pinned ? WORLD_VIRTUAL_PINNED : WORLD_VIRTUAL_EACH;
                net_start_all(net);
                assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
                net_for(net, 10 * SECOND);
                for (unsigned i = 0; i < counts[k]; i++)
                    assert_int_equal(net_stats(net, i).suspected, 0);
                net_kill(net, 0);
                net_for(net, 5 * SECOND);
                assert_true(net_meshed(net));
                net_finish(net);
            }
        }
    }
}

/* Before the fix, two pairs stayed apart for long: an occasional knock brings them together. */
static void test_two_halves_behind_a_virtual_address_find_each_other(void **state)
{
    (void)state;
    struct net *net = net_new(4, 230);
    net->advertise = false;
    net->seeds = NET_SEEDS_VIRTUAL;
    net->world.net.virtual_ip = WORLD_VIRTUAL_PINNED;
    memset(walls, 0, sizeof walls);
    net->world.net.block = wall;
    for (unsigned i = 0; i < 4; i++)
        wall_set(i % 2, 2 + i / 2, true);
    for (unsigned i = 0; i < 4; i++)
        net->world.net.pinned[i] = (uint16_t)((i ^ 1) + 1);
    net_start_all(net);
    net_for(net, 30 * (uint64_t)SECOND);
    assert_true(member_at(net, 0, 1).session && member_at(net, 2, 3).session);
    assert_int_equal(gossip_member_count(net->nodes[0].gossip), 2);
    net->world.net.block = NULL;
    assert_true(net_run(net, net->world.now_us + 20 * (uint64_t)SECOND, net_meshed));
    net_finish(net);
}

/* Routers at the ends of a chain have to learn of each other from a node in contact with both. */
static void test_any_connected_seeds_make_a_mesh(void **state)
{
    (void)state;
    for (unsigned count = 4; count <= 64; count *= 4) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            if (!tried(count, seed))
                continue;
            struct net *net = net_new(count, 60 + seed);
            net->advertise = seed % 3 == 0;
            net->world.net.loss = seed % 2 == 0 ? 0.02 : 0;
            net->seeds = NET_SEEDS_CHAIN;
            net_start_all(net);
            assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
            net_finish(net);
        }
    }
}

/* All nodes also meet a late joiner, when the digests have long been equal. */
static void test_a_late_joiner_meets_all_nodes(void **state)
{
    (void)state;
    struct net *net = net_new(8, 71);
    net->advertise = false;
    net->seeds = NET_SEEDS_CHAIN;
    for (unsigned i = 0; i < 7; i++)
        net_start(net, i, 1700000000000 + i, true);
    net_for(net, 30 * SECOND);
    assert_true(net_meshed(net));
    net_start(net, 7, 1700000030000, true);
    assert_true(net_run(net, net->world.now_us + SECOND, net_meshed));
    net_finish(net);
}

/* Some nodes still have a session with the former life: a full mesh is not enough. */
static bool found_elsewhere(struct net *net)
{
    for (unsigned i = 0; i < 5; i++)
        if (i != 3 && member_at(net, i, 3).address.ip[3] != 5)
            return false;
    return net_meshed(net);
}

/* A pod restarts with the old name at a new address; the seed is another pod. */
static void test_a_node_restarted_at_another_address_is_found(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct net *net = net_new(6, 80 + seed);
        net->advertise = seed % 2 == 0;
        net->seeds = NET_SEEDS_ONE;
        for (unsigned i = 0; i < 5; i++)
            net_start(net, i, 1700000000000 + i, true);
        assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
        net_for(net, seed % 3 * SECOND);
        net_kill(net, 3);
        if (seed > 4)
            net_for(net, 5 * SECOND); /* the others believe it dead */
        world_move(&net->world, 3, 5);
        net_start(net, 3, 1700000100000, true);
        assert_true(net_run(net, net->world.now_us + 2 * SECOND, found_elsewhere));
        net_finish(net);
    }
}

static void start_with_seed(struct net *net, unsigned index, const char *name, unsigned seed)
{
    struct gossip_config config = {.name = name, .epoch = 1700000005000};
    net->seeds = NET_SEEDS_NONE;
    assert_int_equal(net_create(net, index, &config), 0);
    struct gossip_address at = net->nodes[seed].at->address;
    gossip_seeds(net->nodes[index].gossip, &at, 1, net->world.now_us);
}

static bool place_known(struct net *net)
{
    return member_at(net, 4, 3).address.port != 0;
}

/* Node 2 learned the address of node 3, never got an answer from there, and goes on trying. Node 4
 * learns from node 2 only addresses of met members. */
static void test_unconfirmed_addresses_are_not_relayed(void **state)
{
    (void)state;
    struct net *net = net_new(5, 90);
    net->advertise = false;
    memset(walls, 0, sizeof walls);
    net->world.net.block = wall;
    wall_set(2, 3, true);
    for (unsigned i = 0; i < 4; i++)
        wall_set(4, i, i != 2);
    for (unsigned i = 0; i < 4; i++)
        net_start(net, i, 1700000000000 + i, true);
    net_for(net, 5 * SECOND);
    assert_int_equal(member_at(net, 2, 3).state, GOSSIP_ALIVE);
    assert_false(member_at(net, 2, 3).session);
    assert_int_equal(member_at(net, 2, 3).address.ip[3], 3);
    start_with_seed(net, 4, "node-004", 2);
    net_for(net, 5 * SECOND);
    assert_int_equal(member_at(net, 4, 0).address.port, 7000);
    assert_int_equal(member_at(net, 4, 1).address.ip[3], 1);
    assert_int_equal(member_at(net, 4, 1).address.port, 7000);
    assert_int_equal(member_at(net, 4, 3).address.port, 0);
    /* Node 4 asks for the address as soon as it meets a node with the address. */
    assert_int_equal(member_at(net, 4, 0).state, GOSSIP_ALIVE);
    wall_set(4, 0, false);
    wall_set(4, 3, false);
    assert_true(net_run(net, net->world.now_us + 3 * SECOND, place_known));
    net_for(net, 120 * MS); /* dialled when learned, not in turn */
    assert_true(member_at(net, 4, 3).session && member_at(net, 3, 4).session);
    net->world.net.block = NULL;
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    net_finish(net);
}

static bool new_life_known(struct net *net)
{
    return member_at(net, 1, 3).incarnation >> 16 == 1700000100000;
}

/* Node 1 learns from others, not from node 3, of node 3's restart. The address of the earlier life
 * is not passed on. */
static void test_addresses_of_an_earlier_epoch_are_not_relayed(void **state)
{
    (void)state;
    struct net *net = net_new(6, 96);
    net->advertise = false;
    for (unsigned i = 0; i < 4; i++)
        net_start(net, i, 1700000000000 + i, true);
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    memset(walls, 0, sizeof walls);
    net->world.net.block = wall;
    wall_set(1, 3, true);
    for (unsigned i = 0; i < 4; i++)
        wall_set(4, i, i != 1);
    net_kill(net, 3);
    world_move(&net->world, 3, 5);
    net_start(net, 3, 1700000100000, true);
    assert_true(net_run(net, net->world.now_us + 1600 * MS, new_life_known));
    start_with_seed(net, 4, "node-004", 1);
    net_for(net, 50 * MS);
    assert_int_equal(member_at(net, 4, 0).address.port, 7000);
    assert_int_equal(member_at(net, 4, 3).incarnation >> 16, 1700000100000);
    assert_int_equal(member_at(net, 4, 3).address.port, 0);
    net_finish(net);
}

/* Nor is an address passed on while only others hear the node there: the node may have moved. The
 * node's own statement in this life is passed on. */
static void test_addresses_of_silent_nodes_are_not_relayed(void **state)
{
    (void)state;
    struct net *net = net_new(5, 97);
    net->advertise = false;
    for (unsigned i = 0; i < 4; i++)
        net_start(net, i, 1700000000000 + i, true);
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    memset(walls, 0, sizeof walls);
    net->world.net.block = wall;
    wall_set(1, 3, true);
    for (unsigned i = 0; i < 4; i++)
        wall_set(4, i, i != 1);
    net_for(net, 5 * SECOND);
    assert_int_equal(member_at(net, 1, 3).state, GOSSIP_ALIVE);
    start_with_seed(net, 4, "node-004", 1);
    net_for(net, 50 * MS);
    struct gossip_place places[GOSSIP_PLACES_MAX];
    assert_int_equal(member_at(net, 4, 0).address.port, 7000);
    assert_int_equal(gossip_member_places(net->nodes[4].gossip, net_node(3), places), 1);
    assert_int_equal(places[0].kind, GOSSIP_PLACE_LEARNED);
    assert_false(places[0].own);
    net_finish(net);
}

/* A router listening on all addresses learns the right address from peers, and publishes it. */
static void test_a_router_learns_its_own_address(void **state)
{
    (void)state;
    struct net *net = net_new(4, 98);
    net->advertise = false;
    net->seeds = NET_SEEDS_ONE;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    net_for(net, 2 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned of = 0; of < 4; of++) {
            struct gossip_place places[GOSSIP_PLACES_MAX];
            assert_int_equal(gossip_member_places(net->nodes[i].gossip, net_node(of), places), 1);
            assert_int_equal(places[0].kind, GOSSIP_PLACE_LEARNED);
            assert_true(places[0].own && places[0].at.ip[3] == of);
        }
    }
    net_finish(net);
}

/* The seed advertises an unreachable address, as behind a removed port mapping. Peers reach the
 * seed at the source of the packets. The advertised address costs a single lost hello, not a hello
 * each time. */
static void test_a_wrong_advertised_address_is_harmless(void **state)
{
    (void)state;
    struct net *net = net_new(5, 99);
    net->seeds = NET_SEEDS_ONE;
    for (unsigned i = 0; i < 5; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "node-%03u", i);
        struct gossip_config config = {.name = name, .epoch = 1700000000000 + i};
        config.address = world_address(i == 0 ? 400 : i, 0);
        assert_int_equal(net_create(net, i, &config), 0);
    }
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    uint64_t astray = net->world.net.astray;
    net_for(net, 400 * (uint64_t)SECOND); /* new keys, several times */
    assert_true(net->world.net.astray <= astray + 4);
    assert_true(net_meshed(net));
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(net_stats(net, i).suspected, 0);
    net_finish(net);
}

/* Node 2 has only heard of node 3, and another router lives now at the address. The other router
 * answers, and node 2 forgets the address. */
static void test_an_address_taken_by_another_router_is_forgotten(void **state)
{
    (void)state;
    struct net *net = net_new(5, 100);
    net->advertise = false;
    memset(walls, 0, sizeof walls);
    net->world.net.block = wall;
    wall_set(2, 3, true);
    for (unsigned i = 0; i < 4; i++)
        net_start(net, i, 1700000000000 + i, true);
    net_for(net, 2 * SECOND);
    struct gossip_place places[GOSSIP_PLACES_MAX];
    assert_int_equal(gossip_member_places(net->nodes[2].gossip, net_node(3), places), 1);
    assert_false(places[0].own);
    net_kill(net, 3);
    net_for(net, 5 * SECOND);
    world_move(&net->world, 4, 3);
    net_start(net, 4, 1700000100000, true);
    net_for(net, 30 * (uint64_t)SECOND); /* dead members are called now and then */
    assert_int_equal(member_at(net, 2, 4).address.ip[3], 3);
    assert_int_equal(gossip_member_places(net->nodes[2].gossip, net_node(3), places), 0);
    assert_true(net_meshed(net));
    net_finish(net);
}

/* Node 0 sees node 2 through a translation, at an address useless to the others. The report must
 * not replace a working address. */
static void test_a_hint_does_not_replace_a_working_address(void **state)
{
    (void)state;
    struct net *net = net_new(5, 91);
    net->advertise = false;
    net->seeds = NET_SEEDS_ONE;
    net->world.net.translated = 2;
    net->world.net.translated_for = 0;
    for (unsigned i = 0; i < 4; i++)
        net_start(net, i, 1700000000000 + i, true);
    assert_true(net_run(net, net->world.now_us + 3 * SECOND, net_meshed));
    assert_int_equal(member_at(net, 0, 2).address.ip[0], 99);
    net_for(net, 10 * SECOND);
    net_start(net, 4, 1700000010000, true);
    assert_true(net_run(net, net->world.now_us + 3 * SECOND, net_meshed));
    uint64_t astray = net->world.net.astray;
    net_for(net, 400 * (uint64_t)SECOND); /* new keys, several times */
    assert_int_equal(net->world.net.astray, astray);
    assert_true(net_meshed(net));
    for (unsigned i = 1; i < 5; i++) {
        assert_int_equal(net_stats(net, i).suspected, 0);
        assert_true(i == 2 || member_at(net, i, 2).address.ip[0] == 10);
    }
    net_finish(net);
}

/* Nodes 1 and 2 share a machine, and node 1 joined through the loopback. */
static void test_loopback_addresses_are_not_sent_to_other_machines(void **state)
{
    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        struct net *net = net_new(4, 92 + late);
        net->advertise = false;
        net->seeds = NET_SEEDS_ONE;
        net->world.net.host[0] = net->world.net.host[1] = net->world.net.host[2] = 1;
        for (unsigned i = 0; i < 3; i++)
            net_start(net, i, 1700000000000 + i, true);
        if (late > 0)
            net_for(net, 10 * SECOND);
        net_start(net, 3, 1700000010000, true);
        assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
        assert_int_equal(net->world.net.astray, 0);
        assert_int_equal(member_at(net, 1, 2).address.ip[0], 127);
        assert_int_equal(member_at(net, 3, 2).address.ip[0], 10);
        net_kill(net, 0);
        net_for(net, 5 * SECOND);
        assert_true(net_meshed(net));
        net_finish(net);
    }
}

static bool between_1_and_2(void *context, unsigned from, unsigned to, const uint8_t *bytes,
                            size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return (from == 1 && to == 2) || (from == 2 && to == 1);
}

/* A node in search of a member asks others for the address: a few packets a second, not a flood. */
static void test_searching_for_a_member_costs_few_packets(void **state)
{
    (void)state;
    struct net *net = net_new(8, 95);
    net->advertise = false;
    net->world.net.block = between_1_and_2;
    net_start_all(net);
    net_for(net, 10 * SECOND);
    uint64_t packets = net->world.net.packets;
    net_for(net, 10 * SECOND);
    /* Keep-alives; helpers' probes; hellos and questions. */
    assert_true(net->world.net.packets - packets <
                10 * (8 * 7 * 5 * 11 / 10 + 2 * (4 * 4 * 3 + 1 + 2 * 3)));
    net->world.net.block = NULL;
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    net_finish(net);
}

static bool seed_shared(const struct net *net, unsigned index)
{
    return net->nodes[index].gossip->seeds[0].shared;
}

/* A new router got the address of a dead router. The address counted as shared for ever, and
 * routers with only that address did not find the new router. */
static void test_a_reassigned_address_belongs_to_the_new_router(void **state)
{
    (void)state;
    struct net *net = net_new(4, 3);
    net->advertise = false;
    net->seeds = NET_SEEDS_ONE;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    net_kill(net, 0);
    net_for(net, 5 * SECOND);
    start_with_seed(net, 0, "another", 1);
    net_for(net, 20 * SECOND);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(net->nodes[i].gossip->live, 3);
        assert_false(seed_shared(net, i));
    }
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(net->nodes[i].gossip->seeds[0].node, gossip_node_id("another"));
    net_finish(net);
}

/* A seemingly shared address is asked now and then, and counts as a single router's again after a
 * while; a virtual address stays shared. */
static void test_a_shared_address_is_dialled_again(void **state)
{
    (void)state;
    struct net *net = net_new(3, 4);
    net->seeds = NET_SEEDS_ONE;
    net_start_all(net);
    assert_true(net_run(net, net->world.now_us + 2 * SECOND, net_meshed));
    for (unsigned i = 1; i < 3; i++)
        net->nodes[i].gossip->seeds[0].shared = true;
    net_for(net, 10 * 60 * (uint64_t)SECOND);
    assert_false(seed_shared(net, 1) || seed_shared(net, 2));
    assert_true(net_meshed(net));
    net_finish(net);
    net = net_new(4, 5);
    net->advertise = false;
    net->seeds = NET_SEEDS_VIRTUAL;
    net->world.net.virtual_ip = WORLD_VIRTUAL_EACH;
    net_start_all(net);
    unsigned shared = 0;
    for (unsigned minute = 0; minute < 30; minute++) {
        net_for(net, 60 * (uint64_t)SECOND);
        for (unsigned i = 0; i < 4; i++)
            shared += seed_shared(net, i);
    }
    assert_true(shared >= 115);
    net_finish(net);
}

/* The order of seeds changed, as with DNS, while a hello to this node itself was on the way back.
 * The hello then stood for whichever seed had the same number. */
static void test_a_returning_hello_is_matched_to_its_seed(void **state)
{
    (void)state;
    for (unsigned knock = 0; knock < 2; knock++) {
        struct net *net = net_new(2, 6);
        net->seeds = NET_SEEDS_NONE;
        net_start_all(net);
        struct gossip *g = net->nodes[0].gossip;
        struct gossip_address other = net->nodes[1].at->address;
        struct gossip_address at[] = {net->nodes[0].at->address, other};
        net_kill(net, 1);
        gossip_seeds(g, at, 2, net->world.now_us);
        if (knock)
            gossip_link_knock(g, &g->seeds[0]);
        else
            gossip_run(g, net->world.now_us);
        at[1] = at[0];
        at[0] = other;
        gossip_seeds(g, at, 2, net->world.now_us);
        net_for(net, 5 * SECOND);
        assert_int_equal(g->seeds[0].node, 0);
        assert_int_equal(g->seeds[1].node, g->self->node);
        net_finish(net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_mesh_survives_the_death_of_its_seed),
        cmocka_unit_test(test_a_shared_virtual_address_makes_a_mesh),
        cmocka_unit_test(test_two_halves_behind_a_virtual_address_find_each_other),
        cmocka_unit_test(test_any_connected_seeds_make_a_mesh),
        cmocka_unit_test(test_a_late_joiner_meets_all_nodes),
        cmocka_unit_test(test_a_node_restarted_at_another_address_is_found),
        cmocka_unit_test(test_unconfirmed_addresses_are_not_relayed),
        cmocka_unit_test(test_addresses_of_an_earlier_epoch_are_not_relayed),
        cmocka_unit_test(test_addresses_of_silent_nodes_are_not_relayed),
        cmocka_unit_test(test_a_router_learns_its_own_address),
        cmocka_unit_test(test_a_wrong_advertised_address_is_harmless),
        cmocka_unit_test(test_an_address_taken_by_another_router_is_forgotten),
        cmocka_unit_test(test_a_hint_does_not_replace_a_working_address),
        cmocka_unit_test(test_loopback_addresses_are_not_sent_to_other_machines),
        cmocka_unit_test(test_searching_for_a_member_costs_few_packets),
        cmocka_unit_test(test_a_reassigned_address_belongs_to_the_new_router),
        cmocka_unit_test(test_a_shared_address_is_dialled_again),
        cmocka_unit_test(test_a_returning_hello_is_matched_to_its_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
