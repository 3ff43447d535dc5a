/* The table of peers: slots, names, order, and the digests of entries. */
#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "gossip/gossip_internal.h"

/* If no packet comes for this multiple of suspect_us, this node counts as not hearing the peer. */
enum { PEER_SILENT_SUSPECTS = 2 };

uint64_t gossip_node_id(const char *name)
{
    /* A fixed secret: all nodes must compute the same id. Attackers cannot announce names, because
     * only nodes with the key do. */
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 0x67726170);
    uint64_t node = hash64(&secret, name, strlen(name));
    return node != 0 ? node : 1;
}

/* --- table ----------------------------------------------------------------------------------- */

static unsigned node_place(const struct gossip *g, uint64_t node)
{
    unsigned i = (unsigned)hash_mix(node) % GOSSIP_NODES_HASH;
    while (g->nodes[i] != 0 && g->slots[g->nodes[i] - 1]->node != node)
        i = (i + 1) % GOSSIP_NODES_HASH;
    return i;
}

struct gossip_peer *gossip_peer_find(const struct gossip *g, uint64_t node)
{
    uint16_t slot = g->nodes[node_place(g, node)];
    return slot == 0 ? NULL : g->slots[slot - 1];
}

struct gossip_peer *gossip_peer_add(struct gossip *g, uint64_t node)
{
    if (g->strangers >= GOSSIP_STRANGERS_MAX || g->listed + g->strangers >= GOSSIP_SLOTS) {
        g->stats.no_room++;
        return NULL;
    }
    struct gossip_peer *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    unsigned slot = 0;
    while (g->slots[slot] != NULL)
        slot++;
    p->slot = (uint16_t)slot;
    p->node = node;
    p->since_us = g->now_us;
    /* Message ids must not start low: a dropped peer may still remember older ids, and takes lower
     * ids for repeats. Ids rise more slowly than milliseconds. */
    p->message_id = (g->now_us - g->created_us) / 1000;
    gossip_stream_restart(&p->stream, 0);
    g->slots[slot] = p;
    if (slot >= g->slots_used)
        g->slots_used = slot + 1;
    g->nodes[node_place(g, node)] = (uint16_t)(slot + 1);
    g->strangers++;
    gossip_tick_by(g, g->now_us);
    return p;
}

/* The position of a name in `order`, even if the name is not in it. */
static unsigned order_place(const struct gossip *g, const char *name)
{
    unsigned low = 0;
    unsigned high = g->listed;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (strcmp(g->order[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void gossip_peer_unlist(struct gossip *g, struct gossip_peer *p)
{
    unsigned at = order_place(g, p->name);
    CHECK(at < g->listed && g->order[at] == p);
    if (gossip_peer_live(p) && !p->self)
        g->live--;
    g->listed--;
    memmove(&g->order[at], &g->order[at + 1], (g->listed - at) * sizeof(struct gossip_peer *));
    p->listed = false;
    g->strangers++;
    gossip_peer_account(g, p);
}

/* The slot will belong to another author: clears all announced positions at this slot. */
static void forget_author(struct gossip *g, const struct gossip_peer *author)
{
    for (unsigned slot = 0; slot < g->slots_used; slot++)
        if (g->slots[slot] != NULL && author->slot < g->slots[slot]->announced_len)
            g->slots[slot]->announced[author->slot] = (struct gossip_position){0};
}

void gossip_peer_remove(struct gossip *g, struct gossip_peer *p)
{
    CHECK(!p->self);
    if (p->listed)
        gossip_peer_unlist(g, p);
    g->strangers--;
    forget_author(g, p);
    gossip_session_wipe(&p->session);
    gossip_dial_wipe(&p->dial);
    free(p->announced);
    g->slots[p->slot] = NULL;
    free(p);
    while (g->slots_used > 0 && g->slots[g->slots_used - 1] == NULL)
        g->slots_used--;
    memset(g->nodes, 0, sizeof g->nodes);
    for (unsigned slot = 0; slot < g->slots_used; slot++)
        if (g->slots[slot] != NULL)
            g->nodes[node_place(g, g->slots[slot]->node)] = (uint16_t)(slot + 1);
}

void gossip_peer_enlist(struct gossip *g, struct gossip_peer *p, const char *name)
{
    memcpy(p->name, name, strlen(name) + 1);
    unsigned at = order_place(g, name);
    memmove(&g->order[at + 1], &g->order[at], (g->listed - at) * sizeof(struct gossip_peer *));
    g->order[at] = p;
    g->listed++;
    g->strangers--;
    p->listed = true;
    p->state = GOSSIP_ALIVE;
    p->since_us = p->proof_us = g->now_us;
    if (!p->self)
        g->live++;
}

/* --- digests --------------------------------------------------------------------------------- */

static uint64_t mix3(uint64_t a, uint64_t b, uint64_t c)
{
    return hash_mix(hash_mix(hash_mix(a + 0x9e3779b97f4a7c15u) ^ b) + c);
}

void gossip_peer_account(struct gossip *g, struct gossip_peer *p)
{
    bool live = gossip_peer_live(p);
    uint64_t digest = live ? mix3(p->node, p->incarnation, p->state) : 0;
    g->members_digest += digest - p->digest;
    g->near_stale = g->near_stale || (digest != 0) != (p->digest != 0);
    p->digest = digest;
    uint64_t seq = p->self ? g->ring.next - 1 : p->stream.applied;
    uint64_t epoch = p->self ? g->epoch : p->stream.epoch;
    uint64_t counted = live && seq > 0 ? mix3(p->node, epoch, seq) : 0;
    if (counted != p->counted) {
        g->vector_digest += counted - p->counted;
        g->vector_version++;
        p->counted = counted;
    }
}

/* --- what is known ---------------------------------------------------------------------------- */

void gossip_peer_describe(const struct gossip *g, const struct gossip_peer *p,
                          struct gossip_member *out)
{
    memset(out, 0, sizeof *out);
    out->node = p->node;
    out->incarnation = p->incarnation;
    out->state = p->state;
    const struct gossip_candidate *best = gossip_place_best(g, p);
    out->address = p->session.sending != 0 || best == NULL ? p->source : best->place.at;
    memcpy(out->name, p->name, sizeof out->name);
    memcpy(out->meta, p->meta, p->meta_len);
    out->meta_len = p->meta_len;
    out->self = p->self;
    out->session = p->session.sending != 0;
    out->understood = !p->foreign;
    out->quarantined = g->now_us < p->quarantine_us;
    out->speaks = p->self ? g->config.speaks : p->speaks;
    out->version = gossip_versions_common(g->config.speaks, out->speaks);
    out->since_us = p->since_us;
    out->heard_us = p->heard_us;
    out->near = p->near && gossip_peer_live(p);
    out->rtt_us = p->trip.smooth_us;
    out->seq_applied = p->self ? g->ring.next - 1 : p->stream.applied;
    out->seq_known = p->self ? g->ring.next - 1 : p->stream.known;
    out->lag_us =
        p->stream.gap_us != 0 && g->now_us > p->stream.gap_us ? g->now_us - p->stream.gap_us : 0;
    out->packets_in = p->packets_in;
    out->packets_out = p->packets_out;
    out->bytes_in = p->bytes_in;
    out->bytes_out = p->bytes_out;
}

void gossip_peer_publish(struct gossip *g, const struct gossip_peer *p)
{
    struct gossip_member m;
    gossip_peer_describe(g, p, &m);
    g->app.member(g->app.context, &m, g->now_us);
}

void gossip_peer_lost(struct gossip *g, struct gossip_peer *author, uint64_t deltas)
{
    g->stats.gaps_lost += deltas;
    g->app.lost(g->app.context, author->node, g->now_us);
}

void gossip_peer_conflict(struct gossip *g, uint64_t node, const struct gossip_address *at)
{
    static const struct gossip_address unknown;
    bool known = at != NULL && !gossip_place_advertised(g->self, at);
    g->stats.name_conflicts++;
    g->stats.name_conflict_us = g->now_us;
    if (known || g->stats.name_conflict != node)
        g->stats.name_conflict_at = known ? *at : unknown;
    g->stats.name_conflict = node;
}

uint64_t gossip_peer_random(struct gossip *g, uint64_t except)
{
    uint64_t chosen = 0, silent = 0;
    unsigned seen = 0, silents = 0;
    for (unsigned i = 0; i < g->listed; i++) {
        const struct gossip_peer *p = g->order[i];
        if (!gossip_peer_shares(p) || p->state != GOSSIP_ALIVE || p->node == except ||
            g->now_us < p->quarantine_us)
            continue;
        if (g->now_us < gossip_peer_quiet_us(g, p) + PEER_SILENT_SUSPECTS * g->config.suspect_us) {
            if (prng_below(&g->prng, ++seen) == 0)
                chosen = p->node;
        } else if (prng_below(&g->prng, ++silents) == 0) {
            silent = p->node;
        }
    }
    return chosen != 0 ? chosen : silent;
}

void gossip_peers_check(const struct gossip *g)
{
    uint64_t members = 0;
    uint64_t vector = 0;
    unsigned listed = 0;
    unsigned strangers = 0;
    unsigned live = 0;
    for (unsigned slot = 0; slot < GOSSIP_SLOTS; slot++) {
        const struct gossip_peer *p = g->slots[slot];
        CHECK(p == NULL || slot < g->slots_used);
        if (p == NULL)
            continue;
        CHECK(p->slot == slot && gossip_peer_find(g, p->node) == p);
        listed += p->listed;
        strangers += !p->listed;
        live += gossip_peer_live(p) && !p->self;
        members += p->digest;
        vector += p->counted;
        gossip_stream_check(&p->stream);
        gossip_places_check(p);
        CHECK(p->listed || (p->digest == 0 && p->counted == 0));
        CHECK(!p->listed || p->incarnation >> 16 != 0);
    }
    CHECK(members == g->members_digest && vector == g->vector_digest);
    CHECK(listed == g->listed && strangers == g->strangers && live == g->live);
    CHECK(live < g->config.routers_max);
    CHECK(g->self->listed && g->self->incarnation >> 16 == g->epoch);
    for (unsigned i = 0; i < g->listed; i++) {
        CHECK(g->order[i]->listed);
        CHECK(i == 0 || strcmp(g->order[i - 1]->name, g->order[i]->name) < 0);
    }
}
