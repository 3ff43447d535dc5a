#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/lib/world/world.h"

enum { TICK_US = 1000000, CHECK_TICKS = 8 };

/* --- the program ---------------------------------------------------------------------------- */

static void router_receive(struct world_node *n, struct world_datagram *d)
{
    node_replication_datagram(n->node->replication, &d->source, d->bytes, d->len, world_mono_us(n));
}

static void router_run(struct world_node *n)
{
    if (n->node->replication)
        node_replication_run(n->node->replication, world_mono_us(n));
}

static uint64_t router_due_us(const struct world_node *n)
{
    return n->node->replication ? node_replication_due_us(n->node->replication) : UINT64_MAX;
}

static void router_late(struct world_node *n, uint64_t late_us)
{
    gossip_late(world_gossip(n), late_us, world_mono_us(n));
}

const struct world_program world_router = {
    .receive = router_receive,
    .run = router_run,
    .due_us = router_due_us,
    .late = router_late,
};

/* --- calls into the router's shell ------------------------------------------------------------ */

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    world_send(context, to, bytes, len);
}

static void on_knock(void *context, const struct gossip_address *to, const uint8_t *bytes,
                     size_t len)
{
    world_knock(context, to, bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    world_random(context, out, len);
}

static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    return world_call_open(context, id, to, kind, request);
}

static void on_replica(void *context, unsigned replica, bool present)
{
    struct world_node *n = context;
    n->has[replica] = present;
    if (n->world->hooks.replica)
        n->world->hooks.replica(n->world->hooks.context, n, replica, present);
}

static void on_event(void *context, enum node_replication_event event, struct slice member,
                     int64_t value, struct slice detail)
{
    struct world_node *n = context;
    n->events[event]++;
    (void)slice_to_cstr(detail, n->detail[event], sizeof n->detail[event]);
    if (n->world->hooks.event)
        n->world->hooks.event(n->world->hooks.context, n, event, member, value, detail);
}

/* --- life ----------------------------------------------------------------------------------- */

/* The first nodes are everybody's seeds, by names for their present addresses. */
static void seeds_resolve(struct world_node *n)
{
    struct world *w = n->world;
    struct gossip_address seeds[WORLD_SEEDS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < w->seeds && i < w->count; i++) {
        if (i != n->number)
            seeds[count++] =
                w->net.behind[i] != 0 ? world_seen_at(w, i, n->number) : w->nodes[i].address;
    }
    gossip_seeds(world_gossip(n), seeds, count, world_mono_us(n));
}

static void tick(void *context, struct world_event *e)
{
    struct world *w = context;
    struct world_node *n = &w->nodes[e->node];
    if (w->closing || !n->up || n->life != e->a)
        return;
    if (n->paused_until_us == 0) {
        uint64_t now_ms = world_mono_us(n) / 1000;
        node_state_wall(n->node->state, world_wall_ms(n), now_ms);
        node_router_tick(n->node->router, now_ms);
        if (w->checks && ++n->ticks % CHECK_TICKS == 0)
            node_check(n->node);
        if (n->node->replication)
            seeds_resolve(n);
        if (w->hooks.ticked)
            w->hooks.ticked(w->hooks.context, n);
        world_touch(n);
    }
    world_put(w, TICK_US, e);
}

int world_try_start(struct world *w, unsigned number)
{
    struct world_node *n = &w->nodes[number];
    world_up(n);
    memset(n->events, 0, sizeof n->events);
    memset(n->has, 0, sizeof n->has);
    struct node_replication_io io = {
        .context = n,
        .send = on_send,
        .knock = on_knock,
        .random = on_random,
        .call = on_call,
        .event = on_event,
    };
    n->config.state.wall_ms = world_wall_ms(n);
    n->config.replication.gossip.name = n->name;
    n->config.replication.gossip.port = WORLD_PORT;
    n->config.replication.gossip.address =
        n->unadvertised ? (struct gossip_address){0} : n->address;
    int err = node_create(&n->node, &n->config, &io, world_mono_us(n));
    if (err != ERR_OK) {
        world_down(n);
        return err;
    }
    node_router_watch(n->node->router, on_replica, NULL, n);
    if (n->node->replication)
        seeds_resolve(n);
    world_trace(w, (uint64_t)number << 32 | n->life);
    world_put(w, prng_below(&w->prng, TICK_US),
              &(struct world_event){.happen = tick, .node = number, .a = n->life});
    world_wake_plan(n);
    return ERR_OK;
}

void world_start(struct world *w, unsigned number)
{
    CHECK(world_try_start(w, number) == ERR_OK);
}

void world_kill(struct world *w, unsigned number)
{
    struct world_node *n = &w->nodes[number];
    if (!n->up)
        return;
    world_calls_of_node_end(n);
    node_destroy(n->node);
    n->node = NULL;
    world_down(n);
}

static void gone(void *context, struct world_event *e)
{
    struct world *w = context;
    struct world_node *n = &w->nodes[e->node];
    if (!w->closing && n->up && n->life == e->a)
        world_kill(w, e->node);
}

void world_leave(struct world *w, unsigned number)
{
    struct world_node *n = &w->nodes[number];
    n->leaving = true;
    gossip_leave(world_gossip(n), world_mono_us(n));
    world_touch(n);
    world_put(w, WORLD_LEAVE_US,
              &(struct world_event){.happen = gone, .node = number, .a = n->life});
}
