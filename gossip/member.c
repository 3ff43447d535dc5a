/* The members: which news about a member wins, how many may live, and this node's life. */
#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "gossip/gossip_internal.h"

enum {
    RISES_FREE_US = 300000000, /* after this time without a rise of the epoch, earlier rises are
                                * forgotten */
    RISE_WAIT_US = 1000000,    /* wait before the second rise; doubles for each further rise */
    RISE_DOUBLINGS_MAX = 6,
    RISE_LEAST = 60000, /* milliseconds added to the epoch, to pass all earlier stamps (stamps.h) */
    RISE_SPREAD = 4096, /* random part of a rise, below this number of milliseconds */
    EVICT_SILENT_US = 10000000, /* a dead member heard within this time is not removed */
};

/* --- how many may live ------------------------------------------------------------------------ */

/* Makes room for another member: removes the member that has been dead or departed for longest.
 * False: there is no such member to remove. */
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

void gossip_member_refused(struct gossip *g, const char *name, uint32_t limit)
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

/* True if a router with this epoch may live. If too many routers live, the youngest is refused:
 * either the router `name`, or a member, which is then removed. So all nodes refuse the same
 * router. */
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
        gossip_member_refused(g, name, g->config.routers_max);
        return false;
    }
    gossip_member_refused(g, youngest->name, g->config.routers_max);
    gossip_announce_refusal(g, youngest);
    gossip_member_expel(g, youngest);
    return true;
}

/* --- the rule -------------------------------------------------------------------------------- */

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
        /* From now on the peer is dialled rarely, see gossip/watch.c. */
        p->dial_wait = 0;
        p->dial_us = g->now_us + g->config.dead_us;
    }
    if (state == GOSSIP_DEAD)
        g->stats.died++;
    gossip_tick_by(g, g->now_us);
}

void gossip_member_state(struct gossip *g, struct gossip_peer *p, enum gossip_state state)
{
    enter_state(g, p, state);
    gossip_peer_account(g, p);
    gossip_peer_publish(g, p);
    if (state >= GOSSIP_DEAD && p->stream.known > p->stream.applied)
        gossip_peer_lost(g, p, p->stream.known - p->stream.applied);
}

/* Takes the addresses for the member's current epoch. Only addresses reported by the member itself
 * may be passed on. Other members' hints are only tried. */
static void take_place(struct gossip *g, struct gossip_peer *p,
                       const struct gossip_frame_member *said, bool own_word)
{
    if (own_word) {
        gossip_place_word(p, said);
        gossip_place_yours(g, p, said);
        return;
    }
    bool news = false;
    for (unsigned i = 0; i < said->count; i++)
        if (said->places[i].kind != GOSSIP_PLACE_YOURS)
            news = gossip_place_hint(p, &said->places[i], said->incarnation >> 16) || news;
    if (news)
        gossip_reach_hint(g, p);
}

void gossip_member_expel(struct gossip *g, struct gossip_peer *p)
{
    CHECK(p->listed && !p->self);
    gossip_peer_unlist(g, p);
    p->state = GOSSIP_LEFT;
    p->since_us = g->now_us;
    gossip_peer_publish(g, p);
}

/* Takes the description of a member with a greater incarnation, which replaces the known
 * description. */
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
    gossip_peer_publish(g, p);
    if (lost > 0)
        gossip_peer_lost(g, p, lost);
}

static int join_new(struct gossip *g, struct gossip_peer *p, uint64_t node, const char *name,
                    const struct gossip_frame_member *said, bool own_word)
{
    /* Unknown dead members are ignored: otherwise nodes would never forget them. */
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
    gossip_peer_enlist(g, p, name);
    /* All members hear of a new member at the same time, so a random wait spreads their dials. */
    if (p->session.sending == 0 && !p->greeting)
        p->dial_us = g->now_us + prng_below(&g->prng, 1000 + 100 * (uint64_t)g->listed);
    adopt(g, p, said, own_word);
    return 1;
}

int gossip_member_join(struct gossip *g, const struct gossip_frame_member *said, bool own_word)
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
    if (said->incarnation >= p->incarnation ||
        (!own_word && said->incarnation >> 16 == p->incarnation >> 16))
        take_place(g, p, said, own_word);
    enum gossip_state state = said->state;
    /* Another node says that the member is dead, but this node hears it. So the member only becomes
     * suspect, and can refute the suspicion. */
    if (state == GOSSIP_DEAD && g->now_us - p->heard_us < g->config.suspect_us)
        state = GOSSIP_SUSPECT;
    if (said->incarnation < p->incarnation || state <= p->state)
        return 0;
    gossip_member_state(g, p, state);
    return 1;
}

/* --- this node ------------------------------------------------------------------------------- */

bool gossip_self_rise(struct gossip *g, uint64_t above)
{
    struct gossip_peer *self = g->self;
    uint64_t incarnation = self->incarnation + 1;
    if (above >= incarnation)
        incarnation = above + 1;
    if (above >> 16 > g->epoch) {
        /* Peers know a later epoch of this name: either this node's clock went back, or another
         * node has the name. A single rise solves the first case. In the second case the two nodes
         * must not flood the cluster by outbidding each other. The size of a rise is random:
         * otherwise two nodes of this name could take the same epoch after the same report. */
        incarnation = ((above >> 16) + RISE_LEAST + prng_below(&g->prng, RISE_SPREAD)) << 16;
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
    gossip_peer_publish(g, self);
    return true;
}
