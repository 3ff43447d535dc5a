/* The table of peers, and the rule which news of a member wins. */
#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"
#include "gossip/gossip_internal.h"

enum {
    RISES_FREE_US = 300000000, /* a rise of the epoch is forgotten after so long */
    RISE_WAIT_US = 1000000,    /* the second one waits so long, each further one twice as long */
    RISE_DOUBLINGS_MAX = 6,
    RISE_SPREAD = 4096, /* milliseconds of epoch */
    EVICT_SILENT_US = 10000000,
};

uint64_t gossip_node_id(const char *name)
{
    /* A fixed secret: all nodes must agree, and only holders of the key give names. */
    struct hash_secret secret;
    hash_secret_from_seed(&secret, 0x67726170);
    uint64_t node = hash64(&secret, name, strlen(name));
    return node != 0 ? node : 1;
}

bool gossip_address_equal(const struct gossip_address *a, const struct gossip_address *b)
{
    return a->port == b->port && a->family == b->family &&
           memcmp(a->ip, b->ip, a->family == 4 ? 4 : 16) == 0;
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
    gossip_stream_restart(&p->stream, 0);
    g->slots[slot] = p;
    if (slot >= g->slots_used)
        g->slots_used = slot + 1;
    g->nodes[node_place(g, node)] = (uint16_t)(slot + 1);
    g->strangers++;
    gossip_tick_by(g, g->now_us);
    return p;
}

/* The place of a name in the order, whether it is there or not. */
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

static void unlist(struct gossip *g, struct gossip_peer *p)
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

void gossip_peer_remove(struct gossip *g, struct gossip_peer *p)
{
    CHECK(!p->self);
    if (p->listed)
        unlist(g, p);
    g->strangers--;
    gossip_vector_forget(g, p);
    gossip_session_wipe(&p->session);
    gossip_dial_wipe(&p->dial);
    free(p->told);
    g->slots[p->slot] = NULL;
    free(p);
    while (g->slots_used > 0 && g->slots[g->slots_used - 1] == NULL)
        g->slots_used--;
    memset(g->nodes, 0, sizeof g->nodes);
    for (unsigned slot = 0; slot < g->slots_used; slot++)
        if (g->slots[slot] != NULL)
            g->nodes[node_place(g, g->slots[slot]->node)] = (uint16_t)(slot + 1);
}

/* Room for one more member: the one that is dead for longest goes. */
static bool make_room(struct gossip *g)
{
    if (g->listed < GOSSIP_MEMBERS_MAX)
        return true;
    struct gossip_peer *oldest = NULL;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        if (p->state >= GOSSIP_DEAD && !p->self && p->heard_us + EVICT_SILENT_US < g->now_us &&
            (oldest == NULL || p->since_us < oldest->since_us))
            oldest = p;
    }
    if (oldest == NULL) {
        g->stats.no_room++;
        return false;
    }
    gossip_peer_remove(g, oldest);
    return true;
}

void gossip_peer_refused(struct gossip *g, const char *name, uint32_t limit)
{
    g->stats.routers_refused++;
    memcpy(g->stats.router_refused, name, strlen(name) + 1);
    g->stats.routers_limit = limit;
}

static bool younger(const struct gossip_peer *p, uint64_t epoch, uint64_t node)
{
    uint64_t own = p->incarnation >> 16;
    return own != epoch ? own > epoch : p->node > node;
}

/* Whether a router of this life may live. Where there are too many the youngest is refused, be it
 * this one or another that has to go for it: so all come to refuse the same. */
static bool admit(struct gossip *g, const char *name, uint64_t node, uint64_t epoch)
{
    if (g->live + 1 < g->config.routers_max)
        return true;
    struct gossip_peer *youngest = NULL;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        if (gossip_peer_live(p) && !p->self &&
            (youngest == NULL || younger(p, youngest->incarnation >> 16, youngest->node)))
            youngest = p;
    }
    if (youngest == NULL || !younger(youngest, epoch, node)) {
        gossip_peer_refused(g, name, g->config.routers_max);
        return false;
    }
    gossip_peer_refused(g, youngest->name, g->config.routers_max);
    gossip_rumour_refuse(g, youngest);
    gossip_peer_part(g, youngest);
    return true;
}

static void enlist(struct gossip *g, struct gossip_peer *p, const char *name)
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

/* --- the rule -------------------------------------------------------------------------------- */

struct gossip_frame_member gossip_peer_entry(const struct gossip *g, const struct gossip_peer *to,
                                             const struct gossip_peer *p)
{
    return (struct gossip_frame_member){
        .incarnation = p->incarnation,
        .state = p->state,
        .address = gossip_link_place(g, to, p),
        .name = slice_of_cstr(p->name),
        .meta = slice_of((const char *)p->meta, p->meta_len),
    };
}

void gossip_peer_describe(const struct gossip *g, const struct gossip_peer *p,
                          struct gossip_member *out)
{
    memset(out, 0, sizeof *out);
    out->node = p->node;
    out->incarnation = p->incarnation;
    out->state = p->state;
    out->address = p->advertised.port != 0 ? p->advertised
                   : p->source.port != 0   ? p->source
                                           : p->hint;
    memcpy(out->name, p->name, sizeof out->name);
    memcpy(out->meta, p->meta, p->meta_len);
    out->meta_len = p->meta_len;
    out->self = p->self;
    out->session = p->session.sending != 0;
    out->heard_us = p->heard_us;
    out->rtt_us = p->rtt_us;
    out->seq_applied = p->self ? g->ring.next - 1 : p->stream.applied;
    out->seq_known = p->self ? g->ring.next - 1 : p->stream.known;
    out->lag_us =
        p->stream.gap_us != 0 && g->now_us > p->stream.gap_us ? g->now_us - p->stream.gap_us : 0;
    out->packets_in = p->packets_in;
    out->packets_out = p->packets_out;
    out->bytes_in = p->bytes_in;
    out->bytes_out = p->bytes_out;
}

void gossip_peer_announce(struct gossip *g, const struct gossip_peer *p)
{
    struct gossip_member m;
    gossip_peer_describe(g, p, &m);
    g->app.member(g->app.context, &m, g->now_us);
}

static void enter_state(struct gossip *g, struct gossip_peer *p, enum gossip_state state)
{
    bool was_live = gossip_peer_live(p);
    p->state = state;
    p->since_us = g->now_us;
    p->accused_here = false;
    p->patience_us = prng_below(&g->prng, g->config.suspect_us / 4);
    g->live += (unsigned)gossip_peer_live(p) - (unsigned)was_live;
    if (state == GOSSIP_ALIVE) {
        p->proof_us = g->now_us;
        p->dial_wait = 0;
    } else if (state >= GOSSIP_DEAD) {
        /* From now on it is called now and then, see gossip/watch.c. */
        p->dial_wait = 0;
        p->dial_us = g->now_us + g->config.dead_us;
    }
    if (state == GOSSIP_DEAD)
        g->stats.died++;
    gossip_tick_by(g, g->now_us);
}

void gossip_peer_state(struct gossip *g, struct gossip_peer *p, enum gossip_state state)
{
    enter_state(g, p, state);
    gossip_peer_account(g, p);
    gossip_peer_announce(g, p);
    if (state >= GOSSIP_DEAD && p->stream.known > p->stream.applied)
        gossip_push_lost(g, p, p->stream.known - p->stream.applied);
}

/* Where it is, in the life that is known. Its own word is the truth that may be handed on; what
 * others say is a place to try. */
static void take_place(struct gossip *g, struct gossip_peer *p,
                       const struct gossip_frame_member *said, bool own_word)
{
    if (own_word) {
        p->word_epoch = said->incarnation >> 16;
        p->advertised = said->address;
    } else {
        gossip_link_hint(g, p, &said->address);
    }
}

void gossip_peer_part(struct gossip *g, struct gossip_peer *p)
{
    CHECK(p->listed && !p->self);
    unlist(g, p);
    p->state = GOSSIP_LEFT;
    p->since_us = g->now_us;
    gossip_peer_announce(g, p);
}

/* A greater incarnation: everything that it says of itself is new. */
static void adopt(struct gossip *g, struct gossip_peer *p, const struct gossip_frame_member *said,
                  bool own_word)
{
    uint64_t epoch = said->incarnation >> 16;
    uint64_t lost = 0;
    p->incarnation = said->incarnation;
    take_place(g, p, said, own_word);
    p->meta_len = (uint16_t)said->meta.len;
    if (said->meta.len > 0)
        memcpy(p->meta, said->meta.at, said->meta.len);
    if (epoch != p->stream.epoch && !(BUG(EPOCH_IGNORED) && p->stream.epoch != 0)) {
        lost = p->stream.known - p->stream.applied;
        gossip_stream_restart(&p->stream, epoch);
        gossip_vector_adopt_one(g, p);
    }
    enter_state(g, p, said->state);
    gossip_peer_account(g, p);
    gossip_peer_announce(g, p);
    if (lost > 0)
        gossip_push_lost(g, p, lost);
}

static int join_new(struct gossip *g, struct gossip_peer *p, uint64_t node, const char *name,
                    const struct gossip_frame_member *said, bool own_word)
{
    /* The dead are not handed on: else nobody would ever forget them. */
    if (said->state >= GOSSIP_DEAD || g->now_us < g->full_us)
        return 0;
    if (!admit(g, name, node, said->incarnation >> 16))
        return ERR_LIMIT;
    if (!make_room(g))
        return ERR_FULL;
    if (p == NULL)
        p = gossip_peer_add(g, node);
    if (p == NULL)
        return ERR_FULL;
    enlist(g, p, name);
    /* Who hears of a newcomer at the same time dials at the same time: spread that. */
    if (p->session.sending == 0 && !p->greeting)
        p->dial_us = g->now_us + prng_below(&g->prng, 1000 + 100 * (uint64_t)g->listed);
    adopt(g, p, said, own_word);
    return 1;
}

int gossip_peer_join(struct gossip *g, const struct gossip_frame_member *said, bool own_word)
{
    char name[GOSSIP_NAME_MAX + 1];
    slice_to_cstr(said->name, name, sizeof name);
    uint64_t node = gossip_node_id(name);
    struct gossip_peer *p = gossip_peer_find(g, node);
    if (p == NULL || !p->listed)
        return join_new(g, p, node, name, said, own_word);
    if (p->self || strcmp(p->name, name) != 0)
        return 0;
    if (said->incarnation > p->incarnation) {
        if (!gossip_peer_live(p) && said->state <= GOSSIP_SUSPECT &&
            !admit(g, name, node, said->incarnation >> 16))
            return ERR_LIMIT;
        adopt(g, p, said, own_word);
        return 1;
    }
    if (said->incarnation >> 16 == p->incarnation >> 16)
        take_place(g, p, said, own_word);
    if (said->incarnation < p->incarnation || said->state <= p->state)
        return 0;
    gossip_peer_state(g, p, said->state);
    return 1;
}

void gossip_peer_conflict(struct gossip *g, uint64_t node, const struct gossip_address *at)
{
    static const struct gossip_address unknown;
    bool known = at != NULL && !gossip_address_equal(at, &g->self->advertised);
    g->stats.name_conflicts++;
    if (known || g->stats.name_conflict != node)
        g->stats.name_conflict_at = known ? *at : unknown;
    g->stats.name_conflict = node;
}

bool gossip_self_rise(struct gossip *g, uint64_t above)
{
    struct gossip_peer *self = g->self;
    uint64_t incarnation = self->incarnation + 1;
    if (above >= incarnation)
        incarnation = above + 1;
    if (above >> 16 > g->epoch) {
        /* A later life is remembered than this one: our clock went back, or there is another node
         * of this name. The first is settled by one rise. Two nodes that outbid one another must
         * not flood the cluster. How far it rises is random: two lives that learn from different
         * peers of the same earlier one must not take the same epoch. */
        incarnation = ((above >> 16) + 1 + prng_below(&g->prng, RISE_SPREAD)) << 16;
        if (g->rises > 0 && g->now_us - g->rise_us > RISES_FREE_US)
            g->rises = 0;
        if (g->rises > 0) {
            unsigned doublings =
                g->rises - 1 < RISE_DOUBLINGS_MAX ? g->rises - 1 : RISE_DOUBLINGS_MAX;
            gossip_peer_conflict(g, self->node, NULL);
            if (g->now_us - g->rise_us < (uint64_t)RISE_WAIT_US << doublings)
                return false;
        }
        g->rises++;
        g->rise_us = g->now_us;
    }
    if (incarnation >> 16 >= GOSSIP_EPOCH_LIMIT)
        return false;
    self->incarnation = incarnation;
    if (incarnation >> 16 != g->epoch) {
        g->epoch = incarnation >> 16;
        gossip_ring_restart(&g->ring);
        g->tail_us = GOSSIP_NEVER;
    }
    gossip_peer_account(g, self);
    gossip_peer_announce(g, self);
    return true;
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
