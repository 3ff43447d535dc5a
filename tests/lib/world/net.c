#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "gossip/session.h"
#include "tests/lib/world/memory.h"
#include "tests/lib/world/world.h"

enum { DELAY_US = 300, REORDER_US = 20000, CLOGGED_US = 2000 };
enum { NARROW_BYTES = 150 }; /* a narrow link carries keep-alives, and no observations */
enum { OUTSIDE = 10, LOOPBACK = 127, TRANSLATED = 99, VIRTUAL = 100 };

void world_net_open(struct world *w)
{
    struct world_net *net = &w->net;
    *net = (struct world_net){.delay_min_us = DELAY_US, .delay_max_us = DELAY_US, .slow = 1};
    net->links = calloc((size_t)w->count * w->count, sizeof *net->links);
    net->host = calloc(w->count, sizeof *net->host);
    net->alias = calloc(w->count, sizeof *net->alias);
    net->pinned = calloc(w->count, sizeof *net->pinned);
    net->behind = calloc(w->count, sizeof *net->behind);
    net->region = calloc(w->count, sizeof *net->region);
    CHECK(net->links != NULL && net->host != NULL && net->alias != NULL && net->pinned != NULL &&
          net->behind != NULL && net->region != NULL);
}

void world_net_close(struct world *w)
{
    free(w->net.links);
    free(w->net.host);
    free(w->net.alias);
    free(w->net.pinned);
    free(w->net.behind);
    free(w->net.region);
}

void world_heal(struct world *w)
{
    for (size_t i = 0; i < (size_t)w->count * w->count; i++)
        w->net.links[i] = (struct world_link){.last_us = w->net.links[i].last_us};
}

/* --- addresses ------------------------------------------------------------------------------ */

struct gossip_address world_address(unsigned node, unsigned turn)
{
    struct gossip_address a = {.port = WORLD_PORT, .family = 4};
    a.ip[0] = OUTSIDE;
    a.ip[1] = (uint8_t)turn;
    a.ip[2] = (uint8_t)(node >> 8);
    a.ip[3] = (uint8_t)node;
    return a;
}

struct gossip_address world_virtual_address(void)
{
    return (struct gossip_address){.ip = {VIRTUAL, 0, 0, 1}, .port = WORLD_PORT, .family = 4};
}

bool world_address_equal(const struct gossip_address *a, const struct gossip_address *b)
{
    return a->port == b->port && a->family == b->family && memcmp(a->ip, b->ip, 4) == 0;
}

int world_address_node(const struct gossip_address *a)
{
    bool known = a->ip[0] == OUTSIDE || a->ip[0] == LOOPBACK || a->ip[0] == TRANSLATED;
    return a->family == 4 && a->port == WORLD_PORT && known ? a->ip[2] << 8 | a->ip[3] : -1;
}

static bool same_host(const struct world_net *net, unsigned a, unsigned b)
{
    return net->host[a] != 0 && net->host[a] == net->host[b];
}

static bool is_translated(const struct world_net *net, unsigned node, unsigned viewer)
{
    return net->translated != 0 && node == net->translated && viewer == net->translated_for;
}

struct gossip_address world_seen_at(const struct world *w, unsigned from, unsigned to)
{
    struct gossip_address a = w->nodes[from].address;
    if (same_host(&w->net, from, to))
        a.ip[0] = LOOPBACK;
    else if (is_translated(&w->net, from, to))
        a.ip[0] = TRANSLATED;
    else if (w->net.behind[from] != 0 && from != to) {
        a.ip[0] = TRANSLATED;
        a.ip[1] = w->net.behind[from];
    }
    return a;
}

/* The node reached by a packet to this address; -1: none. */
static int target_of(const struct world *w, unsigned from, const struct gossip_address *to)
{
    const struct world_net *net = &w->net;
    int number = world_address_node(to);
    if (number < 0 || (unsigned)number >= w->count)
        return -1;
    unsigned target = net->alias[number] != 0 ? net->alias[number] - 1u : (unsigned)number;
    if (net->behind[target] != 0 && from != target)
        return to->ip[0] == TRANSLATED && to->ip[1] == net->behind[target] ? (int)target : -1;
    if ((to->ip[0] == LOOPBACK && !same_host(net, from, target)) ||
        (to->ip[0] == TRANSLATED && !is_translated(net, target, from)))
        return -1;
    return (int)target;
}

/* The node behind the virtual address this time; a pinned node stays pinned even when down. */
static int virtual_target(struct world *w, unsigned from, bool fresh)
{
    struct world_net *net = &w->net;
    bool pinned = net->virtual_ip == WORLD_VIRTUAL_PINNED && !fresh;
    if (pinned && net->pinned[from] != 0)
        return net->pinned[from] - 1;
    unsigned target;
    do
        target = (unsigned)prng_below(&w->prng, w->count);
    while (!w->nodes[target].up);
    if (pinned)
        net->pinned[from] = (uint16_t)(target + 1);
    return (int)target;
}

void world_move(struct world *w, unsigned number, unsigned address)
{
    w->nodes[number].address = world_address(address, 0);
    w->net.alias[address] = (uint16_t)(number + 1);
    w->net.alias[number] = (uint16_t)(address + 1); /* the address has no node any more */
}

/* --- arriving ------------------------------------------------------------------------------- */

struct world_datagram *world_datagram_copy(const struct world_datagram *d)
{
    struct world_datagram *copy = world_alloc(NULL, sizeof *copy + d->len);
    memcpy(copy, d, sizeof *copy + d->len);
    return copy;
}

void world_deliver(struct world_node *n, struct world_datagram *d)
{
    const struct world_hooks *hooks = &n->world->hooks;
    if (hooks->deliver)
        hooks->deliver(hooks->context, n, d);
    else
        n->program->receive(n, d);
    d->delivered_to_life = n->life;
    if (hooks->stepped)
        hooks->stepped(hooks->context, n);
    world_wake_plan(n);
}

/* A moved node gets nothing at the old address. */
static bool is_there(const struct world_node *n, const struct gossip_address *target)
{
    return target->ip[0] != OUTSIDE || world_address_equal(target, &n->address);
}

int world_reached(const struct world *w, unsigned from, const struct gossip_address *to)
{
    int target = target_of(w, from, to);
    return target >= 0 && is_there(&w->nodes[target], to) ? target : -1;
}

static void arrive(void *context, struct world_event *e)
{
    struct world *w = context;
    struct world_datagram *d = e->object;
    struct world_node *n = &w->nodes[e->node];
    if (w->closing || !n->up || !is_there(n, &d->target)) {
        free(d);
        return;
    }
    if (n->paused_until_us > 0) {
        if (n->socket_count == WORLD_SOCKET_MAX)
            free(d);
        else
            n->socket[n->socket_count++] = d;
        return;
    }
    world_trace(w, hash_mix(d->len << 32 | (uint64_t)d->from << 16 | e->node) ^
                       hash64(&(struct hash_secret){{0}}, d->bytes, d->len));
    if (w->net.tap)
        w->net.tap(w->net.context, n, d);
    world_deliver(n, d);
    free(d);
}

void world_post(struct world *w, struct world_datagram *d, unsigned to, uint64_t at_us)
{
    world_queue_put(&w->queue, &(struct world_event){
                                   .at_us = at_us,
                                   .happen = arrive,
                                   .node = to,
                                   .object = d,
                               });
}

/* --- sending -------------------------------------------------------------------------------- */

uint64_t world_delay_us(struct world *w)
{
    const struct world_net *net = &w->net;
    if (net->delay_median_us == 0)
        return net->delay_min_us == net->delay_max_us
                   ? net->delay_min_us
                   : net->delay_min_us +
                         prng_below(&w->prng, net->delay_max_us - net->delay_min_us + 1);
    double z = -6;
    for (unsigned i = 0; i < 12; i++)
        z += prng_unit(&w->prng);
    return 20 + (uint64_t)((double)net->delay_median_us * exp(0.5 * z) * net->slow);
}

uint64_t world_way_us(struct world *w, unsigned from, unsigned to)
{
    return world_delay_us(w) + (w->net.region[from] != w->net.region[to] ? w->net.far_us : 0);
}

static void damage(struct world *w, struct world_datagram *d)
{
    uint64_t how = prng_below(&w->prng, 4);
    if (how == 0 && d->len > 1) {
        d->len = 1 + prng_below(&w->prng, d->len - 1);
    } else {
        uint64_t flips = 1 + prng_below(&w->prng, 3);
        /* Different bits, so that no flip undoes another. */
        uint64_t bit = prng_below(&w->prng, d->len * 8 - flips);
        for (uint64_t i = 0; i < flips; i++, bit++)
            d->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    d->damaged = true;
    w->net.damaged++;
}

static uint64_t arrival(struct world *w, unsigned from, unsigned to)
{
    struct world_link *link = world_link(w, from, to);
    uint64_t at = w->now_us + world_way_us(w, from, to);
    if (world_chance(w, w->net.reorder))
        at += prng_below(&w->prng, REORDER_US);
    if (at < link->clogged_until_us)
        at = link->clogged_until_us + prng_below(&w->prng, CLOGGED_US);
    if (w->net.ordered && at < link->last_us)
        at = link->last_us;
    link->last_us = at;
    return at;
}

static void send_from(struct world_node *from, bool fresh, const struct gossip_address *to,
                      const uint8_t *bytes, size_t len)
{
    struct world *w = from->world;
    struct world_net *net = &w->net;
    CHECK(len > 0 && len <= GOSSIP_DATAGRAM_MAX);
    net->packets++;
    net->bytes += len + WORLD_HEADERS;
    bool is_virtual = net->virtual_ip != WORLD_VIRTUAL_NONE && to->ip[0] == VIRTUAL;
    int found =
        is_virtual ? virtual_target(w, from->number, fresh) : target_of(w, from->number, to);
    net->astray += found < 0;
    if (net->missed && world_reached(w, from->number, to) < 0)
        net->missed(net->context, from->number, to, bytes);
    if (found < 0)
        return;
    unsigned target = (unsigned)found;
    if (net->block && net->block(net->context, from->number, target, bytes, len))
        return;
    struct world_link *link = world_link(w, from->number, target);
    if (link->cut || world_chance(w, net->loss))
        return;
    if (net->region[from->number] != net->region[target] && world_chance(w, net->far_loss))
        return;
    if (w->now_us < link->narrow_until_us && len > NARROW_BYTES && bytes[0] == GOSSIP_PACKET_DATA)
        return;
    struct world_datagram *d = world_alloc(NULL, sizeof *d + len);
    *d = (struct world_datagram){
        .from = from->number,
        .from_life = from->life,
        .source = world_seen_at(w, from->number, target),
        .target = *to,
        .len = len,
    };
    memcpy(d->bytes, bytes, len);
    if (fresh)
        d->source.port = (uint16_t)(WORLD_PORT + 1 + prng_below(&w->prng, 10000));
    else if (net->pinned[target] == from->number + 1)
        d->source = world_virtual_address();
    if (world_chance(w, net->duplicate))
        world_post(w, world_datagram_copy(d), target, arrival(w, from->number, target));
    if (world_chance(w, net->flip))
        damage(w, d);
    world_post(w, d, target, arrival(w, from->number, target));
}

void world_send(struct world_node *from, const struct gossip_address *to, const uint8_t *bytes,
                size_t len)
{
    send_from(from, false, to, bytes, len);
}

void world_knock(struct world_node *from, const struct gossip_address *to, const uint8_t *bytes,
                 size_t len)
{
    send_from(from, true, to, bytes, len);
}
