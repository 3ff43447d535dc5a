/* Rules that hold at any moment, under any trouble. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "node/cluster/replication_internal.h"
#include "tests/sim/sim.h"

enum { CAUGHT_UP_US = 3000000, REFUTED_US = 3000000 };

/* --- one node ------------------------------------------------------------------------------- */

int sim_number_of(const struct sim_world *w, uint64_t node)
{
    for (unsigned i = 0; i < w->config.nodes; i++) {
        if (w->world.nodes[i].id == node)
            return (int)i;
    }
    return -1;
}

static unsigned number_of(const struct sim_world *w, uint64_t node)
{
    int number = sim_number_of(w, node);
    if (number < 0)
        sim_broken(w, "members", "somebody knows a member that never was: %llx",
                   (unsigned long long)node);
    return (unsigned)number;
}

/* A forgotten member starts afresh. */
static void forgotten_clear(struct sim_world *w, struct world_node *n)
{
    struct gossip_member m;
    for (unsigned i = 0; w->config.forget_us > 0 && i < w->config.nodes; i++) {
        if (gossip_member_find(world_gossip(n), w->world.nodes[i].id, world_mono_us(n), &m) !=
            ERR_OK)
            sim_of(n)->seen[i] = (struct sim_seen){0};
    }
}

static void vector_check(struct sim_world *w, struct world_node *n)
{
    const struct gossip *g = world_gossip(n);
    forgotten_clear(w, n);
    for (unsigned i = 0; i < gossip_member_count(g); i++) {
        struct gossip_member m;
        gossip_member_at(g, i, world_mono_us(n), &m);
        struct sim_seen *seen = &sim_of(n)->seen[number_of(w, m.node)];
        uint64_t epoch = m.incarnation >> 16;
        if (epoch < seen->epoch || (epoch == seen->epoch && m.seq_applied < seen->seq))
            sim_broken(w, "vector regressed", "%s had %llu of life %llu of %s, now %llu of %llu",
                       n->name, (unsigned long long)seen->seq, (unsigned long long)seen->epoch,
                       m.name, (unsigned long long)m.seq_applied, (unsigned long long)epoch);
        if (m.seq_applied > m.seq_known)
            sim_broken(w, "vector", "%s applied more of %s than it knows of", n->name, m.name);
        seen->epoch = epoch;
        seen->seq = m.seq_applied;
    }
}

/* A suspected node announces that it lives, unless a link is cut for long. */
static void refuted_check(struct sim_world *w, struct world_node *n)
{
    const struct gossip *g = world_gossip(n);
    for (unsigned i = 0; i < gossip_member_count(g); i++) {
        struct gossip_member m;
        gossip_member_at(g, i, world_mono_us(n), &m);
        unsigned number = number_of(w, m.node);
        struct sim_seen *seen = &sim_of(n)->seen[number];
        bool narrow = world_link(&w->world, number, n->number)->narrow_until_us > w->world.now_us ||
                      world_link(&w->world, n->number, number)->narrow_until_us > w->world.now_us;
        if (m.state != GOSSIP_SUSPECT || narrow || !world_runs(&w->world.nodes[number]))
            seen->suspected_us = 0;
        else if (seen->suspected_us == 0)
            seen->suspected_us = w->world.now_us;
        else if (w->world.now_us - seen->suspected_us > REFUTED_US)
            sim_broken(w, "not refuted", "%s runs, and %s suspects it for %llu ms", m.name, n->name,
                       (unsigned long long)(w->world.now_us - seen->suspected_us) / 1000);
    }
}

static void budgets_check(struct sim_world *w, struct world_node *n)
{
    struct crdt_state *s = world_state(n);
    const struct crdt_index *index = crdt_state_index(s);
    struct crdt_index_stats x;
    crdt_index_stats(index, &x);
    if (x.bytes > x.bytes_max || x.bytes_used > x.bytes)
        sim_broken(w, "budget of the index", "%s: %llu of %llu bytes", n->name,
                   (unsigned long long)x.bytes, (unsigned long long)x.bytes_max);
    struct gossip_stats g;
    gossip_stats(world_gossip(n), &g);
    uint64_t ring_max = w->config.ring_bytes ? w->config.ring_bytes : 4 << 20;
    if (g.ring_bytes > ring_max)
        sim_broken(w, "budget of the ring", "%s: %llu bytes", n->name,
                   (unsigned long long)g.ring_bytes);
    struct crdt_state_stats c;
    crdt_state_stats(s, &c);
    if (c.outbox_bytes > 1 << 20)
        sim_broken(w, "budget of the outbox", "%s: %llu bytes", n->name,
                   (unsigned long long)c.outbox_bytes);
    if (g.sessions > 2 * (uint64_t)w->config.nodes)
        sim_broken(w, "sessions", "%s has %llu", n->name, (unsigned long long)g.sessions);
    if ((g.refused_malformed > 0 && !w->nonsense) || c.malformed > 0)
        sim_broken(w, "malformed", "%s refused what a peer made: %llu frames, %llu items", n->name,
                   (unsigned long long)g.refused_malformed, (unsigned long long)c.malformed);
}

static int64_t off_ms(const struct sim_world *w, const struct world_node *n)
{
    return (int64_t)(node_state_cluster_ms(n->node->state, world_mono_us(n) / 1000) -
                     sim_wall_ms(w));
}

/* Upper bound of the node's cluster time so far. */
static void time_check(struct sim_world *w, struct world_node *n)
{
    struct sim_record *record = sim_of(n);
    int64_t off = off_ms(w, n), before = record->generation > 0 ? record->off_ms : off;
    uint64_t most_ms = sim_wall_ms(w) + (uint64_t)(before > off ? before : off);
    uint32_t generation = (uint32_t)(most_ms / w->config.generation_ms);
    record->generation = generation > record->generation ? generation : record->generation;
    record->off_ms = off;
}

void sim_oracle_step(struct sim_world *w, struct world_node *n)
{
    const struct crdt_index *index = crdt_state_index(world_state(n));
    uint32_t floor = crdt_index_floor(index);
    if (floor < sim_of(n)->floor_seen)
        sim_broken(w, "floor regressed", "%s: %u after %u", n->name, floor, sim_of(n)->floor_seen);
    sim_of(n)->floor_seen = floor;
    time_check(w, n);
    w->steps++;
    if (w->config.forget_us > 0 || w->steps % (1 + w->config.nodes / 2) == 0)
        vector_check(w, n);
    if (w->steps % 4 == 0)
        sim_reported_check(w, n);
    if (w->steps % 64 == 0)
        budgets_check(w, n);
    if (w->steps % w->config.check_every == 0) {
        node_replication_check(n->node->replication);
        node_router_check(n->node->router);
        sim_oracle_visible(w, n);
    }
}

/* --- cluster time --------------------------------------------------------------------------- */

enum { JUMPED_US = 60000000 }; /* times announced earlier than that do not count */

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* A router that is ignored because of nonsense has no vote. */
static bool votes(const struct world_node *n, const struct world_node *other)
{
    struct gossip_member m;
    if (gossip_member_find(world_gossip(n), other->id, world_mono_us(n), &m) != ERR_OK ||
        m.state > GOSSIP_SUSPECT)
        return false;
    const struct node_peer *p = node_replication_peer(n->node->replication, other->id);
    return p == NULL || node_peer_counts(p);
}

/* A node jumps to the median of all visible times, including the node's own time before. A node
 * that jumped lately may count with the time before. */
static void jump_check(struct sim_world *w, struct world_node *n, int64_t from_ms)
{
    int64_t least[SIM_NODES_MAX], most[SIM_NODES_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < w->config.nodes; i++) {
        struct world_node *other = &w->world.nodes[i];
        const struct sim_record *record = sim_of(other);
        if (!votes(n, other))
            continue;
        least[count] = most[count] = other == n ? from_ms : record->off_ms;
        for (unsigned k = 0; other != n && k < record->jumps_count; k++) {
            const struct sim_jump *j = &record->jumps[k];
            if (w->world.now_us - j->at_us > JUMPED_US)
                continue;
            least[count] = j->from_ms < least[count] ? j->from_ms : least[count];
            most[count] = j->from_ms > most[count] ? j->from_ms : most[count];
        }
        sim_say(w, "    %s believes in %s at %lld to %lld ms", n->name, other->name,
                (long long)least[count], (long long)most[count]);
        count++;
    }
    qsort(least, count, sizeof least[0], ascending);
    qsort(most, count, sizeof most[0], ascending);
    int64_t slack = 2 * w->config.generation_ms, to = off_ms(w, n);
    if (to < least[(count - 1) / 2] - slack || to > most[count / 2] + slack)
        sim_broken(w, "clock",
                   "%s jumps to %lld ms, all that it sees are at %lld to %lld ms in the middle",
                   n->name, (long long)to, (long long)least[(count - 1) / 2],
                   (long long)most[count / 2]);
}

void sim_oracle_jumped(struct sim_world *w, struct world_node *n, int64_t from_ms)
{
    struct sim_record *record = sim_of(n);
    if (record->jumps_count == SIM_JUMPS_MAX)
        memmove(&record->jumps[0], &record->jumps[1],
                --record->jumps_count * sizeof record->jumps[0]);
    record->jumps[record->jumps_count++] = (struct sim_jump){w->world.now_us, from_ms};
}

void sim_oracle_event(struct sim_world *w, struct world_node *n, enum node_replication_event event,
                      bool of_member, int64_t value)
{
    bool back = event == NODE_REPLICATION_CLOCK_BACK;
    if (!back && event != NODE_REPLICATION_CLOCK_FORWARD)
        return;
    struct sim_record *record = sim_of(n);
    int64_t from_ms = off_ms(w, n) + (back ? value : -value);
    if (!of_member && record->ready_us > 0)
        jump_check(w, n, from_ms);
    sim_oracle_jumped(w, n, from_ms);
    sim_book_set(w, n);
    if (!back)
        return;
    /* Observations from the wrong time move to an earlier time, and the node's other observations
     * are gone. */
    uint32_t ahead = record->generation;
    record->generation = record->floor_seen = 0;
    sim_book_set_back(w, n, ahead);
    memset(record->seen, 0, w->config.nodes * sizeof *record->seen);
}

/* --- what is visible ------------------------------------------------------------------------ */

struct looking {
    struct sim_world *w;
    struct world_node *n;
    uint32_t floor, now;
    int engines[NODE_REPLICAS_MAX]; /* the engine of each slot */
};

static void look(void *context, uint64_t id48, uint8_t code, unsigned replica, uint32_t generation)
{
    struct looking *l = context;
    if (code == CHECKPOINT_CODE_BINDING)
        return;
    const struct crdt_replica *r =
        crdt_registry_at(crdt_state_registry(world_state(l->n)), replica);
    if (generation < l->floor || generation > l->now + 1)
        sim_broken(l->w, "window", "%s shows generation %u outside of %u to %u", l->n->name,
                   generation, l->floor, l->now + 1);
    if (l->engines[replica] < 0 && sim_engine_retired(l->w, slice_of(r->name, r->name_len)))
        return;
    if (l->engines[replica] < 0 || !sim_book_seen(l->w, l->n, (unsigned)l->engines[replica],
                                                  r->incarnation.started, id48, code, generation))
        sim_broken(l->w, "phantom",
                   "%s shows what nobody observed: id %012llx code %u of %.*s rkey %08x "
                   "generation %u (now %u)",
                   l->n->name, (unsigned long long)id48, code, (int)r->name_len, r->name, r->rkey,
                   generation, l->now);
}

void sim_oracle_visible(struct sim_world *w, struct world_node *n)
{
    const struct crdt_index *index = crdt_state_index(world_state(n));
    struct looking l = {
        .w = w, .n = n, .floor = crdt_index_floor(index), .now = crdt_index_now(index)};
    for (unsigned slot = 0; slot < node_router_replica_count(n->node->router); slot++)
        l.engines[slot] = sim_engine_of_slot(w, n, slot);
    crdt_index_each(index, look, &l);
    sim_book_kept(w, n);
}

void sim_oracle_late(struct sim_world *w, struct world_node *n, unsigned slot, uint32_t generation)
{
    struct crdt_index *index = crdt_state_index(world_state(n));
    struct crdt_index_stats before, after;
    crdt_index_stats(index, &before);
    int err = crdt_index_observe(index, 0x1234567, slot, 3, generation);
    crdt_index_stats(index, &after);
    if (err != ERR_STALE || after.inserted != before.inserted || after.entries != before.entries)
        sim_broken(w, "expired", "%s takes in what it saw %u generations ago, below its floor",
                   n->name, crdt_index_now(index) - generation);
}

/* --- pairs ---------------------------------------------------------------------------------- */

/* True if two nodes have heard the same, completely, and have nothing left to send. */
static bool heard_the_same(struct world_node *a, struct world_node *b)
{
    const struct gossip *g = world_gossip(a), *h = world_gossip(b);
    if (crdt_state_has_news(world_state(a)) || crdt_state_has_news(world_state(b)) ||
        gossip_member_count(g) != gossip_member_count(h))
        return false;
    for (unsigned i = 0; i < gossip_member_count(g); i++) {
        struct gossip_member m, k;
        gossip_member_at(g, i, world_mono_us(a), &m);
        if (gossip_member_find(h, m.node, world_mono_us(b), &k) != ERR_OK)
            return false;
        if (m.incarnation >> 16 != k.incarnation >> 16 || m.seq_applied != k.seq_applied ||
            m.seq_applied != m.seq_known || k.seq_applied != k.seq_known)
            return false;
    }
    return true;
}

struct differing {
    const struct sim_world *w;
    const struct world_node *a, *b;
    uint32_t from;
};

static void differing_say(void *context, uint64_t id48, uint8_t code, unsigned replica,
                          uint32_t generation)
{
    struct differing *d = context;
    const struct crdt_replica *r =
        crdt_registry_at(crdt_state_registry(world_state(d->a)), replica);
    struct crdt_state *s = world_state(d->b);
    int slot = crdt_registry_by_rkey(crdt_state_registry(s), r->rkey);
    uint32_t other = 0;
    if (generation < d->from ||
        (slot >= 0 &&
         crdt_index_get(crdt_state_index(s), id48, (unsigned)slot, code, &other) == ERR_OK &&
         other == generation))
        return;
    sim_say(d->w, "%s has id %012llx code %u of %.*s generation %u, %s has %u (slot %d)",
            d->a->name, (unsigned long long)id48, code, (int)r->name_len, r->name, generation,
            d->b->name, other, slot);
}

void sim_oracle_differing_say(struct sim_world *w, const struct world_node *a,
                              const struct world_node *b, uint32_t from)
{
    if (!w->config.verbose)
        return;
    struct differing d = {w, a, b, from};
    crdt_index_each(crdt_state_index(world_state(a)), differing_say, &d);
    d = (struct differing){w, b, a, from};
    crdt_index_each(crdt_state_index(world_state(b)), differing_say, &d);
}

/* A snapshot has more than the starting vector shows, until the stream has caught up. The same
 * holds for anti-entropy when a router comes back (seed 935543781, strict). */
static bool caught_up(const struct sim_world *w, const struct world_node *n)
{
    const struct sim_record *record = sim_of(n);
    uint64_t brought_us = n->life > 1 ? record->ready_us : 0;
    if (brought_us < record->message_us)
        brought_us = record->message_us;
    return (n->life == 1 || record->ready_us > 0) &&
           (brought_us == 0 || w->world.now_us - brought_us > CAUGHT_UP_US);
}

/* Equal vectors and floors mean equal observations, if anti-entropy brings nothing besides the
 * deltas, and no item is passed over. */
static void same_check(struct sim_world *w, struct world_node *a, struct world_node *b)
{
    if (!caught_up(w, a) || !caught_up(w, b) || !heard_the_same(a, b))
        return;
    const struct crdt_index *x = crdt_state_index(world_state(a));
    const struct crdt_index *y = crdt_state_index(world_state(b));
    uint32_t from =
        crdt_index_floor(x) > crdt_index_floor(y) ? crdt_index_floor(x) : crdt_index_floor(y);
    w->compared++;
    if (crdt_index_digest(x, from) == crdt_index_digest(y, from))
        return;
    sim_oracle_differing_say(w, a, b, from);
    sim_beliefs_say(w);
    sim_broken(w, "equal vectors", "%s and %s heard the same and hold something else", a->name,
               b->name);
}

void sim_oracle_all(struct sim_world *w)
{
    unsigned n = w->config.nodes;
    uint64_t passed_us = w->world.now_us - w->looked_us;
    w->looked_us = w->world.now_us;
    sim_engines_look(w);
    for (unsigned i = 0; i < n; i++) {
        struct world_node *a = &w->world.nodes[i], *b = &w->world.nodes[(i + 1) % n];
        if (!world_runs(a))
            continue;
        if (sim_of(a)->ready_us == 0 && node_replication_ready(a->node->replication))
            sim_of(a)->ready_us = w->world.now_us;
        sim_heard_look(w, a, passed_us);
        sim_engines_names_check(w, a);
        vector_check(w, a);
        sim_reported_dead_check(w, a);
        if (sim_pure_stream(w))
            refuted_check(w, a);
        if (sim_pure_stream(w) && world_runs(b) && a != b)
            same_check(w, a, b);
    }
}
