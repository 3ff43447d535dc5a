#include "tests/lib/gossip_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/wire.h"

enum { LEAVES = 1024, ITEM_BYTES = 16 };

/* --- who is due ------------------------------------------------------------------------------- */

static void due_set(struct net *net, unsigned index, uint64_t due)
{
    unsigned i = LEAVES + index;
    net->due[i] = due;
    while (i > 1) {
        i /= 2;
        uint64_t a = net->due[2 * i];
        uint64_t b = net->due[2 * i + 1];
        net->due[i] = a < b ? a : b;
    }
}

static void due_refresh(struct net *net, unsigned index)
{
    const struct net_node *n = &net->nodes[index];
    due_set(net, index, n->gossip == NULL || n->paused ? UINT64_MAX : gossip_due_us(n->gossip));
}

static unsigned due_first(const struct net *net)
{
    unsigned i = 1;
    while (i < LEAVES)
        i = net->due[2 * i] <= net->due[2 * i + 1] ? 2 * i : 2 * i + 1;
    return i - LEAVES;
}

/* --- packets on their way -------------------------------------------------------------------- */

static bool before(const struct net_packet *a, const struct net_packet *b)
{
    return a->at_us < b->at_us || (a->at_us == b->at_us && a->serial < b->serial);
}

static void heap_push(struct net *net, struct net_packet packet)
{
    if (net->heap_len == net->heap_cap) {
        net->heap_cap = net->heap_cap * 2 + 1024;
        net->heap = realloc(net->heap, net->heap_cap * sizeof *net->heap);
        CHECK(net->heap != NULL);
    }
    size_t i = net->heap_len++;
    while (i > 0 && before(&packet, &net->heap[(i - 1) / 2])) {
        net->heap[i] = net->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    net->heap[i] = packet;
}

static struct net_packet heap_pop(struct net *net)
{
    struct net_packet top = net->heap[0];
    struct net_packet last = net->heap[--net->heap_len];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= net->heap_len)
            break;
        if (child + 1 < net->heap_len && before(&net->heap[child + 1], &net->heap[child]))
            child++;
        if (!before(&net->heap[child], &last))
            break;
        net->heap[i] = net->heap[child];
        i = child;
    }
    net->heap[i] = last;
    net->heap[net->heap_len].bytes = NULL; /* the caller's now */
    return top;
}

static struct gossip_address address_of(unsigned index)
{
    struct gossip_address a = {.port = 7000, .family = 4};
    a.ip[0] = 10;
    a.ip[2] = (uint8_t)(index >> 8);
    a.ip[3] = (uint8_t)index;
    return a;
}

/* Where node `from` is, seen from node `to`. */
static struct gossip_address seen_at(const struct net *net, unsigned from, unsigned to)
{
    struct gossip_address a = net->nodes[from].address;
    if (net->host[from] != 0 && net->host[from] == net->host[to])
        a.ip[0] = 127;
    else if (net->translated != 0 && from == net->translated && to == net->translated_for)
        a.ip[0] = 99;
    return a;
}

/* Where a packet to that address arrives; -1: nowhere. */
static int target_of(const struct net *net, unsigned from, const struct gossip_address *to)
{
    unsigned target = (unsigned)to->ip[2] << 8 | to->ip[3];
    if (target >= net->count)
        return -1;
    if (net->alias[target] != 0)
        target = net->alias[target] - 1u;
    bool local = net->host[from] != 0 && net->host[from] == net->host[target];
    bool translated = target == net->translated && from == net->translated_for;
    if ((to->ip[0] == 127 && !local) || (to->ip[0] == 99 && !translated))
        return -1;
    return (int)target;
}

static void io_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    struct net_node *n = context;
    struct net *net = n->net;
    CHECK(len > 0 && len <= GOSSIP_DATAGRAM_MAX && to->family == 4);
    int found = target_of(net, n->index, to);
    net->packets++;
    net->bytes += len;
    net->astray += found < 0;
    if (found < 0)
        return;
    unsigned target = (unsigned)found;
    if (net->block != NULL && net->block(net->block_context, n->index, target, bytes, len))
        return;
    unsigned copies = net->duplicate > 0 && prng_unit(&net->prng) < net->duplicate ? 2 : 1;
    for (unsigned i = 0; i < copies; i++) {
        if (net->loss > 0 && prng_unit(&net->prng) < net->loss)
            continue;
        uint64_t delay =
            net->delay_min_us + prng_below(&net->prng, net->delay_max_us - net->delay_min_us + 1);
        struct net_packet p = {.at_us = net->now_us + delay,
                               .serial = net->serial++,
                               .to = (uint16_t)target,
                               .len = (uint16_t)len,
                               .from = seen_at(net, n->index, target),
                               .bytes = malloc(len)};
        CHECK(p.bytes != NULL);
        memcpy(p.bytes, bytes, len);
        heap_push(net, p);
    }
}

static void io_random(void *context, void *out, size_t len)
{
    struct net_node *n = context;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)prng_next(&n->net->prng);
}

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
        /* One item per delta, of a certain size. */
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
        CHECK(from < net->count && number < NET_ITEMS_MAX);
        if (!have_set(n, from, number))
            continue;
        if (net->latencies_len == net->latencies_cap) {
            net->latencies_cap = net->latencies_cap * 2 + 1024;
            net->latencies = realloc(net->latencies, net->latencies_cap * sizeof net->latencies[0]);
            CHECK(net->latencies != NULL);
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

/* --- nodes ------------------------------------------------------------------------------------ */

static void name_of(unsigned index, char out[32])
{
    snprintf(out, 32, "node-%03u", index);
}

uint64_t net_node(unsigned index)
{
    char name[32];
    name_of(index, name);
    return gossip_node_id(name);
}

struct net *net_new(unsigned count, uint64_t seed)
{
    CHECK(count <= NET_NODES_MAX);
    struct net *net = calloc(1, sizeof *net);
    CHECK(net != NULL);
    net->count = count;
    net->now_us = 1000000;
    net->delay_min_us = 100;
    net->delay_max_us = 300;
    net->advertise = true;
    prng_seed(&net->prng, seed);
    memset(net->due, 0xff, sizeof net->due);
    for (unsigned i = 0; i < count; i++) {
        struct net_node *n = &net->nodes[i];
        n->net = net;
        n->index = i;
        n->address = address_of(i);
        gossip_keyring_insecure(&n->keyring);
        n->have = calloc(count, NET_ITEMS_MAX / 8);
        CHECK(n->have != NULL);
    }
    return net;
}

void net_free(struct net *net)
{
    for (unsigned i = 0; i < net->count; i++) {
        gossip_destroy(net->nodes[i].gossip);
        buf_free(&net->nodes[i].pending);
        free(net->nodes[i].have);
    }
    while (net->heap_len > 0)
        free(heap_pop(net).bytes);
    free(net->heap);
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
    struct gossip_io io = {.context = n, .send = io_send, .random = io_random};
    int status = gossip_create(&n->gossip, config, &n->keyring, &app, &io, net->now_us);
    if (status < 0)
        return status;
    unsigned first = net->seeds == NET_SEEDS_CHAIN && index > 0 ? index - 1 : 0;
    struct gossip_address seeds[2] = {seen_at(net, first, index), address_of(1)};
    static const unsigned counts[] = {2, 1, 1, 0};
    gossip_seeds(n->gossip, seeds, counts[net->seeds], net->now_us);
    due_refresh(net, index);
    return 0;
}

void net_start(struct net *net, unsigned index, uint64_t epoch, bool fresh)
{
    struct net_node *n = &net->nodes[index];
    CHECK(n->gossip == NULL);
    if (fresh) {
        memset(n->have, 0, (size_t)net->count * NET_ITEMS_MAX / 8);
        buf_clear(&n->pending);
    }
    char name[32];
    name_of(index, name);
    struct gossip_config config = net->config;
    config.name = name;
    config.epoch = epoch;
    if (net->advertise)
        config.address = n->address;
    CHECK(net_create(net, index, &config) == 0);
}

void net_start_all(struct net *net)
{
    for (unsigned i = 0; i < net->count; i++)
        net_start(net, i, 1700000000000 + net->now_us / 1000 + i, true);
}

struct net *net_new_meshed(unsigned count, uint64_t seed)
{
    struct net *net = net_new(count, seed);
    net_start_all(net);
    CHECK(net_run(net, net->now_us + 10000000, net_meshed));
    return net;
}

void net_finish(struct net *net)
{
    net_check(net);
    net_free(net);
}

void net_alias(struct net *net, unsigned address, unsigned index)
{
    net->nodes[index].address = address_of(address);
    net->alias[address] = (uint16_t)(index + 1);
    net->alias[index] = (uint16_t)(address + 1); /* nobody is there any more */
}

void net_kill(struct net *net, unsigned index)
{
    gossip_destroy(net->nodes[index].gossip);
    net->nodes[index].gossip = NULL;
    due_refresh(net, index);
}

void net_inject(struct net *net, unsigned to, const struct gossip_address *from,
                const uint8_t *bytes, size_t len)
{
    struct net_node *n = &net->nodes[to];
    if (n->gossip == NULL || n->paused)
        return;
    gossip_datagram(n->gossip, from, bytes, len, net->now_us);
    due_refresh(net, to);
}

bool net_run(struct net *net, uint64_t until_us, bool (*done)(struct net *net))
{
    uint64_t asked_us = net->now_us;
    for (;;) {
        uint64_t packet_us = net->heap_len > 0 ? net->heap[0].at_us : UINT64_MAX;
        uint64_t next = packet_us < net->due[1] ? packet_us : net->due[1];
        if (next > until_us)
            break;
        if (next > net->now_us)
            net->now_us = next;
        if (net->heap_len > 0 && packet_us <= net->due[1]) {
            struct net_packet p = heap_pop(net);
            if (net->tap != NULL)
                net->tap(net->tap_context, p.to, &p.from, p.bytes, p.len);
            net_inject(net, p.to, &p.from, p.bytes, p.len);
            free(p.bytes);
        } else {
            unsigned index = due_first(net);
            gossip_run(net->nodes[index].gossip, net->now_us);
            due_refresh(net, index);
        }
        if (done != NULL && net->now_us - asked_us >= 1000) {
            asked_us = net->now_us;
            if (done(net))
                return true;
        }
    }
    net->now_us = until_us;
    return done != NULL && done(net);
}

void net_for(struct net *net, uint64_t us)
{
    net_run(net, net->now_us + us, NULL);
}

void net_item(struct net *net, unsigned index)
{
    struct net_node *n = &net->nodes[index];
    CHECK(n->made < NET_ITEMS_MAX);
    uint8_t bytes[ITEM_BYTES];
    struct wire_writer w = wire_writer_of(bytes, sizeof bytes);
    wire_write_u32(&w, index);
    wire_write_u32(&w, n->made);
    wire_write_u64(&w, net->now_us);
    CHECK(buf_append(&n->pending, bytes, sizeof bytes) == 0);
    have_set(n, index, n->made++);
    if (n->paused)
        return;
    gossip_wake(n->gossip, net->now_us);
    due_refresh(net, index);
}

void net_items(struct net *net, unsigned items)
{
    for (unsigned i = 0; i < items; i++) {
        unsigned at;
        do
            at = (unsigned)prng_below(&net->prng, net->count);
        while (net->nodes[at].gossip == NULL || net->nodes[at].paused);
        net_item(net, at);
        net_for(net, prng_below(&net->prng, 10000));
    }
}

/* --- asking ----------------------------------------------------------------------------------- */

bool net_converged(struct net *net)
{
    size_t row = NET_ITEMS_MAX / 8;
    for (unsigned o = 0; o < net->count; o++) {
        if (net->nodes[o].gossip == NULL)
            continue;
        const uint8_t *own = net->nodes[o].have + o * row;
        for (unsigned i = 0; i < net->count; i++) {
            if (net->nodes[i].gossip != NULL && memcmp(net->nodes[i].have + o * row, own, row) != 0)
                return false;
        }
    }
    return true;
}

enum gossip_state net_state(const struct net *net, unsigned at, unsigned of)
{
    struct gossip_member m;
    if (gossip_member_find(net->nodes[at].gossip, net_node(of), net->now_us, &m) < 0)
        return GOSSIP_LEFT;
    return m.state;
}

bool net_meshed(struct net *net)
{
    for (unsigned i = 0; i < net->count; i++) {
        for (unsigned o = 0; o < net->count; o++) {
            if (net->nodes[i].gossip == NULL || net->nodes[o].gossip == NULL || i == o)
                continue;
            struct gossip_member m;
            if (gossip_member_find(net->nodes[i].gossip, net_node(o), net->now_us, &m) < 0 ||
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
    for (unsigned i = 0; i < net->count; i++)
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
