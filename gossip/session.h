/* Sealed sessions over datagrams, modelled on WireGuard: one struct gossip_session per peer.
 *
 * Three packets; all integers little-endian, all sizes in bytes:
 *
 *     HELLO    1 | key id 4   | Noise message 1 { node 8, stamp 8, index 3, ident, versions, 0... }
 *     WELCOME  2 | receiver 3 | Noise message 2 { node 8, index 3, ident, versions, 0... }
 *     DATA     3 | receiver 3 | counter 4 | sealed bytes | tag 16
 *
 * Hello and welcome have fixed sizes, and a welcome is shorter than a hello, so no node can be used
 * to amplify traffic. The clear part only selects a key; the sealed part has the data. `ident` is a
 * length (2) and the caller's identity. `versions` are the sender's protocol versions: least 2,
 * greatest 2 (gossip/version.h). A later version adds fields after these; this version ignores
 * them. A build from before versions sends zeros instead of versions.
 *
 * Order of calls:
 *
 *     initiator                                         responder
 *     gossip_dial_begin()           -- HELLO -->        gossip_hello_open()
 *                                                       the caller judges node and ident, then
 *                                                       gossip_stamps_take() (stamps.h), then
 *     gossip_dial_finish()          <-- WELCOME --      gossip_session_welcome()
 *     the caller judges node and ident, then
 *     gossip_session_install()
 *     gossip_session_seal(), at once -- DATA -->        gossip_session_open(): from now on it sends
 *
 * A dial without an answer is given up, and a new one begins with a new ephemeral key and a greater
 * stamp. The same bytes are never sent twice. After install() the initiator must send a packet at
 * once, even an empty one, because the responder may not send before.
 *
 * A HELLO proves that a key holder once wrote this packet, not that the holder is there now. Do not
 * treat a HELLO as evidence that the peer lives, and do not change a peer's address because of a
 * HELLO. A WELCOME accepted by finish() and a DATA accepted by open() do prove the peer's presence
 * now.
 *
 * Indices. The receiver of packets chooses the 24-bit index in them, by which it finds the session.
 * The index is never 0, nor an index for which gossip_session_owns() is true. No table is needed:
 * use the peer's place in an array as the low bits and random other bits. open() compares the whole
 * index. The random bits are no defence (packets are sealed). They only make a late packet of an
 * earlier session miss.
 *
 * Keys and nonces.
 *   1. The pre-shared key comes from the keyring, derived for this purpose only. The prologue
 *      separates this protocol from calls (call.h), which use the same pre-shared keys.
 *   2. Each handshake makes a fresh key for each direction from ephemeral keys of both sides.
 *   3. The nonce is the packet's counter, which begins at 0 and never repeats under the same key.
 *      It has 31 bits; a key is refused after GOSSIP_SESSION_PACKETS_MAX packets, for sending and
 *      receiving.
 *   4. The header of DATA is authenticated (it is the associated data).
 *   5. A counter is accepted once (gossip/replay.h).
 *   6. Keys are wiped when they are replaced, or 180 s after they were made (by the next call that
 *      gets the time), or by gossip_session_wipe().
 *
 * Up to GOSSIP_SESSION_KEYS key sets live at once. All of them open packets, and one set seals
 * packets. A set initiated by this side seals at once. A set initiated by the peer seals only after
 * a packet came in under this set, because such a packet proves that the welcome arrived. At most
 * one set waits for such a packet; a newer hello replaces it.
 *
 * If two hellos cross, both are answered. Both sides then have both sets, and each side seals with
 * a set known to the other side. So if at least one handshake succeeded, at least one set works, in
 * every order and with every loss of packets. No tie has to be broken by comparing node ids.
 *
 * Both sides may dial: a side dials when it sees GOSSIP_SESSION_OLD or GOSSIP_SESSION_NONE. The
 * initiator of the set in use sees OLD after 108 to 120 s. The time depends on the index, so that
 * nodes started together do not rekey together. The responder sees OLD after 150 s, in case the
 * initiator fails. If a node's hellos are refused because the node's clock went back (stamps.h),
 * hellos from other nodes still work. So lost members, like seeds, should be dialled from both
 * sides.
 *
 * Time is microseconds of a monotonic clock. Nothing here allocates.
 */
#ifndef GOSSIP_SESSION_H
#define GOSSIP_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "gossip/keyring.h"
#include "gossip/noise.h"
#include "gossip/replay.h"
#include "gossip/version.h"

enum {
    GOSSIP_PACKET_HELLO = 1,
    GOSSIP_PACKET_WELCOME = 2,
    GOSSIP_PACKET_DATA = 3,
};

enum {
    GOSSIP_IDENT_MAX = 32,
    GOSSIP_LATER_BYTES =
        28, /* bytes of a hello and a welcome reserved for fields of later versions */
    GOSSIP_WELCOME_PAYLOAD = 8 + 3 + 2 + GOSSIP_IDENT_MAX + 4 + GOSSIP_LATER_BYTES,
    GOSSIP_HELLO_PAYLOAD = GOSSIP_WELCOME_PAYLOAD + 8,
    GOSSIP_HELLO_BYTES = 1 + 4 + GOSSIP_NOISE_OVERHEAD + GOSSIP_HELLO_PAYLOAD,
    GOSSIP_WELCOME_BYTES = 1 + 3 + GOSSIP_NOISE_OVERHEAD + GOSSIP_WELCOME_PAYLOAD,
    GOSSIP_DATA_HEADER = 8,
    GOSSIP_DATA_OVERHEAD = GOSSIP_DATA_HEADER + GOSSIP_NOISE_TAG,
    GOSSIP_INDEX_MAX = 0xffffff,
    GOSSIP_SESSION_KEYS = 3,
};

#define GOSSIP_SESSION_REKEY_US           120000000u
#define GOSSIP_SESSION_REKEY_SPREAD_US    12000000u
#define GOSSIP_SESSION_REKEY_RESPONDER_US 150000000u
#define GOSSIP_SESSION_REJECT_US          180000000u
#define GOSSIP_SESSION_REKEY_PACKETS      (1u << 30)
#define GOSSIP_SESSION_PACKETS_MAX        (1u << 31)

/* The type of a packet, or 0 if no packet has this type and length. `index` is the receiver's index
 * in a WELCOME or DATA, otherwise 0. */
unsigned gossip_packet_peek(struct slice packet, uint32_t *index);

/* A key set: a key for each direction. Only the session uses the set, which is public so that a
 * session can be embedded. */
struct gossip_keys {
    uint8_t seal[GOSSIP_NOISE_KEY];
    uint8_t open[GOSSIP_NOISE_KEY];
    uint32_t own_index;  /* index in incoming packets; 0: the set is not in use */
    uint32_t peer_index; /* index in outgoing packets */
    uint64_t made_us;
    uint64_t order;                /* number of the set: rises with each set of this session */
    uint32_t sealed;               /* packets sealed so far; also the next counter */
    bool initiator;                /* this side sent the hello */
    bool confirmed;                /* the peer is known to have the set */
    struct gossip_versions speaks; /* the peer's protocol versions */
    struct gossip_replay replay;
};

/* Invariants: at most one set is not confirmed; the newest confirmed set seals. A zeroed session
 * has no keys. A session may be moved as a whole; wipe the old memory. */
struct gossip_session {
    struct gossip_keys keys[GOSSIP_SESSION_KEYS];
    uint32_t sending; /* own_index of the sealing set; 0: cannot send */
    uint64_t order;
};

/* A node's statement about itself in a hello or a welcome. */
struct gossip_identity {
    uint64_t node;
    struct gossip_versions speaks;
    struct slice ident; /* at most GOSSIP_IDENT_MAX bytes (CHECKed) */
};

/* A dial: a hello was sent and the welcome has not come yet. A zeroed dial is not waiting. */
struct gossip_dial {
    struct gossip_noise noise;
    uint32_t index;   /* 0: not waiting */
    uint64_t sent_us; /* set by the owner: when the hello was sent */
    uint8_t key_id[GOSSIP_KEY_ID_BYTES];
    uint64_t stamp;
};

/* An authentic hello, received. */
struct gossip_hello {
    uint64_t node;
    uint64_t stamp;
    uint16_t ident_len;
    uint8_t ident[GOSSIP_IDENT_MAX];
    uint32_t peer_index;
    struct gossip_versions speaks;
    uint8_t key_id[GOSSIP_KEY_ID_BYTES]; /* id of the key proved by the hello */
    struct gossip_noise noise;
};

/* An authentic welcome: the peer that answered a dial, and the new keys. */
struct gossip_welcome {
    uint64_t node;
    uint64_t stamp; /* stamp of the answered hello */
    uint16_t ident_len;
    uint8_t ident[GOSSIP_IDENT_MAX];
    uint8_t key_id[GOSSIP_KEY_ID_BYTES]; /* id of the key used by both sides */
    struct gossip_keys keys;
};

/* Writes a hello of GOSSIP_HELLO_BYTES under the first key of the ring. If the dial was waiting,
 * the earlier hello is given up. `random`: 32 fresh bytes. `stamp`: from gossip_stamp_next(). */
void gossip_dial_begin(struct gossip_dial *d, const struct gossip_keyring *keyring,
                       const uint8_t random[32], uint32_t index, const struct gossip_identity *self,
                       uint64_t stamp, uint8_t *out);
/* Takes a WELCOME, which ends the dial. ERR_SYNTAX, ERR_NOT_FOUND (not the answer to this dial),
 * ERR_DENIED (not authentic): the dial goes on waiting. An authentic welcome with a malformed
 * payload is ERR_SYNTAX too, and ends the dial. */
MUST_USE int gossip_dial_finish(struct gossip_dial *d, struct slice packet, uint64_t now_us,
                                struct gossip_welcome *out);
void gossip_dial_wipe(struct gossip_dial *d);

/* True if the HELLO names a key of the ring. Other HELLOs are refused without any cryptography. */
bool gossip_hello_named(const struct gossip_keyring *keyring, struct slice packet);
/* True if the HELLO names a key of the ring, but another cluster's name
 * (gossip_keyring_cluster). */
bool gossip_hello_of_other_cluster(const struct gossip_keyring *keyring, struct slice packet);
/* Opens a HELLO with the key named in it. On ERR_SYNTAX and ERR_DENIED `out` is wiped. */
MUST_USE int gossip_hello_open(struct gossip_hello *out, const struct gossip_keyring *keyring,
                               struct slice packet);
void gossip_hello_wipe(struct gossip_hello *h);

/* Answers an opened hello: writes GOSSIP_WELCOME_BYTES and keeps the new keys, which do not seal
 * yet. Wipes the hello's secrets. ERR_DENIED: the initiator's ephemeral key is of low order. */
MUST_USE int gossip_session_welcome(struct gossip_session *s, struct gossip_hello *hello,
                                    const uint8_t random[32], uint32_t index,
                                    const struct gossip_identity *self, uint64_t now_us,
                                    uint8_t *out);
/* Moves the keys of a welcome into the session, which from now on seals with these keys. */
void gossip_session_install(struct gossip_session *s, struct gossip_welcome *welcome);

/* Writes plain.len + GOSSIP_DATA_OVERHEAD bytes; `plain` may be at out + GOSSIP_DATA_HEADER.
 * ERR_NOT_FOUND: no keys to seal with. */
MUST_USE int gossip_session_seal(struct gossip_session *s, struct slice plain, uint64_t now_us,
                                 uint8_t *out);
/* Opens a DATA packet; writes packet.len - GOSSIP_DATA_OVERHEAD bytes. ERR_SYNTAX; ERR_NOT_FOUND:
 * no key set has this index (any more); ERR_STALE: counter seen before, too old, or beyond the
 * limit; ERR_DENIED: not authentic. Only an authentic packet changes anything. */
MUST_USE int gossip_session_open(struct gossip_session *s, struct slice packet, uint64_t now_us,
                                 uint8_t *out, size_t *out_len);

enum gossip_session_age {
    GOSSIP_SESSION_NONE,    /* cannot send: time to dial */
    GOSSIP_SESSION_AWAITED, /* cannot send yet: the peer, as initiator, has to send first */
    GOSSIP_SESSION_FRESH,
    GOSSIP_SESSION_OLD, /* can send, but it is time to dial */
};
/* Wipes keys that are too old, and returns the session's age. Call it regularly for every peer. */
enum gossip_session_age gossip_session_age(struct gossip_session *s, uint64_t now_us);
/* The versions announced by the peer with the sealing keys; zeros: no keys. */
struct gossip_versions gossip_session_speaks(const struct gossip_session *s);
/* True if a key set of the session has this index for incoming packets. */
bool gossip_session_owns(const struct gossip_session *s, uint32_t index);
void gossip_session_wipe(struct gossip_session *s);
void gossip_session_check(const struct gossip_session *s);

#endif
