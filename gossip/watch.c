/* Decides which members live: keep-alives, round trips, probes, suspicion, and this node's health.
 *
 * Every authenticated packet proves that the peer lives. Near peers (near.c) and suspects are
 * judged by their silence. If half of the near peers are silent, all peers are judged: this node
 * may be cut off, or many members died at once, perhaps with all nodes that monitor them. Each
 * observer has a random patience, so that a single observer accuses first. The others hear the
 * accusation and need not repeat it. */
#include "base/bug.h"
#include "gossip/gossip_internal.h"

enum {
    FULL_ALIVE_US = 1000000,
    SLACK_US = 10000,      /* timers less than this apart are merged */
    STRANGER_US = 5000000, /* time for a stranger to send an entry about itself */
    LATE_US = 100000,      /* lateness of the event loop that adds a point to `health` (0: good) */
    HEALTH_FALL_US = 1000000,
    MALFORMED_MAX = 16,
    MALFORMED_FALL_US = 1000000,
    QUARANTINE_US = 30000000,
    RTT_MAX_US = 60000000,
    PROBE_TENTHS = 6,       /* a silent peer is probed after this number of tenths of suspect_us */
    HELD_MAX_US = 2000000,  /* an echo held longer by the peer would also measure the clocks'
                             * drift */
    TWO_LIVES_US = 1000000, /* two epochs of a name heard within this time: two nodes */
};

/* --- keep-alive ------------------------------------------------------------------------------ */

static void take_round_trip(struct gossip *g, struct gossip_peer *p,
                            const struct gossip_frame_alive *f)
{
    p->echo = f->sent;
    p->echo_us = g->now_us;
    if (f->echo == 0 || f->held > HELD_MAX_US)
        return;
    uint32_t rtt = (uint32_t)g->now_us - f->echo - f->held;
    if (rtt > RTT_MAX_US)
        return; /* an echo from another epoch, or a result of the rounding of `sent` */
    /* If a node slept, packets waited for it. Then the time measures the sleep, not the network. */
    bool late = g->health > 0 || f->health > 0;
    if (late && rtt > (p->trip.smooth_us != 0 ? p->trip.smooth_us : LATE_US))
        return;
    gossip_trip_take(&p->trip, rtt);
}

bool gossip_watch_alive(struct gossip *g, struct gossip_peer *from,
                        const struct gossip_frame_alive *f)
{
    if (f->incarnation > from->incarnation) {
        gossip_ask_who(g, from);
        return false;
    }
    /* Sends the peer news about itself: a later epoch or a suspicion. The peer answers with a
     * greater incarnation. */
    if (f->incarnation < from->incarnation || from->state != GOSSIP_ALIVE)
        gossip_announce_again(g, from, from);
    if (f->incarnation == from->incarnation)
        from->spoke_us = g->now_us;
    else if (f->incarnation >> 16 < from->incarnation >> 16 && from->spoke_us != 0 &&
             g->now_us - from->spoke_us < TWO_LIVES_US && g->now_us - from->since_us > TWO_LIVES_US)
        /* Nodes with the same name and different epochs send at the same time. */
        gossip_peer_conflict(g, from->node, &from->source);
    if (f->incarnation >> 16 != from->stream.epoch)
        return false;
    if (f->full) {
        from->health = f->health;
        take_round_trip(g, from, f);
    }
    return true;
}

/* --- probes ---------------------------------------------------------------------------------- */

/* Sends a probe directly, and through helpers. */
static void probe(struct gossip *g, struct gossip_peer *p)
{
    p->nonce = (uint32_t)prng_next(&g->prng);
    p->probe_us = g->now_us + g->config.suspect_us / 4;
    if (gossip_peer_open(p))
        gossip_ask(g, p, false, &(struct gossip_frame_ping){.nonce = p->nonce});
    gossip_ask_helpers(g, p, &(struct gossip_frame_ping){.nonce = p->nonce, .target = p->node});
}

void gossip_watch_ping(struct gossip *g, struct gossip_peer *from,
                       const struct gossip_frame_ping *f)
{
    if (f->target == 0) {
        if (f->who)
            gossip_announce_self(g, from);
        gossip_ask(g, from, true,
                   &(struct gossip_frame_ping){.nonce = f->nonce, .origin = f->origin});
        return;
    }
    struct gossip_peer *target = gossip_peer_find(g, f->target);
    if (!from->listed || target == NULL || target == from || !gossip_peer_open(target))
        return;
    /* Question and answer both carry the asking node, so this node keeps no state. */
    if (f->who && gossip_announce_entry(g, from, target).count > 0)
        gossip_announce_again(g, from, target);
    else if (!f->who)
        gossip_ask(g, target, false,
                   &(struct gossip_frame_ping){.nonce = f->nonce, .origin = from->node});
}

void gossip_watch_ack(struct gossip *g, struct gossip_peer *from, const struct gossip_frame_ping *f)
{
    if (f->origin != 0) {
        struct gossip_peer *origin = gossip_peer_find(g, f->origin);
        if (origin != NULL && gossip_peer_open(origin))
            gossip_ask(g, origin, true,
                       &(struct gossip_frame_ping){.nonce = f->nonce, .target = from->node});
    } else if (f->target != 0) {
        struct gossip_peer *target = gossip_peer_find(g, f->target);
        if (target != NULL && target->nonce == f->nonce && f->nonce != 0)
            target->proof_us = g->now_us;
    }
}

/* --- timers of a peer ------------------------------------------------------------------------- */

static void accuse(struct gossip *g, struct gossip_peer *p, enum gossip_state state)
{
    g->stats.suspected += state == GOSSIP_SUSPECT;
    gossip_member_state(g, p, state);
    p->accused_here = true;
    gossip_announce_to_all(g, p);
    if (state == GOSSIP_SUSPECT)
        probe(g, p);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The time from which a silent peer is probed. */
static uint64_t silence_us(const struct gossip *g, const struct gossip_peer *p)
{
    bool quickly = p->near || g->alarmed || p->state == GOSSIP_SUSPECT;
    return p->proof_us + (uint64_t)g->config.suspect_us * PROBE_TENTHS / 10 +
           (quickly ? 0 : g->quiet_us);
}

/* The time at which a silent peer is suspected. Until then a probe through a helper can be
 * answered. */
static uint64_t suspicion_us(const struct gossip *g, const struct gossip_peer *p)
{
    uint64_t suspect_us = g->config.suspect_us;
    uint64_t way_us = 2 * p->trip.smooth_us;
    return silence_us(g, p) + suspect_us * (10 - PROBE_TENTHS) / 10 +
           (way_us < suspect_us ? way_us : suspect_us);
}

/* Suspects a silent peer, or declares a suspected peer dead. Returns the time of the next call. */
static uint64_t judge(struct gossip *g, struct gossip_peer *p)
{
    uint64_t suspect_us = g->config.suspect_us;
    uint64_t silent_us = suspicion_us(g, p) + p->patience_us;
    if (p->state == GOSSIP_ALIVE && g->now_us >= silent_us && g->now_us >= g->grace_us)
        accuse(g, p, GOSSIP_SUSPECT);
    uint64_t probe_us = silence_us(g, p);
    if (probe_us < p->probe_us)
        probe_us = p->probe_us;
    if (g->now_us >= probe_us) {
        probe(g, p);
        probe_us = p->probe_us;
    }
    uint64_t next_us = silent_us;
    if (p->state == GOSSIP_SUSPECT) {
        next_us = p->since_us + (uint64_t)g->config.dead_us * (1 + g->health);
        if (!p->accused_here)
            next_us += g->config.dead_us / 4 + p->patience_us;
        /* While this node hears a member, it does not declare the member dead, whatever others say:
         * the member will refute the suspicion. */
        if (next_us < p->proof_us + suspect_us)
            next_us = p->proof_us + suspect_us;
        if (g->now_us >= next_us && g->now_us >= g->grace_us) {
            accuse(g, p, GOSSIP_DEAD);
            return p->dial_us;
        }
    }
    if (next_us < g->grace_us)
        next_us = g->grace_us;
    return earlier(next_us, probe_us);
}

/* Dials a dead or departed member now and then, to detect that a partition has healed. Removes the
 * member after forget_us, and then returns 0; otherwise returns the time of the next call. */
static uint64_t call_lost(struct gossip *g, struct gossip_peer *p)
{
    if (g->now_us - p->since_us >= g->config.forget_us) {
        gossip_stamps_forgotten(&g->stamps, p->node);
        gossip_peer_remove(g, p);
        return 0;
    }
    if (g->now_us >= p->dial_us) {
        if (gossip_session_age(&p->session, g->now_us) >= GOSSIP_SESSION_FRESH) {
            gossip_announce_self(g, p);
            gossip_announce_again(g, p, p);
        }
        gossip_reach_peer(g, p);
    }
    return earlier(p->dial_us, p->since_us + g->config.forget_us);
}

uint64_t gossip_watch_tick(struct gossip *g, struct gossip_peer *p)
{
    if (!p->listed) {
        if (g->now_us - p->since_us < STRANGER_US)
            return p->since_us + STRANGER_US;
        gossip_peer_remove(g, p);
        return 0;
    }
    if (p->quarantine_us != 0 && g->now_us >= p->quarantine_us) {
        p->quarantine_us = 0;
        gossip_peer_publish(g, p);
    }
    if (p->state >= GOSSIP_DEAD)
        return call_lost(g, p);
    uint64_t due = judge(g, p);
    /* While a peer's list of members differs, the peer gets keep-alives like a near peer. So a
     * cluster forms and heals as fast as if all peers were near. */
    if (!gossip_peer_open(p) || (!p->near && p->differs_us == 0))
        return due;
    uint64_t alive_us = earlier(p->sent_us + g->config.alive_us, p->full_us + FULL_ALIVE_US);
    if (g->now_us + SLACK_US >= alive_us) {
        gossip_announce_alive(g, p);
        alive_us = g->now_us + g->config.alive_us;
    }
    return earlier(due, alive_us);
}

/* Makes far peers count as silent for PROBE_TENTHS tenths of suspect_us at most. So each silent
 * peer is probed now, and has the usual time to answer before it is suspected. */
static void alarm(struct gossip *g)
{
    uint64_t proof_us = g->now_us - (uint64_t)g->config.suspect_us * PROBE_TENTHS / 10;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        if (gossip_peer_live(p) && !p->near && p->proof_us < proof_us)
            p->proof_us = proof_us;
    }
}

static bool near_are_silent(const struct gossip *g)
{
    unsigned near = 0;
    unsigned silent = 0;
    for (unsigned i = 0; i < g->listed; i++) {
        const struct gossip_peer *p = g->order[i];
        if (p->near && gossip_peer_live(p)) {
            near++;
            silent += g->now_us >= silence_us(g, p);
        }
    }
    return 2 * silent >= near;
}

uint64_t gossip_watch_all(struct gossip *g)
{
    gossip_near_update(g);
    if (g->far == 0) {
        g->alarmed = false;
        return GOSSIP_NEVER;
    }
    bool alarmed = g->now_us >= g->grace_us && near_are_silent(g);
    if (alarmed && !g->alarmed)
        alarm(g);
    g->alarmed = alarmed;
    uint64_t due_us;
    struct gossip_peer *p = gossip_near_next_far(g, &due_us);
    if (p != NULL && g->now_us + SLACK_US >= due_us && g->now_us + SLACK_US >= g->far_us) {
        gossip_announce_alive(g, p);
        g->far_us = g->now_us + GOSSIP_FAR_EVERY_US;
        (void)gossip_near_next_far(g, &due_us);
    }
    return due_us > g->far_us ? due_us : g->far_us;
}

/* --- this node's health, and the others' behaviour ------------------------------------------- */

void gossip_watch_late(struct gossip *g, uint64_t late_us)
{
    if (late_us < LATE_US)
        return;
    uint64_t health = g->health + late_us / LATE_US;
    g->health = health < GOSSIP_HEALTH_MAX ? (unsigned)health : GOSSIP_HEALTH_MAX;
    g->health_us = g->now_us;
    /* While this node slept, it could hear no peer. So peers' silence does not count. */
    if (late_us >= g->config.suspect_us / 4)
        g->grace_us = g->now_us + g->config.suspect_us;
}

void gossip_watch_health(struct gossip *g)
{
    while (g->health > 0 && g->now_us - g->health_us >= HEALTH_FALL_US) {
        g->health--;
        g->health_us += HEALTH_FALL_US;
    }
}

void gossip_watch_malformed(struct gossip *g, struct gossip_peer *p)
{
    g->stats.refused_malformed++;
    uint64_t fall = (g->now_us - p->malformed_us) / MALFORMED_FALL_US;
    p->malformed = fall < p->malformed ? p->malformed - (uint32_t)fall : 0;
    if (fall > 0 || p->malformed == 0)
        p->malformed_us = g->now_us;
    if (++p->malformed < MALFORMED_MAX)
        return;
    p->malformed = 0;
    p->quarantine_us = BUG(QUARANTINE_ENDLESS) ? GOSSIP_NEVER : g->now_us + QUARANTINE_US;
    g->stats.quarantines++;
    if (p->listed)
        gossip_peer_publish(g, p);
}
