#include "tests/lib/gossip_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/wire.h"
#include "tests/lib/world/memory.h"

enum { ITEM_BYTES = 16, MS = 1000 };

/* --- the application -------------------------------------------------------------------------- */

static bool have_set(struct net_node *n, unsigned origin, uint32_t number)
{
    size_t bit = (size_t)origin * NET_ITEMS_MAX + number;
    bool had = n->have[bit / 8] >> (bit % 8) & 1;
    n->have[bit / 8] |= (uint8_t)(1u << (bit % 8));
    return !had;
}

bool net_has(const struct net *net, unsigned index, unsigned origin, uint32_t number)
{
    size_t bit = (size_t)origin * NET_ITEMS_MAX + number;
    return net->nodes[index].have[bit / 8] >> (bit % 8) & 1;
}

static size_t app_produce(void *context, uint64_t now_us, uint8_t *out, size_t max)
{
    struct net_node *n = context;
    (void)now_us;
    if (n->meltdown) {
        memset(out, 0xff, max);
        return max;
    }
    size_t len = n->pending.len < max / ITEM_BYTES * ITEM_BYTES ? n->pending.len
                                                                : max / ITEM_BYTES * ITEM_BYTES;
    if (n->item_bytes > 0 && len > 0) {
        /* An item per delta, of fixed size. */
        memcpy(out, n->pending.at, ITEM_BYTES);
        memset(out + ITEM_BYTES, 0xff, n->item_bytes - ITEM_BYTES);
        buf_consume(&n->pending, ITEM_BYTES);
        return n->item_bytes;
    }
    if (len > 0)
        memcpy(out, n->pending.at, len);
    buf_consume(&n->pending, len);
    return len;
}

static int app_apply(void *context, const struct gossip_origin *origin, struct slice delta,
                     uint64_t now_us)
{
    struct net_node *n = context;
    struct net *net = n->net;
    CHECK(origin->node != gossip_self(n->gossip) && origin->seq > 0);
    if (n->refuse > 0) {
        n->refuse--;
        return -2;
    }
    n->applied++;
    struct wire_reader r = wire_reader_of(delta.at, delta.len);
    while (wire_left(&r) >= ITEM_BYTES) {
        uint32_t from = wire_read_u32(&r);
        uint32_t number = wire_read_u32(&r);
        uint64_t made_us = wire_read_u64(&r);
        if (from == UINT32_MAX)
            continue;
        CHECK(from < net->world.count && number < NET_ITEMS_MAX);
        if (!have_set(n, from, number))
            continue;
        if (net->latencies_len == net->latencies_cap) {
            net->latencies_cap = net->latencies_cap * 2 + 1024;
            net->latencies =
                world_alloc(net->latencies, net->latencies_cap * sizeof net->latencies[0]);
        }
        net->latencies[net->latencies_len++] = now_us - made_us;
    }
    return 0;
}

static void app_member(void *context, const struct gossip_member *m, uint64_t now_us)
{
    struct net_node *n = context;
    (void)now_us;
    n->member_calls++;
    n->self_calls += m->self;
}

static void app_lost(void *context, uint64_t node, uint64_t now_us)
{
    struct net_node *n = context;
    (void)node;
    (void)now_us;
    n->lost++;
}

static void app_message(void *context, uint64_t peer, struct slice bytes, bool settled,
                        uint64_t now_us)
{
    struct net_node *n = context;
    (void)peer;
    (void)now_us;
    n->messages++;
    n->messages_settled += settled;
    n->message_bytes += bytes.len;
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 1);
    n->message_hash += hash64(&secret, bytes.at, bytes.len);
}

/* --- the program of a node -------------------------------------------------------------------- */

static void program_receive(struct world_node *at, struct world_datagram *d)
{
    struct net_node *n = at->process;
    net_inject(n->net, n->index, &d->source, d->bytes, d->len);
}

static void program_run(struct world_node *at)
{
    struct net_node *n = at->process;
    if (!n->paused)
        gossip_run(n->gossip, at->world->now_us);
}

static uint64_t program_due_us(const struct world_node *at)
{
    const struct net_node *n = at->process;
    return n->paused ? UINT64_MAX : gossip_due_us(n->gossip);
}

static const struct world_program program = {
    .receive = program_receive,
    .run = program_run,
    .due_us = program_due_us,
};

static void io_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    const struct net_node *n = context;
    CHECK(to->family == 4);
    world_send(n->at, to, bytes, len);
}

static void io_knock(void *context, const struct gossip_address *to, const uint8_t *bytes,
                     size_t len)
{
    const struct net_node *n = context;
    world_knock(n->at, to, bytes, len);
}

static void io_random(void *context, void *out, size_t len)
{
    const struct net_node *n = context;
    world_random(n->at, out, len);
}

/* --- nodes ------------------------------------------------------------------------------------ */

static void name_of(unsigned index, char out[32])
{
    snprintf(out, 32, "node-%03u", index);
}

uint64_t net_node(unsigned index)
{
    static uint64_t ids[NET_NODES_MAX]; /* cached, because every pair of nodes is looked up each
                                         * millisecond */
    CHECK(index < NET_NODES_MAX);
    if (ids[index] == 0) {
        char name[32];
        name_of(index, name);
        ids[index] = gossip_node_id(name);
    }
    return ids[index];
}

struct net *net_new(unsigned count, uint64_t seed)
{
    CHECK(count <= NET_NODES_MAX);
    struct net *net = calloc(1, sizeof *net);
    CHECK(net != NULL);
    world_open(&net->world, count, seed);
    net->world.net.delay_min_us = 100;
    net->world.net.delay_max_us = 300;
    net->advertise = true;
    for (unsigned i = 0; i < count; i++) {
        struct net_node *n = &net->nodes[i];
        n->net = net;
        n->index = i;
        n->at = &net->world.nodes[i];
        n->at->program = &program;
        n->at->process = n;
        n->have = calloc(count, NET_ITEMS_MAX / 8);
        CHECK(n->have != NULL);
    }
    return net;
}

void net_free(struct net *net)
{
    for (unsigned i = 0; i < net->world.count; i++) {
        gossip_destroy(net->nodes[i].gossip);
        buf_free(&net->nodes[i].pending);
        free(net->nodes[i].have);
    }
    world_close(&net->world);
    free(net->latencies);
    free(net);
}

int net_create(struct net *net, unsigned index, const struct gossip_config *config)
{
    struct net_node *n = &net->nodes[index];
    CHECK(n->gossip == NULL);
    struct gossip_app app = {.context = n,
                             .produce = app_produce,
                             .apply = app_apply,
                             .member = app_member,
                             .lost = app_lost,
                             .message = app_message};
    struct gossip_io io = {.context = n, .send = io_send, .knock = io_knock, .random = io_random};
    world_up(n->at);
    int status = gossip_create(&n->gossip, config, &n->at->keyring, &app, &io, net->world.now_us);
    if (status < 0) {
        world_down(n->at);
        return status;
    }
    unsigned first = net->seeds == NET_SEEDS_CHAIN && index > 0 ? index - 1 : 0;
    struct gossip_address seeds[2] = {world_seen_at(&net->world, first, index),
                                      world_address(1, 0)};
    if (net->seeds == NET_SEEDS_VIRTUAL)
        seeds[0] = world_virtual_address();
    static const unsigned counts[] = {2, 1, 1, 0, 1};
    gossip_seeds(n->gossip, seeds, counts[net->seeds], net->world.now_us);
    world_wake_plan(n->at);
    return 0;
}

void net_start(struct net *net, unsigned index, uint64_t epoch, bool fresh)
{
    struct net_node *n = &net->nodes[index];
    CHECK(n->gossip == NULL);
    if (fresh) {
        memset(n->have, 0, (size_t)net->world.count * NET_ITEMS_MAX / 8);
        buf_clear(&n->pending);
    }
    char name[32];
    name_of(index, name);
    struct gossip_config config = net->config;
    config.name = name;
    config.epoch = epoch;
    config.port = WORLD_PORT;
    if (net->advertise)
        config.address = n->at->address;
    CHECK(net_create(net, index, &config) == 0);
}

void net_start_all(struct net *net)
{
    for (unsigned i = 0; i < net->world.count; i++)
        net_start(net, i, net->world.wall_ms + world_ms(&net->world) + i, true);
}

struct net *net_new_meshed(unsigned count, uint64_t seed)
{
    struct net *net = net_new(count, seed);
    net_start_all(net);
    CHECK(net_run(net, net->world.now_us + 10000000, net_meshed));
    return net;
}

void net_finish(struct net *net)
{
    net_check(net);
    net_free(net);
}

void net_kill(struct net *net, unsigned index)
{
    gossip_destroy(net->nodes[index].gossip);
    net->nodes[index].gossip = NULL;
    world_down(net->nodes[index].at);
}

void net_inject(struct net *net, unsigned to, const struct gossip_address *from,
                const uint8_t *bytes, size_t len)
{
    struct net_node *n = &net->nodes[to];
    if (n->gossip == NULL || n->paused)
        return;
    gossip_datagram(n->gossip, from, bytes, len, net->world.now_us);
    world_wake_plan(n->at);
}

bool net_run(struct net *net, uint64_t until_us, bool (*done)(struct net *net))
{
    while (done != NULL && net->world.now_us < until_us) {
        uint64_t next_us = net->world.now_us + MS;
        world_run_until(&net->world, next_us < until_us ? next_us : until_us);
        if (done(net))
            return true;
    }
    world_run_until(&net->world, until_us);
    return false;
}

void net_for(struct net *net, uint64_t us)
{
    world_run(&net->world, us);
}

void net_item(struct net *net, unsigned index)
{
    struct net_node *n = &net->nodes[index];
    CHECK(n->made < NET_ITEMS_MAX);
    uint8_t bytes[ITEM_BYTES];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u32(&w, index);
    wire_write_u32(&w, n->made);
    wire_write_u64(&w, net->world.now_us);
    CHECK(buf_append(&n->pending, bytes, sizeof bytes) == 0);
    have_set(n, index, n->made++);
    if (n->paused)
        return;
    gossip_wake(n->gossip, net->world.now_us);
    world_wake_plan(n->at);
}

void net_items(struct net *net, unsigned items)
{
    for (unsigned i = 0; i < items; i++) {
        unsigned at;
        do
            at = (unsigned)prng_below(&net->world.prng, net->world.count);
        while (net->nodes[at].gossip == NULL || net->nodes[at].paused);
        net_item(net, at);
        net_for(net, prng_below(&net->world.prng, 10000));
    }
}

/* --- asking ----------------------------------------------------------------------------------- */

bool net_converged(struct net *net)
{
    size_t row = NET_ITEMS_MAX / 8;
    for (unsigned o = 0; o < net->world.count; o++) {
        if (net->nodes[o].gossip == NULL)
            continue;
        const uint8_t *own = net->nodes[o].have + o * row;
        for (unsigned i = 0; i < net->world.count; i++) {
            if (net->nodes[i].gossip != NULL && memcmp(net->nodes[i].have + o * row, own, row) != 0)
                return false;
        }
    }
    return true;
}

enum gossip_state net_state(const struct net *net, unsigned at, unsigned of)
{
    struct gossip_member m;
    if (gossip_member_find(net->nodes[at].gossip, net_node(of), net->world.now_us, &m) < 0)
        return GOSSIP_LEFT;
    return m.state;
}

bool net_meshed(struct net *net)
{
    for (unsigned i = 0; i < net->world.count; i++) {
        for (unsigned o = 0; o < net->world.count; o++) {
            if (net->nodes[i].gossip == NULL || net->nodes[o].gossip == NULL || i == o)
                continue;
            struct gossip_member m;
            if (gossip_member_find(net->nodes[i].gossip, net_node(o), net->world.now_us, &m) < 0 ||
                m.state != GOSSIP_ALIVE || !m.session)
                return false;
        }
    }
    return true;
}

struct gossip_stats net_stats(const struct net *net, unsigned index)
{
    struct gossip_stats stats;
    gossip_stats(net->nodes[index].gossip, &stats);
    return stats;
}

void net_check(const struct net *net)
{
    for (unsigned i = 0; i < net->world.count; i++)
        if (net->nodes[i].gossip != NULL)
            gossip_check(net->nodes[i].gossip);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t net_latency(struct net *net, double quantile)
{
    CHECK(net->latencies_len > 0);
    qsort(net->latencies, net->latencies_len, sizeof net->latencies[0], ascending);
    return net->latencies[(size_t)(quantile * (double)(net->latencies_len - 1))];
}
