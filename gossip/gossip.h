/* A node of the gossip: sealed sessions, membership, deltas pushed to every peer, repair of gaps,
 * and messages between applications. The contents of deltas and messages are opaque.
 *
 * Pure: the caller passes in the time, and provides callbacks for randomness and datagrams. The
 * shell (node/io) and the simulator (tests/sim) drive a node by these calls:
 *
 *   gossip_datagram()   a UDP datagram came in
 *   gossip_wake()       the application has something to send
 *   gossip_run()        the time of gossip_due_us() has come
 *
 * Callbacks are called from within these calls. A callback may look up members, call gossip_wake()
 * and send messages. A callback must not call gossip_datagram(), gossip_run(), gossip_leave() or
 * gossip_destroy(), and `send` must return before the packet is delivered.
 *
 * The application (struct gossip_app) *produces* deltas, a packet each, numbered 1, 2, ... in each
 * epoch of the node. Every other member *applies* each delta at least once, in any order (so
 * applying is a join). A vector (node -> epoch, number) gives the number up to which all deltas
 * were applied. Missing deltas are requested and repaired from the author's ring. If the ring no
 * longer has them, `lost` asks the application to reconcile.
 *
 * Membership: node -> (incarnation, alive < suspect < dead < left), the greatest wins. A node's
 * incarnation, raised only by the node itself, is epoch << 16 | refutations. The epoch is the wall
 * clock at the node's start in milliseconds, or somewhat more than the epoch remembered by peers.
 * At most routers_max members live. If there are more, all nodes refuse the same members: those
 * with the greatest epochs, in whatever order they joined.
 *
 * Times are microseconds of a monotonic clock. Nothing is allocated because of bytes from the
 * network before they are authenticated; every size has a limit (gossip/limits.h, struct
 * gossip_config).
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

/* An address at which a member may be reached, and the source of this knowledge. Packets use the
 * numbers of the first four kinds. */
enum gossip_place_kind {
    GOSSIP_PLACE_ADVERTISED = 1, /* from the member's settings */
    GOSSIP_PLACE_LEARNED,        /* peers see the member there, and the member announces it */
    GOSSIP_PLACE_OBSERVED,       /* another router sees the member there */
    GOSSIP_PLACE_YOURS,          /* the receiver's address as the sender sees it */
    GOSSIP_PLACE_SOURCE,         /* the member's packets come to this node from there */
};
const char *gossip_place_text(enum gossip_place_kind kind);

struct gossip_place {
    struct gossip_address at;
    enum gossip_place_kind kind;
    bool own;             /* true: announced by the member; false: by another member, or seen in
                           * packets */
    uint64_t answered_us; /* when the member was last heard from there; 0: never */
};

/* A delta's author and number. `node` is gossip_node_id() of the author's name. */
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
    struct gossip_address address; /* source of the member's packets, or the likeliest place */
    char name[GOSSIP_NAME_MAX + 1];
    uint8_t meta[GOSSIP_META_MAX]; /* the application's data, opaque; set by the node itself */
    uint16_t meta_len;
    /* The fields below are as seen from this node. */
    bool self;
    bool session;     /* there is a sealed session */
    bool near;        /* this node and the member monitor each other (near.c) */
    bool understood;  /* deltas and messages are exchanged: a common version exists, as far as
                       * known */
    bool quarantined; /* ignored for a while, because it sent malformed frames */
    struct gossip_versions speaks; /* 0, 0: no session yet, or a build from before versions */
    uint16_t version;              /* the greatest common version; 0: none, or no session yet */
    uint64_t since_us;             /* when this state began */
    uint64_t heard_us;             /* last authenticated packet; 0: never */
    uint64_t rtt_us;               /* smoothed; 0: not measured */
    uint64_t seq_applied;          /* all deltas up to here are applied */
    uint64_t seq_known;            /* greatest number of a delta known to exist */
    uint64_t lag_us;               /* age of the oldest delta known but not applied; 0: none */
    uint64_t packets_in, packets_out, bytes_in, bytes_out;
};

/* Frame types, as used on the wire and by the counters. */
enum gossip_frame {
    GOSSIP_FRAME_DELTA,   /* a delta, pushed by the author or handed on by a relay */
    GOSSIP_FRAME_ALIVE,   /* keep-alive: incarnation, last number, vector digest, health, rtt */
    GOSSIP_FRAME_NACK,    /* numbers of missing deltas */
    GOSSIP_FRAME_GONE,    /* says which deltas the author no longer has */
    GOSSIP_FRAME_MEMBERS, /* entries of members */
    GOSSIP_FRAME_PING,    /* a probe, direct or on behalf of another node */
    GOSSIP_FRAME_ACK,
    GOSSIP_FRAME_PART,   /* a part of a message */
    GOSSIP_FRAME_RESEND, /* missing parts of a message; none: the message is complete */
    GOSSIP_FRAME_VECTOR, /* the number up to which the sender has applied each author's deltas */
    GOSSIP_FRAME_FULL,   /* the receiver is refused: the limit of live routers is reached */
    GOSSIP_FRAMES,
};
const char *gossip_frame_text(enum gossip_frame frame);
const char *gossip_state_text(enum gossip_state state);

struct gossip_app {
    void *context;
    /* Writes the next delta, at most `max` bytes. 0: no delta. Called when a delta may be sent. */
    size_t (*produce)(void *context, uint64_t now_us, uint8_t *out, size_t max);
    /* Joins a delta. A negative result means a malformed delta, which counts against the sender. */
    int (*apply)(void *context, const struct gossip_origin *origin, struct slice delta,
                 uint64_t now_us);
    /* A member is new, or has another state, epoch, metadata, `understood` or `quarantined` than
     * before. `m` is borrowed. */
    void (*member)(void *context, const struct gossip_member *m, uint64_t now_us);
    /* Deltas of this author are lost for this node: anti-entropy must bring their contents. */
    void (*lost)(void *context, uint64_t node, uint64_t now_us);
    /* A message from the application of a peer. `settled`: at the time of sending, this node and
     * the peer had equal vectors. So deltas in transit cannot explain a difference. */
    void (*message)(void *context, uint64_t peer, struct slice bytes, bool settled,
                    uint64_t now_us);
};

struct gossip_io {
    void *context;
    void (*send)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    /* Sends a datagram from another port. A load balancer that maps each source port to a router
     * may then choose another router. No answer is received at that port. NULL: send() is used
     * instead. */
    void (*knock)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    /* Secure random bytes; the simulator derives them from its seed. */
    void (*random)(void *context, void *out, size_t len);
};

/* Zero means the default in brackets. */
struct gossip_config {
    const char *name; /* unique; 1 .. GOSSIP_NAME_MAX bytes */
    uint64_t epoch;   /* wall-clock milliseconds now, > 0, < 2^47 */
    /* The addresses at which peers reach this node, one per address family. Port 0: unknown, so
     * peers use the source address of this node's packets. */
    struct gossip_address address, address_also;
    uint16_t port;  /* the port on which the node listens; 0: unknown, so no knocks at seeds */
    bool ipv4_only; /* the node's socket cannot reach IPv6 addresses */
    struct slice meta;
    struct gossip_versions speaks; /* [GOSSIP_VERSION_LEAST, _GREATEST] */
    uint32_t flush_us;             /* minimum time between flushes [10,000; 20,000 from 100 members
                                    * on] */
    uint32_t alive_us;             /* [200,000] time without a packet to a near peer until it gets a
                                    * keep-alive */
    uint32_t suspect_us;           /* [1,000,000] silence until a member is suspected */
    uint32_t dead_us;              /* [1,000,000] time from suspicion to death, times 1 + this
                                    * node's health */
    uint32_t gap_us;               /* [2,000] how long a gap counts as reordering */
    uint32_t forget_us;            /* [3,600,000,000] time until a dead or departed member is
                                    * forgotten */
    uint32_t relay_above;          /* [256] with more members than this, deltas go through relays */
    uint32_t routers_max; /* [GOSSIP_ROUTERS_MAX] 2 to GOSSIP_ROUTERS_MAX; if more routers live, the
                           * youngest are refused */
    uint64_t ring_bytes;  /* [4 MiB] bytes of this node's deltas kept for repair */
    uint64_t message_bytes_max; /* [1 MiB] bytes of messages in transit, from and to all peers */
    uint64_t rate_bytes_s;      /* [64 MiB/s] send limit; packets beyond it wait */
};

struct gossip;

/* `keyring` is borrowed until gossip_destroy() and may change between calls (key rotation).
 * `config`, `app` and `io` are copied. ERR_RANGE, ERR_NOMEM. */
MUST_USE int gossip_create(struct gossip **out, const struct gossip_config *config,
                           const struct gossip_keyring *keyring, const struct gossip_app *app,
                           const struct gossip_io *io, uint64_t now_us);
void gossip_destroy(struct gossip *g);
void gossip_check(const struct gossip *g);

uint64_t gossip_node_id(const char *name);
uint64_t gossip_self(const struct gossip *g);
struct gossip_versions gossip_speaks(const struct gossip *g);
uint64_t gossip_epoch(const struct gossip *g); /* rises if peers remember a later epoch */

void gossip_datagram(struct gossip *g, const struct gossip_address *from, const uint8_t *bytes,
                     size_t len, uint64_t now_us);
/* The application has deltas to produce. They are flushed at once if the last flush was flush_us
 * ago, otherwise after that time. */
void gossip_wake(struct gossip *g, uint64_t now_us);
void gossip_run(struct gossip *g, uint64_t now_us);
uint64_t gossip_due_us(const struct gossip *g);
/* The event loop was late by `late_us`. A lagging node must not accuse others (Lifeguard). */
void gossip_late(struct gossip *g, uint64_t late_us, uint64_t now_us);

/* Sets the seeds' present addresses. (The shell resolves their names repeatedly.) Seeds without a
 * member are dialled for ever, with a back-off of up to 5 s. */
void gossip_seeds(struct gossip *g, const struct gossip_address *at, unsigned count,
                  uint64_t now_us);
/* Announces to all members that this node leaves. After this, call only gossip_run(), until nothing
 * is due. */
void gossip_leave(struct gossip *g, uint64_t now_us);
void gossip_meta_set(struct gossip *g, struct slice meta, uint64_t now_us);

/* Sends a message to the application of a live member with a common version, in parts; lost parts
 * are sent again. The message arrives once and complete, or not at all: it is given up after a
 * second and eight round trips without progress, or after 20 s. ERR_NOT_FOUND: there is no such
 * member; ERR_RANGE: `bytes` is empty; ERR_LIMIT, ERR_FULL, ERR_NOMEM. */
MUST_USE int gossip_message(struct gossip *g, uint64_t peer, struct slice bytes, uint64_t now_us);

/* A random live member with a session and a common version, other than `except` (0: any); 0 if
 * there is none. Long-silent members, which may be unreachable, are returned only if all members
 * are silent. */
uint64_t gossip_peer_random(struct gossip *g, uint64_t except);

/* The encoded vector, for a snapshot: written before the snapshot's first entry, adopted after the
 * last entry. Adopting makes all deltas up to the vector count as applied. ERR_SYNTAX. */
MUST_USE int gossip_vector_write(const struct gossip *g, struct buf *out);
MUST_USE int gossip_vector_adopt(struct gossip *g, struct slice vector, uint64_t now_us);
/* While a snapshot is being received (`joining`), missing deltas are not requested. */
void gossip_joining(struct gossip *g, bool joining);

/* Members in the order of their names, this node included. `index` is below
 * gossip_member_count(). */
unsigned gossip_member_count(const struct gossip *g);
void gossip_member_at(const struct gossip *g, unsigned index, uint64_t now_us,
                      struct gossip_member *out);
MUST_USE int gossip_member_find(const struct gossip *g, uint64_t node, uint64_t now_us,
                                struct gossip_member *out);
/* Gives the addresses at which a member may be reached, likeliest first. Returns the number of
 * addresses. */
unsigned gossip_member_places(const struct gossip *g, uint64_t node,
                              struct gossip_place out[GOSSIP_PLACES_MAX]);
/* Gives the keyring, starting with a key known to the member. */
void gossip_member_keyring(const struct gossip *g, uint64_t node, struct gossip_keyring *out);
/* The (epoch, seq) of `author` in the vector last announced by `member`; ERR_NOT_FOUND. */
MUST_USE int gossip_vector_of(const struct gossip *g, uint64_t member, uint64_t author,
                              uint64_t *epoch, uint64_t *seq);

struct gossip_stats {
    uint64_t frames_in[GOSSIP_FRAMES], frames_out[GOSSIP_FRAMES];
    uint64_t frame_bytes_in[GOSSIP_FRAMES], frame_bytes_out[GOSSIP_FRAMES];
    uint64_t packets_in, packets_out, bytes_in, bytes_out; /* UDP payload */
    uint64_t refused_key;                                  /* packets without proof of the key */
    uint64_t refused_hellos;                               /* hellos without proof of the key, part
                                                            * of refused_key */
    struct gossip_address refused_hello_from;              /* sender of the last refused hello */
    uint64_t other_cluster; /* hellos with this cluster's key, but another cluster's name */
    struct gossip_address other_cluster_from; /* sender of the last hello in other_cluster */
    uint64_t other_cluster_us;                /* last hello in other_cluster; 0: never */
    uint64_t hellos_held;                     /* hellos not opened, because too many came */
    uint64_t refused_replay;                  /* packets with a repeated or too old counter */
    uint64_t refused_malformed;               /* authenticated packets that were malformed */
    uint64_t frames_skipped; /* frames of unknown types, or from members without a common version */
    uint64_t handshakes, rekeys;
    uint64_t deltas_produced, deltas_applied, deltas_again; /* deltas_again: known already */
    uint64_t gaps, gaps_repaired, gaps_lost, relayed;
    uint64_t messages_in, messages_out, messages_failed, parts_resent;
    uint64_t suspected, refuted, died, rate_held;
    uint64_t name_conflicts;   /* times that two live nodes seemed to have the same name */
    uint64_t name_conflict;    /* id of the name in the last conflict, usually this node's name */
    uint64_t name_conflict_us; /* time of the last name conflict; 0: never */
    struct gossip_address name_conflict_at; /* address of the other node in the last name conflict;
                                             * port 0: unknown */
    uint64_t quarantines;     /* peers ignored for a while because of malformed frames */
    uint64_t no_room;         /* members, messages or sessions refused because a limit was
                               * reached */
    uint64_t routers_refused; /* refusals of routers because routers_max routers live */
    char router_refused[GOSSIP_NAME_MAX + 1]; /* name of the last refused router; this node's name:
                                               * others refuse this node */
    uint32_t routers_limit;                   /* the limit exceeded by the last refused router */
    uint64_t self_refused_us;                 /* when the cluster last refused this node; 0:
                                               * never */
    uint64_t refusals_doubted; /* ignored refusals of this node, because too few members agree */
    uint64_t ring_bytes, ring_deltas, sessions;
    unsigned seeds_unknown;  /* seeds that never answered, except seeds that are this node */
    unsigned seeds_answered; /* seeds that have answered */
    unsigned seeds_self;     /* seeds that are this node itself */
    uint64_t knocks_in, knocks_out;
};
void gossip_stats(const struct gossip *g, struct gossip_stats *out);

#endif
