/* Shared by the files of one node, and not included outside gossip/. A file may call those above it
 * in this list, and none below. It does one thing and returns the result.
 *
 *   place.c     members' addresses: kept, dialled, forwarded; this node's own address
 *   peer.c      the table of peers: slots, names, digests
 *   near.c      which members watch each other
 *   link.c      sessions and packets: doors, sealing, sending, the rate, handshakes
 *   announce.c  announcements about this node and others, and questions
 *   reach.c     dials: peers, addresses, times
 *   vector.c    vectors: sent, remembered, adopted
 *   member.c    the winning news of a member; the limit of live ones; this node's own life
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
    GOSSIP_STRANGERS_MAX = 256, /* peers with a session that have not named themselves yet */
    GOSSIP_SLOTS = GOSSIP_MEMBERS_MAX + GOSSIP_STRANGERS_MAX,
    GOSSIP_NODES_HASH = 4096,
    GOSSIP_DOOR_BITS = 13,
    GOSSIP_DOORS = 1 << GOSSIP_DOOR_BITS,
    GOSSIP_HELPERS = 3,           /* peers that probe in our place */
    GOSSIP_NEAR = 4,              /* that watch a node where there are many */
    GOSSIP_FAR_EVERY_US = 125000, /* a keep-alive to one of all others */
    GOSSIP_HEALTH_MAX = 8,
    GOSSIP_LEAVE_TELLS = 3,
};

#define GOSSIP_NEVER UINT64_MAX

_Static_assert(GOSSIP_SLOTS + GOSSIP_SEEDS_MAX <= UINT16_MAX, "the owner of a door has two bytes");
_Static_assert(GOSSIP_NODES_HASH >= 2 * GOSSIP_SLOTS, "probing for a node ends soon");
_Static_assert(GOSSIP_DOORS >= 4 * GOSSIP_SLOTS, "each peer may have three keys and a dial open");
_Static_assert(GOSSIP_ROUTERS_MAX < GOSSIP_MEMBERS_MAX,
               "the dead are remembered beside the living");

/* An entry of the vector that a member announced last, by the slot of the author. */
struct gossip_position {
    uint64_t epoch, seq;
};

/* An address of a member. */
struct gossip_candidate {
    struct gossip_place place;
    uint64_t epoch; /* the life in which it was said, or heard from there */
    unsigned tries; /* hellos since the last answer from there */
    bool spoken;    /* scratch of place.c */
};

struct gossip_peer {
    uint16_t slot;
    bool self;
    bool listed; /* it is a member; else a stranger */

    /* Knowledge about the peer; the greatest (incarnation, state) wins. */
    uint64_t node;
    uint64_t incarnation;
    enum gossip_state state;
    uint64_t word_epoch; /* the life in which it named itself last; 0: never */
    struct gossip_candidate places[GOSSIP_PLACES_MAX];
    unsigned places_count;
    struct gossip_address yours; /* this node's address as the peer sees it; port 0: not reported */
    char name[GOSSIP_NAME_MAX + 1];
    uint16_t meta_len;
    uint8_t meta[GOSSIP_META_MAX];
    uint64_t since_us; /* when this state began; a stranger: when it came */
    uint64_t digest;   /* its share in the digest of members */
    uint64_t counted;  /* its share in the digest of the vector */

    /* Session. */
    struct gossip_session session;
    struct gossip_dial dial;
    struct gossip_address source;        /* of its last authenticated packet; port 0: none yet */
    uint8_t key_id[GOSSIP_KEY_ID_BYTES]; /* of the key under which it was met last */
    struct gossip_address dialled;       /* where to the last hello went */
    uint64_t dial_us, dial_wait;         /* next hello not before; the wait after it */
    uint64_t dialled_us;                 /* last hello, or last question where it is; 0: none */
    uint64_t knocked_us;                 /* last dial in answer to its knock; 0: never */
    uint64_t welcome_stamp;              /* greatest of the hellos that it has answered */
    uint64_t greeted_us;                 /* when it last got our entry as the first packet */
    unsigned dials;                      /* since a handshake succeeded */
    bool greeting; /* its hello was answered: greet it after its first packet under the new keys */
    bool fresh;    /* a new session without a greeting */
    struct gossip_versions speaks; /* by its last session; zeros: none yet, or before versions */
    bool foreign;                  /* by that, no version is common: only the base passes */

    /* Signs of life. */
    bool near;                 /* this node and it watch each other, */
    uint64_t near_us;          /* since then */
    uint64_t heard_us;         /* authenticated packet; 0: never */
    uint64_t proof_us;         /* heard, or heard of through a helper, or believed alive anew */
    uint64_t sent_us, full_us; /* last packet; last full ALIVE */
    uint64_t patience_us; /* added to suspect_us and dead_us in this episode: not all at once */
    uint64_t probe_us;    /* next probe not before */
    uint64_t refused_us;  /* when it last refused this node; 0: never */
    uint64_t refusal_us;  /* when this node last refused it; 0: never */
    uint64_t answered_us; /* when its own entry was last sent to it, or requested */
    uint64_t spoke_us;    /* last ALIVE of the incarnation that is known */
    bool accused_here;    /* the suspicion is our own */
    uint32_t nonce;
    uint32_t echo;    /* its last stamp, to be sent back, */
    uint64_t echo_us; /* and when it came */
    struct gossip_trip trip;
    uint64_t welcomed_us; /* when its hello was answered */
    uint8_t health;

    /* Deltas. */
    struct gossip_stream stream;
    uint64_t tail_seq;        /* the last number that was announced to it, */
    unsigned tails;           /* so often, in packets of its own */
    uint64_t vector, members; /* digests that it announced last */
    bool vector_new;          /* announced since ours was sent to it */
    uint64_t copied;          /* version of our vector when `announced` was equal to it */
    uint64_t vector_us;       /* when our vector was last sent to it */
    struct gossip_position *announced;
    unsigned announced_len;
    uint64_t differs_us, list_us; /* since when its members differ; next list not before */

    /* Messages. */
    uint64_t message_id; /* of the last one; begins at the milliseconds that this node has run */
    struct gossip_delivered delivered;

    /* Behaviour. */
    uint32_t malformed; /* falls by one every second */
    uint64_t malformed_us;
    uint64_t quarantine_us; /* ignored until then */
    uint64_t packets_in, packets_out, bytes_in, bytes_out;
};

struct gossip_seed {
    struct gossip_address at;
    struct gossip_dial dial;
    uint64_t dial_us, dial_wait;
    uint64_t node;      /* that answered last, or this node itself; 0: none */
    bool shared;        /* different ones answer: it is nobody's own address */
    unsigned alike;     /* answers of that node in a row */
    uint64_t shared_us; /* whether it is still so is asked not before */
    uint32_t knock;     /* the index in the last knock; 0: none */
    unsigned dials;     /* without an answer: they try the keys in turn */
    unsigned knocks;
    uint64_t knock_us; /* next knock not before */
};

/* A packet's index leads to a peer or to a seed's dial. */
struct gossip_door {
    uint32_t index; /* 0: free */
    uint16_t owner; /* slot, or GOSSIP_SLOTS + number of the seed */
};

/* Each group of fields is written by the file that is named above it, and by gossip.c, which makes
 * and drives them all. */
struct gossip {
    /* gossip.c */
    struct gossip_config config; /* with defaults in place; name and meta live in `self` */
    const struct gossip_keyring *keyring;
    struct gossip_app app;
    struct gossip_io io;
    struct prng prng;
    uint64_t instance; /* random: two nodes of one name differ in it */
    uint64_t now_us, created_us;
    uint64_t tick_us; /* next look at all peers; anybody may want it sooner (gossip_tick_by) */
    bool leaving, joining;
    unsigned leave_tells;
    uint64_t leave_us;
    struct gossip_messages messages;
    struct gossip_stats stats; /* each file counts what it sees */

    /* peer.c */
    struct gossip_peer *self;
    struct gossip_peer *slots[GOSSIP_SLOTS];
    unsigned slots_used;                           /* all in use are below */
    uint16_t nodes[GOSSIP_NODES_HASH];             /* slot + 1 by node, 0: free */
    struct gossip_peer *order[GOSSIP_MEMBERS_MAX]; /* listed ones by name */
    unsigned listed, strangers;
    unsigned live; /* listed, alive or suspect, not self; member.c moves it with the state */
    uint64_t members_digest, vector_digest;
    uint64_t vector_version; /* rises with each change of the digest */

    /* place.c */
    bool learn; /* what peers say of this node's address has changed */
    uint64_t learn_us;
    /* near.c */
    bool near_stale;   /* another member lives than when it was worked out */
    unsigned far;      /* live members that are not near */
    uint64_t quiet_us; /* so long a far one may be silent */

    /* link.c */
    struct gossip_door doors[GOSSIP_DOORS];
    struct gossip_stamps stamps;
    struct gossip_hellos hellos;
    uint64_t hellos_us; /* which addresses are known is looked up anew then */
    uint64_t stamp;     /* of the last hello */
    int64_t tokens;     /* bytes that may be sent now */
    uint64_t tokens_us;

    /* reach.c */
    struct gossip_seed seeds[GOSSIP_SEEDS_MAX]; /* link.c notes the router that answered */
    unsigned seeds_count, seed_next;            /* next: to be knocked at */
    uint64_t knock_us;                          /* of them, at one: not before */

    /* vector.c */
    struct gossip_frame_entry *adopted; /* of members not known yet */
    unsigned adopted_count;
    uint64_t vectors_us; /* virtual time of the budget */
    unsigned vector_next;

    /* member.c */
    uint64_t epoch;
    unsigned rises; /* of the epoch, forced by what others remember */
    uint64_t rise_us;

    /* push.c */
    struct gossip_ring ring;             /* begins anew with a new epoch */
    uint64_t flushed_us, delta_us;       /* last flush; last one that had deltas */
    uint64_t flush_us, tail_us, nack_us; /* when due */
    bool wanted;                         /* the application has something */

    /* watch.c */
    unsigned health; /* local: 0 is healthy; rumour.c raises it where this node is suspected */
    uint64_t health_us, grace_us;
    uint64_t far_us; /* the next keep-alive to a far peer not before */
    bool alarmed;    /* half of the near ones are silent: it watches all */

    /* rumour.c */
    uint64_t lists_us; /* virtual time of the budget */
    uint64_t full_us;  /* others refuse this node: it is alone until then */
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

/* Live, not this node, and packets can be sealed for it. */
static inline bool gossip_peer_open(const struct gossip_peer *p)
{
    return gossip_peer_live(p) && !p->self && p->session.sending != 0;
}

/* Deltas and messages may go to it: they are of a version that it speaks. */
static inline bool gossip_peer_shares(const struct gossip_peer *p)
{
    return gossip_peer_open(p) && !p->foreign;
}

/* From when on its silence is more than a pause between keep-alives. */
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
/* A stranger (not listed). NULL: no room. */
struct gossip_peer *gossip_peer_add(struct gossip *g, uint64_t node);
void gossip_peer_remove(struct gossip *g, struct gossip_peer *p);
/* A stranger becomes a member, a member a stranger. */
void gossip_peer_enlist(struct gossip *g, struct gossip_peer *p, const char *name);
void gossip_peer_unlist(struct gossip *g, struct gossip_peer *p);
/* After a change of its incarnation, state or stream: the digests follow. */
void gossip_peer_account(struct gossip *g, struct gossip_peer *p);
void gossip_peer_describe(const struct gossip *g, const struct gossip_peer *p,
                          struct gossip_member *out);
/* The application learns that the member changed. */
void gossip_peer_publish(struct gossip *g, const struct gossip_peer *p);
/* The application learns that deltas of this author will not come. */
void gossip_peer_lost(struct gossip *g, struct gossip_peer *author, uint64_t deltas);
/* Two live nodes have the name of `node`; one of them is there (NULL or port 0: not known). */
void gossip_peer_conflict(struct gossip *g, uint64_t node, const struct gossip_address *at);
void gossip_peers_check(const struct gossip *g);

/* --- place.c --- */
bool gossip_address_equal(const struct gossip_address *a, const struct gossip_address *b);
/* It has named itself in the life that is known. */
bool gossip_place_introduced(const struct gossip_peer *p);
/* The address to dial now; NULL: none. Valid until the peer's places change. */
const struct gossip_candidate *gossip_place_best(const struct gossip *g,
                                                 const struct gossip_peer *p);
/* The likeliest first; how many. */
unsigned gossip_place_list(const struct gossip_peer *p, struct gossip_place out[GOSSIP_PLACES_MAX]);
/* Another member says that it is there, in that life. True: that was not known. */
bool gossip_place_hint(struct gossip_peer *p, const struct gossip_frame_place *said,
                       uint64_t epoch);
/* The peer reports its own addresses; those no longer in the report go. */
void gossip_place_word(struct gossip_peer *p, const struct gossip_frame_member *said);
/* It answered a hello, or was heard, from there. */
void gossip_place_answered(const struct gossip *g, struct gossip_peer *p,
                           const struct gossip_address *at);
void gossip_place_dialled(struct gossip_peer *p, const struct gossip_address *at);
/* Another router answered where it was dialled last. */
void gossip_place_wrong(struct gossip *g, struct gossip_peer *p);
/* Its settings say that it is there. */
bool gossip_place_advertised(const struct gossip_peer *p, const struct gossip_address *at);
/* The places of `p` that `to` is sent: what `p` says of itself, and where it is heard; none that
 * means something else over there. */
void gossip_place_entry(const struct gossip *g, const struct gossip_peer *to,
                        const struct gossip_peer *p, struct gossip_frame_member *entry);
/* The peer reports the address at which it sees this node. */
void gossip_place_yours(struct gossip *g, struct gossip_peer *p,
                        const struct gossip_frame_member *said);
/* Takes in what peers say of this node's address. True: there is something to announce. */
bool gossip_place_learn(struct gossip *g);
void gossip_places_check(const struct gossip_peer *p);
/* --- near.c --- */
/* Recomputes the near peers, if members came or went. */
void gossip_near_update(struct gossip *g);
/* The far peer that has the turn, and when; or NULL. */
struct gossip_peer *gossip_near_next_far(const struct gossip *g, uint64_t *due_us);

/* --- link.c --- */
void gossip_link_hello(struct gossip *g, const struct gossip_address *from, struct slice packet);
/* The peer with a new session (`fresh`), or NULL. */
struct gossip_peer *gossip_link_welcome(struct gossip *g, const struct gossip_address *from,
                                        struct slice packet, uint32_t index);
/* The peer with the session that opens the packet; NULL: refused and counted. */
struct gossip_peer *gossip_link_open(struct gossip *g, const struct gossip_address *from,
                                     struct slice packet, uint32_t index, uint8_t *plain,
                                     size_t *len);
/* False: no session to send on. */
bool gossip_link_send(struct gossip *g, struct gossip_peer *p, const struct gossip_packet *packet);
/* Sends a hello to `to`, under the key of that number (modulo their count). `owner`: the slot of a
 * peer, or GOSSIP_SLOTS + the number of a seed. */
bool gossip_link_dial(struct gossip *g, struct gossip_dial *dial, const struct gossip_address *to,
                      unsigned owner, unsigned key);
/* The keyring with the key in front under which the peer was met. */
void gossip_link_keyring(const struct gossip *g, const struct gossip_peer *p,
                         struct gossip_keyring *out);
/* A hello that asks its receiver to dial this node, unless they have met. */
void gossip_link_knock(struct gossip *g, struct gossip_seed *seed);
bool gossip_link_rate_ready(struct gossip *g);
void gossip_link_check(const struct gossip *g);

/* --- announce.c --- */
/* This node's entry, and that it is alive: the first packet of a session. */
void gossip_announce_self(struct gossip *g, struct gossip_peer *p);
void gossip_announce_alive(struct gossip *g, struct gossip_peer *p);
/* The last number was announced to it in a packet without a delta. */
void gossip_announce_note_tail(const struct gossip *g, struct gossip_peer *p);
/* Adds a full keep-alive to the packet. False: it does not fit. */
bool gossip_announce_write_alive(struct gossip *g, struct gossip_peer *p,
                                 struct gossip_packet *packet);
/* The entry of `p` that `to` is sent. */
struct gossip_frame_member gossip_announce_entry(const struct gossip *g,
                                                 const struct gossip_peer *to,
                                                 const struct gossip_peer *p);
/* Sends the entry of `p` to all live members at once. */
void gossip_announce_to_all(struct gossip *g, const struct gossip_peer *p);
/* Sends the entry of `p` to `to`; at most every 100 ms if they are the same. */
void gossip_announce_again(struct gossip *g, struct gossip_peer *to, const struct gossip_peer *p);
/* Announces to a router that it is refused; at most every 100 ms. */
void gossip_announce_refusal(struct gossip *g, struct gossip_peer *to);
/* Asks a peer for its entry, at most every 100 ms. */
void gossip_ask_who(struct gossip *g, struct gossip_peer *p);
void gossip_ask(struct gossip *g, struct gossip_peer *to, bool ack,
                const struct gossip_frame_ping *f);
/* Asks some members that may know more of `p`: healthy ones first, at random. */
void gossip_ask_helpers(struct gossip *g, const struct gossip_peer *p,
                        const struct gossip_frame_ping *f);
/* Asks a few members where `p` is. */
void gossip_ask_where(struct gossip *g, const struct gossip_peer *p);

/* --- reach.c --- */
void gossip_reach_peer(struct gossip *g, struct gossip_peer *p);
/* Another member announced an address of `p` that was not known. */
void gossip_reach_hint(struct gossip *g, struct gossip_peer *p);
/* Dials if it is time to; when to look again. */
uint64_t gossip_reach_tick(struct gossip *g, struct gossip_peer *p);
uint64_t gossip_reach_seeds(struct gossip *g);

/* --- vector.c --- */
void gossip_vector_compare(struct gossip *g, struct gossip_peer *from, uint64_t digest);
void gossip_vector_take(struct gossip *g, struct gossip_peer *from, struct slice body);
/* Sends ours to some of those whose vectors differ. Keep-alives make ticks often enough. */
void gossip_vector_tick(struct gossip *g);
/* The author has a new slot or life: its entry in an adopted vector counts from now on. */
void gossip_vector_adopt_one(struct gossip *g, struct gossip_peer *author);

/* --- member.c --- */
/* Joins an entry of a member, sent by itself (`own_word`) or by another. 1: it was news; 0;
 * ERR_LIMIT: routers_max live already, and began before it; ERR_FULL. Calls app. */
MUST_USE int gossip_member_join(struct gossip *g, const struct gossip_frame_member *said,
                                bool own_word);
void gossip_member_state(struct gossip *g, struct gossip_peer *p, enum gossip_state state);
/* A member no more, and not remembered as one: a stranger until it is heard again. */
void gossip_member_expel(struct gossip *g, struct gossip_peer *p);
/* The router of this name is beyond a limit. */
void gossip_member_refused(struct gossip *g, const char *name, uint32_t limit);
/* This node takes a greater incarnation than `above`. False: not now (see rises). */
bool gossip_self_rise(struct gossip *g, uint64_t above);

/* --- push.c --- */
void gossip_push_flush(struct gossip *g);
void gossip_push_tail(struct gossip *g);
void gossip_push_nacks(struct gossip *g);
/* ERR_SYNTAX: the application found it malformed. */
MUST_USE int gossip_push_delta(struct gossip *g, struct gossip_peer *from,
                               const struct gossip_frame_delta *f);
void gossip_push_nack(struct gossip *g, struct gossip_peer *from,
                      const struct gossip_frame_nack *f);
void gossip_push_gone(struct gossip *g, struct gossip_peer *from,
                      const struct gossip_frame_gone *f);
/* The author has made all up to `seq`. */
void gossip_push_known(struct gossip *g, struct gossip_peer *author, uint64_t seq);
/* The vector of another member: it shows what has not come here. */
void gossip_push_vector(struct gossip *g, struct slice body);
uint32_t gossip_push_cadence(const struct gossip *g);

/* --- watch.c --- */
/* False: the frame is of another life than the known one, and the rest of it does not count. */
bool gossip_watch_alive(struct gossip *g, struct gossip_peer *from,
                        const struct gossip_frame_alive *f);
void gossip_watch_ping(struct gossip *g, struct gossip_peer *from,
                       const struct gossip_frame_ping *f);
void gossip_watch_ack(struct gossip *g, struct gossip_peer *from,
                      const struct gossip_frame_ping *f);
/* Keep-alive, probes, suspicion, forgetting; when to look again. May remove the peer if it returns
 * 0. */
uint64_t gossip_watch_tick(struct gossip *g, struct gossip_peer *p);
/* All peers: the near ones, watching all, keep-alives to far ones; the time of the next call. */
uint64_t gossip_watch_all(struct gossip *g);
void gossip_watch_late(struct gossip *g, uint64_t late_us);
void gossip_watch_health(struct gossip *g);
/* Counts a malformed frame against it. */
void gossip_watch_malformed(struct gossip *g, struct gossip_peer *p);

/* --- rumour.c --- */
void gossip_rumour_members(struct gossip *g, struct gossip_peer *from, struct slice body);
/* The member refuses this node. */
void gossip_rumour_refused(struct gossip *g, struct gossip_peer *from,
                           const struct gossip_frame_full *f);
/* The digest of its members came in. */
void gossip_rumour_compare(struct gossip *g, struct gossip_peer *from, uint64_t members);

#endif
