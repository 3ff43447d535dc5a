/* Deltas: pushes each new delta to all members (in a large cluster through relays), requests
 * missing deltas, and repairs peers' missing deltas. */
#include "base/bug.h"
#include "base/err.h"
#include "base/hash.h"
#include "gossip/gossip_internal.h"

enum {
    FLUSH_US = 10000,
    FLUSH_LARGE_US = 20000,
    FLUSH_LARGE_FROM = 100,  /* number of members from which on the cluster is large */
    FLUSH_PACKETS = 1024,    /* packets in a flush */
    FLUSH_DELTAS_MIN = 4,    /* least number of deltas in a flush, even beyond FLUSH_PACKETS */
    FLUSH_DELTAS_MAX = 64,   /* greatest number of deltas in a flush */
    HELD_US = 1000,          /* retry time of a flush held back by the rate limit */
    TAIL_TWICE_FROM = 32,    /* from this many members on, the last number is sent twice */
    TAIL_US = 2000,          /* without a delta for the cadence plus this time (or a round trip, if
                              * longer), the last number is announced */
    FULL_ALIVE_US = 1000000, /* interval at which a full keep-alive is sent along with a delta */
    REPAIR_DELTAS = 64,      /* deltas repaired per NACK */
    RETRY_MIN_US = 5000,
    RETRY_MAX_US = 1000000,
    SETTLE_US = 300000,    /* time for deltas in transit to arrive: this, plus two round trips */
    UNREACHED_US = 100000, /* retry time of a request if there is no session to the author */
};

uint32_t gossip_push_cadence(const struct gossip *g)
{
    if (g->config.flush_us != 0)
        return g->config.flush_us;
    return g->live + 1 >= FLUSH_LARGE_FROM ? FLUSH_LARGE_US : FLUSH_US;
}

/* --- sending --------------------------------------------------------------------------------- */

static uint32_t group_of(uint64_t node, uint32_t groups)
{
    return (uint32_t)(hash_mix(node) % groups);
}

/* Sends a packet with a delta, and with a full keep-alive if it is due and fits. */
static void send_delta(struct gossip *g, struct gossip_peer *p, struct gossip_packet *packet)
{
    uint8_t *mark = packet->w.at;
    if (g->now_us - p->full_us >= FULL_ALIVE_US)
        gossip_announce_write_alive(g, p, packet);
    gossip_link_send(g, p, packet);
    packet->w.at = mark;
}

static void push_direct(struct gossip *g, const struct gossip_frame_delta *f)
{
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_delta(&packet.w, f);
    for (unsigned i = 0; i < g->listed; i++)
        if (gossip_peer_shares(g->order[i]))
            send_delta(g, g->order[i], &packet);
}

static bool relay_fit(const struct gossip_peer *p)
{
    return gossip_peer_shares(p) && p->state == GOSSIP_ALIVE;
}

/* Pushes a delta through relays. There are about sqrt(N) groups by node id, so author and relay
 * need not agree on a list of members. Each group's relay is a member of the group, and changes
 * with each delta. */
static void push_relayed(struct gossip *g, const struct gossip_frame_delta *f)
{
    enum { GROUPS = 64 };
    uint32_t groups = 1;
    while (groups < GROUPS && (groups + 1) * (groups + 1) <= g->live)
        groups++;
    unsigned members[GROUPS] = {0};
    for (unsigned i = 0; i < g->listed; i++)
        if (relay_fit(g->order[i]))
            members[group_of(g->order[i]->node, groups)]++;
    unsigned skip[GROUPS];
    for (uint32_t k = 0; k < groups; k++)
        skip[k] = members[k] > 0 ? (unsigned)(f->seq % members[k]) : 0;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        uint32_t k = group_of(p->node, groups);
        bool relay = relay_fit(p) && skip[k]-- == 0;
        /* If a group has no fit relay, the author itself sends to the group's members. */
        if (!relay && (members[k] > 0 || !gossip_peer_shares(p)))
            continue;
        struct gossip_frame_delta copy = *f;
        copy.forward = relay;
        copy.group = k;
        copy.groups = groups;
        struct gossip_packet packet;
        gossip_packet_begin(&packet);
        gossip_frame_write_delta(&packet.w, &copy);
        send_delta(g, p, &packet);
    }
}

/* Takes the application's next delta. False: no delta. */
static bool produce_one(struct gossip *g)
{
    uint8_t bytes[GOSSIP_DELTA_MAX];
    size_t len = g->app.produce(g->app.context, g->now_us, bytes, sizeof bytes);
    if (len == 0)
        return false;
    struct slice delta = slice_of((const char *)bytes, len < sizeof bytes ? len : sizeof bytes);
    uint64_t seq = gossip_ring_put(&g->ring, delta);
    if (seq == 0)
        return false; /* out of memory: anti-entropy repairs the loss */
    g->stats.deltas_produced++;
    gossip_peer_account(g, g->self);
    struct gossip_frame_delta f = {.epoch = g->epoch, .seq = seq, .bytes = delta};
    if (g->live > g->config.relay_above)
        push_relayed(g, &f);
    else
        push_direct(g, &f);
    return true;
}

void gossip_push_flush(struct gossip *g)
{
    g->flush_us = GOSSIP_NEVER;
    if (!g->wanted)
        return;
    if (!gossip_link_rate_ready(g)) {
        g->flush_us = g->now_us + HELD_US;
        return;
    }
    unsigned bound = FLUSH_PACKETS / (g->live + 1);
    bound = bound < FLUSH_DELTAS_MIN ? FLUSH_DELTAS_MIN : bound;
    bound = bound > FLUSH_DELTAS_MAX ? FLUSH_DELTAS_MAX : bound;
    uint64_t flushed_us = g->flushed_us;
    g->flushed_us = g->now_us; /* a wake-up during this flush counts for the next one */
    g->wanted = false;
    unsigned made = 0;
    while (made < bound && produce_one(g))
        made++;
    uint32_t cadence = gossip_push_cadence(g);
    if (made == bound) {
        g->wanted = true;
        g->flush_us = g->now_us + cadence;
    }
    if (made > 0) {
        g->delta_us = g->now_us;
        g->tail_us = g->now_us + cadence + TAIL_US;
    } else if (!g->wanted) {
        g->flushed_us = flushed_us;
    }
}

/* When the last number is announced to `p` if no delta follows. On a long path a longer wait
 * matters little, and the next delta may make the announcement unnecessary. */
static uint64_t tail_due(const struct gossip *g, const struct gossip_peer *p)
{
    uint64_t cadence = gossip_push_cadence(g);
    uint64_t wait_us = cadence + TAIL_US;
    if (wait_us < p->trip.smooth_us)
        wait_us = p->trip.smooth_us;
    return g->delta_us + wait_us + p->tails * (uint64_t)cadence;
}

/* No delta followed the last: announces the last number, so that members without that delta soon
 * ask for it. In a large cluster some members lose the announcement too, so it is sent twice. */
void gossip_push_tail(struct gossip *g)
{
    unsigned often = g->live >= TAIL_TWICE_FROM ? 2 : 1;
    struct gossip_frame_alive f = {.incarnation = g->self->incarnation, .seq = g->ring.next - 1};
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_alive(&packet.w, &f);
    g->tail_us = GOSSIP_NEVER;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        if (!gossip_peer_shares(p))
            continue;
        if (p->tail_seq != f.seq)
            p->tails = 0;
        if (p->tails < often && tail_due(g, p) <= g->now_us) {
            gossip_link_send(g, p, &packet);
            gossip_announce_note_tail(g, p);
        }
        if (p->tails < often && tail_due(g, p) < g->tail_us)
            g->tail_us = tail_due(g, p);
    }
}

/* --- receiving ------------------------------------------------------------------------------- */

/* How long a hole counts as reordering. */
static uint64_t grace_of(const struct gossip *g, const struct gossip_peer *author)
{
    return g->config.gap_us + gossip_trip_jitter_us(&author->trip);
}

static void note_nack(struct gossip *g, const struct gossip_peer *author)
{
    if (author->stream.nack_us < g->nack_us && !g->joining)
        g->nack_us = author->stream.nack_us;
}

/* Forwards a delta as a relay: sends the delta to this node's group at once. */
static void hand_on(struct gossip *g, const struct gossip_peer *author,
                    const struct gossip_frame_delta *f)
{
    if ((BUG(RELAY_NOT_FORWARDED) && f->seq % 4 == 0) || BUG_RARE(RARE_RELAY))
        return;
    struct gossip_frame_delta copy = *f;
    copy.forward = false;
    copy.relayed = true;
    copy.author = author->node;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_delta(&packet.w, &copy);
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        if (gossip_peer_shares(p) && p != author && group_of(p->node, f->groups) == f->group) {
            send_delta(g, p, &packet);
            g->stats.relayed++;
        }
    }
}

int gossip_push_delta(struct gossip *g, struct gossip_peer *from,
                      const struct gossip_frame_delta *f)
{
    struct gossip_peer *author = f->relayed ? gossip_peer_find(g, f->author) : from;
    if (author == NULL || !author->listed || author->self || author->foreign)
        return 0; /* requested later, when the author is known and has a common version */
    if (f->epoch != author->stream.epoch && !BUG(EPOCH_IGNORED)) {
        if (f->epoch > author->stream.epoch && author == from)
            gossip_ask_who(g, from);
        return 0;
    }
    enum gossip_stream_take take =
        gossip_stream_take(&author->stream, f->seq, g->now_us, grace_of(g, author));
    note_nack(g, author);
    if (take == GOSSIP_STREAM_AGAIN)
        g->stats.deltas_again++;
    if (take == GOSSIP_STREAM_AGAIN || take == GOSSIP_STREAM_LATER)
        return 0;
    g->stats.gaps_repaired += take == GOSSIP_STREAM_FILLS;
    gossip_peer_account(g, author);
    struct gossip_origin origin = {.node = author->node, .epoch = f->epoch, .seq = f->seq};
    if (BUG_RARE(RARE_DELTA))
        return 0;
    if (g->app.apply(g->app.context, &origin, f->bytes, g->now_us) < 0) {
        /* The delta is malformed. Another request would bring the same bytes, so the delta's number
         * counts as received. A relay forwards only deltas that it could apply itself, so the
         * sender is to blame, not the author in the frame. */
        return ERR_SYNTAX;
    }
    g->stats.deltas_applied++;
    if (f->forward)
        hand_on(g, author, f);
    return 0;
}

void gossip_push_known(struct gossip *g, struct gossip_peer *author, uint64_t seq)
{
    gossip_stream_known(&author->stream, seq, g->now_us, grace_of(g, author));
    note_nack(g, author);
}

/* If this node has not heard the author for long, other members' vectors show which deltas are
 * missing. The deltas may still be in transit, so a hole only counts when it is reported again. */
void gossip_push_vector(struct gossip *g, struct slice body)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    struct gossip_frame_entry e;
    while (gossip_frame_entry(&r, &e) == 1) {
        struct gossip_peer *author = gossip_peer_find(g, e.node);
        if (author == NULL || !gossip_peer_live(author) || author->self ||
            e.epoch != author->stream.epoch)
            continue;
        gossip_stream_told(&author->stream, e.seq, g->now_us,
                           SETTLE_US + 2 * author->trip.smooth_us, grace_of(g, author));
        note_nack(g, author);
    }
}

/* --- holes ----------------------------------------------------------------------------------- */

/* Requests the holes. A hole is only requested again after an answer should have arrived. */
static void ask(struct gossip *g, struct gossip_peer *author)
{
    struct gossip_stream *s = &author->stream;
    struct gossip_frame_nack f = {.epoch = s->epoch};
    bool all = g->now_us >= s->again_us;
    gossip_stream_missing(s, all ? 0 : s->asked, REPAIR_DELTAS, &f.ranges);
    if (f.ranges.count == 0) {
        s->nack_us = s->again_us;
        return;
    }
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_nack(&packet.w, &f);
    if (!all || s->tries == 0)
        g->stats.gaps += f.ranges.count;
    if (!gossip_link_send(g, author, &packet)) {
        s->nack_us = g->now_us + UNREACHED_US;
        return;
    }
    s->asked = f.ranges.at[f.ranges.count - 1].last;
    if (all) {
        uint64_t first_us = gossip_trip_wait_us(&author->trip, 0) + 2 * (uint64_t)g->config.gap_us;
        first_us = first_us > RETRY_MIN_US ? first_us : RETRY_MIN_US;
        uint64_t most_us = first_us > RETRY_MAX_US / 2 ? 2 * first_us : RETRY_MAX_US;
        uint64_t wait_us = first_us << s->tries;
        s->tries += wait_us < most_us;
        s->again_us = g->now_us + (wait_us < most_us ? wait_us : most_us);
    }
    s->nack_us = s->again_us;
}

void gossip_push_nacks(struct gossip *g)
{
    g->nack_us = GOSSIP_NEVER;
    if (g->joining)
        return;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[i];
        if (p->stream.nack_us <= g->now_us) {
            if (!gossip_peer_shares(p) || BUG(NO_GAP_REPAIR))
                p->stream.nack_us = g->now_us + UNREACHED_US;
            else
                ask(g, p);
        }
        /* Dead members are not asked. If a dead member returns, the hole shows again in a
         * keep-alive. */
        if (gossip_peer_live(p))
            note_nack(g, p);
    }
}

/* Sends the deltas of a range still in the ring, several in a packet. False: the limit per NACK, or
 * the rate limit, is reached. */
static bool repair(struct gossip *g, struct gossip_peer *to, struct gossip_packet *packet,
                   const struct gossip_range *range, unsigned *left)
{
    for (uint64_t seq = range->first; seq <= range->last && seq < g->ring.next; seq++) {
        struct gossip_frame_delta f = {.epoch = g->epoch, .seq = seq};
        if (!gossip_ring_get(&g->ring, seq, &f.bytes)) {
            seq = g->ring.first - 1; /* skips deltas no longer in the ring: GONE announces them */
            continue;
        }
        if ((*left)-- == 0 || !gossip_link_rate_ready(g))
            return false;
        if (gossip_frame_write_delta(&packet->w, &f))
            continue;
        gossip_link_send(g, to, packet);
        gossip_packet_begin(packet);
        gossip_frame_write_delta(&packet->w, &f);
    }
    return true;
}

void gossip_push_nack(struct gossip *g, struct gossip_peer *from, const struct gossip_frame_nack *f)
{
    if (f->epoch != g->epoch || f->ranges.count == 0)
        return;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    if (f->ranges.at[0].first < g->ring.first) {
        struct gossip_frame_gone gone = {.epoch = g->epoch, .oldest = g->ring.first};
        gossip_frame_write_gone(&packet.w, &gone);
    }
    unsigned left = REPAIR_DELTAS;
    for (unsigned i = 0; i < f->ranges.count; i++)
        if (!repair(g, from, &packet, &f->ranges.at[i], &left))
            break;
    if (wire_written(&packet.w) > 0)
        gossip_link_send(g, from, &packet);
}

void gossip_push_gone(struct gossip *g, struct gossip_peer *from, const struct gossip_frame_gone *f)
{
    if (f->epoch != from->stream.epoch)
        return;
    uint64_t lost = gossip_stream_close(&from->stream, f->oldest - 1);
    gossip_peer_account(g, from);
    if (lost > 0)
        gossip_peer_lost(g, from, lost);
}
