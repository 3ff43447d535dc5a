/* Shared by the files of a node, and not included outside gossip/. A file may call the files above
 * it in this list, but none below. Each function does a single thing and returns the result.
 *
 *   place.c     members' addresses: kept, dialled, forwarded; this node's address
 *   peer.c      the table of peers: slots, names, digests
 *   near.c      which members monitor each other
 *   link.c      sessions and packets: doors, sealing, sending, the rate, handshakes
 *   announce.c  announcements about this node and others, and questions
 *   reach.c     dials: peers, addresses, times
 *   vector.c    vectors: sent, remembered, adopted
 *   member.c    the winning news of a member; the limit of live members; this node's life
 *   push.c      deltas: flush, relays, requests for holes, repair
 *   watch.c     round trips, probes, suspicion, local health
 *   rumour.c    news of members: compared, joined, refuted
 *   gossip.c    the calls of gossip.h: takes packets and time, and drives the others
 */
#ifndef GOSSIP_INTERNAL_H
#define GOSSIP_INTERNAL_H

#include "base/err.h"
#include "base/prng.h"
#include "gossip/frame.h"
#include "gossip/gossip.h"
#include "gossip/hellos.h"
#include "gossip/message.h"
#include "gossip/ring.h"
#include "gossip/session.h"
#include "gossip/stamps.h"
#include "gossip/stream.h"
#include "gossip/trip.h"

enum {
    GOSSIP_STRANGERS_MAX = 256, /* peers with a session that have not sent their entry yet */
    GOSSIP_SLOTS = GOSSIP_MEMBERS_MAX + GOSSIP_STRANGERS_MAX,
    GOSSIP_NODES_HASH = 4096,
    GOSSIP_DOOR_BITS = 13,
    GOSSIP_DOORS = 1 << GOSSIP_DOOR_BITS,
    GOSSIP_HELPERS = 3,           /* peers that probe on behalf of this node */
    GOSSIP_NEAR = 4,              /* peers that monitor a node in a large cluster */
    GOSSIP_FAR_EVERY_US = 125000, /* time between keep-alives to far peers, one peer at a time */
    GOSSIP_HEALTH_MAX = 8,
    GOSSIP_LEAVE_TELLS = 3,
};

#define GOSSIP_NEVER UINT64_MAX

_Static_assert(GOSSIP_SLOTS + GOSSIP_SEEDS_MAX <= UINT16_MAX, "the owner of a door has two bytes");
_Static_assert(GOSSIP_NODES_HASH >= 2 * GOSSIP_SLOTS, "probing for a node ends soon");
_Static_assert(GOSSIP_DOORS >= 4 * GOSSIP_SLOTS, "each peer may have three keys and a dial open");
_Static_assert(GOSSIP_ROUTERS_MAX < GOSSIP_MEMBERS_MAX,
               "the dead are remembered beside the living");

/* An entry of the vector last announced by a member. Entries are indexed by the author's slot. */
struct gossip_position {
    uint64_t epoch, seq;
};

/* An address at which a member may be reached. */
struct gossip_candidate {
    struct gossip_place place;
    uint64_t epoch; /* the member's epoch in which the address was announced or seen */
    unsigned tries; /* hellos sent there since the last answer from there */
    bool spoken;    /* used by place.c during a call */
};

struct gossip_peer {
    uint16_t slot;
    bool self;
    bool listed; /* true: a member; false: a stranger */

    /* Knowledge about the peer; the greatest (incarnation, state) wins. */
    uint64_t node;
    uint64_t incarnation;
    enum gossip_state state;
    uint64_t word_epoch; /* epoch in which the peer last sent an entry about itself; 0: never */
    struct gossip_candidate places[GOSSIP_PLACES_MAX];
    unsigned places_count;
    struct gossip_address yours; /* this node's address as the peer sees it; port 0: not reported */
    char name[GOSSIP_NAME_MAX + 1];
    uint16_t meta_len;
    uint8_t meta[GOSSIP_META_MAX];
    uint64_t since_us; /* when this state began; for a stranger: when first seen */
    uint64_t digest;   /* the peer's term in the digest of members */
    uint64_t counted;  /* the peer's term in the digest of the vector */

    /* Session. */
    struct gossip_session session;
    struct gossip_dial dial;
    struct gossip_address source;        /* source of the last authenticated packet; port 0: none
                                          * yet */
    uint8_t key_id[GOSSIP_KEY_ID_BYTES]; /* id of the key in the last handshake */
    struct gossip_address dialled;       /* destination of the last hello */
    uint64_t dial_us, dial_wait;         /* earliest time of the next hello; the wait after that */
    uint64_t dialled_us;                 /* last hello, or last question about the peer's address;
                                          * 0: none */
    uint64_t knocked_us;                 /* last dial in answer to a knock of the peer; 0: never */
    uint64_t welcome_stamp;              /* greatest stamp of hellos answered by the peer */
    uint64_t greeted_us;                 /* when this node's entry was last sent as first packet of
                                          * a session */
    unsigned dials;                      /* hellos since a handshake succeeded */
    bool greeting; /* the peer's hello was answered: greet the peer after the first packet under the
                    * new keys */
    bool fresh;    /* a new session, not yet greeted */
    struct gossip_versions speaks; /* the peer's versions in the last session; zeros: none, or a
                                    * build from before versions */
    bool foreign;                  /* no version is common: only base frames pass */

    /* Evidence that the peer lives. */
    bool near;                 /* this node and the peer monitor each other */
    uint64_t near_us;          /* since when `near` is true */
    uint64_t heard_us;         /* last authenticated packet; 0: never */
    uint64_t proof_us;         /* last evidence: a packet, a helper's answer, or others' news */
    uint64_t sent_us, full_us; /* last packet sent; last full ALIVE sent */
    uint64_t patience_us; /* random addition to suspect_us and dead_us, so that not all nodes accuse
                           * at once */
    uint64_t probe_us;    /* earliest time of the next probe */
    uint64_t refused_us;  /* when the peer last refused this node; 0: never */
    uint64_t refusal_us;  /* when this node last refused the peer; 0: never */
    uint64_t answered_us; /* when the peer's entry was last sent to it or requested */
    uint64_t spoke_us;    /* last ALIVE frame with the known incarnation */
    bool accused_here;    /* the suspicion came from this node, not from news */
    uint32_t nonce;
    uint32_t echo;    /* `sent` of the last ALIVE, to be echoed */
    uint64_t echo_us; /* arrival of the ALIVE to be echoed */
    struct gossip_trip trip;
    uint64_t welcomed_us; /* when the peer's hello was answered */
    uint8_t health;

    /* Deltas. */
    struct gossip_stream stream;
    uint64_t tail_seq;        /* number last announced to the peer as this node's last delta, in a
                               * packet without a delta */
    unsigned tails;           /* number of such announcements of tail_seq */
    uint64_t vector, members; /* digests last announced by the peer */
    bool vector_new;          /* `vector` was announced after this node last sent the peer a
                               * vector */
    uint64_t copied;          /* vector_version when `announced` became a copy of this node's
                               * vector; 0: never */
    uint64_t vector_us;       /* when this node's vector was last sent to the peer */
    struct gossip_position *announced;
    unsigned announced_len;
    uint64_t differs_us, list_us; /* since when the members differ (0: equal); earliest time of the
                                   * next list */

    /* Messages. */
    uint64_t message_id; /* id of the last message to the peer; starts at this node's age in
                          * milliseconds */
    struct gossip_delivered delivered;

    /* Behaviour. */
    uint32_t malformed; /* malformed frames; falls by one every second */
    uint64_t malformed_us;
    uint64_t quarantine_us; /* the peer is ignored until this time */
    uint64_t packets_in, packets_out, bytes_in, bytes_out;
};

struct gossip_seed {
    struct gossip_address at;
    struct gossip_dial dial;
    uint64_t dial_us, dial_wait;
    uint64_t node;      /* node that last answered, or this node itself; 0: none */
    bool shared;        /* several routers answer there, so the address belongs to none of them */
    unsigned alike;     /* number of consecutive answers of `node` */
    uint64_t shared_us; /* earliest time to check whether the address is still shared */
    uint32_t knock;     /* index in the last knock; 0: none */
    unsigned dials;     /* dials without an answer; each dial tries the next key */
    unsigned knocks;
    uint64_t knock_us; /* earliest time of the next knock */
};

/* Maps the index in a packet to a peer or to a dial of a seed. */
struct gossip_door {
    uint32_t index; /* 0: free */
    uint16_t owner; /* a peer's slot, or GOSSIP_SLOTS + a seed's number */
};

/* Each group of fields is written by the file named above the group, and by gossip.c, which creates
 * and drives all. */
struct gossip {
    /* gossip.c */
    struct gossip_config config; /* with defaults filled in; name and meta are in `self` */
    const struct gossip_keyring *keyring;
    struct gossip_app app;
    struct gossip_io io;
    struct prng prng;
    uint64_t instance; /* random: distinguishes two nodes with the same name */
    uint64_t now_us, created_us;
    uint64_t tick_us; /* next check of all peers; any file may make it earlier (gossip_tick_by) */
    bool leaving, joining;
    unsigned leave_tells;
    uint64_t leave_us;
    struct gossip_messages messages;
    struct gossip_stats stats; /* each file counts its own events */

    /* peer.c */
    struct gossip_peer *self;
    struct gossip_peer *slots[GOSSIP_SLOTS];
    unsigned slots_used;                           /* all slots in use are below this number */
    uint16_t nodes[GOSSIP_NODES_HASH];             /* hash table from node to slot + 1; 0: free */
    struct gossip_peer *order[GOSSIP_MEMBERS_MAX]; /* members in the order of their names */
    unsigned listed, strangers;
    unsigned live; /* members alive or suspect, without this node; changed by member.c */
    uint64_t members_digest, vector_digest;
    uint64_t vector_version; /* rises with each change of vector_digest */

    /* place.c */
    bool learn; /* the addresses reported for this node have changed */
    uint64_t learn_us;
    /* near.c */
    bool near_stale;   /* live members changed since `near` was computed */
    unsigned far;      /* number of live members that are not near */
    uint64_t quiet_us; /* longest normal silence of a far peer */

    /* link.c */
    struct gossip_door doors[GOSSIP_DOORS];
    struct gossip_stamps stamps;
    struct gossip_hellos hellos;
    uint64_t hellos_us; /* next update of the set of known addresses */
    uint64_t stamp;     /* stamp of the last hello sent */
    int64_t tokens;     /* bytes that may be sent now */
    uint64_t tokens_us;

    /* reach.c */
    struct gossip_seed seeds[GOSSIP_SEEDS_MAX]; /* link.c records which router answered */
    unsigned seeds_count, seed_next;            /* seed_next: next seed to knock at */
    uint64_t knock_us;                          /* earliest time of the next knock at any seed */

    /* vector.c */
    struct gossip_frame_entry *adopted; /* entries of the adopted vector, for authors not known
                                         * yet */
    unsigned adopted_count;
    uint64_t vectors_us; /* time up to which the budget for vectors is spent */
    unsigned vector_next;

    /* member.c */
    uint64_t epoch;
    unsigned rises; /* rises of the epoch, forced by epochs that peers remember */
    uint64_t rise_us;

    /* push.c */
    struct gossip_ring ring;             /* this node's deltas; emptied with a new epoch */
    uint64_t flushed_us, delta_us;       /* last flush; last flush with deltas */
    uint64_t flush_us, tail_us, nack_us; /* times of the next flush, of the next announcement of the
                                          * last number, and of the next requests */
    bool wanted;                         /* the application has deltas to send */

    /* watch.c */
    unsigned health; /* this node's health, 0 is good; rumour.c raises it when this node is
                      * suspected */
    uint64_t health_us, grace_us;
    uint64_t far_us; /* earliest time of the next keep-alive to a far peer */
    bool alarmed;    /* half of the near peers are silent, so all peers are monitored */

    /* rumour.c */
    uint64_t lists_us; /* time up to which the budget for lists is spent */
    uint64_t full_us;  /* the cluster refuses this node, which stays alone until this time */
};

/* A packet while it is being filled. */
struct gossip_packet {
    struct wire_writer w;
    uint8_t bytes[GOSSIP_PACKET_MAX];
};

static inline void gossip_packet_begin(struct gossip_packet *p)
{
    p->w = wire_writer_of(p->bytes, sizeof p->bytes);
}

static inline bool gossip_peer_live(const struct gossip_peer *p)
{
    return p->listed && p->state <= GOSSIP_SUSPECT;
}

/* True if the peer is live, is not this node, and has keys to seal packets with. */
static inline bool gossip_peer_open(const struct gossip_peer *p)
{
    return gossip_peer_live(p) && !p->self && p->session.sending != 0;
}

/* True if deltas and messages may be sent to the peer: there is a session and a common version. */
static inline bool gossip_peer_shares(const struct gossip_peer *p)
{
    return gossip_peer_open(p) && !p->foreign;
}

/* The time from which the peer's silence is longer than a pause between keep-alives. */
static inline uint64_t gossip_peer_quiet_us(const struct gossip *g, const struct gossip_peer *p)
{
    if (!p->near)
        return p->heard_us + g->quiet_us;
    return p->heard_us > p->near_us ? p->heard_us : p->near_us;
}

static inline void gossip_tick_by(struct gossip *g, uint64_t when_us)
{
    if (when_us < g->tick_us)
        g->tick_us = when_us;
}

/* --- peer.c --- */
struct gossip_peer *gossip_peer_find(const struct gossip *g, uint64_t node);
/* Adds a stranger (not listed). NULL: no room. */
struct gossip_peer *gossip_peer_add(struct gossip *g, uint64_t node);
void gossip_peer_remove(struct gossip *g, struct gossip_peer *p);
/* gossip_peer_enlist() makes a stranger a member, gossip_peer_unlist() makes a member a
 * stranger. */
void gossip_peer_enlist(struct gossip *g, struct gossip_peer *p, const char *name);
void gossip_peer_unlist(struct gossip *g, struct gossip_peer *p);
/* Updates the digests after a change of the peer's incarnation, state or stream. */
void gossip_peer_account(struct gossip *g, struct gossip_peer *p);
void gossip_peer_describe(const struct gossip *g, const struct gossip_peer *p,
                          struct gossip_member *out);
/* Tells the application that the member changed. */
void gossip_peer_publish(struct gossip *g, const struct gossip_peer *p);
/* Reports to the application that deltas of this author are lost. */
void gossip_peer_lost(struct gossip *g, struct gossip_peer *author, uint64_t deltas);
/* Counts a suspected name conflict: two live nodes have the name of `node`. `at`: address of one of
 * them (NULL or port 0: unknown). */
void gossip_peer_conflict(struct gossip *g, uint64_t node, const struct gossip_address *at);
void gossip_peers_check(const struct gossip *g);

/* --- place.c --- */
bool gossip_address_equal(const struct gossip_address *a, const struct gossip_address *b);
/* True if the peer has sent an entry about itself in the known epoch. */
bool gossip_place_introduced(const struct gossip_peer *p);
/* The address to dial now; NULL: none. Valid until the peer's places change. */
const struct gossip_candidate *gossip_place_best(const struct gossip *g,
                                                 const struct gossip_peer *p);
/* Gives the peer's places, likeliest first. Returns their number. */
unsigned gossip_place_list(const struct gossip_peer *p, struct gossip_place out[GOSSIP_PLACES_MAX]);
/* Another member says that the peer was at this address in the epoch `epoch`. True: the address is
 * news. */
bool gossip_place_hint(struct gossip_peer *p, const struct gossip_frame_place *said,
                       uint64_t epoch);
/* The peer reports addresses of itself. Addresses missing in the report are dropped. */
void gossip_place_word(struct gossip_peer *p, const struct gossip_frame_member *said);
/* The peer answered a hello, or was heard, from `at`. */
void gossip_place_answered(const struct gossip *g, struct gossip_peer *p,
                           const struct gossip_address *at);
void gossip_place_dialled(struct gossip_peer *p, const struct gossip_address *at);
/* Another router answered at the address where the peer was last dialled. */
void gossip_place_wrong(struct gossip *g, struct gossip_peer *p);
/* True if the peer's settings make the peer advertise `at`. */
bool gossip_place_advertised(const struct gossip_peer *p, const struct gossip_address *at);
/* Writes to `entry` the places of `p` for an entry sent to `to`: the addresses reported by `p`, and
 * the source of packets from `p`. If `p` is this node, the last place is instead the address of
 * `to` as this node sees it. Leaves out addresses with another meaning on another machine. */
void gossip_place_entry(const struct gossip *g, const struct gossip_peer *to,
                        const struct gossip_peer *p, struct gossip_frame_member *entry);
/* The peer reports the address at which it sees this node. */
void gossip_place_yours(struct gossip *g, struct gossip_peer *p,
                        const struct gossip_frame_member *said);
/* Computes this node's addresses from peers' reports. True: they changed and must be announced. */
bool gossip_place_learn(struct gossip *g);
void gossip_places_check(const struct gossip_peer *p);
/* --- near.c --- */
/* Recomputes the near peers after members joined or left. */
void gossip_near_update(struct gossip *g);
/* Returns the far peer that gets the next keep-alive, and sets *due_us to the time. NULL: no far
 * peer has a session. */
struct gossip_peer *gossip_near_next_far(const struct gossip *g, uint64_t *due_us);

/* --- link.c --- */
/* Opens a hello and answers with a welcome. A hello that is a knock gets a dial instead. */
void gossip_link_hello(struct gossip *g, const struct gossip_address *from, struct slice packet);
/* Returns the peer whose session is new (`fresh`), or NULL. */
struct gossip_peer *gossip_link_welcome(struct gossip *g, const struct gossip_address *from,
                                        struct slice packet, uint32_t index);
/* Opens a packet. Returns the peer that sent it; NULL: the packet is refused and counted. */
struct gossip_peer *gossip_link_open(struct gossip *g, const struct gossip_address *from,
                                     struct slice packet, uint32_t index, uint8_t *plain,
                                     size_t *len);
/* Seals a packet and sends it to the peer. False: there are no keys to seal with, or no address. */
bool gossip_link_send(struct gossip *g, struct gossip_peer *p, const struct gossip_packet *packet);
/* Sends a hello to `to`, under key number `key`, modulo the number of keys in the ring. `owner`:
 * the slot of a peer, or GOSSIP_SLOTS + the number of a seed. False: no door is free. */
bool gossip_link_dial(struct gossip *g, struct gossip_dial *dial, const struct gossip_address *to,
                      unsigned owner, unsigned key);
/* Gives the keyring with the key of the last handshake with the peer first. */
void gossip_link_keyring(const struct gossip *g, const struct gossip_peer *p,
                         struct gossip_keyring *out);
/* Sends a hello that asks the receiver to dial this node, unless both have a session. */
void gossip_link_knock(struct gossip *g, struct gossip_seed *seed);
/* True if the rate limit lets this node send a packet now. */
bool gossip_link_rate_ready(struct gossip *g);
void gossip_link_check(const struct gossip *g);

/* --- announce.c --- */
/* Sends this node's entry and a keep-alive: the first packet of a session. */
void gossip_announce_self(struct gossip *g, struct gossip_peer *p);
void gossip_announce_alive(struct gossip *g, struct gossip_peer *p);
/* Notes that the number of this node's last delta was announced to the peer in a packet without a
 * delta. */
void gossip_announce_note_tail(const struct gossip *g, struct gossip_peer *p);
/* Adds a full keep-alive to the packet. False: it does not fit. */
bool gossip_announce_write_alive(struct gossip *g, struct gossip_peer *p,
                                 struct gossip_packet *packet);
/* The entry of `p` as sent to `to`. */
struct gossip_frame_member gossip_announce_entry(const struct gossip *g,
                                                 const struct gossip_peer *to,
                                                 const struct gossip_peer *p);
/* Sends the entry of `p` to all live members at once. */
void gossip_announce_to_all(struct gossip *g, const struct gossip_peer *p);
/* Sends the entry of `p` to `to`; at most every 100 ms if `p` and `to` are the same peer. */
void gossip_announce_again(struct gossip *g, struct gossip_peer *to, const struct gossip_peer *p);
/* Announces to a router that it is refused; at most every 100 ms. */
void gossip_announce_refusal(struct gossip *g, struct gossip_peer *to);
/* Asks a peer for the peer's own entry, at most every 100 ms. */
void gossip_ask_who(struct gossip *g, struct gossip_peer *p);
void gossip_ask(struct gossip *g, struct gossip_peer *to, bool ack,
                const struct gossip_frame_ping *f);
/* Asks random members, healthy ones first, that may know more of `p`. */
void gossip_ask_helpers(struct gossip *g, const struct gossip_peer *p,
                        const struct gossip_frame_ping *f);
/* Asks a few members where `p` is. */
void gossip_ask_where(struct gossip *g, const struct gossip_peer *p);

/* --- reach.c --- */
void gossip_reach_peer(struct gossip *g, struct gossip_peer *p);
/* Another member announced an unknown address of `p`: dials at once if allowed. */
void gossip_reach_hint(struct gossip *g, struct gossip_peer *p);
/* Dials the peer if it is time to. Returns when to call again. */
uint64_t gossip_reach_tick(struct gossip *g, struct gossip_peer *p);
uint64_t gossip_reach_seeds(struct gossip *g);

/* --- vector.c --- */
void gossip_vector_compare(struct gossip *g, struct gossip_peer *from, uint64_t digest);
void gossip_vector_take(struct gossip *g, struct gossip_peer *from, struct slice body);
/* Sends this node's vector to some peers whose vectors differ. Called often enough, because
 * keep-alives cause ticks. */
void gossip_vector_tick(struct gossip *g);
/* Applies the author's entry of an adopted vector, because the author has a new slot or epoch. */
void gossip_vector_adopt_one(struct gossip *g, struct gossip_peer *author);

/* --- member.c --- */
/* Joins an entry of a member, sent by the member itself (`own_word`) or by another. 1: news; 0:
 * known; ERR_LIMIT: routers_max older routers live; ERR_FULL. Calls the application. */
MUST_USE int gossip_member_join(struct gossip *g, const struct gossip_frame_member *said,
                                bool own_word);
void gossip_member_state(struct gossip *g, struct gossip_peer *p, enum gossip_state state);
/* Makes a member a stranger and forgets the member's state. */
void gossip_member_expel(struct gossip *g, struct gossip_peer *p);
/* Counts a refusal of the router of this name, because `limit` routers already live. */
void gossip_member_refused(struct gossip *g, const char *name, uint32_t limit);
/* Raises this node's incarnation above `above`. False: not now, because the epoch rose too often
 * (`rises`), or would reach its limit. */
bool gossip_self_rise(struct gossip *g, uint64_t above);

/* --- push.c --- */
void gossip_push_flush(struct gossip *g);
void gossip_push_tail(struct gossip *g);
void gossip_push_nacks(struct gossip *g);
/* ERR_SYNTAX: the application found the delta malformed. */
MUST_USE int gossip_push_delta(struct gossip *g, struct gossip_peer *from,
                               const struct gossip_frame_delta *f);
void gossip_push_nack(struct gossip *g, struct gossip_peer *from,
                      const struct gossip_frame_nack *f);
void gossip_push_gone(struct gossip *g, struct gossip_peer *from,
                      const struct gossip_frame_gone *f);
/* The author has made all deltas up to `seq`. */
void gossip_push_known(struct gossip *g, struct gossip_peer *author, uint64_t seq);
/* Reads another member's vector, which shows deltas missing here. */
void gossip_push_vector(struct gossip *g, struct slice body);
uint32_t gossip_push_cadence(const struct gossip *g);

/* --- watch.c --- */
/* False: the frame is from another epoch than the known epoch, so deltas and digests in the frame
 * do not count. */
bool gossip_watch_alive(struct gossip *g, struct gossip_peer *from,
                        const struct gossip_frame_alive *f);
void gossip_watch_ping(struct gossip *g, struct gossip_peer *from,
                       const struct gossip_frame_ping *f);
void gossip_watch_ack(struct gossip *g, struct gossip_peer *from,
                      const struct gossip_frame_ping *f);
/* Does what is due for the peer: keep-alives, probes, suspicion, forgetting. Returns the time of
 * the next call, or 0 if this call removed the peer. */
uint64_t gossip_watch_tick(struct gossip *g, struct gossip_peer *p);
/* Updates the near peers, decides whether to monitor all peers, and sends keep-alives to far peers.
 * Returns the time of the next call. */
uint64_t gossip_watch_all(struct gossip *g);
void gossip_watch_late(struct gossip *g, uint64_t late_us);
void gossip_watch_health(struct gossip *g);
/* Counts a malformed frame against the peer. */
void gossip_watch_malformed(struct gossip *g, struct gossip_peer *p);

/* --- rumour.c --- */
void gossip_rumour_members(struct gossip *g, struct gossip_peer *from, struct slice body);
/* The member refuses this node. */
void gossip_rumour_refused(struct gossip *g, struct gossip_peer *from,
                           const struct gossip_frame_full *f);
/* Compares the peer's digest of members with this node's. */
void gossip_rumour_compare(struct gossip *g, struct gossip_peer *from, uint64_t members);

#endif
