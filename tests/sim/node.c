/* The nodes of a run: everything that follows from the seed, and the moments at which the oracles
 * look. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/limits.h"
#include "tests/sim/sim.h"

enum {
    FIRST_OF_STATE = 2, /* a snapshot's second chunk, behind the head */
    MESSAGES_AGAIN = 3, /* messages on the way to a router that restarts */
};

static void deliver(void *context, struct world_node *n, struct world_datagram *d)
{
    struct sim_world *w = context;
    sim_heard_deliver(w, n, d);
    /* The eavesdropper keeps packets undamaged; this packet has already been delivered. */
    if (!d->damaged && w->config.profile >= SIM_STRICT)
        sim_net_capture(w, d);
}

static void stepped(void *context, struct world_node *n)
{
    sim_oracle_step(context, n);
}

static void on_event(void *context, struct world_node *n, enum node_replication_event event,
                     struct slice member, int64_t value, struct slice detail)
{
    struct sim_world *w = context;
    sim_say(w, "%s: %s %.*s %lld %.*s", n->name, node_replication_event_text(event),
            SLICE_ARG(member), (long long)value, SLICE_ARG(detail));
    if (event <= NODE_REPLICATION_MEMBER_LEFT)
        sim_heard_event(w, n, member);
    if (event == NODE_REPLICATION_READY)
        sim_book_joined(w, n);
    sim_oracle_event(w, n, event, member.len > 0, value);
}

/* True if names may be forgotten although routers name them. Either all routers are away for long,
 * or this node's clock is or was far off the others'. Then the others' recent names are old there
 * (seed 29 of one-seed, seed 215 of storm). */
static bool names_go(const struct sim_world *w, const struct world_node *n)
{
    const struct sim_record *record = sim_of(n);
    int64_t most_ms = (int64_t)w->config.ttl_ms / 4;
    int64_t off_ms =
        (int64_t)(node_state_cluster_ms(n->node->state, world_mono_us(n) / 1000) - sim_wall_ms(w));
    bool off = off_ms > most_ms;
    for (unsigned i = 0; i < record->jumps_count; i++)
        off = off || llabs(off_ms - record->jumps[i].from_ms) > most_ms;
    return off || w->config.forget_us > 0 || w->config.profile == SIM_CHURN;
}

static void on_replica(void *context, struct world_node *n, unsigned replica, bool present)
{
    struct sim_world *w = context;
    int engine = sim_engine_of_slot(w, n, replica);
    if (engine < 0 && sim_engine_retired(w, node_router_replica_name(n->node->router, replica)))
        return;
    if (engine < 0)
        sim_broken(w, "replicas", "%s has a replica that nobody named", n->name);
    if (!present && names_go(w, n))
        sim_book_dropped(w, n, (unsigned)engine);
    sim_of(n)->slot_of_engine[engine] = present ? (int)replica : -1;
}

static void on_chunk(void *context, struct world_node *client, const struct world_call *c)
{
    if (c->kind == NODE_CALL_SNAPSHOT && c->chunks == FIRST_OF_STATE)
        sim_nemesis_joining(context, client);
}

void sim_nodes_open(struct sim_world *w)
{
    const struct sim_config *c = &w->config;
    w->world.hooks = (struct world_hooks){.context = w,
                                          .deliver = deliver,
                                          .stepped = stepped,
                                          .event = on_event,
                                          .replica = on_replica,
                                          .chunk = on_chunk};
    for (unsigned i = 0; i < c->nodes; i++) {
        struct world_node *n = &w->world.nodes[i];
        n->wall_offset_us =
            (int64_t)prng_below(&w->world.prng, 200 * SIM_MS) - 100 * (int64_t)SIM_MS;
        n->ppm = (int32_t)prng_below(&w->world.prng, 200) - 100;
        n->unadvertised = c->unadvertised != 0 && i % c->unadvertised == 0;
        n->config.state.index_bytes = c->index_bytes;
        n->config.state.generation_ms = c->generation_ms;
        n->config.state.ttl_ms = c->ttl_ms;
        n->config.state.names_ttl_s =
            c->ttl_ms / 1000 < CRDT_NAMES_TTL_S ? c->ttl_ms / 1000 : CRDT_NAMES_TTL_S;
        if (c->relay_above != 0)
            n->config.replication.gossip.relay_above = c->relay_above;
        if (c->forget_us != 0)
            n->config.replication.gossip.forget_us = c->forget_us;
        if (c->ring_bytes != 0)
            n->config.replication.gossip.ring_bytes = c->ring_bytes;
        n->config.replication.has_seeds = true;
        n->config.replication.reconcile_us = c->reconcile_us;
    }
}

/* Any two builds mostly have version 1 in common. A build without version 1 has no version in
 * common with builds that know only version 1, and is replaced at the end. */
static void build_draw(struct sim_world *w, struct world_node *n)
{
    static const struct gossip_versions builds[] = {{1, 1}, {1, 2}, {1, 3}, {2, 3}};
    unsigned count = w->working ? ARRAY_LEN(builds) : ARRAY_LEN(builds) - 1;
    n->config.replication.gossip.speaks = builds[prng_below(&w->world.prng, count)];
}

void sim_node_start(struct sim_world *w, unsigned number, bool elsewhere)
{
    struct world_node *n = &w->world.nodes[number];
    struct sim_record *record = sim_of(n);
    record->ready_us = 0;
    record->generation = 0;
    record->bookings_open = 0;
    record->floor_seen = 0;
    record->gone_us = record->resumed_us = 0;
    if (w->config.clocks_rise && world_wall_ms(n) <= record->stamp_ms)
        n->wall_offset_us += (int64_t)((record->stamp_ms + 1 - world_wall_ms(n)) * SIM_MS);
    record->behind = world_wall_ms(n) <= record->stamp_ms;
    if (n->life > 0)
        sim_oracle_jumped(w, n, record->off_ms); /* earlier announcements still count */
    record->messages_out = record->messages_taken = record->messages_again = 0;
    for (unsigned i = 0; i < w->config.nodes; i++)
        w->records[i].messages_again += MESSAGES_AGAIN;
    sim_book_forget(w, n, true);
    record->started_us = w->world.now_us;
    memset(record->seen, 0, w->config.nodes * sizeof *record->seen);
    sim_reported_forget(w, n);
    for (unsigned i = 0; i < SIM_ENGINES_MAX; i++)
        record->slot_of_engine[i] = -1;
    memset(record->configured, 0, sizeof record->configured);
    /* A machine's monotonic clock starts anywhere; a restarted process keeps the clock. */
    if (n->life == 0) {
        n->mono_since_us = w->world.now_us;
        n->mono_base_us = SIM_S * (1 + prng_below(&w->world.prng, 100000));
    }
    if (elsewhere)
        n->address = world_address(number, n->life % 200 + 1);
    n->config.router.seed = prng_next(&w->world.prng);
    if (w->config.profile == SIM_BUILDS)
        build_draw(w, n);
    sim_say(w, "%s starts", n->name);
    world_start(&w->world, number);
    sim_engines_configure(w, n);
    sim_engines_probe_begin(w, n);
    world_touch(n);
}

/* The wall-clock time that the node will have announced when it is `longer_us` older. */
static void stamp(struct sim_world *w, struct world_node *n, uint64_t longer_us)
{
    struct sim_record *record = sim_of(n);
    uint64_t lived_us = w->world.now_us - record->started_us + longer_us;
    uint64_t told_ms = gossip_epoch(world_gossip(n)) + lived_us / 1000;
    record->stamp_ms = told_ms > record->stamp_ms ? told_ms : record->stamp_ms;
}

/* Messages sent until now may arrive after the node is gone (seed 654786078, churn). */
static void count_messages(struct world_node *n)
{
    struct gossip_stats stats;
    gossip_stats(world_gossip(n), &stats);
    sim_of(n)->messages_out = stats.messages_out;
}

void sim_node_crash(struct sim_world *w, unsigned number)
{
    count_messages(&w->world.nodes[number]);
    sim_say(w, "%s crashes", w->world.nodes[number].name);
    stamp(w, &w->world.nodes[number], 0);
    sim_of(&w->world.nodes[number])->gone_us = w->world.now_us;
    world_kill(&w->world, number);
}

void sim_node_leave(struct sim_world *w, unsigned number)
{
    sim_say(w, "%s leaves", w->world.nodes[number].name);
    stamp(w, &w->world.nodes[number], WORLD_LEAVE_US);
    count_messages(&w->world.nodes[number]);
    sim_of(&w->world.nodes[number])->gone_us = w->world.now_us + WORLD_LEAVE_US;
    world_leave(&w->world, number);
}
