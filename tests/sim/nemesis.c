/* Troubles. Each ends by itself, and sim_trouble_end() ends them all. */
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "tests/sim/sim.h"

enum {
    AHEAD_US = 10000000, /* enough to be ready alone */
    REJOIN_TRY_MS = 50,  /* interval between checks that all have the node's deltas */
    REJOIN_TRIES = 100,  /* then the node does not restart */
};

unsigned sim_any_node(struct sim_world *w)
{
    return (unsigned)prng_below(&w->world.prng, w->config.nodes);
}

uint64_t sim_between(struct sim_world *w, uint64_t low, uint64_t high)
{
    return low + prng_below(&w->world.prng, high - low + 1);
}

/* --- troubles of the network ---------------------------------------------------------------- */

static void net_calms(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    (void)e;
    w->world.net.loss = w->config.loss;
    w->world.net.duplicate = w->world.net.reorder = w->world.net.flip = 0;
    w->world.net.slow = 1;
}

void sim_later(struct sim_world *w, uint64_t us, void (*happen)(void *, struct world_event *),
               unsigned node, uint64_t a)
{
    world_queue_put(&w->world.queue,
                    &(struct world_event){
                        .at_us = w->world.now_us + us, .happen = happen, .node = node, .a = a});
}

void sim_bad_weather(struct sim_world *w)
{
    w->world.net.loss = prng_unit(&w->world.prng) * 0.3;
    w->world.net.duplicate = prng_unit(&w->world.prng) * 0.2;
    w->world.net.reorder = prng_unit(&w->world.prng) * 0.3;
    w->world.net.flip = world_chance(&w->world, 0.5) ? prng_unit(&w->world.prng) * 0.05 : 0;
    w->world.net.slow = world_chance(&w->world, 0.3) ? 10 : 1;
    sim_say(w, "weather: loss %.2f, twice %.2f, reorder %.2f, flip %.2f, slow %.0f",
            w->world.net.loss, w->world.net.duplicate, w->world.net.reorder, w->world.net.flip,
            w->world.net.slow);
    sim_later(w, sim_between(w, 200, 4000) * SIM_MS, net_calms, 0, 0);
}

static void links_join(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    (void)e;
    if (w->world.closing)
        return;
    sim_say(w, "partitions end");
    for (unsigned i = 0; i < w->config.nodes * w->config.nodes; i++)
        w->world.net.links[i].cut = false;
}

static void cut(struct sim_world *w, unsigned a, unsigned b, bool both)
{
    world_link(&w->world, a, b)->cut = true;
    if (both)
        world_link(&w->world, b, a)->cut = true;
}

/* Cuts the network into two halves; or two halves with a bridge that both reach; or cuts one
 * direction of some links. */
void sim_partition(struct sim_world *w, uint64_t length_us)
{
    unsigned n = w->config.nodes;
    uint64_t kind = prng_below(&w->world.prng, 3);
    unsigned bridge = kind == 1 ? sim_any_node(w) : n;
    bool side[SIM_NODES_MAX];
    for (unsigned i = 0; i < n; i++)
        side[i] = world_chance(&w->world, 0.5);
    sim_say(w, "partition %s for %llu ms",
            kind == 0   ? "in halves"
            : kind == 1 ? "with a bridge"
                        : "one way",
            (unsigned long long)length_us / 1000);
    for (unsigned a = 0; a < n; a++) {
        for (unsigned b = 0; b < n; b++) {
            if (a == b || a == bridge || b == bridge)
                continue;
            if (kind == 2 ? world_chance(&w->world, 0.25) : side[a] && !side[b])
                cut(w, a, b, kind != 2);
        }
    }
    sim_later(w, length_us, links_join, 0, 0);
}

void sim_clog_link(struct sim_world *w)
{
    unsigned a = sim_any_node(w), b = sim_any_node(w);
    world_link(&w->world, a, b)->clogged_until_us =
        w->world.now_us + sim_between(w, 50, 900) * SIM_MS;
    sim_say(w, "clogged: %u to %u", a, b);
}

/* For a while some others' large packets, with observations, do not reach a node; all other packets
 * do. Links of a node that looks for the others stay: the introduction is a large packet too. */
static void ways_narrow(struct sim_world *w, unsigned to)
{
    for (unsigned from = 0; from < w->config.nodes; from++) {
        bool knows = sim_of(&w->world.nodes[from])->ready_us > 0;
        if (from != to && world_chance(&w->world, 0.7) && knows)
            world_link(&w->world, from, to)->narrow_until_us =
                w->world.now_us + sim_between(w, 1000, 6000) * SIM_MS;
    }
    sim_say(w, "narrow ways to %u", to);
}

/* Spares a node that looks for the others: lists of members are large packets too. */
void sim_narrow_one(struct sim_world *w)
{
    unsigned i = sim_any_node(w);
    if (w->world.nodes[i].up && sim_of(&w->world.nodes[i])->ready_us > 0)
        ways_narrow(w, i);
}

/* Widens the links from and to a starting node: the introduction is a large packet, and so are the
 * answers. */
static void ways_widen(struct sim_world *w, unsigned node)
{
    for (unsigned other = 0; other < w->config.nodes; other++) {
        world_link(&w->world, other, node)->narrow_until_us = 0;
        world_link(&w->world, node, other)->narrow_until_us = 0;
    }
}

void sim_nemesis_joining(struct sim_world *w, struct world_node *n)
{
    if (w->config.profile == SIM_JOIN && w->working)
        ways_narrow(w, n->number);
}

/* An old observation that arrives late. */
static void late_observation(struct sim_world *w)
{
    struct world_node *n = &w->world.nodes[sim_any_node(w)];
    if (!world_runs(n))
        return;
    struct crdt_state *s = world_state(n);
    struct crdt_index *index = crdt_state_index(s);
    uint32_t late = crdt_index_floor(index) - 1 - (uint32_t)prng_below(&w->world.prng, 20);
    unsigned slots = crdt_registry_count(crdt_state_registry(s));
    if (slots > 0)
        sim_oracle_late(w, n, (unsigned)prng_below(&w->world.prng, slots), late);
}

void sim_intruder(struct sim_world *w)
{
    late_observation(w);
    for (unsigned i = 0; i < 20; i++)
        sim_net_replay(w);
    for (unsigned i = 0; i < 10; i++)
        sim_net_garbage(w, sim_any_node(w));
}

/* --- troubles of nodes ---------------------------------------------------------------------- */

static unsigned up_count(const struct sim_world *w)
{
    unsigned up = 0;
    for (unsigned i = 0; i < w->config.nodes; i++)
        up += w->world.nodes[i].up;
    return up;
}

static void translate_anew(struct sim_world *w, unsigned node)
{
    uint8_t *behind = &w->world.net.behind[node];
    *behind = (uint8_t)(*behind % 200 + 1);
    sim_say(w, "%s is seen at another address", w->world.nodes[node].name);
}

void sim_translated_anew(struct sim_world *w)
{
    unsigned i = sim_any_node(w);
    if (w->world.net.behind[i] != 0 && w->world.nodes[i].up &&
        !sim_of(&w->world.nodes[i])->behind) /* a new translation would hit the same limit */
        translate_anew(w, i);
}

void sim_start_again(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    if (w->world.closing || w->world.nodes[e->node].up || w->world.nodes[e->node].life != e->a)
        return;
    w->restarts++;
    /* Known not to be found until the clock has caught up: a node at another address, with a clock
     * set back by more than the time of the others' next call (gossip/stamps.h). */
    struct world_node *n = &w->world.nodes[e->node];
    bool elsewhere =
        world_chance(&w->world, w->config.elsewhere) && world_wall_ms(n) > sim_of(n)->stamp_ms;
    ways_widen(w, e->node);
    if (elsewhere && w->world.net.behind[e->node] != 0)
        translate_anew(w, e->node);
    sim_node_start(w, e->node, elsewhere);
    if (w->config.profile == SIM_STRICT)
        sim_bad_weather(w); /* so that deltas are lost during the join */
}

/* Sometimes the wall clock has gone back (or far ahead) by the time that the node is back. */
void sim_node_goes(struct sim_world *w, bool politely)
{
    unsigned i = sim_any_node(w);
    struct world_node *n = &w->world.nodes[i];
    if (!world_runs(n) || n->leaving || up_count(w) < 2)
        return;
    w->crashes++;
    if (politely)
        sim_node_leave(w, i);
    else
        sim_node_crash(w, i);
    if (world_chance(&w->world, 0.3) && !w->config.clocks_rise)
        n->wall_offset_us -= (int64_t)sim_between(w, 0, 120) * (int64_t)SIM_S;
    sim_later(w, sim_between(w, politely ? 600 : 100, w->config.away_ms_max) * SIM_MS,
              sim_start_again, i, n->life);
}

void sim_pause_one(struct sim_world *w, uint64_t least_ms, uint64_t most_ms)
{
    unsigned i = sim_any_node(w);
    if (world_runs(&w->world.nodes[i]) && !w->world.nodes[i].leaving) {
        uint64_t ms = sim_between(w, least_ms, most_ms);
        sim_say(w, "%s is paused for %llu ms", w->world.nodes[i].name, (unsigned long long)ms);
        sim_of(&w->world.nodes[i])->resumed_us = w->world.now_us + ms * SIM_MS;
        world_pause(&w->world.nodes[i], w->world.now_us + ms * SIM_MS);
    }
}

/* The wall clock of a node jumps; the monotonic clock drifts. */
void sim_clock_moves(struct sim_world *w)
{
    struct world_node *n = &w->world.nodes[sim_any_node(w)];
    static const int64_t jumps_s[] = {3600, -3600, 30, -30, 2, -2};
    n->wall_offset_us = jumps_s[prng_below(&w->world.prng, 6)] * (int64_t)SIM_S;
    uint64_t mono = world_mono_us(n);
    n->mono_base_us = mono;
    n->mono_since_us = w->world.now_us;
    n->ppm = (int32_t)sim_between(w, 0, 1000) - 500;
    sim_say(w, "clock of %s: %lld s off, %d ppm", n->name,
            (long long)(n->wall_offset_us / (int64_t)SIM_S), n->ppm);
}

static void start_ahead(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    struct world_node *n = &w->world.nodes[e->node];
    if (w->world.closing || !w->working || n->up || n->life != e->a)
        return;
    n->wall_offset_us = (int64_t)(sim_between(w, 600, 3600) * SIM_S);
    for (unsigned i = 0; i < w->config.nodes; i++)
        cut(w, e->node, i, true);
    sim_later(w, AHEAD_US, links_join, 0, 0);
    sim_node_start(w, e->node, false);
}

void sim_clock_ahead(struct sim_world *w)
{
    unsigned i = sim_any_node(w);
    struct world_node *n = &w->world.nodes[i];
    if (!world_runs(n) || n->leaving || up_count(w) < w->config.nodes)
        return;
    w->crashes++;
    sim_node_crash(w, i);
    sim_later(w, 100 * SIM_MS, start_ahead, i, n->life);
}

/* --- troubles of engines -------------------------------------------------------------------- */

static void engine_comes_up(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    if (!w->world.closing && !w->engines[e->node].up)
        sim_engine_restart(w, e->node);
}

static struct world_node *any_running(struct sim_world *w)
{
    for (unsigned tries = 0; tries < 10; tries++) {
        struct world_node *n = &w->world.nodes[sim_any_node(w)];
        if (world_runs(n) && !n->leaving)
            return n;
    }
    return NULL;
}

static void wish(struct sim_world *w, unsigned engine)
{
    struct world_node *n = any_running(w);
    if (!n)
        return;
    struct sim_engine *e = &w->engines[engine];
    struct slice name = slice_of_cstr(e->name);
    static const enum node_replica_wish wishes[] = {NODE_REPLICA_ADD, NODE_REPLICA_REMOVE};
    static const char *const texts[] = {"added", "removed"};
    uint64_t which = prng_below(&w->world.prng, 2);
    int slot = node_router_replica_wish(n->node->router, name, wishes[which], NODE_ENGINE_VLLM);
    sim_say(w, "%s is %s at %s: %d", e->name, texts[which], n->name, slot);
    world_touch(n);
}

void sim_engine_trouble(struct sim_world *w)
{
    unsigned engine = (unsigned)prng_below(&w->world.prng, w->config.engines);
    switch (prng_below(&w->world.prng, 4)) {
    case 0:
        sim_engine_restart(w, engine);
        break;
    case 1:
        w->engines[engine].up = false;
        sim_say(w, "engine %s is down", w->engines[engine].name);
        sim_later(w, sim_between(w, 300, 4000) * SIM_MS, engine_comes_up, engine, 0);
        break;
    case 2:
        wish(w, engine);
        break;
    default: {
        struct world_node *n = any_running(w);
        int slot = n ? sim_of(n)->slot_of_engine[engine] : -1;
        if (slot < 0)
            break;
        bool draining = world_chance(&w->world, 0.4);
        sim_say(w, "%s %s draining", w->engines[engine].name, draining ? "begins" : "ends");
        node_router_replica_drain(n->node->router, (unsigned)slot, draining);
        world_touch(n);
    }
    }
}

/* --- joining again, with nothing lost -------------------------------------------------------- */

/* True if all others have every delta of the node. */
static bool told_to_all(struct sim_world *w, struct world_node *n)
{
    struct gossip_member own, seen;
    if (crdt_state_has_news(world_state(n)) || sim_of(n)->bookings_open > 0 ||
        gossip_member_find(world_gossip(n), n->id, world_mono_us(n), &own) != ERR_OK)
        return false;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *other = &w->world.nodes[i];
        if (other == n)
            continue;
        if (!world_runs(other) ||
            gossip_member_find(world_gossip(other), n->id, world_mono_us(other), &seen) != ERR_OK)
            return false;
        if (seen.incarnation >> 16 != own.incarnation >> 16 || seen.seq_applied != own.seq_applied)
            return false;
    }
    return true;
}

static void rejoin_now(void *context, struct world_event *e)
{
    struct sim_world *w = context;
    struct world_node *n = &w->world.nodes[e->node];
    if (w->world.closing || !n->up || n->life != e->a)
        return;
    if (!w->working || !world_runs(n) || e->b == REJOIN_TRIES) {
        n->leaving = false;
        return;
    }
    if (!told_to_all(w, n)) {
        struct world_event again = *e;
        again.at_us += REJOIN_TRY_MS * SIM_MS;
        again.b++;
        world_queue_put(&w->world.queue, &again);
        return;
    }
    n->leaving = false;
    w->crashes++;
    sim_node_crash(w, e->node);
    uint64_t away_ms = sim_between(w, 100, w->config.profile == SIM_JOIN ? 700 : 1500);
    sim_later(w, away_ms * SIM_MS, sim_start_again, e->node, n->life);
}

/* A node gets no more requests, and restarts when all others have the deltas. So only later events
 * can be lost to the node. */
void sim_rejoin(struct sim_world *w)
{
    unsigned i = sim_any_node(w);
    struct world_node *n = &w->world.nodes[i];
    if (!world_runs(n) || n->leaving || up_count(w) < w->config.nodes)
        return;
    n->leaving = true;
    sim_later(w, REJOIN_TRY_MS * SIM_MS, rejoin_now, i, n->life);
}
