/* Sessions and packets: doors, the rate limit, sealing and sending, handshakes. */
#include <sodium.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "gossip/gossip_internal.h"

enum {
    AWAITED_MAX_US = 500000,  /* after a welcome, the peer must send a packet within this time */
    GREET_AGAIN_US = 1000000, /* minimum time between greetings of a peer whose address keeps
                               * changing */
    KNOCK_AGAIN_US = 100000,  /* minimum time between dials to a knocking node */
    HELLOS_KNOW_US = 1000000,
    RATE_BURST_PART = 20, /* a burst is 1/20 of a second's rate */
    SEED_ALIKE = 8,       /* after this number of answers by the same router, the address counts as
                           * not shared */
};

/* --- doors ----------------------------------------------------------------------------------- */

static bool door_used(const struct gossip *g, const struct gossip_door *d)
{
    if (d->index == 0)
        return false;
    if (d->owner >= GOSSIP_SLOTS)
        return g->seeds[d->owner - GOSSIP_SLOTS].dial.index == d->index;
    const struct gossip_peer *p = g->slots[d->owner];
    return p != NULL && (p->dial.index == d->index || gossip_session_owns(&p->session, d->index));
}

/* Returns a new index with a door to `owner`. Unused doors are only detected here. So nothing needs
 * to close a door when keys expire. */
static uint32_t door_open(struct gossip *g, unsigned owner)
{
    uint64_t random = prng_next(&g->prng);
    for (unsigned i = 0; i < GOSSIP_DOORS; i++) {
        uint32_t low = (uint32_t)(random + i) & (GOSSIP_DOORS - 1);
        struct gossip_door *d = &g->doors[low];
        if (door_used(g, d))
            continue;
        uint32_t high = 1 + (uint32_t)(random >> 32) % (GOSSIP_INDEX_MAX >> GOSSIP_DOOR_BITS);
        uint32_t index = high << GOSSIP_DOOR_BITS | low;
        if (index == d->index) /* late packets to the previous owner must be refused */
            index ^= 1u << (GOSSIP_DOOR_BITS + 1);
        *d = (struct gossip_door){.index = index, .owner = (uint16_t)owner};
        return index;
    }
    g->stats.no_room++;
    return 0;
}

static struct gossip_door *door_at(struct gossip *g, uint32_t index)
{
    struct gossip_door *d = &g->doors[index & (GOSSIP_DOORS - 1)];
    return index != 0 && d->index == index ? d : NULL;
}

/* --- rate ------------------------------------------------------------------------------------ */

bool gossip_link_rate_ready(struct gossip *g)
{
    uint64_t passed = g->now_us - g->tokens_us;
    int64_t burst = (int64_t)(g->config.rate_bytes_s / RATE_BURST_PART) + GOSSIP_DATAGRAM_MAX;
    if (passed > 1000000)
        passed = 1000000;
    uint64_t gained = g->config.rate_bytes_s * passed / 1000000;
    if (gained > 0) {
        g->tokens += (int64_t)gained;
        g->tokens_us = g->now_us;
        if (g->tokens > burst)
            g->tokens = burst;
    }
    if (g->tokens > 0)
        return true;
    g->stats.rate_held++;
    return false;
}

/* --- sending --------------------------------------------------------------------------------- */

static void send_bytes(struct gossip *g, const struct gossip_address *to, const uint8_t *bytes,
                       size_t len)
{
    g->stats.packets_out++;
    g->stats.bytes_out += len;
    g->tokens -= (int64_t)len;
    g->io.send(g->io.context, to, bytes, len);
}

static void count_frames_out(struct gossip *g, struct slice plain)
{
    struct wire_reader r = wire_reader_of(plain.at, plain.len);
    while (wire_left(&r) > 0) {
        const uint8_t *start = r.at;
        uint8_t type = wire_read_u8(&r);
        wire_read_bytes(&r, wire_read_varint(&r));
        CHECK(!r.bad && (FUTURE || type < GOSSIP_FRAMES));
        if (type >= GOSSIP_FRAMES)
            continue;
        g->stats.frames_out[type]++;
        g->stats.frame_bytes_out[type] += (uint64_t)(r.at - start);
    }
}

bool gossip_link_send(struct gossip *g, struct gossip_peer *p, const struct gossip_packet *packet)
{
    const struct gossip_address *to = &p->source;
    struct slice plain = slice_of((const char *)packet->bytes, wire_written(&packet->w));
    uint8_t out[GOSSIP_DATAGRAM_MAX];
    if (to->port == 0 || gossip_session_seal(&p->session, plain, g->now_us, out) < 0)
        return false;
    size_t len = plain.len + GOSSIP_DATA_OVERHEAD;
    count_frames_out(g, plain);
    p->packets_out++;
    p->bytes_out += len;
    p->sent_us = g->now_us;
    send_bytes(g, to, out, len);
    return true;
}

/* --- identity in a hello ------------------------------------------------------ */

/* Encoded as: instance 8 | port 2, epoch 6 (in a knock). */
struct ident {
    uint64_t instance;
    uint16_t port; /* port on which the sender listens and can be dialled; 0: no knock */
    uint64_t epoch;
};

enum { IDENT_BYTES = 16 };
_Static_assert((int)IDENT_BYTES <= (int)GOSSIP_IDENT_MAX, "it fits a hello");

/* Returns this node's identity for a hello or a welcome. The result borrows `out`. */
static struct gossip_identity identity(const struct gossip *g, bool knock, uint8_t out[IDENT_BYTES])
{
    struct wire_writer w = wire_writer_of(out, IDENT_BYTES);
    wire_write_u64(&w, g->instance);
    wire_write_u16(&w, knock ? g->config.port : 0);
    wire_write_u48(&w, g->epoch);
    return (struct gossip_identity){.node = g->self->node,
                                    .speaks = g->config.speaks,
                                    .ident = slice_of((const char *)out, wire_written(&w))};
}

static struct ident ident_read(const uint8_t *bytes, size_t len)
{
    struct wire_reader r = wire_reader_of(bytes, len);
    struct ident ident = {.instance = wire_read_u64(&r)};
    ident.port = wire_read_u16(&r);
    ident.epoch = wire_read_u48(&r);
    return ident;
}

/* --- dialling -------------------------------------------------------------------------------- */

static void hello_write(struct gossip *g, struct gossip_dial *dial, uint32_t index, unsigned key,
                        bool knock, uint8_t out[GOSSIP_HELLO_BYTES])
{
    struct gossip_keyring ring;
    gossip_keyring_turn(g->keyring, key, &ring);
    uint8_t random[32];
    uint8_t ident[IDENT_BYTES];
    g->io.random(g->io.context, random, sizeof random);
    g->stamp = gossip_stamp_next(g->stamp, g->epoch);
    struct gossip_identity self = identity(g, knock, ident);
    gossip_dial_begin(dial, &ring, random, index, &self, g->stamp, out);
    sodium_memzero(&ring, sizeof ring);
    sodium_memzero(random, sizeof random);
}

bool gossip_link_dial(struct gossip *g, struct gossip_dial *dial, const struct gossip_address *to,
                      unsigned owner, unsigned key)
{
    uint8_t out[GOSSIP_HELLO_BYTES];
    gossip_dial_wipe(dial);
    uint32_t index = door_open(g, owner);
    if (index == 0)
        return false;
    hello_write(g, dial, index, key, false, out);
    dial->sent_us = g->now_us;
    send_bytes(g, to, out, sizeof out);
    return true;
}

void gossip_link_knock(struct gossip *g, struct gossip_seed *seed)
{
    const struct gossip_address *to = &seed->at;
    uint8_t out[GOSSIP_HELLO_BYTES];
    struct gossip_dial dial = {0};
    /* A knock gets no answer, so it has no door. The index is kept, to recognise a knock that
     * reaches this node itself. */
    seed->knock = 1 + (uint32_t)(g->stats.knocks_out % GOSSIP_INDEX_MAX);
    hello_write(g, &dial, seed->knock, (unsigned)g->stats.knocks_out, true, out);
    gossip_dial_wipe(&dial);
    g->stats.knocks_out++;
    if (g->io.knock == NULL) {
        send_bytes(g, to, out, sizeof out);
        return;
    }
    g->stats.packets_out++;
    g->stats.bytes_out += sizeof out;
    g->tokens -= (int64_t)sizeof out;
    g->io.knock(g->io.context, to, out, sizeof out);
}

/* --- handshakes ------------------------------------------------------------------------------ */

/* True if the router `node`, which last answered at a seed's address, still lives: then two routers
 * answer at the address. Otherwise the address may now belong to another router. */
static bool still_there(const struct gossip *g, uint64_t node)
{
    const struct gossip_peer *p = gossip_peer_find(g, node);
    return p != NULL && (p->self || (p->listed && p->state == GOSSIP_ALIVE &&
                                     g->now_us - p->heard_us < g->config.suspect_us));
}

static void seed_answered(struct gossip *g, struct gossip_seed *seed, uint64_t node)
{
    bool shared = seed->shared;
    if (seed->node == node)
        shared = shared && ++seed->alike < SEED_ALIKE;
    else if (seed->node != 0)
        shared = shared || still_there(g, seed->node);
    if (seed->node != node)
        seed->alike = 0;
    g->learn = g->learn || shared != seed->shared;
    seed->shared = shared;
    if (seed->node == 0)
        gossip_tick_by(g, g->now_us); /* knocks may begin now */
    seed->node = node;
}

/* Handles a hello sent by this node to itself. */
static void came_back(struct gossip *g, uint32_t index, bool knock)
{
    const struct gossip_door *d = door_at(g, index);
    /* Compares indexes, because the seeds may have been reordered since. */
    for (unsigned i = 0; i < g->seeds_count; i++)
        if (index == (knock ? g->seeds[i].knock : g->seeds[i].dial.index))
            seed_answered(g, &g->seeds[i], g->self->node);
    if (d != NULL && d->owner >= GOSSIP_SLOTS)
        return;
    if (!knock && d != NULL && g->slots[d->owner] != NULL)
        gossip_place_wrong(g, g->slots[d->owner]);
}

static unsigned key_number(const struct gossip *g, const uint8_t id[GOSSIP_KEY_ID_BYTES])
{
    for (unsigned i = 0; i < g->keyring->count; i++)
        if (memcmp(g->keyring->keys[i].id, id, GOSSIP_KEY_ID_BYTES) == 0)
            return i;
    return 0;
}

void gossip_link_keyring(const struct gossip *g, const struct gossip_peer *p,
                         struct gossip_keyring *out)
{
    gossip_keyring_turn(g->keyring, key_number(g, p->key_id), out);
}

/* Dials the node that knocked, unless there is a session with this life of the node. The hello is
 * no longer than the knock, and goes to the knock's source address. */
static void answer_knock(struct gossip *g, struct gossip_peer *p, const struct gossip_address *from,
                         const struct ident *ident)
{
    bool later_life = p->listed && ident->epoch > p->incarnation >> 16;
    g->stats.knocks_in++;
    if ((p->session.sending != 0 && !later_life) ||
        (p->knocked_us != 0 && g->now_us - p->knocked_us < KNOCK_AGAIN_US))
        return;
    p->knocked_us = g->now_us;
    p->dialled = *from;
    p->dialled.port = ident->port;
    gossip_link_dial(g, &p->dial, &p->dialled, p->slot, key_number(g, p->key_id));
}

static void welcome(struct gossip *g, struct gossip_peer *p, const struct gossip_address *from,
                    struct gossip_hello *hello)
{
    uint32_t index = door_open(g, p->slot);
    uint8_t random[32];
    uint8_t ident[IDENT_BYTES];
    uint8_t out[GOSSIP_WELCOME_BYTES];
    if (index == 0)
        return;
    g->io.random(g->io.context, random, sizeof random);
    struct gossip_identity self = identity(g, false, ident);
    int status = gossip_session_welcome(&p->session, hello, random, index, &self, g->now_us, out);
    sodium_memzero(random, sizeof random);
    if (status < 0)
        return;
    p->greeting = true;
    p->welcomed_us = g->now_us;
    if (p->dial_us < g->now_us + AWAITED_MAX_US)
        p->dial_us = g->now_us + AWAITED_MAX_US;
    send_bytes(g, from, out, sizeof out);
}

/* Answers a hello from another node with this node's name. By the welcome the other node learns of
 * the conflict; no other member welcomes it. */
static void answer_namesake(struct gossip *g, const struct gossip_address *from,
                            struct gossip_hello *hello)
{
    struct gossip_session none = {0};
    uint8_t random[32];
    uint8_t ident[IDENT_BYTES];
    uint8_t out[GOSSIP_WELCOME_BYTES];
    g->io.random(g->io.context, random, sizeof random);
    struct gossip_identity self = identity(g, false, ident);
    if (gossip_session_welcome(&none, hello, random, GOSSIP_INDEX_MAX, &self, g->now_us, out) == 0)
        send_bytes(g, from, out, sizeof out);
    sodium_memzero(random, sizeof random);
    gossip_session_wipe(&none);
}

static void take_hello(struct gossip *g, const struct gossip_address *from,
                       struct gossip_hello *hello)
{
    struct ident ident = ident_read(hello->ident, hello->ident_len);
    bool ours = hello->node == g->self->node;
    if (ours && ident.instance == g->instance) {
        came_back(g, hello->peer_index, ident.port != 0);
        return;
    }
    struct gossip_peer *p = gossip_peer_find(g, hello->node);
    bool met = p != NULL && p->session.sending != 0;
    if (hello->node == 0 ||
        (gossip_stamps_take(&g->stamps, hello->node, hello->stamp, met, g->now_us) < 0 &&
         !BUG(HELLO_REPLAYED))) {
        g->stats.refused_replay++;
        return;
    }
    if (ours) {
        struct gossip_address at = *from;
        at.port = ident.port != 0 ? ident.port : from->port;
        gossip_peer_conflict(g, hello->node, &at);
        if (ident.port == 0)
            answer_namesake(g, from, hello);
        return;
    }
    if (p == NULL)
        p = gossip_peer_add(g, hello->node);
    if (p == NULL)
        return;
    memcpy(p->key_id, hello->key_id, sizeof p->key_id);
    if (ident.port != 0)
        answer_knock(g, p, from, &ident);
    else
        welcome(g, p, from, hello);
}

/* Updates the set of known addresses once a second, and only while hellos arrive. */
static void know_addresses(struct gossip *g)
{
    if (g->now_us < g->hellos_us)
        return;
    g->hellos_us = g->now_us + HELLOS_KNOW_US;
    gossip_hellos_forget(&g->hellos);
    for (unsigned i = 0; i < g->seeds_count; i++)
        gossip_hellos_know(&g->hellos, &g->seeds[i].at);
    for (unsigned i = 0; i < g->listed; i++) {
        const struct gossip_peer *p = g->order[i];
        gossip_hellos_know(&g->hellos, &p->source);
        for (unsigned k = 0; k < p->places_count; k++)
            gossip_hellos_know(&g->hellos, &p->places[k].place.at);
    }
}

void gossip_link_hello(struct gossip *g, const struct gossip_address *from, struct slice packet)
{
    struct gossip_hello hello;
    if (g->now_us < g->full_us)
        return;
    know_addresses(g);
    if (gossip_hello_named(g->keyring, packet) &&
        !gossip_hellos_take(&g->hellos, from, g->now_us)) {
        g->stats.hellos_held++;
        return;
    }
    if (gossip_hello_of_other_cluster(g->keyring, packet)) {
        g->stats.other_cluster++;
        g->stats.other_cluster_from = *from;
        g->stats.other_cluster_us = g->now_us;
        return;
    }
    if (gossip_hello_open(&hello, g->keyring, packet) < 0) {
        g->stats.refused_key++;
        g->stats.refused_hellos++;
        g->stats.refused_hello_from = *from;
        return;
    }
    take_hello(g, from, &hello);
    gossip_hello_wipe(&hello);
}

/* Notes an authenticated packet, which proves that the peer is alive now. */
static void heard(struct gossip *g, struct gossip_peer *p, const struct gossip_address *from)
{
    p->heard_us = p->proof_us = g->now_us;
    if (gossip_address_equal(from, &p->source))
        return;
    if (BUG(STALE_ADDRESS) && p->source.port != 0)
        return;
    bool moved = p->source.port != 0 && g->now_us - p->greeted_us >= GREET_AGAIN_US;
    p->source = *from;
    p->fresh = p->fresh || (moved && p->session.sending != 0);
    gossip_place_answered(g, p, from);
}

/* A session with the peer was made: notes the peer's versions. */
static void meet(struct gossip *g, struct gossip_peer *p)
{
    struct gossip_versions speaks = gossip_session_speaks(&p->session);
    bool same = speaks.least == p->speaks.least && speaks.greatest == p->speaks.greatest;
    bool foreign = gossip_versions_common(g->config.speaks, speaks) == 0;
    if (same && foreign == p->foreign)
        return;
    p->speaks = speaks;
    p->foreign = foreign;
    if (p->listed)
        gossip_peer_publish(g, p);
}

/* Handles the answer to the dial with this index. */
static struct gossip_peer *welcomed(struct gossip *g, const struct gossip_address *from,
                                    uint32_t index, uint64_t sent_us,
                                    struct gossip_welcome *welcome, struct gossip_peer *dialled)
{
    bool wrong = dialled != NULL && dialled->node != welcome->node;
    if (wrong)
        gossip_place_wrong(g, dialled);
    if (welcome->node == g->self->node) {
        if (ident_read(welcome->ident, welcome->ident_len).instance != g->instance)
            gossip_peer_conflict(g, welcome->node, from);
        return NULL;
    }
    struct gossip_peer *p = gossip_peer_find(g, welcome->node);
    if (p == NULL)
        p = gossip_peer_add(g, welcome->node);
    if (p == NULL)
        return NULL;
    /* Two hellos may be in transit to the peer, as a seed and as a member. The peer keeps the keys
     * of the later hello. The keys of the earlier hello are void, even if their welcome arrives
     * last. */
    if (welcome->stamp < p->welcome_stamp)
        return NULL;
    p->welcome_stamp = welcome->stamp;
    /* The answering peer may be another than the dialled peer. */
    g->doors[index & (GOSSIP_DOORS - 1)].owner = p->slot;
    if (p->session.sending != 0)
        g->stats.rekeys++;
    else
        g->stats.handshakes++;
    memcpy(p->key_id, welcome->key_id, sizeof p->key_id);
    gossip_session_install(&p->session, welcome);
    if (dialled == p)
        gossip_place_answered(g, p, &p->dialled);
    p->dials = 0;
    if (gossip_peer_live(p))
        p->dial_wait = 0;
    p->fresh = true;
    gossip_trip_guess(&p->trip, g->now_us - sent_us);
    heard(g, p, from);
    meet(g, p);
    return p;
}

struct gossip_peer *gossip_link_welcome(struct gossip *g, const struct gossip_address *from,
                                        struct slice packet, uint32_t index)
{
    const struct gossip_door *d = door_at(g, index);
    struct gossip_welcome welcome;
    struct gossip_peer *dialled = NULL;
    uint64_t sent_us = 0;
    int status = ERR_NOT_FOUND;
    if (d != NULL && d->owner >= GOSSIP_SLOTS) {
        struct gossip_seed *seed = &g->seeds[d->owner - GOSSIP_SLOTS];
        sent_us = seed->dial.sent_us;
        status = gossip_dial_finish(&seed->dial, packet, g->now_us, &welcome);
        if (status == 0)
            seed_answered(g, seed, welcome.node);
    } else if (d != NULL && g->slots[d->owner] != NULL) {
        dialled = g->slots[d->owner];
        sent_us = dialled->dial.sent_us;
        status = gossip_dial_finish(&dialled->dial, packet, g->now_us, &welcome);
    }
    struct gossip_peer *p = NULL;
    if (status == 0)
        p = welcomed(g, from, index, sent_us, &welcome, dialled);
    else
        g->stats.refused_key++;
    sodium_memzero(&welcome, sizeof welcome);
    return p;
}

struct gossip_peer *gossip_link_open(struct gossip *g, const struct gossip_address *from,
                                     struct slice packet, uint32_t index, uint8_t *plain,
                                     size_t *len)
{
    const struct gossip_door *d = door_at(g, index);
    struct gossip_peer *p = d != NULL && d->owner < GOSSIP_SLOTS ? g->slots[d->owner] : NULL;
    bool had = p != NULL && p->session.sending != 0;
    int status =
        p != NULL ? gossip_session_open(&p->session, packet, g->now_us, plain, len) : ERR_NOT_FOUND;
    if (status < 0) {
        if (status == ERR_STALE)
            g->stats.refused_replay++;
        else
            g->stats.refused_key++;
        return NULL;
    }
    heard(g, p, from);
    p->packets_in++;
    p->bytes_in += packet.len;
    if (p->greeting && p->session.sending != 0) {
        p->greeting = false;
        gossip_stamps_met(&g->stamps, p->node);
        gossip_trip_guess(&p->trip, g->now_us - p->welcomed_us);
        p->dials = 0;
        p->fresh = true;
        if (had)
            g->stats.rekeys++;
        else
            g->stats.handshakes++;
    }
    if (p->session.sending != 0)
        meet(g, p);
    return p;
}

void gossip_link_check(const struct gossip *g)
{
    for (unsigned slot = 0; slot < g->slots_used; slot++)
        if (g->slots[slot] != NULL)
            gossip_session_check(&g->slots[slot]->session);
    CHECK(g->seeds_count <= GOSSIP_SEEDS_MAX);
}
