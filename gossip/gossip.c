#include "gossip/gossip.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "gossip/gossip_internal.h"

enum {
    ALIVE_US = 200000,
    SUSPECT_US = 1000000,
    DEAD_US = 1000000,
    GAP_US = 2000,
    RELAY_ABOVE = 256,
    RING_BYTES = 4 << 20,
    MESSAGE_BYTES = 1 << 20,
    RATE_BYTES_S = 64 << 20,
    TICK_MIN_US = 1000,     /* minimum time between two ticks */
    ASLEEP_US = 250000,     /* lateness above which this node counts as having been asleep */
    LEAVE_EVERY_US = 50000, /* time between two announcements of this node's leave */
};
#define FORGET_US 3600000000u

/* --- start and end ---------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t value, uint32_t fallback)
{
    return value != 0 ? value : fallback;
}

static void take_defaults(struct gossip_config *c)
{
    if (c->speaks.greatest == 0)
        c->speaks =
            (struct gossip_versions){GOSSIP_VERSION_LEAST, GOSSIP_VERSION_GREATEST + FUTURE};
    c->alive_us = or_default(c->alive_us, ALIVE_US);
    c->suspect_us = or_default(c->suspect_us, SUSPECT_US);
    c->dead_us = or_default(c->dead_us, DEAD_US);
    c->gap_us = or_default(c->gap_us, GAP_US);
    c->forget_us = or_default(c->forget_us, FORGET_US);
    c->routers_max = or_default(c->routers_max, GOSSIP_ROUTERS_MAX);
    c->relay_above = or_default(c->relay_above, RELAY_ABOVE);
    c->ring_bytes = c->ring_bytes != 0 ? c->ring_bytes : RING_BYTES;
    c->message_bytes_max = c->message_bytes_max != 0 ? c->message_bytes_max : MESSAGE_BYTES;
    c->rate_bytes_s = c->rate_bytes_s != 0 ? c->rate_bytes_s : RATE_BYTES_S;
}

static bool config_fits(const struct gossip_config *c)
{
    size_t name = c->name != NULL ? strlen(c->name) : 0;
    return name >= 1 && name <= GOSSIP_NAME_MAX && c->epoch > 0 && c->epoch < GOSSIP_EPOCH_LIMIT &&
           c->meta.len <= GOSSIP_META_MAX && c->suspect_us >= 4 && c->alive_us < c->suspect_us &&
           c->routers_max >= 2 && c->routers_max <= GOSSIP_ROUTERS_MAX &&
           c->ring_bytes >= GOSSIP_DELTA_MAX && c->ring_bytes < UINT32_MAX &&
           c->rate_bytes_s < UINT64_MAX / 1000000 && c->message_bytes_max < UINT32_MAX;
}

static int make_self(struct gossip *g, const struct gossip_config *config)
{
    struct gossip_peer *self = gossip_peer_add(g, gossip_node_id(config->name));
    if (self == NULL)
        return ERR_NOMEM;
    g->self = self;
    g->order[0] = self;
    g->listed = 1;
    g->strangers = 0;
    self->self = self->listed = true;
    self->incarnation = config->epoch << 16;
    const struct gossip_address *own[] = {&config->address, &config->address_also};
    struct gossip_frame_member word = {.incarnation = self->incarnation};
    for (unsigned i = 0; i < 2; i++)
        if (own[i]->port != 0)
            word.places[word.count++] =
                (struct gossip_frame_place){.kind = GOSSIP_PLACE_ADVERTISED, .at = *own[i]};
    gossip_place_word(self, &word);
    memcpy(self->name, config->name, strlen(config->name) + 1);
    self->meta_len = (uint16_t)config->meta.len;
    if (config->meta.len > 0)
        memcpy(self->meta, config->meta.at, config->meta.len);
    gossip_peer_account(g, self);
    return 0;
}

int gossip_create(struct gossip **out, const struct gossip_config *config,
                  const struct gossip_keyring *keyring, const struct gossip_app *app,
                  const struct gossip_io *io, uint64_t now_us)
{
    struct gossip_config c = *config;
    take_defaults(&c);
    if (!config_fits(&c))
        return ERR_RANGE;
    struct gossip *g = calloc(1, sizeof *g);
    if (g == NULL)
        return ERR_NOMEM;
    g->config = c;
    g->config.name = NULL; /* the caller's memory; `self` has a copy */
    g->config.meta = slice_of(NULL, 0);
    g->keyring = keyring;
    g->app = *app;
    g->io = *io;
    g->now_us = g->created_us = g->tokens_us = now_us;
    g->epoch = c.epoch;
    g->flush_us = g->tail_us = g->nack_us = g->leave_us = GOSSIP_NEVER;
    g->tick_us = now_us;
    g->vector_version = 1;
    g->tokens = GOSSIP_DATAGRAM_MAX;
    io->random(io->context, &g->instance, sizeof g->instance);
    prng_seed(&g->prng, g->instance);
    gossip_hellos_init(&g->hellos, prng_next(&g->prng));
    gossip_messages_init(&g->messages, c.message_bytes_max);
    int status = gossip_ring_init(&g->ring, c.ring_bytes);
    if (status == 0)
        status = make_self(g, config);
    if (status < 0) {
        gossip_destroy(g);
        return status;
    }
    *out = g;
    return 0;
}

void gossip_destroy(struct gossip *g)
{
    if (g == NULL)
        return;
    for (unsigned i = 0; i < g->seeds_count; i++)
        gossip_dial_wipe(&g->seeds[i].dial);
    for (unsigned slot = 0; slot < GOSSIP_SLOTS; slot++) {
        if (g->slots[slot] == NULL)
            continue;
        gossip_session_wipe(&g->slots[slot]->session);
        gossip_dial_wipe(&g->slots[slot]->dial);
        free(g->slots[slot]->announced);
        free(g->slots[slot]);
    }
    gossip_messages_free(&g->messages);
    gossip_ring_free(&g->ring);
    free(g->adopted);
    free(g);
}

void gossip_check(const struct gossip *g)
{
    gossip_peers_check(g);
    gossip_link_check(g);
    gossip_ring_check(&g->ring);
    gossip_messages_check(&g->messages);
    CHECK(g->health <= GOSSIP_HEALTH_MAX);
    CHECK(!g->wanted || g->flush_us != GOSSIP_NEVER || g->leaving);
}

uint64_t gossip_self(const struct gossip *g)
{
    return g->self->node;
}

struct gossip_versions gossip_speaks(const struct gossip *g)
{
    return g->config.speaks;
}

uint64_t gossip_epoch(const struct gossip *g)
{
    return g->epoch;
}

/* Sets the time. A node that runs much later than due has been asleep, even if gossip_late() was
 * not called. */
static void enter(struct gossip *g, uint64_t now_us)
{
    uint64_t due = gossip_due_us(g);
    uint64_t before = g->now_us;
    if (now_us > g->now_us)
        g->now_us = now_us;
    /* Only the first call after a sleep counts as late. */
    if (g->now_us > before + ASLEEP_US && due < g->now_us && g->now_us - due > ASLEEP_US)
        gossip_watch_late(g, g->now_us - due);
}

/* --- messages -------------------------------------------------------------------------------- */

static bool io_part(void *context, uint64_t peer, const struct gossip_frame_part *part, bool again)
{
    struct gossip *g = context;
    struct gossip_peer *p = gossip_peer_find(g, peer);
    if (p == NULL || !gossip_peer_shares(p) || !gossip_link_rate_ready(g))
        return false;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_part(&packet.w, part);
    if (!gossip_link_send(g, p, &packet))
        return false;
    g->stats.parts_resent += again;
    return true;
}

static bool io_resend(void *context, uint64_t peer, const struct gossip_frame_resend *resend)
{
    struct gossip *g = context;
    struct gossip_peer *p = gossip_peer_find(g, peer);
    if (p == NULL || !gossip_peer_shares(p))
        return false;
    struct gossip_packet packet;
    gossip_packet_begin(&packet);
    gossip_frame_write_resend(&packet.w, resend);
    return gossip_link_send(g, p, &packet);
}

static struct gossip_trip io_trip(void *context, uint64_t peer)
{
    const struct gossip_peer *p = gossip_peer_find(context, peer);
    return p != NULL ? p->trip : (struct gossip_trip){0};
}

static void io_measured(void *context, uint64_t peer, uint64_t us)
{
    struct gossip_peer *p = gossip_peer_find(context, peer);
    if (p != NULL)
        gossip_trip_take(&p->trip, us);
}

static void io_failed(void *context, uint64_t peer)
{
    struct gossip *g = context;
    (void)peer;
    g->stats.messages_failed++;
}

static struct gossip_message_io message_io(struct gossip *g)
{
    return (struct gossip_message_io){.context = g,
                                      .part = io_part,
                                      .resend = io_resend,
                                      .trip = io_trip,
                                      .measured = io_measured,
                                      .failed = io_failed};
}

int gossip_message(struct gossip *g, uint64_t peer, struct slice bytes, uint64_t now_us)
{
    enter(g, now_us);
    struct gossip_peer *p = gossip_peer_find(g, peer);
    if (g->leaving || p == NULL || !gossip_peer_shares(p))
        return ERR_NOT_FOUND;
    int status = gossip_messages_send(&g->messages, peer, g->epoch, p->message_id + 1,
                                      g->vector_digest, bytes, g->now_us);
    if (status < 0)
        return status;
    p->message_id++;
    g->stats.messages_out++;
    struct gossip_message_io io = message_io(g);
    gossip_messages_run(&g->messages, &io, g->now_us);
    return 0;
}

static void take_part(struct gossip *g, struct gossip_peer *from, const struct gossip_frame_part *f)
{
    struct buf whole;
    buf_init(&whole, GOSSIP_MESSAGE_MAX);
    struct gossip_message_io io = message_io(g);
    int status =
        gossip_messages_part(&g->messages, &io, from->node, &from->delivered, f, g->now_us, &whole);
    if (status == 1) {
        g->stats.messages_in++;
        g->app.message(g->app.context, from->node, buf_slice(&whole), f->vector == g->vector_digest,
                       g->now_us);
    } else if (status == ERR_FULL) {
        g->stats.no_room++;
    } else if (status == ERR_SYNTAX) {
        gossip_watch_malformed(g, from);
    }
    buf_free(&whole);
}

static void take_resend(struct gossip *g, struct gossip_peer *from,
                        const struct gossip_frame_resend *f)
{
    struct gossip_message_io io = message_io(g);
    gossip_messages_resend(&g->messages, &io, from->node, f, g->now_us);
}

/* --- packets --------------------------------------------------------------------------------- */

static void take_alive(struct gossip *g, struct gossip_peer *from,
                       const struct gossip_frame_alive *f)
{
    if (!gossip_watch_alive(g, from, f))
        return;
    if (!from->foreign)
        gossip_push_known(g, from, f->seq);
    if (!f->full)
        return;
    if (!from->foreign)
        gossip_vector_compare(g, from, f->vector);
    gossip_rumour_compare(g, from, f->members);
}

static void take_frame(struct gossip *g, struct gossip_peer *from, const struct gossip_frame_any *f)
{
    if (f->type == GOSSIP_FRAMES) {
        g->stats.frames_skipped++;
        return;
    }
    g->stats.frames_in[f->type]++;
    g->stats.frame_bytes_in[f->type] += f->bytes;
    /* A stranger may only identify itself. For any other frame, this node asks for the stranger's
     * entry. */
    bool greeting = f->type == GOSSIP_FRAME_MEMBERS || f->type == GOSSIP_FRAME_PING ||
                    f->type == GOSSIP_FRAME_ACK;
    if (!from->listed && !greeting) {
        gossip_ask_who(g, from);
        return;
    }
    switch (f->type) {
    case GOSSIP_FRAME_DELTA:
        if (gossip_push_delta(g, from, &f->delta) < 0)
            gossip_watch_malformed(g, from);
        break;
    case GOSSIP_FRAME_ALIVE:
        take_alive(g, from, &f->alive);
        break;
    case GOSSIP_FRAME_NACK:
        gossip_push_nack(g, from, &f->nack);
        break;
    case GOSSIP_FRAME_GONE:
        gossip_push_gone(g, from, &f->gone);
        break;
    case GOSSIP_FRAME_MEMBERS:
        gossip_rumour_members(g, from, f->body);
        break;
    case GOSSIP_FRAME_PING:
        gossip_watch_ping(g, from, &f->ping);
        break;
    case GOSSIP_FRAME_ACK:
        gossip_watch_ack(g, from, &f->ping);
        break;
    case GOSSIP_FRAME_PART:
        take_part(g, from, &f->part);
        break;
    case GOSSIP_FRAME_RESEND:
        take_resend(g, from, &f->resend);
        break;
    case GOSSIP_FRAME_VECTOR:
        gossip_vector_take(g, from, f->body);
        gossip_push_vector(g, f->body);
        break;
    case GOSSIP_FRAME_FULL:
        gossip_rumour_refused(g, from, &f->full);
        break;
    case GOSSIP_FRAMES:
        break;
    }
}

static void greet_if_fresh(struct gossip *g, struct gossip_peer *p)
{
    if (p == NULL || !p->fresh)
        return;
    p->fresh = false;
    gossip_announce_self(g, p);
}

static void take_packet(struct gossip *g, const struct gossip_address *from, struct slice packet,
                        uint32_t index)
{
    uint8_t plain[GOSSIP_DATAGRAM_MAX];
    size_t len = 0;
    struct gossip_peer *p = gossip_link_open(g, from, packet, index, plain, &len);
    greet_if_fresh(g, p);
    if (p == NULL || g->now_us < p->quarantine_us)
        return; /* a packet from a quarantined peer only proves that the peer lives */
    struct slice frames = slice_of((const char *)plain, len);
    bool base = p->foreign;
    if (gossip_frame_packet_check(frames, base) < 0) {
        /* The base frames of a build from before versions may differ, so they are not malformed. */
        if (base)
            g->stats.frames_skipped++;
        else
            gossip_watch_malformed(g, p);
        return;
    }
    struct wire_reader r = wire_reader_of(plain, len);
    struct gossip_frame_any f;
    while (gossip_frame_read(&r, base, &f) == 1)
        take_frame(g, p, &f);
}

void gossip_datagram(struct gossip *g, const struct gossip_address *from, const uint8_t *bytes,
                     size_t len, uint64_t now_us)
{
    enter(g, now_us);
    if (g->leaving)
        return;
    g->stats.packets_in++;
    g->stats.bytes_in += len;
    struct slice packet = slice_of((const char *)bytes, len);
    uint32_t index = 0;
    switch (len <= GOSSIP_DATAGRAM_MAX ? gossip_packet_peek(packet, &index) : 0) {
    case GOSSIP_PACKET_HELLO:
        gossip_link_hello(g, from, packet);
        break;
    case GOSSIP_PACKET_WELCOME:
        greet_if_fresh(g, gossip_link_welcome(g, from, packet, index));
        break;
    case GOSSIP_PACKET_DATA:
        take_packet(g, from, packet, index);
        break;
    default:
        g->stats.refused_key++;
    }
}

/* --- time ------------------------------------------------------------------------------------ */

void gossip_wake(struct gossip *g, uint64_t now_us)
{
    enter(g, now_us);
    if (g->leaving)
        return;
    g->wanted = true;
    uint64_t due = g->flushed_us + gossip_push_cadence(g);
    if (g->flushed_us == 0 || due <= g->now_us)
        gossip_push_flush(g);
    else if (due < g->flush_us)
        g->flush_us = due;
}

static void tick(struct gossip *g)
{
    g->tick_us = GOSSIP_NEVER;
    gossip_watch_health(g);
    uint64_t due = gossip_watch_all(g);
    for (unsigned slot = 0; slot < g->slots_used; slot++) {
        struct gossip_peer *p = g->slots[slot];
        if (p == NULL || p->self)
            continue;
        if (gossip_peer_live(p)) {
            uint64_t link_us = gossip_reach_tick(g, p);
            due = link_us < due ? link_us : due;
        }
        uint64_t watch_us = gossip_watch_tick(g, p);
        if (watch_us != 0 && watch_us < due)
            due = watch_us;
    }
    if (gossip_place_learn(g) && gossip_self_rise(g, 0))
        gossip_announce_to_all(g, g->self);
    if (g->learn)
        due = g->learn_us < due ? g->learn_us : due;
    uint64_t seeds_us = gossip_reach_seeds(g);
    due = seeds_us < due ? seeds_us : due;
    gossip_vector_tick(g);
    due = g->tick_us < due ? g->tick_us : due;
    if (due < g->now_us + TICK_MIN_US)
        due = g->now_us + TICK_MIN_US;
    g->tick_us = due;
}

static void leave_tell(struct gossip *g)
{
    gossip_announce_to_all(g, g->self);
    g->leave_us = ++g->leave_tells < GOSSIP_LEAVE_TELLS ? g->now_us + LEAVE_EVERY_US : GOSSIP_NEVER;
}

void gossip_run(struct gossip *g, uint64_t now_us)
{
    enter(g, now_us);
    if (g->leaving) {
        if (g->now_us >= g->leave_us)
            leave_tell(g);
        return;
    }
    if (g->now_us >= g->flush_us)
        gossip_push_flush(g);
    if (g->now_us >= g->tail_us)
        gossip_push_tail(g);
    if (g->now_us >= g->nack_us)
        gossip_push_nacks(g);
    struct gossip_message_io io = message_io(g);
    gossip_messages_run(&g->messages, &io, g->now_us);
    if (g->now_us >= g->tick_us)
        tick(g);
}

uint64_t gossip_due_us(const struct gossip *g)
{
    if (g->leaving)
        return g->leave_us;
    uint64_t due = g->tick_us;
    due = g->flush_us < due ? g->flush_us : due;
    due = g->tail_us < due ? g->tail_us : due;
    due = g->nack_us < due ? g->nack_us : due;
    return g->messages.due_us < due ? g->messages.due_us : due;
}

void gossip_late(struct gossip *g, uint64_t late_us, uint64_t now_us)
{
    enter(g, now_us);
    gossip_watch_late(g, late_us);
}

void gossip_leave(struct gossip *g, uint64_t now_us)
{
    enter(g, now_us);
    if (g->leaving)
        return;
    gossip_push_flush(g);
    g->leaving = true;
    g->self->state = GOSSIP_LEFT;
    gossip_peer_account(g, g->self);
    leave_tell(g);
}

void gossip_meta_set(struct gossip *g, struct slice meta, uint64_t now_us)
{
    enter(g, now_us);
    CHECK(meta.len <= GOSSIP_META_MAX);
    struct gossip_peer *self = g->self;
    if (g->leaving || slice_equal(meta, slice_of((const char *)self->meta, self->meta_len)))
        return;
    self->meta_len = (uint16_t)meta.len;
    if (meta.len > 0)
        memcpy(self->meta, meta.at, meta.len);
    if (gossip_self_rise(g, 0))
        gossip_announce_to_all(g, self);
}

void gossip_joining(struct gossip *g, bool joining)
{
    g->joining = joining;
    g->nack_us = joining ? GOSSIP_NEVER : g->now_us;
}

/* --- asking ---------------------------------------------------------------------------------- */

unsigned gossip_member_count(const struct gossip *g)
{
    return g->listed;
}

void gossip_member_at(const struct gossip *g, unsigned index, uint64_t now_us,
                      struct gossip_member *out)
{
    CHECK(index < g->listed);
    const struct gossip_peer *p = g->order[index];
    gossip_peer_describe(g, p, out);
    if (p->stream.gap_us != 0 && now_us > p->stream.gap_us)
        out->lag_us = now_us - p->stream.gap_us;
}

int gossip_member_find(const struct gossip *g, uint64_t node, uint64_t now_us,
                       struct gossip_member *out)
{
    const struct gossip_peer *p = gossip_peer_find(g, node);
    if (p == NULL || !p->listed)
        return ERR_NOT_FOUND;
    gossip_peer_describe(g, p, out);
    if (p->stream.gap_us != 0 && now_us > p->stream.gap_us)
        out->lag_us = now_us - p->stream.gap_us;
    return 0;
}

void gossip_member_keyring(const struct gossip *g, uint64_t node, struct gossip_keyring *out)
{
    const struct gossip_peer *p = gossip_peer_find(g, node);
    if (p != NULL)
        gossip_link_keyring(g, p, out);
    else
        *out = *g->keyring;
}

unsigned gossip_member_places(const struct gossip *g, uint64_t node,
                              struct gossip_place out[GOSSIP_PLACES_MAX])
{
    const struct gossip_peer *p = gossip_peer_find(g, node);
    return p != NULL ? gossip_place_list(p, out) : 0;
}

void gossip_stats(const struct gossip *g, struct gossip_stats *out)
{
    *out = g->stats;
    out->ring_bytes = g->ring.bytes_used;
    out->ring_deltas = g->ring.next - g->ring.first;
    for (unsigned i = 0; i < g->listed; i++)
        out->sessions += g->order[i]->session.sending != 0;
    for (unsigned i = 0; i < g->seeds_count; i++) {
        out->seeds_unknown += g->seeds[i].node == 0;
        out->seeds_answered += g->seeds[i].node != 0 && g->seeds[i].node != g->self->node;
        out->seeds_self += g->seeds[i].node == g->self->node;
    }
}
