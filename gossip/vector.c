/* Vectors: the number up to which each node has applied each author's deltas. Keep-alives carry a
 * digest; a peer with another digest gets the whole vector, about once a second and within a
 * budget. */
#include <stdlib.h>

#include "base/err.h"
#include "gossip/gossip_internal.h"

enum {
    TELL_EVERY_US = 1000000,   /* minimum time between vectors to a near peer */
    TELL_FAR_US = 5000000,     /* minimum time between vectors to a far peer (near.c) */
    PACKET_COST_US = 31250,    /* budget: 32 packets a second to all peers together */
    PACKETS_BURST_US = 500000, /* budget: at most 16 packets at once */
    VERSION = 1,
};

static struct gossip_frame_entry entry_of(const struct gossip *g, const struct gossip_peer *p)
{
    return (struct gossip_frame_entry){
        .node = p->node,
        .epoch = p->self ? g->epoch : p->stream.epoch,
        .seq = p->self ? g->ring.next - 1 : p->stream.applied,
    };
}

static bool make_told(struct gossip *g, struct gossip_peer *p)
{
    if (p->announced_len >= g->slots_used)
        return true;
    struct gossip_position *announced = realloc(p->announced, g->slots_used * sizeof *announced);
    if (announced == NULL)
        return false;
    memset(announced + p->announced_len, 0, (g->slots_used - p->announced_len) * sizeof *announced);
    p->announced = announced;
    p->announced_len = g->slots_used;
    return true;
}

void gossip_vector_compare(struct gossip *g, struct gossip_peer *from, uint64_t digest)
{
    from->vector = digest;
    from->vector_new = true;
    if (digest != g->vector_digest || from->copied == g->vector_version || !make_told(g, from))
        return;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_frame_entry e = entry_of(g, g->order[i]);
        from->announced[g->order[i]->slot] =
            (struct gossip_position){.epoch = e.epoch, .seq = e.seq};
    }
    from->copied = g->vector_version;
}

void gossip_vector_take(struct gossip *g, struct gossip_peer *from, struct slice body)
{
    if (!make_told(g, from))
        return;
    struct wire_reader r = wire_reader_of(body.at, body.len);
    struct gossip_frame_entry e;
    while (gossip_frame_entry(&r, &e) == 1) {
        const struct gossip_peer *author = gossip_peer_find(g, e.node);
        if (author == NULL || author->slot >= from->announced_len)
            continue;
        struct gossip_position *announced = &from->announced[author->slot];
        /* Only greater positions count, because packets may overtake each other. */
        if (e.epoch > announced->epoch || (e.epoch == announced->epoch && e.seq > announced->seq))
            *announced = (struct gossip_position){.epoch = e.epoch, .seq = e.seq};
    }
}

/* Sends this node's vector to `to`. Returns the number of packets. */
static unsigned tell(struct gossip *g, struct gossip_peer *to)
{
    struct gossip_frame_entry entries[GOSSIP_MEMBERS_MAX];
    unsigned count = 0;
    for (unsigned i = 0; i < g->listed; i++)
        if (gossip_peer_live(g->order[i]))
            entries[count++] = entry_of(g, g->order[i]);
    unsigned packets = 0;
    for (unsigned announced = 0; announced < count; packets++) {
        struct gossip_packet packet;
        gossip_packet_begin(&packet);
        announced += gossip_frame_write_vector(&packet.w, entries + announced, count - announced);
        gossip_link_send(g, to, &packet);
    }
    to->vector_us = g->now_us;
    to->vector_new = false;
    return packets;
}

void gossip_vector_tick(struct gossip *g)
{
    if (g->vectors_us < g->now_us)
        g->vectors_us = g->now_us;
    unsigned start = g->vector_next;
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_peer *p = g->order[(start + i) % g->listed];
        /* vector_new: a digest announced before this node last sent a vector is out of date. */
        if (!gossip_peer_shares(p) || p->vector == g->vector_digest || !p->vector_new ||
            g->now_us - p->vector_us < (p->near ? TELL_EVERY_US : TELL_FAR_US))
            continue;
        if (g->vectors_us > g->now_us + PACKETS_BURST_US)
            break;
        g->vectors_us += (uint64_t)PACKET_COST_US * tell(g, p);
        g->vector_next = (start + i + 1) % g->listed;
    }
}

/* --- snapshots ------------------------------------------------------------------------------- */

int gossip_vector_write(const struct gossip *g, struct buf *out)
{
    size_t before = out->len;
    int status = buf_reserve(out, 1 + WIRE_VARINT_MAX + (size_t)g->listed * 24);
    if (status < 0)
        return status;
    struct wire_writer w = wire_writer_of(out->at + before, out->cap - before);
    wire_write_u8(&w, VERSION);
    wire_write_varint(&w, g->listed);
    for (unsigned i = 0; i < g->listed; i++) {
        struct gossip_frame_entry e = entry_of(g, g->order[i]);
        wire_write_u64(&w, e.node);
        wire_write_u48(&w, e.epoch);
        wire_write_varint(&w, e.seq);
    }
    out->len = before + wire_written(&w);
    return 0;
}

static void adopt(struct gossip *g, struct gossip_peer *author, const struct gossip_frame_entry *e)
{
    if (author->self || e->epoch != author->stream.epoch)
        return;
    gossip_stream_close(&author->stream, e->seq);
    gossip_peer_account(g, author);
}

void gossip_vector_adopt_one(struct gossip *g, struct gossip_peer *author)
{
    for (unsigned i = 0; i < g->adopted_count; i++)
        if (g->adopted[i].node == author->node)
            adopt(g, author, &g->adopted[i]);
}

int gossip_vector_adopt(struct gossip *g, struct slice vector, uint64_t now_us)
{
    if (now_us > g->now_us)
        g->now_us = now_us;
    struct wire_reader r = wire_reader_of(vector.at, vector.len);
    if (wire_read_u8(&r) != VERSION)
        return ERR_SYNTAX;
    unsigned count = (unsigned)wire_read_varint_max(&r, GOSSIP_MEMBERS_MAX);
    if (r.bad)
        return ERR_SYNTAX;
    struct gossip_frame_entry *entries = calloc(count + 1, sizeof *entries);
    if (entries == NULL)
        return ERR_NOMEM;
    unsigned read = 0;
    while (read < count && gossip_frame_entry(&r, &entries[read]) == 1)
        read++;
    if (read < count || r.bad) {
        free(entries);
        return ERR_SYNTAX;
    }
    /* Keeps all entries, because some authors may become known only later. */
    free(g->adopted);
    g->adopted = entries;
    g->adopted_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct gossip_peer *author = gossip_peer_find(g, entries[i].node);
        if (author != NULL && author->listed)
            adopt(g, author, &entries[i]);
    }
    return 0;
}

int gossip_vector_of(const struct gossip *g, uint64_t member, uint64_t author, uint64_t *epoch,
                     uint64_t *seq)
{
    const struct gossip_peer *m = gossip_peer_find(g, member);
    const struct gossip_peer *a = gossip_peer_find(g, author);
    if (m == NULL || a == NULL || !m->listed || !a->listed)
        return ERR_NOT_FOUND;
    struct gossip_position announced = {0};
    if (m->self) {
        struct gossip_frame_entry e = entry_of(g, a);
        announced = (struct gossip_position){.epoch = e.epoch, .seq = e.seq};
    } else if (a->slot < m->announced_len) {
        announced = m->announced[a->slot];
    }
    if (announced.epoch == 0)
        return ERR_NOT_FOUND;
    *epoch = announced.epoch;
    *seq = announced.seq;
    return 0;
}
