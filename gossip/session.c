#include "gossip/session.h"

#include <sodium.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "base/future.h"
#include "base/wire.h"
#include "gossip/frame.h"

enum { HELLO_HEADER = 5, WELCOME_HEADER = 4, KEY_ID_BYTES = GOSSIP_KEY_ID_BYTES, INDEX_BYTES = 3 };

_Static_assert((int)GOSSIP_DATA_OVERHEAD == (int)GOSSIP_SEAL_BYTES,
               "what a packet leaves to frames");
_Static_assert((int)GOSSIP_HELLO_BYTES <= (int)GOSSIP_DATAGRAM_MAX, "a hello is one datagram");
_Static_assert((int)HELLO_HEADER == 1 + (int)KEY_ID_BYTES, "type, key");
_Static_assert((int)WELCOME_HEADER == 1 + (int)INDEX_BYTES, "type, index");
_Static_assert(GOSSIP_INDEX_MAX == (1 << (8 * INDEX_BYTES)) - 1, "an index has three bytes");
_Static_assert(GOSSIP_IDENT_MAX <= UINT16_MAX, "its length has two bytes");
_Static_assert((int)GOSSIP_WELCOME_BYTES <= (int)GOSSIP_HELLO_BYTES, "an answer is never longer");
_Static_assert((int)GOSSIP_KEY_BYTES == (int)GOSSIP_NOISE_KEY, "the ring's keys are Noise's");

#define PROLOGUE SLICE("grapevine 1 datagrams")

static struct slice slice_of_bytes(const uint8_t *at, size_t len)
{
    return slice_of((const char *)at, len);
}

unsigned gossip_packet_peek(struct slice packet, uint32_t *index)
{
    struct wire_reader r = wire_reader_of(packet.at, packet.len);
    unsigned type = wire_read_u8(&r);
    *index = 0;
    if (type == GOSSIP_PACKET_HELLO)
        return packet.len == GOSSIP_HELLO_BYTES ? type : 0;
    bool known = (type == GOSSIP_PACKET_WELCOME && packet.len == GOSSIP_WELCOME_BYTES) ||
                 (type == GOSSIP_PACKET_DATA && packet.len >= GOSSIP_DATA_OVERHEAD);
    if (!known)
        return 0;
    *index = (uint32_t)wire_read_fixed(&r, INDEX_BYTES);
    return *index == 0 ? 0 : type;
}

/* --- hello and welcome ----------------------------------------------------------------------- */

/* Writes the end of a hello's or welcome's payload: the index to send to, the sender's identity and
 * versions. */
static void payload_end_write(struct wire_writer *w, uint32_t index,
                              const struct gossip_identity *self)
{
    CHECK(index > 0 && index <= GOSSIP_INDEX_MAX && self->ident.len <= GOSSIP_IDENT_MAX);
    wire_write_fixed(w, index, INDEX_BYTES);
    wire_write_u16(w, (uint16_t)self->ident.len);
    wire_write_bytes(w, self->ident.at, self->ident.len);
    wire_write_u16(w, self->speaks.least);
    wire_write_u16(w, self->speaks.greatest);
    if (FUTURE)
        wire_write_bytes(w, FUTURE_BYTES.at, FUTURE_BYTES.len);
    CHECK(!w->bad);
    memset(w->at, 0, wire_room(w));
}

/* Reads the end of a payload. The bytes after it are padding or fields of a later version, and are
 * ignored. */
static int payload_end_read(struct wire_reader *r, uint32_t *index, uint8_t *ident,
                            uint16_t *ident_len, struct gossip_versions *speaks)
{
    *index = (uint32_t)wire_read_fixed(r, INDEX_BYTES);
    *ident_len = wire_read_u16(r);
    struct slice bytes = wire_read_bytes(r, *ident_len);
    speaks->least = wire_read_u16(r);
    speaks->greatest = wire_read_u16(r);
    if (r->bad || *index == 0 || *ident_len > GOSSIP_IDENT_MAX || speaks->least > speaks->greatest)
        return ERR_SYNTAX;
    if (bytes.len > 0)
        memcpy(ident, bytes.at, bytes.len);
    return ERR_OK;
}

void gossip_dial_wipe(struct gossip_dial *d)
{
    sodium_memzero(d, sizeof *d);
}

void gossip_hello_wipe(struct gossip_hello *h)
{
    sodium_memzero(h, sizeof *h);
}

void gossip_dial_begin(struct gossip_dial *d, const struct gossip_keyring *keyring,
                       const uint8_t random[32], uint32_t index, const struct gossip_identity *self,
                       uint64_t stamp, uint8_t *out)
{
    CHECK(keyring->count > 0);
    uint8_t payload[GOSSIP_HELLO_PAYLOAD];
    struct wire_writer inner = wire_writer_of(payload, sizeof payload);
    wire_write_u64(&inner, self->node);
    wire_write_u64(&inner, stamp);
    payload_end_write(&inner, index, self);

    const struct gossip_key *key = &keyring->keys[0];
    struct wire_writer w = wire_writer_of(out, GOSSIP_HELLO_BYTES);
    wire_write_u8(&w, GOSSIP_PACKET_HELLO);
    wire_write_bytes(&w, key->id, KEY_ID_BYTES);
    gossip_noise_begin(&d->noise, PROLOGUE, key->psk);
    gossip_noise_hello_write(&d->noise, random, slice_of_bytes(payload, sizeof payload), w.at);
    d->index = index;
    memcpy(d->key_id, key->id, KEY_ID_BYTES);
    d->stamp = stamp;
}

static int hello_open_with(struct gossip_hello *out, const struct gossip_key *key,
                           struct slice message)
{
    uint8_t payload[GOSSIP_HELLO_PAYLOAD];
    gossip_noise_begin(&out->noise, PROLOGUE, key->psk);
    memcpy(out->key_id, key->id, KEY_ID_BYTES);
    int err = gossip_noise_hello_read(&out->noise, message, payload);
    if (err != ERR_OK)
        return err;
    struct wire_reader r = wire_reader_of(payload, sizeof payload);
    out->node = wire_read_u64(&r);
    out->stamp = wire_read_u64(&r);
    return payload_end_read(&r, &out->peer_index, out->ident, &out->ident_len, &out->speaks);
}

bool gossip_hello_named(const struct gossip_keyring *keyring, struct slice packet)
{
    bool named = false;
    for (unsigned i = 0; i < keyring->count && packet.len >= HELLO_HEADER; i++)
        named = named || memcmp(keyring->keys[i].id, packet.at + 1, KEY_ID_BYTES) == 0;
    return named;
}

bool gossip_hello_of_other_cluster(const struct gossip_keyring *keyring, struct slice packet)
{
    bool alike = false;
    for (unsigned i = 0; i < keyring->count && packet.len >= HELLO_HEADER; i++)
        alike = alike || memcmp(keyring->keys[i].id, packet.at + 1, GOSSIP_KEY_ID_KEY) == 0;
    return alike && !gossip_hello_named(keyring, packet);
}

int gossip_hello_open(struct gossip_hello *out, const struct gossip_keyring *keyring,
                      struct slice packet)
{
    int err = ERR_DENIED;
    uint32_t none = 0;
    if (gossip_packet_peek(packet, &none) != GOSSIP_PACKET_HELLO)
        err = ERR_SYNTAX;
    for (unsigned i = 0; i < keyring->count && err == ERR_DENIED; i++)
        if (memcmp(keyring->keys[i].id, packet.at + 1, KEY_ID_BYTES) == 0)
            err = hello_open_with(out, &keyring->keys[i], slice_skip(packet, HELLO_HEADER));
    if (err != ERR_OK)
        gossip_hello_wipe(out);
    return err;
}

/* Makes the keys of either side from a finished handshake, and wipes the handshake. */
static void keys_make(struct gossip_keys *out, struct gossip_noise *noise, bool initiator,
                      uint32_t own_index, uint32_t peer_index, struct gossip_versions speaks,
                      uint64_t now_us)
{
    *out = (struct gossip_keys){
        .own_index = own_index,
        .peer_index = peer_index,
        .made_us = now_us,
        .speaks = speaks,
        .initiator = initiator,
        .confirmed = initiator, /* the peer made the same keys before it answered */
    };
    gossip_noise_split(noise, initiator ? out->seal : out->open, initiator ? out->open : out->seal,
                       NULL);
}

int gossip_dial_finish(struct gossip_dial *d, struct slice packet, uint64_t now_us,
                       struct gossip_welcome *out)
{
    uint32_t index = 0;
    if (gossip_packet_peek(packet, &index) != GOSSIP_PACKET_WELCOME)
        return ERR_SYNTAX;
    if (index != d->index)
        return ERR_NOT_FOUND;
    uint8_t payload[GOSSIP_WELCOME_PAYLOAD];
    int err = gossip_noise_welcome_read(&d->noise, slice_skip(packet, WELCOME_HEADER), payload);
    if (err != ERR_OK)
        return err;
    uint32_t peer_index = 0;
    struct wire_reader r = wire_reader_of(payload, sizeof payload);
    out->node = wire_read_u64(&r);
    out->stamp = d->stamp;
    struct gossip_versions speaks;
    err = payload_end_read(&r, &peer_index, out->ident, &out->ident_len, &speaks);
    memcpy(out->key_id, d->key_id, KEY_ID_BYTES);
    if (err == ERR_OK)
        keys_make(&out->keys, &d->noise, true, index, peer_index, speaks, now_us);
    gossip_dial_wipe(d);
    return err;
}

/* --- the key sets of a session ---------------------------------------------------------------- */

static struct gossip_keys *keys_find(struct gossip_session *s, uint32_t index)
{
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS && index > 0; i++)
        if (s->keys[i].own_index == index)
            return &s->keys[i];
    return NULL;
}

static void keys_wipe(struct gossip_session *s, struct gossip_keys *keys)
{
    if (keys->own_index == s->sending)
        s->sending = 0;
    sodium_memzero(keys, sizeof *keys);
}

static void keys_expire(struct gossip_session *s, uint64_t now_us)
{
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS; i++) {
        struct gossip_keys *keys = &s->keys[i];
        if (keys->own_index > 0 && now_us - keys->made_us >= GOSSIP_SESSION_REJECT_US)
            keys_wipe(s, keys);
    }
}

/* Chooses the place of a new key set. If the new set is unconfirmed, this is the place of the
 * present unconfirmed set, if there is one. In all other cases it is a free place, or else the
 * place of the oldest set, which is never the sending set (see gossip_session_check()). */
static struct gossip_keys *keys_place(struct gossip_session *s, bool confirmed)
{
    struct gossip_keys *oldest = NULL;
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS; i++)
        if (s->keys[i].own_index > 0 && !s->keys[i].confirmed && !confirmed)
            return &s->keys[i];
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS; i++) {
        struct gossip_keys *keys = &s->keys[i];
        if (keys->own_index == 0)
            return keys;
        if (oldest == NULL || keys->order < oldest->order)
            oldest = keys;
    }
    return oldest;
}

static void keys_add(struct gossip_session *s, struct gossip_keys *take_keys)
{
    CHECK(keys_find(s, take_keys->own_index) == NULL);
    struct gossip_keys *place = keys_place(s, take_keys->confirmed);
    keys_wipe(s, place);
    *place = *take_keys;
    place->order = ++s->order;
    if (place->confirmed)
        s->sending = place->own_index;
    sodium_memzero(take_keys, sizeof *take_keys);
}

int gossip_session_welcome(struct gossip_session *s, struct gossip_hello *hello,
                           const uint8_t random[32], uint32_t index,
                           const struct gossip_identity *self, uint64_t now_us, uint8_t *out)
{
    uint8_t payload[GOSSIP_WELCOME_PAYLOAD];
    struct wire_writer inner = wire_writer_of(payload, sizeof payload);
    wire_write_u64(&inner, self->node);
    payload_end_write(&inner, index, self);

    struct wire_writer w = wire_writer_of(out, GOSSIP_WELCOME_BYTES);
    wire_write_u8(&w, GOSSIP_PACKET_WELCOME);
    wire_write_fixed(&w, hello->peer_index, INDEX_BYTES);
    int err = gossip_noise_welcome_write(&hello->noise, random,
                                         slice_of_bytes(payload, sizeof payload), w.at);
    if (err == ERR_OK) {
        struct gossip_keys keys;
        keys_make(&keys, &hello->noise, false, index, hello->peer_index, hello->speaks, now_us);
        keys_expire(s, now_us);
        keys_add(s, &keys);
    }
    gossip_noise_wipe(&hello->noise);
    return err;
}

void gossip_session_install(struct gossip_session *s, struct gossip_welcome *welcome)
{
    keys_expire(s, welcome->keys.made_us);
    keys_add(s, &welcome->keys);
}

int gossip_session_seal(struct gossip_session *s, struct slice plain, uint64_t now_us, uint8_t *out)
{
    keys_expire(s, now_us);
    struct gossip_keys *keys = keys_find(s, s->sending);
    if (keys == NULL || keys->sealed >= GOSSIP_SESSION_PACKETS_MAX)
        return ERR_NOT_FOUND;
    uint32_t counter = keys->sealed++;
    struct wire_writer w = wire_writer_of(out, GOSSIP_DATA_HEADER);
    wire_write_u8(&w, GOSSIP_PACKET_DATA);
    wire_write_fixed(&w, keys->peer_index, INDEX_BYTES);
    wire_write_u32(&w, counter);
    if (BUG(UNSEALED)) {
        memset(out + GOSSIP_DATA_HEADER + plain.len, 0, GOSSIP_NOISE_TAG);
        memcpy(out + GOSSIP_DATA_HEADER, plain.at, plain.len);
        return ERR_OK;
    }
    gossip_noise_seal(keys->seal, counter, slice_of_bytes(out, GOSSIP_DATA_HEADER), plain,
                      out + GOSSIP_DATA_HEADER);
    return ERR_OK;
}

/* An authentic packet arrived under this key set: confirms the set, because both sides now have
 * it. */
static void keys_confirm(struct gossip_session *s, struct gossip_keys *keys)
{
    if (keys->confirmed)
        return;
    keys->confirmed = true;
    const struct gossip_keys *sending = keys_find(s, s->sending);
    if (sending == NULL || sending->order < keys->order)
        s->sending = keys->own_index;
}

int gossip_session_open(struct gossip_session *s, struct slice packet, uint64_t now_us,
                        uint8_t *out, size_t *out_len)
{
    uint32_t index = 0;
    if (gossip_packet_peek(packet, &index) != GOSSIP_PACKET_DATA)
        return ERR_SYNTAX;
    keys_expire(s, now_us);
    struct gossip_keys *keys = keys_find(s, index);
    if (keys == NULL)
        return ERR_NOT_FOUND;
    struct wire_reader r = wire_reader_of(packet.at + 1 + INDEX_BYTES, 4);
    uint32_t counter = wire_read_u32(&r);
    if (counter >= GOSSIP_SESSION_PACKETS_MAX)
        return ERR_STALE;
    if (!gossip_replay_fresh(&keys->replay, counter) && !BUG(REPLAY_ACCEPTED))
        return ERR_STALE;
    struct slice header = slice_of(packet.at, GOSSIP_DATA_HEADER);
    struct slice sealed = slice_skip(packet, GOSSIP_DATA_HEADER);
    int err = ERR_OK;
    if (BUG(UNSEALED))
        memcpy(out, sealed.at, packet.len - GOSSIP_DATA_OVERHEAD);
    else
        err = gossip_noise_open(keys->open, counter, header, sealed, out);
    if (err != ERR_OK)
        return err;
    if (gossip_replay_fresh(&keys->replay, counter))
        gossip_replay_mark(&keys->replay, counter);
    keys_confirm(s, keys);
    *out_len = packet.len - GOSSIP_DATA_OVERHEAD;
    return ERR_OK;
}

/* --- ages ------------------------------------------------------------------------------------- */

static bool keys_old(const struct gossip_keys *keys, uint64_t now_us)
{
    uint64_t rekey_us = GOSSIP_SESSION_REKEY_RESPONDER_US;
    if (keys->initiator)
        rekey_us = GOSSIP_SESSION_REKEY_US -
                   (uint64_t)keys->own_index * GOSSIP_SESSION_REKEY_SPREAD_US / GOSSIP_INDEX_MAX;
    return now_us - keys->made_us >= rekey_us || keys->sealed >= GOSSIP_SESSION_REKEY_PACKETS;
}

enum gossip_session_age gossip_session_age(struct gossip_session *s, uint64_t now_us)
{
    keys_expire(s, now_us);
    const struct gossip_keys *keys = keys_find(s, s->sending);
    if (keys != NULL && keys->sealed < GOSSIP_SESSION_PACKETS_MAX)
        return keys_old(keys, now_us) ? GOSSIP_SESSION_OLD : GOSSIP_SESSION_FRESH;
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS; i++)
        if (s->keys[i].own_index > 0 && !s->keys[i].confirmed)
            return GOSSIP_SESSION_AWAITED;
    return GOSSIP_SESSION_NONE;
}

struct gossip_versions gossip_session_speaks(const struct gossip_session *s)
{
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS && s->sending > 0; i++)
        if (s->keys[i].own_index == s->sending)
            return s->keys[i].speaks;
    return (struct gossip_versions){0};
}

bool gossip_session_owns(const struct gossip_session *s, uint32_t index)
{
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS && index > 0; i++)
        if (s->keys[i].own_index == index)
            return true;
    return false;
}

void gossip_session_wipe(struct gossip_session *s)
{
    sodium_memzero(s, sizeof *s);
}

void gossip_session_check(const struct gossip_session *s)
{
    unsigned waiting = 0;
    uint64_t sending = 0, newest = 0; /* order of the sending set, and of the newest confirmed
                                         set */
    for (unsigned i = 0; i < GOSSIP_SESSION_KEYS; i++) {
        const struct gossip_keys *keys = &s->keys[i];
        if (keys->own_index == 0)
            continue;
        CHECK(keys->own_index <= GOSSIP_INDEX_MAX && keys->order <= s->order);
        CHECK(keys->sealed <= GOSSIP_SESSION_PACKETS_MAX);
        CHECK(keys->confirmed || !keys->initiator);
        waiting += keys->confirmed ? 0 : 1;
        if (keys->own_index == s->sending)
            sending = keys->order;
        if (keys->confirmed && keys->order > newest)
            newest = keys->order;
        for (unsigned j = i + 1; j < GOSSIP_SESSION_KEYS; j++)
            CHECK(s->keys[j].own_index != keys->own_index);
    }
    CHECK(sending == newest && (sending > 0) == (s->sending > 0) && waiting <= 1);
}
