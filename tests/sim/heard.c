/* A node's view of the others: packets to reject, messages that come once, addresses to send to,
 * members that are silent or to be forgotten. */
#include "base/check.h"
#include "base/err.h"
#include "gossip/session.h"
#include "tests/sim/sim.h"

enum {
    ADDRESS_US = 500000,  /* time from a moved peer's first packet until it is followed */
    DEAF_US = 75000000,   /* longer than two quarantines, a quarantine at either end */
    FORGET_US = 30000000, /* beyond the time after which the dead are forgotten */
};

/* --- packets -------------------------------------------------------------------------------- */

static struct gossip_stats stats_of(const struct world_node *n)
{
    struct gossip_stats stats;
    gossip_stats(world_gossip(n), &stats);
    return stats;
}

/* Number of packets that a node accepted. */
static uint64_t taken(const struct gossip_stats *stats)
{
    uint64_t sum = stats->handshakes + stats->rekeys + stats->messages_in;
    for (unsigned i = 0; i < GOSSIP_FRAMES; i++)
        sum += stats->frames_in[i];
    return sum;
}

static void replay_check(struct sim_world *w, const struct world_node *n,
                         const struct world_datagram *d, bool took, bool answered)
{
    bool again = d->delivered_to_life == n->life;
    if ((again || d->damaged) && took)
        sim_broken(w, d->damaged ? "forged packet" : "replayed packet",
                   "%s took a packet of %zu bytes (type %u) of node %u that %s", n->name, d->len,
                   d->bytes[0], d->from, d->damaged ? "was damaged" : "it had before");
    if (again && answered && d->bytes[0] == GOSSIP_PACKET_HELLO)
        sim_broken(w, "replayed hello", "%s answered a hello of node %u a second time", n->name,
                   d->from);
}

/* A life sent at least as many messages as arrive from it. */
static void messages_check(struct sim_world *w, const struct world_node *n,
                           const struct world_datagram *d, uint64_t messages)
{
    const struct world_node *from = &w->world.nodes[d->from];
    struct sim_record *record = sim_of(from);
    if (messages == 0 || d->from_life != from->life)
        return;
    if (from->up)
        record->messages_out = stats_of(from).messages_out;
    record->messages_taken += messages;
    if (record->messages_taken > record->messages_out + record->messages_again)
        sim_broken(w, "repeated message",
                   "%llu messages of %s arrived (the last one at %s), it sent %llu",
                   (unsigned long long)record->messages_taken, from->name, n->name,
                   (unsigned long long)record->messages_out);
}

void sim_heard_deliver(struct sim_world *w, struct world_node *n, struct world_datagram *d)
{
    struct gossip_stats before = stats_of(n);
    sim_of(n)->hearing = &d->source;
    world_router.receive(n, d);
    sim_of(n)->hearing = NULL;
    struct gossip_stats after = stats_of(n);
    bool took = taken(&after) != taken(&before), answered = after.packets_out > before.packets_out;
    replay_check(w, n, d, took, answered);
    messages_check(w, n, d, after.messages_in - before.messages_in);
    if (after.messages_in != before.messages_in)
        sim_of(n)->message_us = w->world.now_us;
    struct sim_seen *seen = &sim_of(n)->seen[d->from];
    if (took && !world_address_equal(&seen->at, &d->source)) {
        seen->at = d->source;
        seen->at_since_us = w->world.now_us;
    }
    /* A held hello is not read (seed 65, long). A hello gets no answer if the sender began a life
     * below the last life. An answer may come when that life is forgotten (gossip/stamps.h; seed
     * 825326335, long). */
    if (after.hellos_held == before.hellos_held && (answered || d->bytes[0] != GOSSIP_PACKET_HELLO))
        d->delivered_to_life = n->life;
}

void sim_heard_missed(void *context, unsigned from, const struct gossip_address *to,
                      const uint8_t *bytes)
{
    struct sim_world *w = context;
    int number = world_address_node(to);
    if (bytes[0] != GOSSIP_PACKET_DATA || number < 0 || (unsigned)number >= w->config.nodes)
        return;
    const struct world_node *n = &w->world.nodes[from];
    const struct sim_seen *seen = &sim_of(n)->seen[number];
    const struct gossip_address *hearing = sim_of(n)->hearing; /* `n` may answer this address */
    if (hearing && world_address_equal(hearing, to))
        return;
    if (seen->at.port != 0 && !world_address_equal(&seen->at, to) &&
        w->world.now_us - seen->at_since_us > ADDRESS_US)
        sim_broken(w, "stale address", "%s sends to where %s was more than %u ms ago", n->name,
                   w->world.nodes[number].name, ADDRESS_US / 1000);
}

/* --- members -------------------------------------------------------------------------------- */

/* Sooner or later, news of a peer that is up must come in. */
static void deaf_check(struct sim_world *w, struct world_node *n, struct world_node *other,
                       const struct gossip_member *m, uint64_t passed_us)
{
    struct sim_seen *seen = &sim_of(n)->seen[other->number];
    struct gossip_member own;
    bool open = world_runs(n) && world_runs(other) && !other->leaving && !n->leaving &&
                m->state == GOSSIP_ALIVE && m->session && m->understood &&
                !world_link(&w->world, n->number, other->number)->cut &&
                !world_link(&w->world, other->number, n->number)->cut;
    CHECK(!other->up ||
          gossip_member_find(world_gossip(other), other->id, world_mono_us(other), &own) == ERR_OK);
    bool same = other->up && own.incarnation >> 16 == m->incarnation >> 16;
    if (!same || own.seq_applied == m->seq_applied || seen->deaf_seq != m->seq_applied)
        seen->deaf_us = 0;
    else if (open)
        seen->deaf_us += passed_us;
    seen->deaf_seq = m->seq_applied;
    if (seen->deaf_us > DEAF_US)
        sim_beliefs_say(w);
    if (seen->deaf_us > DEAF_US)
        sim_broken(w, "deaf", "%s has %llu of %s for %llu s, which has made %llu", n->name,
                   (unsigned long long)m->seq_applied, other->name,
                   (unsigned long long)(seen->deaf_us / SIM_S),
                   (unsigned long long)own.seq_applied);
}

/* A router forgets a member that is gone for long. Two kinds of routers need not: a router that was
 * asleep itself, and a router that heard from another that the member is back, or died later. */
static void forgotten_check(struct sim_world *w, const struct world_node *n,
                            const struct world_node *other, const struct gossip_member *m)
{
    const struct sim_record *own = sim_of(n), *gone = sim_of(other);
    struct sim_seen *seen = &sim_of(n)->seen[other->number];
    if (m->state <= GOSSIP_SUSPECT || m->state != seen->state ||
        m->incarnation != seen->incarnation || seen->lived_us == 0)
        seen->lived_us = w->world.now_us;
    seen->state = m->state;
    seen->incarnation = m->incarnation;
    if (w->config.forget_us == 0 || other->up || own->resumed_us > gone->gone_us ||
        w->world.now_us - seen->lived_us < w->config.forget_us + FORGET_US)
        return;
    sim_broken(w, "not forgotten", "%s still lists %s, which is dead for %llu s", n->name,
               other->name, (unsigned long long)((w->world.now_us - seen->lived_us) / SIM_S));
}

void sim_heard_event(struct sim_world *w, struct world_node *n, struct slice member)
{
    for (unsigned i = 0; i < w->config.nodes; i++) {
        if (slice_equal(member, slice_of_cstr(w->world.nodes[i].name)))
            sim_of(n)->seen[i].lived_us = w->world.now_us;
    }
}

void sim_heard_look(struct sim_world *w, struct world_node *n, uint64_t passed_us)
{
    const struct gossip *g = world_gossip(n);
    for (unsigned i = 0; i < gossip_member_count(g); i++) {
        struct gossip_member m;
        gossip_member_at(g, i, world_mono_us(n), &m);
        int number = sim_number_of(w, m.node);
        struct world_node *other = number >= 0 ? &w->world.nodes[number] : NULL;
        if (!other)
            sim_broken(w, "members", "%s knows a member that never was: %s", n->name, m.name);
        if (other == n)
            continue;
        deaf_check(w, n, other, &m, passed_us);
        forgotten_check(w, n, other, &m);
    }
}
