/* No memory: two routers that meet, of which one takes the other's state, and then choose. */
#include "tests/lib/failmalloc.h"

#include "base/check.h"
#include "base/err.h"
#include "base/prng.h"
#include "node/cluster/replication.h"
#include "node/route/share.h"
#include "tests/lib/router_help.h"

enum { NODES = 2, STEP_US = 1000, DELAY_US = 300, PACKETS_MAX = 512, CALLS_MAX = 8 };
#define SECOND UINT64_C(1000000)

struct world_node {
    unsigned number;
    struct node *node;
};

static struct {
    struct world_node node[NODES];
    struct gossip_keyring keyring;
    struct prng prng;
    uint64_t now_us;
    struct packet {
        uint64_t at_us;
        unsigned to;
        size_t len;
        uint8_t bytes[GOSSIP_DATAGRAM_MAX];
    } packet[PACKETS_MAX];
    unsigned packets;
    struct call {
        bool open;
        unsigned client;
        uint32_t id;
        uint8_t kind;
        size_t len;
        char request[4096];
    } call[CALLS_MAX];
} world;

static struct gossip_address address_of(unsigned number)
{
    return (struct gossip_address){
        .ip = {10, 0, 0, (uint8_t)(1 + number)}, .port = 7000, .family = 4};
}

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    (void)context;
    assert_true(world.packets < PACKETS_MAX);
    struct packet *p = &world.packet[world.packets++];
    *p = (struct packet){.at_us = world.now_us + DELAY_US, .to = to->ip[3] - 1u, .len = len};
    memcpy(p->bytes, bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    (void)context;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)prng_next(&world.prng);
}

static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    const struct world_node *n = context;
    (void)to;
    for (unsigned i = 0; i < CALLS_MAX; i++) {
        struct call *c = &world.call[i];
        if (c->open)
            continue;
        *c = (struct call){
            .open = true, .client = n->number, .id = id, .kind = kind, .len = request.len};
        assert_true(request.len <= sizeof c->request);
        if (request.len > 0)
            memcpy(c->request, request.at, request.len);
        return 0;
    }
    return ERR_FULL;
}

static int start(unsigned number)
{
    struct world_node *n = &world.node[number];
    n->number = number;
    failmalloc_spare(true);
    struct node_config config = config_of("cache_aware");
    failmalloc_spare(false);
    config.state.names_max = 16; /* quick to make and to check */
    config.state.replicas_max = crdt_registry_slots(config.state.names_max);
    config.state.index_bytes = 4 << 20;
    config.state.wall_ms = 1700000000000 + world.now_us / 1000 + number;
    config.keyring = &world.keyring;
    config.replication.gossip.name = number == 0 ? "a" : "b";
    config.replication.gossip.address = address_of(number);
    config.replication.gossip.ring_bytes = 1 << 18;
    config.replication.has_seeds = number > 0;
    struct node_replication_io io = {
        .context = n, .send = on_send, .random = on_random, .call = on_call};
    int err = node_create(&n->node, &config, &io, world.now_us);
    if (err == 0) {
        struct gossip_address other = address_of(1 - number);
        gossip_seeds(node_replication_gossip(n->node->replication), &other, 1, world.now_us);
    }
    return err;
}

static void serve(struct call *c)
{
    struct node_replication *client = world.node[c->client].node->replication;
    struct node_replication *server = world.node[1 - c->client].node->replication;
    struct node_serve *s = NULL;
    struct buf chunk = {0};
    int err =
        node_replication_serve(server, c->kind, slice_of(c->request, c->len), world.now_us, &s);
    bool opened = err == 0;
    while (err == 0) {
        int more = node_replication_serve_next(server, s, &chunk);
        if (more <= 0) {
            err = more;
            break;
        }
        err = node_replication_answer(client, c->id, buf_slice(&chunk), world.now_us);
        buf_clear(&chunk);
    }
    if (opened)
        node_replication_serve_end(s);
    c->open = false;
    node_replication_answered(client, c->id, err, world.now_us);
    buf_free(&chunk);
}

static void run(uint64_t us)
{
    for (uint64_t end = world.now_us + us; world.now_us < end; world.now_us += STEP_US) {
        unsigned count = world.packets;
        unsigned kept = 0;
        for (unsigned i = 0; i < count; i++) {
            struct packet p = world.packet[i];
            if (p.at_us > world.now_us)
                continue;
            world.packet[i].len = 0;
            struct gossip_address from = address_of(1 - p.to);
            node_replication_datagram(world.node[p.to].node->replication, &from, p.bytes, p.len,
                                      world.now_us);
        }
        for (unsigned i = 0; i < world.packets; i++)
            if (world.packet[i].len > 0)
                world.packet[kept++] = world.packet[i];
        world.packets = kept;
        for (unsigned i = 0; i < CALLS_MAX; i++)
            if (world.call[i].open)
                serve(&world.call[i]);
        for (unsigned i = 0; i < NODES; i++) {
            if (world.now_us % SECOND == 0)
                node_router_tick(world.node[i].node->router, world.now_us / 1000);
            node_replication_run(world.node[i].node->replication, world.now_us);
        }
    }
}

static void use(unsigned number, uint64_t seed)
{
    struct node_router *r = world.node[number].node->router;
    int at = node_router_name(r, SLICE("host-0:8000"), NODE_ENGINE_VLLM);
    if (at < 0)
        at = node_router_replica_find(r, SLICE("host-0:8000"));
    if (at < 0)
        return;
    node_router_probed(r, (unsigned)at, true, false, world.now_us / 1000);
    struct node_request request = request_of(prompt(seed, 4000));
    struct node_decision d;
    if (node_router_place(r, &request, NULL, world.now_us / 1000, &d) == 0)
        done(r, d, world.now_us / 1000);
}

static void ignore_answers(void *context, struct slice json)
{
    (void)context, (void)json;
}

static void look(unsigned number)
{
    struct node_replication *n = world.node[number].node->replication;
    struct buf text = {0};
    DISCARD(node_replication_members_json(n, world.now_us, &text));
    DISCARD(node_replication_digests_json(n, 0, &text));
    DISCARD(node_replication_stats_json(n, world.now_us, &text));
    struct prometheus metrics = prometheus_of(&text, "grapevine_");
    node_replication_metrics(n, world.now_us, &metrics);
    DISCARD(prometheus_finish(&metrics));
    DISCARD(node_replication_ask(n, NODE_CALL_DIGESTS, slice_of("", 0), SECOND, world.now_us,
                                 ignore_answers, NULL));
    buf_free(&text);
}

static bool settled(void)
{
    struct crdt_digest d[NODES];
    for (unsigned i = 0; i < NODES; i++) {
        if (!node_replication_ready(world.node[i].node->replication))
            return false;
        crdt_state_digest(node_state_crdt(world.node[i].node->state), 0, &d[i]);
    }
    return d[0].registry == d[1].registry && d[0].index == d[1].index;
}

static void two_routers(bool may_fail)
{
    memset(&world, 0, sizeof world);
    prng_seed(&world.prng, 3);
    gossip_keyring_insecure(&world.keyring);
    world.now_us = 5000 * SECOND;
    int err = start(0);
    if (err == 0) {
        use(0, 1);
        err = start(1);
    }
    assert_true(err == 0 || (may_fail && err == ERR_NOMEM));
    if (err == 0) {
        run(SECOND);
        use(1, 2);
        run(SECOND / 2);
        look(0);
        run(SECOND / 2);
        failmalloc_enough();
        for (unsigned i = 0; i < NODES; i++)
            use(i, 3 + i);
        for (unsigned i = 0; i < 40 && !settled(); i++)
            run(SECOND / 4);
        assert_true(settled());
        for (unsigned i = 0; i < NODES; i++)
            node_check(world.node[i].node);
    }
    for (unsigned i = 0; i < NODES; i++)
        node_destroy(world.node[i].node);
}

static void test_two_routers(void **state)
{
    (void)state;
    print_message("%u allocations\n", failmalloc_each(two_routers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_routers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
