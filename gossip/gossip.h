/* One member of the gossip: sealed sessions, membership, deltas pushed to every peer, gaps
 * repaired, messages between applications. It moves opaque bytes and knows nothing of what they
 * mean.
 *
 * Pure: time and randomness come in, datagrams go out through a callback. The shell (node/io)
 * drives it, and so does the simulator (tests/sim):
 *
 *   gossip_datagram()   a UDP datagram came in
 *   gossip_wake()       the application has something to send
 *   gossip_run()        the time of gossip_due_us() has come
 *
 * Callbacks come from within these calls. They may ask, wake and send messages; they must not call
 * gossip_datagram(), gossip_run(), gossip_leave() or gossip_destroy(), and `send` must not deliver
 * before it returns.
 *
 * What the application sees (struct gossip_app): it *produces* deltas of its own, one packet each,
 * numbered 1, 2, ... within this life of the node; every other member *applies* each of them at
 * least once, in any order (so applying is a join). A vector (node -> epoch, number) says up to
 * where all have been applied. Gaps are asked for again and repaired from the author's ring; when
 * the ring no longer has them, `lost` asks the application to reconcile.
 *
 * Membership: node -> (incarnation, alive < suspect < dead < left), the greatest wins. Only the
 * node itself raises its incarnation: epoch << 16 | refutations. The epoch is the wall clock at its
 * start in milliseconds, or somewhat more than what peers remember of it. At most routers_max live.
 * Of more, all refuse the same ones: those whose lives began last, in whatever order they came.
 *
 * Times are microseconds of a monotonic clock. Nothing is allocated because of bytes from the
 * network before they are authenticated; every size has a limit below.
 */
#ifndef GOSSIP_GOSSIP_H
#define GOSSIP_GOSSIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "gossip/keyring.h"
#include "gossip/limits.h"
#include "gossip/version.h"

struct gossip_address {
    uint8_t ip[16]; /* IPv4 in the first four bytes */
    uint16_t port;  /* host order; 0: no address */
    uint8_t family; /* 4 or 6 */
};

/* An address at which a member may be reached, and how it is known. The first four stand in packets
 * under these numbers. */
enum gossip_place_kind {
    GOSSIP_PLACE_ADVERTISED = 1, /* the member's settings say so */
    GOSSIP_PLACE_LEARNED,        /* seen there by peers, and announced by the member */
    GOSSIP_PLACE_OBSERVED,       /* another member sees it there */
    GOSSIP_PLACE_YOURS,          /* the receiver, as the sender sees it */
    GOSSIP_PLACE_SOURCE,         /* its packets come from there, as seen here */
};
const char *gossip_place_text(enum gossip_place_kind kind);

struct gossip_place {
    struct gossip_address at;
    enum gossip_place_kind kind;
    bool own;             /* it said so itself; else another member, or its packets did */
    uint64_t answered_us; /* the last sign of it from there; 0: none */
};

/* The author of a delta and its number. `node` is gossip_node_id() of the author's name. */
struct gossip_origin {
    uint64_t node;
    uint64_t epoch;
    uint64_t seq;
};

enum gossip_state { GOSSIP_ALIVE, GOSSIP_SUSPECT, GOSSIP_DEAD, GOSSIP_LEFT };

struct gossip_member {
    uint64_t node;
    uint64_t incarnation; /* epoch << 16 | refutations */
    enum gossip_state state;
    struct gossip_address address; /* where it is heard, or the likeliest of its places */
    char name[GOSSIP_NAME_MAX + 1];
    uint8_t meta[GOSSIP_META_MAX]; /* the application's, opaque; set by the node itself */
    uint16_t meta_len;
    /* As seen from here. */
    bool self;
    bool session;     /* there is a sealed session */
    bool near;        /* this node and it watch each other (near.c) */
    bool understood;  /* a version is common, as far as is known: deltas and messages pass */
    bool quarantined; /* too much of what it sent made no sense: passed over for a while */
    struct gossip_versions speaks; /* 0, 0: not met yet, or a build from before versions */
    uint16_t version;              /* the greatest that both speak; 0: none, or not met yet */
    uint64_t since_us;             /* when this state began */
    uint64_t heard_us;             /* last authenticated packet; 0: never */
    uint64_t rtt_us;               /* smoothed; 0: not measured */
    uint64_t seq_applied;          /* all deltas up to here are applied */
    uint64_t seq_known;            /* the greatest number that it is known to have made */
    uint64_t lag_us; /* age of the oldest delta that is known and not applied; 0: none */
    uint64_t packets_in, packets_out, bytes_in, bytes_out;
};

/* Frame types, for the counters. */
enum gossip_frame {
    GOSSIP_FRAME_DELTA,   /* a delta, pushed by its author or handed on by a relay */
    GOSSIP_FRAME_ALIVE,   /* keep-alive: incarnation, last number, vector digest, health, rtt */
    GOSSIP_FRAME_NACK,    /* numbers that are missing */
    GOSSIP_FRAME_GONE,    /* numbers that the author no longer has */
    GOSSIP_FRAME_MEMBERS, /* what is known of members */
    GOSSIP_FRAME_PING,    /* direct, or on behalf of another */
    GOSSIP_FRAME_ACK,
    GOSSIP_FRAME_PART,   /* of a message */
    GOSSIP_FRAME_RESEND, /* parts that are missing; none: the message is whole */
    GOSSIP_FRAME_VECTOR, /* up to where the sender has applied each author's deltas */
    GOSSIP_FRAME_FULL,   /* the receiver is refused: so many live already */
    GOSSIP_FRAMES,
};
const char *gossip_frame_text(enum gossip_frame frame);
const char *gossip_state_text(enum gossip_state state);

struct gossip_app {
    void *context;
    /* Writes the next delta, at most `max` bytes; 0: there is none. Called when it may be sent. */
    size_t (*produce)(void *context, uint64_t now_us, uint8_t *out, size_t max);
    /* Joins a delta. A negative error: malformed; it is counted against its sender. */
    int (*apply)(void *context, const struct gossip_origin *origin, struct slice delta,
                 uint64_t now_us);
    /* A member changed its state, life or metadata, or whether it is understood or quarantined (or
     * is new). Borrowed. */
    void (*member)(void *context, const struct gossip_member *m, uint64_t now_us);
    /* Deltas of this author are lost to us: anti-entropy has to bring what was in them. */
    void (*lost)(void *context, uint64_t node, uint64_t now_us);
    /* A message from the application of a peer. `settled`: this node and the peer had equal vectors
     * when it was sent, so what differs is not on its way. */
    void (*message)(void *context, uint64_t peer, struct slice bytes, bool settled,
                    uint64_t now_us);
};

struct gossip_io {
    void *context;
    void (*send)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    /* The same from a port of its own: what pins one router to each port may lead to another then.
     * Nothing is awaited there. May be NULL: send() does. */
    void (*knock)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    /* Secure random bytes; the simulator's come from its seed. */
    void (*random)(void *context, void *out, size_t len);
};

/* 0 stands for the default in brackets. */
struct gossip_config {
    const char *name; /* unique; 1 .. GOSSIP_NAME_MAX bytes */
    uint64_t epoch;   /* wall-clock milliseconds now, > 0, < 2^47 */
    /* The addresses at which peers reach this node, one per family; port 0: not known, peers use
     * the packets' source. */
    struct gossip_address address, address_also;
    uint16_t port;  /* that it listens on; 0: not known, it does not knock at seeds */
    bool ipv4_only; /* its socket reaches no IPv6 address */
    struct slice meta;
    struct gossip_versions speaks; /* [GOSSIP_VERSION_LEAST, _GREATEST] */
    uint32_t flush_us;             /* [10,000; 20,000 from 100 members on] */
    uint32_t alive_us;             /* [200,000] idle keep-alive */
    uint32_t suspect_us;           /* [1,000,000] silence until a member is suspected */
    uint32_t dead_us;              /* [1,000,000] from suspicion to death, times local health */
    uint32_t gap_us;               /* [2,000] how long a gap may be reordering */
    uint32_t forget_us;            /* [3,600,000,000] dead or left members are forgotten then */
    uint32_t relay_above;          /* [256] members; beyond, deltas go through relays */
    uint32_t routers_max; /* [GOSSIP_ROUTERS_MAX], 2 .. that; of more the youngest are refused */
    uint64_t ring_bytes;  /* [4 MiB] own deltas kept for repair */
    uint64_t message_bytes_max; /* [1 MiB] of messages being put together or sent, all peers */
    uint64_t rate_bytes_s;      /* [64 MiB/s] sent at most; what exceeds it waits */
};

struct gossip;

/* `keyring` is borrowed until gossip_destroy() and may change between calls (rotation). `config`,
 * `app` and `io` are copied. ERR_RANGE, ERR_NOMEM. */
MUST_USE int gossip_create(struct gossip **out, const struct gossip_config *config,
                           const struct gossip_keyring *keyring, const struct gossip_app *app,
                           const struct gossip_io *io, uint64_t now_us);
void gossip_destroy(struct gossip *g);
void gossip_check(const struct gossip *g);

uint64_t gossip_node_id(const char *name);
uint64_t gossip_self(const struct gossip *g);
struct gossip_versions gossip_speaks(const struct gossip *g);
uint64_t gossip_epoch(const struct gossip *g); /* rises when peers remember a later life */

void gossip_datagram(struct gossip *g, const struct gossip_address *from, const uint8_t *bytes,
                     size_t len, uint64_t now_us);
/* There is something to produce: flushed at once when idle for flush_us, else at the cadence. */
void gossip_wake(struct gossip *g, uint64_t now_us);
void gossip_run(struct gossip *g, uint64_t now_us);
uint64_t gossip_due_us(const struct gossip *g);
/* The event loop was late by so much: a node that lags must not accuse others (Lifeguard). */
void gossip_late(struct gossip *g, uint64_t late_us, uint64_t now_us);

/* The present addresses of the seeds (the shell resolves their names again and again). Those that
 * are no members are tried for ever, with a back-off up to 5 s. */
void gossip_seeds(struct gossip *g, const struct gossip_address *at, unsigned count,
                  uint64_t now_us);
/* Announces to all that this node leaves; afterwards call only run(), until nothing is due. */
void gossip_leave(struct gossip *g, uint64_t now_us);
void gossip_meta_set(struct gossip *g, struct slice meta, uint64_t now_us);

/* Sends a message to the application of a live member that is understood, in parts that are
 * repaired; it arrives once, whole, or (after a second without progress, or 20 in all) not at all.
 * ERR_NOT_FOUND, ERR_LIMIT, ERR_FULL. */
MUST_USE int gossip_message(struct gossip *g, uint64_t peer, struct slice bytes, uint64_t now_us);

/* A live member with a session that is understood, drawn at random, not `except` (0: any); 0 if
 * there is none. A member that was silent for long is drawn only if all were: others may reach it,
 * this node does not. */
uint64_t gossip_peer_random(struct gossip *g, uint64_t except);

/* The vector as bytes, for a snapshot: taken before its first entry, adopted after its last. What
 * was below it then counts as applied. ERR_SYNTAX. */
MUST_USE int gossip_vector_write(const struct gossip *g, struct buf *out);
MUST_USE int gossip_vector_adopt(struct gossip *g, struct slice vector, uint64_t now_us);
/* While the snapshot is on its way gaps are not asked for. */
void gossip_joining(struct gossip *g, bool joining);

/* Members in the order of their names, this node too. Index below gossip_member_count(). */
unsigned gossip_member_count(const struct gossip *g);
void gossip_member_at(const struct gossip *g, unsigned index, uint64_t now_us,
                      struct gossip_member *out);
MUST_USE int gossip_member_find(const struct gossip *g, uint64_t node, uint64_t now_us,
                                struct gossip_member *out);
/* The number of a member's possible addresses, and the addresses, likeliest first. */
unsigned gossip_member_places(const struct gossip *g, uint64_t node,
                              struct gossip_place out[GOSSIP_PLACES_MAX]);
/* The keyring with the key in front that the member is known to have. */
void gossip_member_keyring(const struct gossip *g, uint64_t node, struct gossip_keyring *out);
/* The vector that a member announced last: its (epoch, seq) of `author`; ERR_NOT_FOUND. */
MUST_USE int gossip_vector_of(const struct gossip *g, uint64_t member, uint64_t author,
                              uint64_t *epoch, uint64_t *seq);

struct gossip_stats {
    uint64_t frames_in[GOSSIP_FRAMES], frames_out[GOSSIP_FRAMES];
    uint64_t frame_bytes_in[GOSSIP_FRAMES], frame_bytes_out[GOSSIP_FRAMES];
    uint64_t packets_in, packets_out, bytes_in, bytes_out; /* UDP payload */
    uint64_t refused_key;                                  /* did not prove the key: no answer */
    uint64_t refused_hellos;                               /* of them, those that want to join */
    struct gossip_address refused_hello_from;              /* the last one */
    uint64_t other_cluster; /* hellos with a key of ours and another cluster's name */
    struct gossip_address other_cluster_from; /* the last one, */
    uint64_t other_cluster_us;                /* and when it came; 0: never */
    uint64_t hellos_held;                     /* not opened: too many came */
    uint64_t refused_replay;                  /* counter seen before or too old */
    uint64_t refused_malformed;               /* authenticated, and wrong */
    uint64_t frames_skipped; /* of unknown types, or of members that are not understood */
    uint64_t handshakes, rekeys;
    uint64_t deltas_produced, deltas_applied, deltas_again; /* again: known already */
    uint64_t gaps, gaps_repaired, gaps_lost, relayed;
    uint64_t messages_in, messages_out, messages_failed, parts_resent;
    uint64_t suspected, refuted, died, rate_held;
    uint64_t name_conflicts;   /* signs of two live nodes of one name, */
    uint64_t name_conflict;    /* the id of that name (mostly this node's own), of the last sign */
    uint64_t name_conflict_us; /* when that was; 0: never */
    struct gossip_address name_conflict_at; /* where another of them is; port 0: not known */
    uint64_t quarantines;     /* peers ignored for a while because of malformed frames */
    uint64_t no_room;         /* members, messages or sessions beyond a limit */
    uint64_t routers_refused; /* times that a router was beyond routers_max */
    char router_refused[GOSSIP_NAME_MAX + 1]; /* the last one (this node's own: others refuse it) */
    uint32_t routers_limit;                   /* the limit that it met */
    uint64_t self_refused_us;                 /* when the others last refused this node; 0: never */
    uint64_t refusals_doubted; /* passed over: too few of the members refuse this node */
    uint64_t ring_bytes, ring_deltas, sessions;
    unsigned seeds_unknown;  /* seeds that have never answered, this node itself not counted */
    unsigned seeds_answered; /* seeds that have */
    unsigned seeds_self;     /* seeds that are this node itself, as far as it has seen */
    uint64_t knocks_in, knocks_out;
};
void gossip_stats(const struct gossip *g, struct gossip_stats *out);

#endif
