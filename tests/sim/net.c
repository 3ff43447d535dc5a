/* The behaviour of the network in a run, and an eavesdropper. */
#include <stdlib.h>

#include "base/check.h"
#include "gossip/session.h"
#include "tests/sim/sim.h"

enum {
    DELAY_MEDIAN_US = 150,
    CAPTURE_EVERY = 8, /* 1 datagram in CAPTURE_EVERY is kept for replay */
    ELSEWHERE = 250,   /* turn of the addresses at which no node ever is */
};

void sim_net_open(struct sim_world *w)
{
    w->world.net.delay_median_us = DELAY_MEDIAN_US;
    w->world.net.missed = sim_heard_missed;
    w->world.net.context = w;
    sim_net_heal(w);
}

void sim_net_close(struct sim_world *w)
{
    for (unsigned i = 0; i < w->captured_count; i++)
        free(w->captured[i]);
}

void sim_net_heal(struct sim_world *w)
{
    struct world_net *net = &w->world.net;
    net->loss = w->config.loss;
    net->duplicate = net->reorder = net->flip = 0;
    net->slow = 1;
    net->ordered = w->config.profile == SIM_CALM;
    world_heal(&w->world);
}

void sim_net_capture(struct sim_world *w, const struct world_datagram *d)
{
    /* Every hello, since they are few. */
    if (d->bytes[0] != GOSSIP_PACKET_HELLO && prng_below(&w->world.prng, CAPTURE_EVERY) != 0)
        return;
    unsigned at = w->captured_count;
    if (at < SIM_CAPTURED_MAX) {
        w->captured_count++;
    } else {
        at = (unsigned)prng_below(&w->world.prng, SIM_CAPTURED_MAX);
        free(w->captured[at]);
    }
    w->captured[at] = world_datagram_copy(d);
}

static void post(struct sim_world *w, struct world_datagram *d)
{
    world_post(&w->world, d, (unsigned)world_address_node(&d->target),
               w->world.now_us + world_delay_us(&w->world));
}

void sim_net_replay(struct sim_world *w)
{
    if (w->captured_count == 0)
        return;
    const struct world_datagram *d = w->captured[prng_below(&w->world.prng, w->captured_count)];
    struct world_datagram *copy = world_datagram_copy(d);
    /* Sometimes from another address: an attacker who replays is seldom where the packet came
     * from. */
    if (prng_below(&w->world.prng, 4) == 0)
        copy->source =
            world_address((unsigned)prng_below(&w->world.prng, w->config.nodes), ELSEWHERE);
    w->replays++;
    post(w, copy);
}

void sim_net_garbage(struct sim_world *w, unsigned to)
{
    size_t len = 1 + prng_below(&w->world.prng, GOSSIP_DATAGRAM_MAX);
    struct world_datagram *d = malloc(sizeof *d + len);
    CHECK(d != NULL);
    *d = (struct world_datagram){
        .source = world_address((unsigned)prng_below(&w->world.prng, w->config.nodes), 0),
        .target = w->world.nodes[to].address,
        .damaged = true,
        .len = len,
    };
    for (size_t i = 0; i < len; i++)
        d->bytes[i] = (uint8_t)prng_next(&w->world.prng);
    if (prng_below(&w->world.prng, 2) == 0)
        d->bytes[0] = (uint8_t)prng_below(&w->world.prng, 6); /* looks like a packet type */
    w->garbage++;
    post(w, d);
}
