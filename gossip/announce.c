/* Frames in which a node describes itself and other members, or asks about members. Each fits one
 * packet. */
#include "base/future.h"
#include "gossip/gossip_internal.h"

enum { AGAIN_US = 100000 }; /* minimum time between two answers to a peer */

struct gossip_frame_member gossip_announce_entry(const struct gossip *g,
                                                 const struct gossip_peer *to,
                                                 const struct gossip_peer *p)
{
    struct gossip_frame_member entry = {
        .incarnation = p->incarnation,
        .state = p->state,
        .name = slice_of_cstr(p->name),
        .meta = slice_of((const char *)p->meta, p->meta_len),
    };
    gossip_place_entry(g, to, p, &entry);
    return entry;
}

bool gossip_announce_write_alive(struct gossip *g, struct gossip_peer *p,
                                 struct gossip_packet *packet)
{
    struct gossip_frame_alive f = {
        .full = true,
        .incarnation = g->self->incarnation,
        .seq = p->foreign ? 0 : g->ring.next - 1, /* 0: a peer without a common version must not
                                                   * request deltas */
        .vector = g->vector_digest,
        .members = g->members_digest,
        .health = (uint8_t)g->health,
        .sent = (uint32_t)g->now_us | 1, /* | 1, because 0 means: nothing sent */
        .echo = p->echo,
        .held = (uint32_t)(g->now_us - p->echo_us),
    };
    if (!gossip_frame_write_alive(&packet->w, &f))
        return false;
    if (FUTURE)
        gossip_frame_write_future(&packet->w);
    p->full_us = g->now_us;
    p->echo = 0;
    return true;
}

void gossip_announce_note_tail(const struct gossip *g, struct gossip_peer *p)
{
    uint64_t last = g->ring.next - 1;
    p->tails = p->tail_seq == last ? p->tails + 1 : 1;
    p->tail_seq = last;
}

void gossip_announce_alive(struct gossip *g, struct gossip_peer *p)
{
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_announce_write_alive(g, p, &packet);
    gossip_link_send(g, p, &packet);
    gossip_announce_note_tail(g, p);
}

void gossip_announce_self(struct gossip *g, struct gossip_peer *p)
{
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    struct gossip_frame_member self = gossip_announce_entry(g, p, g->self);
    gossip_frame_write_member(&packet.w, &self);
    gossip_announce_write_alive(g, p, &packet);
    if (gossip_link_send(g, p, &packet))
        p->greeted_us = g->now_us;
}

static void send_entry(struct gossip *g, struct gossip_peer *to, const struct gossip_peer *about)
{
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    struct gossip_frame_member entry = gossip_announce_entry(g, to, about);
    gossip_frame_write_member(&packet.w, &entry);
    gossip_link_send(g, to, &packet);
}

/* --- news of members ------------------------------------------------------------------------- */

void gossip_announce_to_all(struct gossip *g, const struct gossip_peer *p)
{
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *to = g->order[i];
        if (gossip_peer_open(to) || (to == p && !to->self && to->session.sending != 0))
            send_entry(g, to, p);
    }
}

/* True if AGAIN_US have passed since the last answer to a packet of `to`. */
static bool answer_now(struct gossip *g, struct gossip_peer *to)
{
    if (to->answered_us != 0 && g->now_us - to->answered_us < AGAIN_US)
        return false;
    to->answered_us = g->now_us;
    return true;
}

void gossip_announce_again(struct gossip *g, struct gossip_peer *to, const struct gossip_peer *p)
{
    if (to != p || answer_now(g, to))
        send_entry(g, to, p);
}

void gossip_announce_refusal(struct gossip *g, struct gossip_peer *to)
{
    /* This is not the limit of answer_now(), which gossip_ask_who() has used up just before this
     * call. */
    if (to->refusal_us != 0 && g->now_us - to->refusal_us < AGAIN_US)
        return;
    to->refusal_us = g->now_us;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_full(&packet.w, &(struct gossip_frame_full){.limit = g->config.routers_max});
    gossip_link_send(g, to, &packet);
}

/* --- questions ------------------------------------------------------------------------------- */

void gossip_ask_who(struct gossip *g, struct gossip_peer *p)
{
    if (!answer_now(g, p))
        return;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_ping(&packet.w, false,
                            &(struct gossip_frame_ping){.who = true, .nonce = (uint32_t)g->now_us});
    gossip_link_send(g, p, &packet);
}

void gossip_ask(struct gossip *g, struct gossip_peer *to, bool ack,
                const struct gossip_frame_ping *f)
{
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_ping(&packet.w, ack, f);
    gossip_link_send(g, to, &packet);
}

void gossip_ask_helpers(struct gossip *g, const struct gossip_peer *p,
                        const struct gossip_frame_ping *f)
{
    unsigned start = (unsigned)prng_below(&g->prng, g->listed);
    unsigned helpers = 0;
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < g->listed && helpers < GOSSIP_HELPERS; i++) {
            struct gossip_peer *q = g->order[(start + i) % g->listed];
            if (q == p || !gossip_peer_open(q) || q->state != GOSSIP_ALIVE ||
                (q->health == 0) != (round == 0))
                continue;
            gossip_ask(g, q, false, f);
            helpers++;
        }
    }
}

void gossip_ask_where(struct gossip *g, const struct gossip_peer *p)
{
    gossip_ask_helpers(g, p, &(struct gossip_frame_ping){.who = true, .target = p->node});
}
