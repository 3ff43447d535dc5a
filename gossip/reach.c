/* Dials members and seeds: decides which address, and when. */
#include <sodium.h>

#include "gossip/gossip_internal.h"

enum {
    WAIT_FIRST_US = 100000,
    FIRST_DIALS = 3,       /* the first dials are WAIT_FIRST_US apart, in case a packet is lost;
                            * then the wait doubles */
    WAIT_MAX_US = 1000000, /* longest wait between dials to a live member */
    WAIT_LOST_MAX_US = 10000000, /* wait between dials to a departed member; longest wait between
                                  * dials to a dead member (dead_wait_us()) */
    DEAD_SHARE_US = 500000,      /* all live members together dial a dead member once in this
                                  * time */
    DEAD_DIALS_S = 8,            /* dials per second from a node to all dead members together */
    WAIT_SEED_MAX_US = 4000000,  /* longest wait between dials to a seed, plus up to a quarter at
                                  * random */
    WAIT_LOST_FIRST_US = 1000000,
    SEED_LOOK_US = 1000000,    /* interval of checks of a seed while its router has a session */
    SHARED_LOOK_US = 60000000, /* interval of dials to a shared address */
    KNOCK_SEEDS_MAX = 4,       /* with at most this number of seeds, all may be the same shared
                                * address, in two families */
    KNOCKS_FIRST = 8,
    KNOCK_FIRST_US = 100000,  /* wait between the first knocks, plus up to a half at random */
    KNOCK_EVERY_US = 5000000, /* time between later knocks, plus up to a quarter at random */
    SILENT_SUSPECTS = 2,      /* after 2 * suspect_us without a packet, the session may be dead */
};

/* --- members --------------------------------------------------------------------------------- */

void gossip_reach_hint(struct gossip *g, struct gossip_peer *p)
{
    if (!gossip_peer_live(p) || p->session.sending != 0 || p->greeting)
        return;
    uint64_t due_us = g->now_us + prng_below(&g->prng, 1000 + 100 * (uint64_t)g->listed);
    if (p->dialled_us != 0 && due_us < p->dialled_us + WAIT_FIRST_US)
        due_us = p->dialled_us + WAIT_FIRST_US;
    if (due_us < p->dial_us)
        p->dial_us = due_us;
    gossip_tick_by(g, p->dial_us);
}

/* The wait between two dials to a dead member. Such dials detect that a partition has healed. So a
 * node alone dials every second, and each of many live nodes less often. Departed members do not
 * count: they announced that they left, and restarts under new names leave many of them. */
static uint64_t dead_wait_us(const struct gossip *g)
{
    uint64_t dead = 0;
    for (unsigned i = 0; i < g->listed; i++)
        dead += g->order[i]->state == GOSSIP_DEAD;
    uint64_t wait_us = (uint64_t)g->live * DEAD_SHARE_US, own_us = dead * 1000000 / DEAD_DIALS_S;
    wait_us = wait_us > own_us ? wait_us : own_us;
    wait_us = wait_us > WAIT_LOST_FIRST_US ? wait_us : WAIT_LOST_FIRST_US;
    return wait_us < WAIT_LOST_MAX_US ? wait_us : WAIT_LOST_MAX_US;
}

static uint64_t wait_max_us(const struct gossip *g, const struct gossip_peer *p)
{
    return p->state == GOSSIP_DEAD   ? dead_wait_us(g)
           : p->state == GOSSIP_LEFT ? WAIT_LOST_MAX_US
                                     : WAIT_MAX_US;
}

void gossip_reach_peer(struct gossip *g, struct gossip_peer *p)
{
    const struct gossip_candidate *at = gossip_place_best(g, p);
    unsigned places = p->places_count > 0 ? p->places_count : 1; /* all places are dialled with one
                                                                  * key, then all with the next */
    if (at != NULL && gossip_link_dial(g, &p->dial, &at->place.at, p->slot, p->dials / places))
        gossip_place_dialled(p, &at->place.at);
    if (p->dials >= p->places_count && gossip_peer_live(p))
        gossip_ask_where(g, p); /* the member has no place, or no place answers */
    p->dials++;
    p->dialled_us = g->now_us;
    bool lost = p->state >= GOSSIP_DEAD;
    uint64_t first = lost ? WAIT_LOST_FIRST_US : WAIT_FIRST_US;
    uint64_t most = wait_max_us(g, p);
    /* Waits at least a round trip: a hello given up before a welcome can arrive is wasted. */
    uint64_t trip_us = p->trip.rough ? 0 : gossip_trip_wait_us(&p->trip, 0);
    if (lost && most < trip_us)
        most = trip_us;
    first = first > trip_us ? first : trip_us < most ? trip_us : most;
    p->dial_wait = p->dial_wait == 0 || p->dials <= FIRST_DIALS ? first : p->dial_wait * 2;
    if (p->dial_wait > most)
        p->dial_wait = most;
    p->dial_us = g->now_us + p->dial_wait + prng_below(&g->prng, p->dial_wait / 4);
}

uint64_t gossip_reach_tick(struct gossip *g, struct gossip_peer *p)
{
    uint64_t silent_us = gossip_peer_quiet_us(g, p) + SILENT_SUSPECTS * g->config.suspect_us;
    switch (gossip_session_age(&p->session, g->now_us)) {
    case GOSSIP_SESSION_FRESH:
        if (!gossip_peer_live(p))
            return GOSSIP_NEVER;
        if (g->now_us < silent_us)
            return silent_us;
        break; /* alive according to others, but silent here: after a restart the peer has no keys
                * for this session */
    case GOSSIP_SESSION_AWAITED:
    case GOSSIP_SESSION_NONE:
    case GOSSIP_SESSION_OLD:
        break;
    }
    if (!p->listed)
        return GOSSIP_NEVER; /* a stranger has to dial this node */
    if (g->now_us >= p->dial_us)
        gossip_reach_peer(g, p);
    return p->dial_us;
}

/* --- seeds ----------------------------------------------------------------------------------- */

static bool dial(struct gossip *g, struct gossip_seed *seed, unsigned key)
{
    return gossip_link_dial(g, &seed->dial, &seed->at, GOSSIP_SLOTS + (unsigned)(seed - g->seeds),
                            key);
}

/* Sends hellos until the seed answers. After that, dials only if the answering member is lost, or
 * now and then if several routers answered there. */
static void dial_seed(struct gossip *g, struct gossip_seed *seed)
{
    const struct gossip_peer *p = seed->node != 0 ? gossip_peer_find(g, seed->node) : NULL;
    if (p != NULL && gossip_peer_open(p)) {
        seed->dial_wait = 0;
        seed->dials = 0;
        if (seed->dial_us < g->now_us + SEED_LOOK_US)
            seed->dial_us = g->now_us + SEED_LOOK_US;
        if (seed->shared && g->now_us >= seed->shared_us) {
            seed->shared_us = g->now_us + SHARED_LOOK_US;
            dial(g, seed, 0);
        }
    } else if (g->now_us >= seed->dial_us && g->now_us < g->full_us) {
        seed->dial_us = g->full_us;
    } else if (g->now_us >= seed->dial_us) {
        dial(g, seed, seed->dials++);
        seed->dial_wait = seed->dial_wait == 0 ? WAIT_FIRST_US : seed->dial_wait * 2;
        if (seed->dial_wait > WAIT_SEED_MAX_US)
            seed->dial_wait = WAIT_SEED_MAX_US;
        seed->dial_us = g->now_us + seed->dial_wait + prng_below(&g->prng, seed->dial_wait / 4);
    }
}

/* True if the address may lead to a different router each time. If the answering router advertises
 * the address, the address belongs to that router. */
static bool may_be_shared(const struct gossip *g, const struct gossip_seed *seed)
{
    const struct gossip_peer *p = seed->node != 0 ? gossip_peer_find(g, seed->node) : NULL;
    return p == NULL || !(gossip_peer_live(p) && gossip_place_advertised(p, &seed->at));
}

/* An address may be shared by all routers (a virtual IP): a load balancer sends each packet, or all
 * packets from the same port, to one of them. A hello meets a single router, and routers that meet
 * in pairs would never hear of the other pairs. So the node knocks at the seeds, each time from
 * another port. If there are few seeds, it knocks often at first. Later it knocks now and then, for
 * ever. */
static uint64_t knock_at_seeds(struct gossip *g)
{
    uint64_t due = GOSSIP_NEVER;
    if (g->config.port == 0 || g->seeds_count == 0 || g->now_us < g->full_us)
        return due;
    for (unsigned i = 0; i < g->seeds_count && g->seeds_count <= KNOCK_SEEDS_MAX; i++) {
        struct gossip_seed *seed = &g->seeds[i];
        if (seed->knocks >= KNOCKS_FIRST || seed->node == 0)
            continue; /* enough knocks, or the seed has not answered a hello yet */
        if (g->now_us >= seed->knock_us) {
            if (may_be_shared(g, seed))
                gossip_link_knock(g, seed);
            seed->knocks++;
            seed->knock_us = g->now_us + KNOCK_FIRST_US + prng_below(&g->prng, KNOCK_FIRST_US / 2);
        }
        due = seed->knock_us < due ? seed->knock_us : due;
    }
    if (g->now_us >= g->knock_us) {
        unsigned i = g->seed_next++ % g->seeds_count;
        if (g->knock_us != 0 && may_be_shared(g, &g->seeds[i]))
            gossip_link_knock(g, &g->seeds[i]);
        g->knock_us = g->now_us + KNOCK_EVERY_US + prng_below(&g->prng, KNOCK_EVERY_US / 4);
    }
    return g->knock_us < due ? g->knock_us : due;
}

uint64_t gossip_reach_seeds(struct gossip *g)
{
    uint64_t due = knock_at_seeds(g);
    for (unsigned i = 0; i < g->seeds_count; i++) {
        dial_seed(g, &g->seeds[i]);
        if (g->seeds[i].dial_us < due)
            due = g->seeds[i].dial_us;
    }
    return due;
}

void gossip_seeds(struct gossip *g, const struct gossip_address *at, unsigned count,
                  uint64_t now_us)
{
    if (now_us > g->now_us)
        g->now_us = now_us;
    struct gossip_seed known[GOSSIP_SEEDS_MAX];
    unsigned known_count = g->seeds_count;
    memcpy(known, g->seeds, known_count * sizeof known[0]);
    g->seeds_count = 0;
    for (unsigned i = 0; i < count && g->seeds_count < GOSSIP_SEEDS_MAX; i++) {
        if (at[i].port == 0)
            continue;
        bool again = false;
        for (unsigned j = 0; j < g->seeds_count; j++)
            again = again || gossip_address_equal(&g->seeds[j].at, &at[i]);
        if (again)
            continue;
        struct gossip_seed *seed = &g->seeds[g->seeds_count++];
        *seed = (struct gossip_seed){
            .at = at[i], .dial_us = g->now_us, .knock_us = g->now_us + KNOCK_FIRST_US / 2};
        for (unsigned j = 0; j < known_count; j++) {
            if (gossip_address_equal(&known[j].at, &at[i])) {
                *seed = known[j];
                /* The door of a hello in transit has the seed's old number, so the dial is given
                 * up. */
                if (j != g->seeds_count - 1)
                    gossip_dial_wipe(&seed->dial);
            }
        }
    }
    for (unsigned j = g->seeds_count; j < known_count; j++)
        gossip_dial_wipe(&g->seeds[j].dial);
    sodium_memzero(known, sizeof known);
    gossip_tick_by(g, g->now_us);
}
