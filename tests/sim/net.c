#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "gossip/session.h"
#include "tests/sim/sim.h"

enum {
    PORT = 7946,
    DELAY_MEDIAN_US = 150,
    CAPTURE_EVERY = 8,  /* one datagram in so many is kept for replay */
    NARROW_BYTES = 150, /* a narrow link carries keep-alives, and no observations */
};

void sim_net_open(struct sim_world *w)
{
    struct sim_net *net = &w->net;
    net->links = calloc((size_t)w->config.nodes * w->config.nodes, sizeof *net->links);
    CHECK(net->links != NULL);
    sim_net_heal(w);
}

void sim_net_close(struct sim_world *w)
{
    for (unsigned i = 0; i < w->net.captured_count; i++)
        free(w->net.captured[i]);
    free(w->net.links);
}

void sim_net_heal(struct sim_world *w)
{
    struct sim_net *net = &w->net;
    net->loss = w->config.loss;
    net->duplicate = net->reorder = net->flip = 0;
    net->slow = 1;
    net->ordered = w->config.profile == SIM_CALM;
    for (size_t i = 0; i < (size_t)w->config.nodes * w->config.nodes; i++) {
        net->links[i].cut = false;
        net->links[i].clogged_until_us = 0;
        net->links[i].narrow_until_us = 0;
    }
}

/* 10.turn.high.low: a node that comes back elsewhere has another turn. */
struct gossip_address sim_address(unsigned node, unsigned turn)
{
    struct gossip_address a = {.port = PORT, .family = 4};
    a.ip[0] = 10;
    a.ip[1] = (uint8_t)turn;
    a.ip[2] = (uint8_t)(node >> 8);
    a.ip[3] = (uint8_t)node;
    return a;
}

int sim_address_node(const struct gossip_address *a)
{
    if (a->family != 4 || a->ip[0] != 10 || a->port != PORT)
        return -1;
    return a->ip[2] << 8 | a->ip[3];
}

/* Lognormal around 0.15 ms, as within one data centre. */
uint64_t sim_net_delay_us(struct sim_world *w)
{
    double z = -6;
    for (unsigned i = 0; i < 12; i++)
        z += prng_unit(&w->prng);
    return 20 + (uint64_t)(DELAY_MEDIAN_US * exp(0.5 * z) * w->net.slow);
}

bool sim_address_equal(const struct gossip_address *a, const struct gossip_address *b)
{
    return a->port == b->port && a->family == b->family && memcmp(a->ip, b->ip, 4) == 0;
}

static struct sim_datagram *datagram_copy(const struct sim_datagram *d)
{
    struct sim_datagram *copy = malloc(sizeof *copy + d->len);
    CHECK(copy != NULL);
    memcpy(copy, d, sizeof *copy + d->len);
    return copy;
}

static void capture(struct sim_world *w, const struct sim_datagram *d)
{
    struct sim_net *net = &w->net;
    if (prng_below(&w->prng, CAPTURE_EVERY) != 0)
        return;
    unsigned at = net->captured_count;
    if (at < SIM_CAPTURED_MAX) {
        net->captured_count++;
    } else {
        at = (unsigned)prng_below(&w->prng, SIM_CAPTURED_MAX);
        free(net->captured[at]);
    }
    net->captured[at] = datagram_copy(d);
}

static void arrive(void *context, struct sim_event *e)
{
    struct sim_world *w = context;
    struct sim_datagram *d = e->object;
    struct sim_node *n = &w->nodes[e->node];
    bool there = n->up && sim_address_equal(&d->target, &n->address);
    if (w->closing || !there) {
        free(d);
        return;
    }
    if (n->paused_until_us > 0) {
        if (n->socket_count == SIM_SOCKET_MAX)
            free(d);
        else
            n->socket[n->socket_count++] = d;
        return;
    }
    sim_trace(w, hash_mix(d->len << 32 | (uint64_t)d->from << 16 | e->node) ^
                     hash64(&(struct hash_secret){{0}}, d->bytes, d->len));
    sim_node_receive(w, n, d);
    /* A wire-tapper keeps what went by undamaged; it is delivered to this life already. */
    if (!d->damaged && w->config.profile >= SIM_STRICT)
        capture(w, d);
    free(d);
}

static void post(struct sim_world *w, struct sim_datagram *d, unsigned to, uint64_t at_us)
{
    sim_queue_put(&w->queue, &(struct sim_event){
                                 .at_us = at_us,
                                 .happen = arrive,
                                 .node = to,
                                 .object = d,
                             });
}

static void damage(struct sim_world *w, struct sim_datagram *d)
{
    uint64_t how = prng_below(&w->prng, 4);
    if (how == 0 && d->len > 1) {
        d->len = 1 + prng_below(&w->prng, d->len - 1);
    } else {
        uint64_t flips = 1 + prng_below(&w->prng, 3);
        /* Different bits, so that they do not undo one another. */
        uint64_t bit = prng_below(&w->prng, d->len * 8 - flips);
        for (uint64_t i = 0; i < flips; i++, bit++)
            d->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    d->damaged = true;
    w->damaged++;
}

static uint64_t arrival(struct sim_world *w, struct sim_link *link)
{
    uint64_t at = w->now_us + sim_net_delay_us(w);
    if (w->net.reorder > 0 && sim_chance(w, w->net.reorder))
        at += prng_below(&w->prng, 20 * SIM_MS);
    if (at < link->clogged_until_us)
        at = link->clogged_until_us + prng_below(&w->prng, 2 * SIM_MS);
    if (w->net.ordered && at < link->last_us)
        at = link->last_us;
    link->last_us = at;
    return at;
}

void sim_net_send(struct sim_world *w, struct sim_node *from, const struct gossip_address *to,
                  const uint8_t *bytes, size_t len)
{
    struct sim_net *net = &w->net;
    CHECK(len > 0 && len <= GOSSIP_DATAGRAM_MAX);
    net->packets++;
    net->bytes += len + SIM_HEADERS;
    int target = sim_address_node(to);
    if (target < 0 || (unsigned)target >= w->config.nodes)
        return;
    struct sim_link *link = sim_link(w, from->number, (unsigned)target);
    if (link->cut || (net->loss > 0 && sim_chance(w, net->loss)))
        return;
    if (w->now_us < link->narrow_until_us && len > NARROW_BYTES && bytes[0] == GOSSIP_PACKET_DATA)
        return;
    struct sim_datagram *d = malloc(sizeof *d + len);
    CHECK(d != NULL);
    *d = (struct sim_datagram){
        .from = from->number,
        .from_life = from->life,
        .source = from->address,
        .target = *to,
        .len = len,
    };
    memcpy(d->bytes, bytes, len);
    if (net->duplicate > 0 && sim_chance(w, net->duplicate))
        post(w, datagram_copy(d), (unsigned)target, arrival(w, link));
    if (net->flip > 0 && sim_chance(w, net->flip))
        damage(w, d);
    post(w, d, (unsigned)target, arrival(w, link));
}

void sim_net_replay(struct sim_world *w)
{
    struct sim_net *net = &w->net;
    if (net->captured_count == 0)
        return;
    const struct sim_datagram *d = net->captured[prng_below(&w->prng, net->captured_count)];
    struct sim_datagram *copy = datagram_copy(d);
    /* Sometimes from elsewhere: whoever replays is seldom where the packet came from. */
    if (prng_below(&w->prng, 4) == 0)
        copy->source = sim_address((unsigned)prng_below(&w->prng, w->config.nodes), 250);
    w->replays++;
    post(w, copy, (unsigned)sim_address_node(&copy->target), w->now_us + sim_net_delay_us(w));
}

void sim_net_garbage(struct sim_world *w, unsigned to)
{
    size_t len = 1 + prng_below(&w->prng, GOSSIP_DATAGRAM_MAX);
    struct sim_datagram *d = malloc(sizeof *d + len);
    CHECK(d != NULL);
    *d = (struct sim_datagram){
        .source = sim_address((unsigned)prng_below(&w->prng, w->config.nodes), 0),
        .target = w->nodes[to].address,
        .damaged = true,
        .len = len,
    };
    for (size_t i = 0; i < len; i++)
        d->bytes[i] = (uint8_t)prng_next(&w->prng);
    if (prng_below(&w->prng, 2) == 0)
        d->bytes[0] = (uint8_t)prng_below(&w->prng, 6); /* looks like one of the packet types */
    w->garbage++;
    post(w, d, to, w->now_us + sim_net_delay_us(w));
}
