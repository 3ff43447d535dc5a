#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "node/route/share.h"
#include "tests/sim/sim.h"

enum { TICK_US = 1000000 };

uint64_t sim_node_mono_us(const struct sim_world *w, const struct sim_node *n)
{
    int64_t passed = (int64_t)(w->now_us - n->mono_since_us);
    return n->mono_base_us + (uint64_t)(passed + passed * n->ppm / 1000000);
}

/* When its clock will show `mono_us`, rounded up. */
static uint64_t node_world_us(const struct sim_node *n, uint64_t mono_us)
{
    if (mono_us <= n->mono_base_us)
        return n->mono_since_us;
    uint64_t passed = mono_us - n->mono_base_us;
    if (passed > UINT64_C(1) << 42)
        return UINT64_MAX;
    return n->mono_since_us + passed * 1000000 / (uint64_t)(1000000 + n->ppm) + 1;
}

uint64_t sim_node_wall_ms(const struct sim_world *w, const struct sim_node *n)
{
    return (uint64_t)((int64_t)sim_wall_ms(w) + n->wall_offset_us / 1000);
}

struct gossip *sim_node_gossip(const struct sim_node *n)
{
    return node_replication_gossip(n->node->replication);
}

struct crdt_state *sim_node_state(const struct sim_node *n)
{
    return node_state_crdt(n->node->state);
}

/* --- what the node asks of its shell -------------------------------------------------------- */

struct shell {
    struct sim_world *w;
    struct sim_node *n;
};

static struct shell shells[SIM_NODES_MAX];

static void on_send(void *context, const struct gossip_address *to, const uint8_t *bytes,
                    size_t len)
{
    struct shell *s = context;
    sim_net_send(s->w, s->n, to, bytes, len);
}

static void on_random(void *context, void *out, size_t len)
{
    struct shell *s = context;
    uint8_t *bytes = out;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)prng_next(&s->n->random);
}

static int on_call(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    struct shell *s = context;
    return sim_call_open(s->w, s->n, id, to, kind, request);
}

static void on_replica(void *context, unsigned replica, bool present)
{
    struct shell *s = context;
    int engine = sim_engine_of_slot(s->w, s->n, replica);
    if (engine < 0)
        sim_broken(s->w, "replicas", "%s has a replica that nobody named", s->n->name);
    s->n->slot_of_engine[engine] = present ? (int)replica : -1;
}

static void on_event(void *context, enum node_replication_event event, struct slice member,
                     int64_t value, struct slice detail)
{
    struct shell *s = context;
    sim_say(s->w, "%s: %s %.*s %lld %.*s", s->n->name, node_replication_event_text(event),
            SLICE_ARG(member), (long long)value, SLICE_ARG(detail));
    sim_oracle_event(s->w, s->n, event);
}

/* --- time ----------------------------------------------------------------------------------- */

static void wake(void *context, struct sim_event *e);

static void wake_plan(struct sim_world *w, struct sim_node *n)
{
    uint64_t at = node_world_us(n, node_replication_due_us(n->node->replication));
    if (at < w->now_us)
        at = w->now_us;
    if (at >= n->wake_us)
        return;
    n->wake_us = at;
    sim_queue_put(
        &w->queue,
        &(struct sim_event){
            .at_us = at, .happen = wake, .node = n->number, .a = n->life, .b = ++n->wake_tag});
}

void sim_node_touch(struct sim_world *w, struct sim_node *n)
{
    node_replication_run(n->node->replication, sim_node_mono_us(w, n));
    sim_oracle_step(w, n);
    wake_plan(w, n);
}

static void wake(void *context, struct sim_event *e)
{
    struct sim_world *w = context;
    struct sim_node *n = &w->nodes[e->node];
    if (w->closing || !sim_node_runs(n) || n->life != e->a || n->wake_tag != e->b)
        return;
    n->wake_us = UINT64_MAX;
    sim_node_touch(w, n);
}

/* The first nodes are everybody's seeds, by names that lead to wherever they are now. */
static void seeds_resolve(struct sim_world *w, struct sim_node *n)
{
    struct gossip_address seeds[SIM_SEEDS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < w->config.seeds && i < w->config.nodes; i++) {
        if (i != n->number)
            seeds[count++] = sim_address(i, w->nodes[i].address.ip[1]);
    }
    gossip_seeds(sim_node_gossip(n), seeds, count, sim_node_mono_us(w, n));
}

static void tick(void *context, struct sim_event *e)
{
    struct sim_world *w = context;
    struct sim_node *n = &w->nodes[e->node];
    if (w->closing || !n->up || n->life != e->a)
        return;
    if (n->paused_until_us == 0) {
        node_state_wall(n->node->state, sim_node_wall_ms(w, n), sim_node_mono_us(w, n) / 1000);
        node_router_tick(n->node->router, sim_node_mono_us(w, n) / 1000);
        seeds_resolve(w, n);
        sim_node_touch(w, n);
    }
    struct sim_event next = *e;
    next.at_us += TICK_US;
    sim_queue_put(&w->queue, &next);
}

void sim_node_receive(struct sim_world *w, struct sim_node *n, struct sim_datagram *d)
{
    uint64_t taken = sim_oracle_taken(n);
    node_replication_datagram(n->node->replication, &d->source, d->bytes, d->len,
                              sim_node_mono_us(w, n));
    bool again = d->delivered_to_life == n->life;
    if ((again || d->damaged) && sim_oracle_taken(n) != taken)
        sim_broken(w, d->damaged ? "forged packet" : "replayed packet",
                   "%s took a packet of %zu bytes (type %u) of node %u that %s", n->name, d->len,
                   d->bytes[0], d->from, d->damaged ? "was damaged" : "it had before");
    d->delivered_to_life = n->life;
    sim_oracle_step(w, n);
    wake_plan(w, n);
}

/* --- life ----------------------------------------------------------------------------------- */

/* As a daemon has it; what follows from the seed is set. */
static void node_open(struct sim_world *w, struct sim_node *n, uint64_t seed)
{
    const struct sim_config *c = &w->config;
    unsigned unadvertised = c->unadvertised;
    bool says = unadvertised == 0 || n->number % unadvertised != 0;
    struct node_config config;
    if (node_config_default(&config) != ERR_OK)
        sim_broken(w, "setup", "no memory");
    config.router.seed = seed;
    config.state.index_bytes = c->index_bytes;
    config.state.generation_ms = c->generation_ms;
    config.state.ttl_ms = c->ttl_ms;
    config.replication.gossip.name = n->name;
    if (says)
        config.replication.gossip.address = n->address;
    if (c->relay_above != 0)
        config.replication.gossip.relay_above = c->relay_above;
    if (c->ring_bytes != 0)
        config.replication.gossip.ring_bytes = c->ring_bytes;
    config.replication.has_seeds = true;
    config.replication.reconcile_us = c->reconcile_us;
    config.keyring = &w->keyring;
    config.state.wall_ms = sim_node_wall_ms(w, n);
    shells[n->number] = (struct shell){w, n};
    struct node_replication_io io = {
        .context = &shells[n->number],
        .send = on_send,
        .random = on_random,
        .call = on_call,
        .event = on_event,
    };
    int err = node_create(&n->node, &config, &io, sim_node_mono_us(w, n));
    if (err != ERR_OK)
        sim_broken(w, "setup", "a node is not made: %s", err_text(err));
    node_router_watch(n->node->router, on_replica, &shells[n->number]);
}

void sim_node_start(struct sim_world *w, unsigned number, bool elsewhere)
{
    struct sim_node *n = &w->nodes[number];
    CHECK(!n->up);
    n->up = true;
    n->started_us = w->now_us;
    n->ready_us = 0;
    n->leaving = false;
    n->life++;
    n->memory++;
    n->paused_until_us = 0;
    n->bookings_open = 0;
    n->wake_us = UINT64_MAX;
    n->floor_seen = 0;
    memset(n->seen, 0, w->config.nodes * sizeof *n->seen);
    sim_reported_forget(w, n);
    for (unsigned i = 0; i < SIM_ENGINES_MAX; i++)
        n->slot_of_engine[i] = -1;
    prng_seed(&n->random, prng_next(&w->prng));
    /* A machine's monotonic clock starts anywhere; a process that restarts keeps it. */
    if (n->life == 1) {
        n->mono_since_us = w->now_us;
        n->mono_base_us = SIM_S * (1 + prng_below(&w->prng, 100000));
    }
    n->address = sim_address(number, elsewhere ? n->life % 200 + 1 : n->address.ip[1]);
    node_open(w, n, prng_next(&w->prng));
    sim_engines_configure(w, n);
    seeds_resolve(w, n);
    sim_trace(w, (uint64_t)number << 32 | n->life);
    sim_say(w, "%s starts", n->name);
    sim_queue_put(&w->queue, &(struct sim_event){.at_us = w->now_us + prng_below(&w->prng, TICK_US),
                                                 .happen = tick,
                                                 .node = number,
                                                 .a = n->life});
    sim_engines_probe_begin(w, n);
    sim_node_touch(w, n);
}

void sim_node_crash(struct sim_world *w, unsigned number)
{
    struct sim_node *n = &w->nodes[number];
    CHECK(n->up);
    sim_say(w, "%s crashes", n->name);
    sim_calls_of_node_end(w, number);
    uint64_t stamp = gossip_epoch(sim_node_gossip(n)) + (w->now_us - n->started_us) / 1000;
    n->stamp_ms = stamp > n->stamp_ms ? stamp : n->stamp_ms;
    for (unsigned i = 0; i < n->socket_count; i++)
        free(n->socket[i]);
    n->socket_count = 0;
    node_destroy(n->node);
    n->node = NULL;
    n->up = false;
    n->paused_until_us = 0;
}

static void gone(void *context, struct sim_event *e)
{
    struct sim_world *w = context;
    struct sim_node *n = &w->nodes[e->node];
    if (!w->closing && n->up && n->life == e->a)
        sim_node_crash(w, e->node);
}

void sim_node_leave(struct sim_world *w, unsigned number)
{
    struct sim_node *n = &w->nodes[number];
    sim_say(w, "%s leaves", n->name);
    n->leaving = true;
    gossip_leave(sim_node_gossip(n), sim_node_mono_us(w, n));
    sim_node_touch(w, n);
    sim_queue_put(&w->queue, &(struct sim_event){.at_us = w->now_us + 500 * SIM_MS,
                                                 .happen = gone,
                                                 .node = number,
                                                 .a = n->life});
}

static void resume(void *context, struct sim_event *e)
{
    struct sim_world *w = context;
    struct sim_node *n = &w->nodes[e->node];
    if (w->closing || !n->up || n->life != e->a || n->paused_until_us != e->at_us)
        return;
    uint64_t late = e->at_us - e->b;
    n->paused_until_us = 0;
    n->wake_us = UINT64_MAX;
    gossip_late(sim_node_gossip(n), late, sim_node_mono_us(w, n));
    unsigned count = n->socket_count;
    n->socket_count = 0;
    sim_say(w, "%s goes on, %u packets wait", n->name, count);
    for (unsigned i = 0; i < count; i++) {
        sim_node_receive(w, n, n->socket[i]);
        free(n->socket[i]);
    }
    sim_node_touch(w, n);
}

void sim_node_resume_at(struct sim_world *w, struct sim_node *n, uint64_t at_us)
{
    n->paused_until_us = at_us;
    sim_queue_put(
        &w->queue,
        &(struct sim_event){
            .at_us = at_us, .happen = resume, .node = n->number, .a = n->life, .b = w->now_us});
}

void sim_node_pause(struct sim_world *w, unsigned number, uint64_t until_us)
{
    struct sim_node *n = &w->nodes[number];
    CHECK(sim_node_runs(n) && until_us > w->now_us);
    sim_say(w, "%s is paused for %llu ms", n->name,
            (unsigned long long)(until_us - w->now_us) / 1000);
    sim_node_resume_at(w, n, until_us);
}
