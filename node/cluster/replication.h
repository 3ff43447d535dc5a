/* Connects crdt and gossip: turns changes of the state into deltas for the other routers, and joins
 * their deltas into the state.
 *
 * The replication owns the gossip. It borrows the state (node/cluster/state.h), and drives the
 * state's deltas, anti-entropy and snapshots. The routing code, which decides by that state, is the
 * replication's *user*: a table of callbacks. Pure: the shell (node/io/gossip.c) and the simulator
 * (tests/sim) drive it with the same calls. node/cluster/README.md follows a delta on its way.
 *
 * How a node joins: the gossip reaches a seed, and the node requests a snapshot from a live peer (a
 * *call*, over TCP). Meanwhile the node joins deltas as they arrive. With the last chunk it adopts
 * the vector of the snapshot's start, and is then ready. If no member is ready, the node is ready
 * after `alone_us`, because one must be the first.
 *
 * Anti-entropy: every `reconcile_us` a summary goes to one random peer. Equal states cost two
 * packets. A difference may just be data in transit. So two nodes only repair a difference if both
 * had equal vectors, or if the difference has lasted for 3 s.
 *
 * Cluster time (node/cluster/state.h): each anti-entropy message carries its sender's cluster time.
 * A joining node takes the time of the member that it joins. Later each node follows the median of
 * all nodes: slowly if the difference is small, otherwise by a jump. The majority refuses the
 * observations of a node that is far ahead. Such a node forgets its observations, goes back and
 * joins anew. An event reports each jump.
 *
 * Times: `now_us` is monotonic, the same clock as the state's now_ms.
 */
#ifndef NODE_CLUSTER_REPLICATION_H
#define NODE_CLUSTER_REPLICATION_H

#include "base/err.h"
#include "base/prometheus.h"
#include "crdt/state.h"
#include "gossip/gossip.h"
#include "node/cluster/limits.h"
#include "node/cluster/state.h"

/* Kinds of calls. */
enum node_call_kind {
    NODE_CALL_SNAPSHOT = 1, /* request: generation floor; answer: chunks (node/cluster/snapshot.h),
                             * the vector last */
    NODE_CALL_DIGESTS,      /* answer: node_replication_digests_json() */
    NODE_CALL_EXPLAIN,      /* request and answer as for the user's explain() */
    NODE_CALL_EVENTS,       /* request and answer as for node_replication_events() */
    NODE_CALL_FIGURES,      /* request and answer as for node_replication_figures() */
    NODE_CALL_FORGET,       /* request: a member's name; answer: {"forgotten": BOOL} */
};

/* Events for operators. [x] says what the event's value is, words after a colon what the detail
 * is. */
enum node_replication_event {
    NODE_REPLICATION_MEMBER_ALIVE, /* a new member, or a member that came back */
    NODE_REPLICATION_MEMBER_DEAD,  /* a member died; its load no longer counts */
    NODE_REPLICATION_MEMBER_LEFT,
    NODE_REPLICATION_READY,           /* this node joined [ms since the start]. Without a member: it
                                       * started alone although members live: the reason */
    NODE_REPLICATION_SNAPSHOT_FAILED, /* a snapshot failed [the error]; the node asks another peer.
                                       * Once a minute */
    NODE_REPLICATION_TCP_FILTERED,    /* a live member accepts no TCP call: its address; at most
                                       * once a minute */
    NODE_REPLICATION_LOST,            /* deltas of a member are lost: anti-entropy repairs this */
    NODE_REPLICATION_CLOCK_FORWARD,   /* this node was behind the cluster [ms] */
    NODE_REPLICATION_CLOCK_BACK,      /* this node was ahead of the majority, and joins anew [ms] */
    NODE_REPLICATION_MISMATCH,        /* settings that all must share differ at a member: which */
    NODE_REPLICATION_NAME_TAKEN,      /* two live nodes have the member's name, or this node's if
                                       * there is no member [signs]: the other node's address */
    NODE_REPLICATION_REFUSED_KEY,     /* a router without the key asks to join [times]: its
                                         address */
    NODE_REPLICATION_OTHER_CLUSTER,   /* a router of another cluster-name asks to join [times]: its
                                         address; once for each address in turn */
    NODE_REPLICATION_REPLICAS_FULL,   /* replicas-max names are in use [names]: the name of
                                       * one that waits */
    NODE_REPLICATION_ROUTERS_FULL,   /* too many routers live [limit]: the name of a refused router,
                                      * possibly this one; at most once a minute */
    NODE_REPLICATION_NOT_UNDERSTOOD, /* a member has no version of the protocol in common: which */
    NODE_REPLICATION_DIFFERS,        /* a member has other values of settings that need not be
                                      * equal: which settings */
    NODE_REPLICATION_NAME_REFUSED, /* a member sent invalid replica names [count]: the last one; at
                                    * most once a minute */
    NODE_REPLICATION_ALONE,        /* this node reaches no other router, though it has seeds: the
                                      reason */
    NODE_REPLICATION_EVENTS,
};
const char *node_replication_event_text(enum node_replication_event event);

struct node_replication_io {
    void *context;
    void (*send)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    /* Sends from a separate port (struct gossip_io); may be NULL. */
    void (*knock)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    void (*random)(void *context, void *out, size_t len);
    /* Opens a call to a peer. Its answer comes through node_replication_answer() and _answered().
     * Negative error: no call was opened. */
    int (*call)(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                struct slice request);
    /* An event for the log, see the enum. `member` is the member's name; `member` and `detail` may
     * be empty. May be NULL. */
    void (*event)(void *context, enum node_replication_event event, struct slice member,
                  int64_t value, struct slice detail);
};

/* The callbacks of the module that decides by the state. Any may be NULL. */
struct node_replication_user {
    void *context;
    /* Puts local changes into the state. Called often, before each check for news, so it must be
     * cheap if nothing changed. */
    void (*collect)(void *context, uint64_t now_ms);
    /* Data was joined: replicas may have come or gone, and caches may have been lost. Called often,
     * and once when node_replication_ready() has become true. */
    void (*joined)(void *context);
    /* Other routers' reports may have changed. Called every 100 ms, not for each delta. */
    void (*reports)(void *context, uint64_t now_ms);
    /* node_state_rewind() replaced the crdt_state. */
    void (*rewound)(void *context);
    /* Answers NODE_CALL_EXPLAIN. */
    int (*explain)(void *context, struct slice request, uint64_t now_ms, struct buf *out);
};

struct node_replication_config {
    struct gossip_config gossip;
    bool has_seeds;        /* other members are expected, so this node is not ready before a
                            * snapshot */
    uint32_t alone_us;     /* time after which a node without a ready member is ready; 0:
                            * 3,000,000 */
    uint32_t reconcile_us; /* interval of anti-entropy with one random peer; 0: 1,000,000 */
    const char *policy;    /* this node's policy, for operators; NULL: none */
    const char *admin;     /* address of this node's admin port, for peers; NULL: unknown so far */
};

/* Messages between routers outside the shared state (aside.c). `ahead_ms`: cluster time minus
 * now_ms. */
struct node_replication_aside {
    void *context;
    /* Appends news, at most a few KiB, or nothing if there is none. */
    int (*write)(void *context, int64_t ahead_ms, uint64_t now_ms, struct buf *out);
    /* Reads another router's bytes, which may come in any order or get lost. An error means that
     * they are malformed. */
    int (*read)(void *context, uint64_t router, struct slice bytes, int64_t ahead_ms,
                uint64_t now_ms);
};

struct node_replication;

/* `state` is borrowed. */
MUST_USE int node_replication_create(struct node_replication **out,
                                     const struct node_replication_config *config,
                                     const struct gossip_keyring *keyring, struct node_state *state,
                                     const struct node_replication_user *user,
                                     const struct node_replication_io *io, uint64_t now_us);
void node_replication_destroy(struct node_replication *n);
/* Makes the replication exchange messages outside the state; the context of `aside` is borrowed
 * until node_replication_destroy(). */
void node_replication_aside(struct node_replication *n, const struct node_replication_aside *aside);
/* Sets the answer to NODE_CALL_EVENTS: `write` appends a JSON object. Without it the call is not
 * supported. The context is borrowed until node_replication_destroy(). */
typedef int node_replication_events_write(void *context, struct slice request, struct buf *out);
void node_replication_events(struct node_replication *n, node_replication_events_write *write,
                             void *context);
/* Sets the answer to NODE_CALL_FIGURES, as node_replication_events() does for its call. */
void node_replication_figures(struct node_replication *n, node_replication_events_write *write,
                              void *context);
void node_replication_check(const struct node_replication *n);

struct gossip *node_replication_gossip(struct node_replication *n);
bool node_replication_ready(const struct node_replication *n);
/* Why this node reaches no other live router though it has seeds. NULL: it reaches one, has no
 * seeds, or has just started. The node serves clients nevertheless. */
const char *node_replication_alone(const struct node_replication *n, uint64_t now_us);
/* The number of members that datagrams reach but TCP does not. */
unsigned node_replication_filtered(const struct node_replication *n, uint64_t now_us);
/* True if a router with this cluster's key and another cluster-name asked to join within the last
 * minute. */
bool node_replication_knocked(const struct node_replication *n, uint64_t now_us);
/* Sets the address of this node's open admin port. */
void node_replication_admin(struct node_replication *n, const char *admin, uint64_t now_us);
/* The address set by node_replication_admin(). */
const char *node_replication_admin_is(const struct node_replication *n);
/* Announces that this node takes no new requests and will leave, so that other routers can show
 * it. */
void node_replication_draining(struct node_replication *n, uint64_t now_us);
/* Sets this node's new policy; a literal. */
void node_replication_policy(struct node_replication *n, const char *policy, uint64_t now_us);
/* A member's name by its id, or NULL. Valid until the next call. */
const char *node_replication_name(const struct node_replication *n, uint64_t member);
/* How long a message travels from another router to this one, in ms: half the mean round trip to
 * live routers, each counted as two seconds at most. 0: not measured. */
double node_replication_travel_ms(const struct node_replication *n);

void node_replication_datagram(struct node_replication *n, const struct gossip_address *from,
                               const uint8_t *bytes, size_t len, uint64_t now_us);
/* Collects news and flushes. Call it after each change at the user, and when due. Cheap if there is
 * no news. */
void node_replication_run(struct node_replication *n, uint64_t now_us);
uint64_t node_replication_due_us(const struct node_replication *n);
/* True if a member is on another machine: it answered from an address other than loopback. */
bool node_replication_apart(const struct node_replication *n);
/* A short description of a member, for the list of what needs attention. */
struct node_member_look {
    bool shown; /* operators see the member */
    char name[GOSSIP_NAME_MAX + 1];
    enum gossip_state state;
    bool self, draining;
    uint64_t up_ms;                  /* cluster time since the member started; 0: unknown */
    bool old;                        /* the member is dead, and another router has started since */
    char differs[NODE_DETAIL_MAX];   /* settings that all must share but that differ; empty: none */
    char filtered[NODE_ADDRESS_MAX]; /* address where the member accepts no TCP; empty: TCP works */
};
unsigned node_replication_look_count(const struct node_replication *n);
void node_replication_look(const struct node_replication *n, unsigned index, uint64_t now_us,
                           struct node_member_look *out);
/* Hides a dead or departed member until it comes back. False: no dead or departed member has this
 * name. */
bool node_replication_forget(struct node_replication *n, struct slice name);
/* The latest `now_us` that any function was called with. */
uint64_t node_replication_now_us(const struct node_replication *n);

/* The keys for a call that io.call() is to open: a key that the member is known to have comes
 * first. */
void node_replication_call_keys(struct node_replication *n, uint32_t id,
                                struct gossip_keyring *out);
/* Client side of a call. ERR_CLOSED: close the connection, because the rest of the answer is not
 * needed (it may be gigabytes of a snapshot). */
MUST_USE int node_replication_answer(struct node_replication *n, uint32_t id, struct slice chunk,
                                     uint64_t now_us);
void node_replication_answered(struct node_replication *n, uint32_t id, int err, uint64_t now_us);

/* Server side of a call. _next() appends a chunk of at most GOSSIP_CALL_CHUNK_MAX bytes, and
 * returns 1, or 0 at the end.
 */
struct node_serve;
MUST_USE int node_replication_serve(struct node_replication *n, uint8_t kind, struct slice request,
                                    uint64_t now_us, struct node_serve **out);
MUST_USE int node_replication_serve_next(struct node_replication *n, struct node_serve *s,
                                         struct buf *out);
void node_replication_serve_end(struct node_serve *s);

/* Asks all live members the same question. `done` gets one JSON object, member name -> answer (or
 * {"error": ...}), once all have answered, died or left, or after `timeout_us`. It gets an empty
 * slice if there is no memory. ERR_FULL, ERR_NOMEM. */
MUST_USE int node_replication_ask(struct node_replication *n, uint8_t kind, struct slice request,
                                  uint64_t timeout_us, uint64_t now_us,
                                  void (*done)(void *context, struct slice json), void *context);

/* JSON for the admin port: members with vectors and lag; members that node_replication_ask() skips
 * (name -> state); this node's digests; counters. */
MUST_USE int node_replication_members_json(const struct node_replication *n, uint64_t now_us,
                                           struct buf *out);
/* The members in short form. */
MUST_USE int node_replication_members_brief_json(const struct node_replication *n, uint64_t now_us,
                                                 struct buf *out);
MUST_USE int node_replication_not_asked_json(const struct node_replication *n, uint64_t now_us,
                                             struct buf *out);
MUST_USE int node_replication_digests_json(const struct node_replication *n, uint64_t now_us,
                                           struct buf *out);
MUST_USE int node_replication_stats_json(const struct node_replication *n, uint64_t now_us,
                                         struct buf *out);
/* Metrics of the gossip, of the shared state and of anti-entropy. */
void node_replication_metrics(const struct node_replication *n, uint64_t now_us,
                              struct prometheus *p);

#endif
