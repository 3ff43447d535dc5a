/* Selects which members monitor each other. The members form a ring in the order of their ids. Each
 * member and the two neighbours on either side monitor each other, with frequent keep-alives and
 * suspicion after a second. All others are far: a few keep-alives a second go to them in turn. The
 * ring follows from the live members, so no agreement is needed. */
#include "gossip/gossip_internal.h"

enum {
    ALL_NEAR = 7,           /* up to this number of live others, all monitor each other */
    SIDE = GOSSIP_NEAR / 2, /* neighbours on one side */
    FAR_PEER_US = 2000000,  /* minimum time between keep-alives to a far peer */
    FAR_ROUNDS_SILENT = 3,  /* lost keep-alives before a far peer counts as silent */
};

/* Inserts a peer among the nearest on one side of the ring; the farthest drops out. */
static void nearest_add(struct gossip_peer *side[SIDE], uint64_t at[SIDE], struct gossip_peer *p,
                        uint64_t distance)
{
    for (unsigned i = 0; i < SIDE; i++) {
        if (side[i] != NULL && at[i] <= distance)
            continue;
        struct gossip_peer *next = side[i];
        uint64_t next_at = at[i];
        side[i] = p;
        at[i] = distance;
        p = next;
        distance = next_at;
        if (p == NULL)
            return;
    }
}

static void set_near(struct gossip *g, struct gossip_peer *p, bool near)
{
    if (near && !p->near) {
        p->near_us = g->now_us;
        p->proof_us = g->now_us;
    }
    p->near = near;
    g->far += !near;
}

void gossip_near_update(struct gossip *g)
{
    if (!g->near_stale)
        return;
    g->near_stale = false;
    struct gossip_peer *after[SIDE] = {NULL}, *before[SIDE] = {NULL};
    uint64_t after_at[SIDE] = {0}, before_at[SIDE] = {0};
    bool all = g->live <= ALL_NEAR;
    for (unsigned i = 0; i < g->listed && !all; i++) {
        struct gossip_peer *p = g->order[i];
        if (!gossip_peer_live(p) || p->self)
            continue;
        nearest_add(after, after_at, p, p->node - g->self->node);
        nearest_add(before, before_at, p, g->self->node - p->node);
    }
    g->far = 0;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        if (!gossip_peer_live(p) || p->self)
            continue;
        bool near = all;
        for (unsigned k = 0; k < SIDE; k++)
            near = near || p == after[k] || p == before[k];
        set_near(g, p, near);
    }
    uint64_t round_us = (uint64_t)g->far * GOSSIP_FAR_EVERY_US;
    g->quiet_us =
        g->far == 0 ? 0 : FAR_ROUNDS_SILENT * (round_us > FAR_PEER_US ? round_us : FAR_PEER_US);
    gossip_tick_by(g, g->now_us);
}

/* The far peer with the oldest full keep-alive. */
struct gossip_peer *gossip_near_next_far(const struct gossip *g, uint64_t *due_us)
{
    struct gossip_peer *next = NULL;
    for (unsigned i = 0; i < g->listed && g->far > 0; i++) {
        struct gossip_peer *p = g->order[i];
        if (!p->near && gossip_peer_open(p) && (next == NULL || p->full_us < next->full_us))
            next = p;
    }
    *due_us = next != NULL ? next->full_us + FAR_PEER_US : GOSSIP_NEVER;
    return next;
}
