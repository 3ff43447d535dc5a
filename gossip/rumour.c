/* News about members. A node sends news about itself to all members at once, and an accuser does so
 * with an accusation. Other nodes do not forward news or accusations. Keep-alives carry a digest of
 * the members. If two digests differ for a while, the whole list is sent. So a change costs N
 * packets, not N squared. */
#include "base/bug.h"
#include "base/err.h"
#include "gossip/gossip_internal.h"

enum {
    DIFFERS_US = 300000,        /* time for news in transit to arrive */
    LIST_EVERY_US = 1000000,    /* minimum time between two lists to a peer */
    LIST_COST_US = 62500,       /* budget: 16 lists a second to all peers together */
    LISTS_BURST_US = 2000000,   /* budget: at most 32 lists at once */
    REFUSED_WAIT_US = 30000000, /* time until a refused node dials the seeds again */
    REFUSALS_US = 10000000,     /* how long a refusal counts */
};

static void list_add(struct gossip *g, struct gossip_peer *to, const struct gossip_peer *about,
                     struct gossip_packet *packet)
{
    struct gossip_frame_member entry = gossip_announce_entry(g, to, about);
    if (gossip_frame_write_member(&packet->w, &entry))
        return;
    gossip_link_send(g, to, packet);
    gossip_packet_begin(packet);
    gossip_frame_write_member(&packet->w, &entry);
}

/* True if the cluster refuses this node, not just a faulty member or another build: most members
 * with a session refuse this node, or this node itself sees too many live members. */
static bool refused_by_all(const struct gossip *g, const struct gossip_frame_full *f)
{
    uint32_t limit = f->limit > g->config.routers_max ? f->limit : g->config.routers_max;
    unsigned open = 0, refusing = 0;
    for (unsigned i = 0; i < g->listed; i++) {
        const struct gossip_peer *p = g->order[i];
        if (!gossip_peer_open(p))
            continue;
        open++;
        refusing += p->refused_us != 0 && g->now_us - p->refused_us < REFUSALS_US;
    }
    return 2 * refusing > open || g->live + 1 >= limit;
}

/* The node continues alone, and later asks the seeds for admission again. Refused routers must not
 * stay in touch with each other: each would introduce the others to the cluster again, which would
 * refuse them again. */
void gossip_rumour_refused(struct gossip *g, struct gossip_peer *from,
                           const struct gossip_frame_full *f)
{
    if (g->now_us < g->full_us)
        return;
    from->refused_us = g->now_us;
    if (!refused_by_all(g, f)) {
        g->stats.refusals_doubted++;
        return;
    }
    gossip_member_refused(g, g->self->name, f->limit);
    g->stats.self_refused_us = g->now_us;
    g->full_us = g->now_us + REFUSED_WAIT_US;
    for (unsigned i = g->listed; i-- > 0;)
        if (!g->order[i]->self)
            gossip_member_expel(g, g->order[i]);
}

/* Sends all known members, in as many packets as needed, if the budget allows. */
static void send_list(struct gossip *g, struct gossip_peer *to)
{
    if (g->lists_us < g->now_us)
        g->lists_us = g->now_us;
    if (g->now_us < to->list_us || g->lists_us > g->now_us + LISTS_BURST_US ||
        !gossip_link_rate_ready(g))
        return;
    g->lists_us += LIST_COST_US;
    to->list_us = g->now_us + LIST_EVERY_US;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    /* This node's entry comes first: if the list overtakes the greeting, the receiver does not know
     * the sender yet, and would skip all entries before the sender's. */
    list_add(g, to, g->self, &packet);
    for (unsigned i = 0; i < g->listed; i++)
        if (!g->order[i]->self)
            list_add(g, to, g->order[i], &packet);
    gossip_link_send(g, to, &packet);
}

void gossip_rumour_compare(struct gossip *g, struct gossip_peer *from, uint64_t members)
{
    from->members = members;
    if (members == g->members_digest) {
        from->differs_us = 0;
    } else if (from->differs_us == 0) {
        from->differs_us = g->now_us;
    } else if (g->now_us - from->differs_us >= DIFFERS_US) {
        send_list(g, from);
    }
}

/* Handles another node's entry about this node itself. */
static void said_of_self(struct gossip *g, const struct gossip_frame_member *said)
{
    const struct gossip_peer *self = g->self;
    bool accused = said->state != GOSSIP_ALIVE;
    if (g->leaving || said->incarnation < self->incarnation ||
        (said->incarnation == self->incarnation && !accused))
        return;
    if (BUG(NO_REFUTE) && accused && said->incarnation >> 16 == g->epoch)
        return;
    if (!gossip_self_rise(g, said->incarnation))
        return;
    if (accused)
        g->stats.refuted++;
    /* An unjustified suspicion suggests that this node is slow. */
    if (said->state == GOSSIP_SUSPECT && g->health < GOSSIP_HEALTH_MAX) {
        if (g->health++ == 0)
            g->health_us = g->now_us;
    }
    gossip_announce_to_all(g, self);
}

static void said_of_other(struct gossip *g, struct gossip_peer *from, uint64_t node,
                          const struct gossip_frame_member *said)
{
    bool own_word = from->node == node;
    bool new_here = own_word && !from->listed;
    int news = gossip_member_join(g, said, own_word);
    if (own_word && news == ERR_LIMIT)
        gossip_announce_refusal(g, from);
    struct gossip_peer *p = gossip_peer_find(g, node);
    if (p == NULL || !p->listed)
        return;
    if (new_here)
        send_list(g, from); /* a new member knows no other member */
    if (own_word && (said->incarnation < p->incarnation ||
                     (said->incarnation == p->incarnation && said->state < p->state)))
        gossip_announce_again(g, from, p);
    /* An accuser may be unable to reach the accused member. So if this node hears both, it forwards
     * the accusation to the member. */
    if (news == 1 && !own_word && p->state != GOSSIP_ALIVE && p->session.sending != 0 &&
        g->now_us - p->heard_us < g->config.suspect_us)
        gossip_announce_again(g, p, p);
}

void gossip_rumour_members(struct gossip *g, struct gossip_peer *from, struct slice body)
{
    struct wire_reader r = wire_reader_of(body.at, body.len);
    struct gossip_frame_member said;
    while (gossip_frame_member(&r, &said) == 1) {
        char name[GOSSIP_NAME_MAX + 1];
        slice_to_cstr(said.name, name, sizeof name);
        uint64_t node = gossip_node_id(name);
        if (node == g->self->node)
            said_of_self(g, &said);
        else if (from->listed || node == from->node) /* a stranger's first entry is about itself */
            said_of_other(g, from, node, &said);
    }
}
