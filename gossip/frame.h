/* The frames inside a sealed packet, packed and unpacked. Encoding only: this file knows no
 * members.
 *
 *   packet    frame*                                    together at most GOSSIP_PACKET_MAX bytes
 *   frame     type 1 | length varint | body
 *
 *   DELTA     length 1 (flags 1 | epoch 6 | seq varint | [author 8] |
 *             [group varint, groups varint]) | bytes
 *   ALIVE     flags 1 | incarnation 8 | seq varint |
 *             [vector 8 | members 8 | health 1 | sent 4 | echo 4 | held 4]
 *   NACK      epoch 6 | ranges
 *   GONE      epoch 6 | oldest varint
 *   MEMBERS   (length varint | entry)*
 *   entry     incarnation 8 | state 1 | name | meta | count 1 | place* | fields of a later version
 *   place     kind 1 | length 1 | ip 4 or 16, port 2; places of another kind or length are skipped
 *   PING      flags 1 | nonce 4 | [target 8] | [origin 8]
 *   ACK       the same
 *   PART      length 1 (epoch 6 | id varint | total varint | index varint | vector 8) | bytes
 *   RESEND    epoch 6 | id varint | done 1 | ranges
 *   VECTOR    (node 8 | epoch 6 | seq varint)*
 *   FULL      limit varint
 *
 *   ranges    count varint | (numbers skipped varint | length varint)*
 *   name, meta   length 1 (name) or varint (meta) | bytes
 *
 * A frame of an unknown type is skipped and counted. If a frame, or the head of a DELTA or PART, is
 * longer than expected, only the known part is read. Unknown flags are ignored. So a later version
 * may add types, and fields at the end; no flag announces a field in the middle. MEMBERS, ALIVE,
 * PING, ACK and FULL are the *base*, accepted from peers of any version (gossip/version.h).
 *
 * All known fields of a frame are checked before any is returned. Decoding never allocates; the
 * results borrow from the packet.
 */
#ifndef GOSSIP_FRAME_H
#define GOSSIP_FRAME_H

#include "base/err.h"
#include "base/wire.h"
#include "gossip/gossip.h"

enum {
    GOSSIP_SEAL_BYTES = 24, /* header and tag of a sealed packet (gossip/session.h) */
    GOSSIP_PACKET_MAX = GOSSIP_DATAGRAM_MAX - GOSSIP_SEAL_BYTES,
    GOSSIP_RANGES_MAX = 32,       /* ranges per NACK or RESEND */
    GOSSIP_PART_BYTES = 1160,     /* bytes of each part of a message except the last */
    GOSSIP_ALIVE_BYTES = 48,      /* an ALIVE frame is never longer */
    GOSSIP_VECTOR_ENTRY_MAX = 22, /* a vector entry is never longer */
    GOSSIP_FRAME_PLACES_MAX = GOSSIP_PLACES_MAX + 2, /* a member's addresses, the source of the
                                                      * member's packets, and the receiver's
                                                      * address */
    GOSSIP_MEMBER_ENTRY_MAX = 560,                   /* a member entry is never longer */
};

/* Epochs and delta numbers stay below these limits, so that sums cannot overflow. */
#define GOSSIP_EPOCH_LIMIT (UINT64_C(1) << 47)
#define GOSSIP_SEQ_LIMIT   (UINT64_C(1) << 48)
_Static_assert(GOSSIP_EPOCH_LIMIT <= UINT64_C(1) << 48, "an epoch has six bytes");
_Static_assert(GOSSIP_EPOCH_LIMIT << 16 != 0, "an incarnation is epoch << 16 | refutations");
_Static_assert(GOSSIP_NAME_MAX <= UINT8_MAX, "the length of a name has one byte");
_Static_assert(GOSSIP_FRAMES <= UINT8_MAX, "a type has one byte");

/* Even the largest frame of each type fits a packet, together with type and length. */
_Static_assert(3 + 1 + 1 + 6 + 7 + 8 + 4 + GOSSIP_DELTA_MAX <= GOSSIP_PACKET_MAX, "DELTA");
_Static_assert(2 + 1 + 8 + 7 + 8 + 8 + 1 + 4 + 4 + 4 <= GOSSIP_ALIVE_BYTES, "ALIVE");
_Static_assert(3 + 6 + 1 + GOSSIP_RANGES_MAX * 14 <= GOSSIP_PACKET_MAX, "NACK");
_Static_assert(3 + GOSSIP_MEMBER_ENTRY_MAX <= GOSSIP_PACKET_MAX, "MEMBERS with one member");
_Static_assert(2 + 8 + 1 + 1 + GOSSIP_NAME_MAX + 2 + GOSSIP_META_MAX + 1 +
                       GOSSIP_FRAME_PLACES_MAX * (2 + 18) <=
                   GOSSIP_MEMBER_ENTRY_MAX,
               "an entry of MEMBERS");
_Static_assert(3 + 1 + 6 + 7 + 3 + 1 + 8 + GOSSIP_PART_BYTES <= GOSSIP_PACKET_MAX, "PART");
_Static_assert(3 + 6 + 7 + 1 + 1 + GOSSIP_RANGES_MAX * 14 <= GOSSIP_PACKET_MAX, "RESEND");
_Static_assert(8 + 6 + 7 <= GOSSIP_VECTOR_ENTRY_MAX, "an entry of VECTOR");

struct gossip_range {
    uint64_t first, last; /* both included */
};

struct gossip_ranges {
    unsigned count;
    struct gossip_range at[GOSSIP_RANGES_MAX]; /* ascending, with a gap between two ranges */
};

struct gossip_frame_delta {
    uint64_t epoch, seq;
    bool relayed;    /* made by `author`, not by the sender of the packet */
    bool forward;    /* the receiver must forward the delta to the group */
    uint64_t author; /* the delta's author, if `relayed` */
    uint32_t group, groups;
    struct slice bytes;
};

struct gossip_frame_alive {
    bool full; /* the fields below are present */
    uint64_t incarnation, seq;
    uint64_t vector, members; /* digests */
    uint8_t health;
    uint32_t sent, echo, held; /* low bits of microseconds: the sender's clock; `sent` of the last
                                * ALIVE from the receiver, 0: none; the time since that ALIVE
                                * arrived */
};

struct gossip_frame_nack {
    uint64_t epoch;
    struct gossip_ranges ranges;
};

struct gossip_frame_gone {
    uint64_t epoch, oldest; /* the sender no longer has numbers below `oldest` */
};

struct gossip_frame_place {
    enum gossip_place_kind kind; /* at most GOSSIP_PLACE_YOURS */
    struct gossip_address at;
};

struct gossip_frame_member {
    uint64_t incarnation;
    enum gossip_state state;
    struct slice name, meta;
    unsigned count;
    struct gossip_frame_place places[GOSSIP_FRAME_PLACES_MAX];
};

struct gossip_frame_ping {
    bool who; /* asks for the receiver's whole entry, or for the target's address */
    uint32_t nonce;
    uint64_t target; /* the node to probe; in an answer: the answering node; 0: the receiver */
    uint64_t origin; /* the node that gets the answer; 0: the sender */
};

struct gossip_frame_part {
    uint64_t epoch, id;
    uint32_t total, index;
    uint64_t vector; /* digest of the sender's vector when the message was sent */
    struct slice bytes;
};

struct gossip_frame_resend {
    uint64_t epoch, id;
    bool done;                   /* the whole message has arrived */
    struct gossip_ranges ranges; /* missing parts, by index + 1 */
};

struct gossip_frame_full {
    uint32_t limit; /* the limit of live routers, which the receiver exceeds */
};

struct gossip_frame_entry {
    uint64_t node, epoch, seq;
};

struct gossip_frame_any {
    enum gossip_frame type; /* GOSSIP_FRAMES: unknown, skip it */
    size_t bytes;           /* size of the frame, header included */
    struct slice body;      /* MEMBERS, VECTOR: for gossip_frame_member() and
                             * gossip_frame_entry() */
    union {
        struct gossip_frame_delta delta;
        struct gossip_frame_alive alive;
        struct gossip_frame_nack nack;
        struct gossip_frame_gone gone;
        struct gossip_frame_ping ping; /* PING or ACK */
        struct gossip_frame_part part;
        struct gossip_frame_resend resend;
        struct gossip_frame_full full;
    };
};

/* Checks every frame of a packet. ERR_SYNTAX: a frame is malformed, so the whole packet must be
 * ignored. `base`: frames outside the base count as unknown. */
MUST_USE int gossip_frame_packet_check(struct slice packet, bool base);

/* Reads the next frame. Returns 1, 0 at the end, or ERR_SYNTAX. */
MUST_USE int gossip_frame_read(struct wire_reader *packet, bool base, struct gossip_frame_any *out);
/* Each reads the next entry in the body of a MEMBERS or VECTOR frame. Returns 1, 0 at the end, or
 * ERR_SYNTAX. */
MUST_USE int gossip_frame_member(struct wire_reader *body, struct gossip_frame_member *out);
MUST_USE int gossip_frame_entry(struct wire_reader *body, struct gossip_frame_entry *out);

/* Each call below appends a frame. False: no room, and the packet is unchanged. */
bool gossip_frame_write_delta(struct wire_writer *packet, const struct gossip_frame_delta *f);
bool gossip_frame_write_alive(struct wire_writer *packet, const struct gossip_frame_alive *f);
bool gossip_frame_write_nack(struct wire_writer *packet, const struct gossip_frame_nack *f);
bool gossip_frame_write_gone(struct wire_writer *packet, const struct gossip_frame_gone *f);
bool gossip_frame_write_ping(struct wire_writer *packet, bool ack,
                             const struct gossip_frame_ping *f);
bool gossip_frame_write_part(struct wire_writer *packet, const struct gossip_frame_part *f);
bool gossip_frame_write_resend(struct wire_writer *packet, const struct gossip_frame_resend *f);
/* Appends a frame of an unknown type, for tests (base/future.h). */
bool gossip_frame_write_future(struct wire_writer *packet);
bool gossip_frame_write_full(struct wire_writer *packet, const struct gossip_frame_full *f);
bool gossip_frame_write_member(struct wire_writer *packet, const struct gossip_frame_member *f);
/* Appends a VECTOR frame with as many of the entries as fit. Returns the number of entries. */
unsigned gossip_frame_write_vector(struct wire_writer *packet,
                                   const struct gossip_frame_entry *entries, unsigned count);

#endif
