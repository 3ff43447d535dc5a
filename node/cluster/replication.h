/* Connects crdt and gossip: turns changes of the state into deltas for the other routers, and joins
 * the other routers' deltas into the state.
 *
 * The replication owns the gossip. It borrows the state (node/cluster/state.h), and drives the
 * state's deltas, anti-entropy and snapshots. The routing code, which decides by the state, is the
 * replication's *user*: a table of callbacks. Pure: the shell (node/io/gossip.c) and the simulator
 * (tests/sim) drive it with the same calls. node/cluster/README.md follows a delta from router to
 * router.
 *
 * How a node joins: the gossip reaches a seed, and the node requests a snapshot from a live peer (a
 * *call*, over TCP). Meanwhile the node joins deltas as they arrive. With the last chunk it adopts
 * the vector of the snapshot's start, and is then ready. If no member is ready, the node is ready
 * after `alone_us`, because some node must be the first.
 *
 * Anti-entropy: every `reconcile_us` a summary goes to a random peer. Equal states cost two
 * packets. A difference may just be data in transit. So two nodes only repair a difference if their
 * vectors were equal, or if the difference has lasted for 3 s.
 *
 * Cluster time (node/cluster/state.h): each anti-entropy message carries the sender's cluster time.
 * A joining node takes the time of the member that sends the snapshot. Later each node follows the
 * median of all nodes: slowly if the difference is small, otherwise by a jump. The majority refuses
 * the observations of a node far ahead. Such a node forgets these observations, sets the time back
 * and joins anew. An event reports each jump.
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

/* Events for operators. [x] describes the event's value, words after a colon describe the
 * detail. */
enum node_replication_event {
    NODE_REPLICATION_MEMBER_ALIVE, /* a new or returned member */
    NODE_REPLICATION_MEMBER_DEAD,  /* a member died; the member's load no longer counts */
    NODE_REPLICATION_MEMBER_LEFT,
    NODE_REPLICATION_READY,           /* this node is ready [ms since the start] with a snapshot of
                                       * `member`. No `member`: without a snapshot: the reason, if
                                       * members live */
    NODE_REPLICATION_SNAPSHOT_FAILED, /* a snapshot failed [the error]; the node asks another peer.
                                       * Once a minute */
    NODE_REPLICATION_TCP_FILTERED,    /* a live member accepts no TCP call: the member's address; at
                                       * most once a minute */
    NODE_REPLICATION_LOST,            /* deltas of a member are lost: anti-entropy repairs this */
    NODE_REPLICATION_CLOCK_FORWARD,   /* this node was behind the cluster [ms] */
    NODE_REPLICATION_CLOCK_BACK,      /* this node was ahead of the majority, and joins anew [ms] */
    NODE_REPLICATION_MISMATCH,        /* settings that must be equal differ at a member: which
                                       * settings */
    NODE_REPLICATION_NAME_TAKEN,      /* two live nodes have the member's name (no member: this
                                       * node's) [times seen]: the other node's address */
    NODE_REPLICATION_REFUSED_KEY,     /* a router without the key asks to join [times]: that
                                       * router's address */
    NODE_REPLICATION_OTHER_CLUSTER,   /* a router with another cluster-name asks to join [times]:
                                       * that router's address; once per address */
    NODE_REPLICATION_REPLICAS_FULL,   /* replicas-max names are in use [names]: a waiting name */
    NODE_REPLICATION_ROUTERS_FULL,   /* too many routers live [limit]: the name of a refused router,
                                      * perhaps of this router; at most once a minute */
    NODE_REPLICATION_NOT_UNDERSTOOD, /* a member has no common protocol version: the versions */
    NODE_REPLICATION_DIFFERS,        /* settings that need not be equal differ at a member: which
                                      * settings */
    NODE_REPLICATION_NAME_REFUSED, /* a member sent invalid replica names [count]: the last name; at
                                    * most once a minute */
    NODE_REPLICATION_ALONE,        /* this node has seeds but reaches no other router: the reason */
    NODE_REPLICATION_EVENTS,
};
const char *node_replication_event_text(enum node_replication_event event);

struct node_replication_io {
    void *context;
    void (*send)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    /* Sends from a separate port (struct gossip_io); may be NULL. */
    void (*knock)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    void (*random)(void *context, void *out, size_t len);
    /* Opens a call to a peer. The answer comes through node_replication_answer() and _answered(). A
     * negative error: no call was opened. */
    int (*call)(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                struct slice request);
    /* An event for the log, see the enum above. `member` is the member's name; `member` and
     * `detail` may be empty. May be NULL. */
    void (*event)(void *context, enum node_replication_event event, struct slice member,
                  int64_t value, struct slice detail);
};

/* The callbacks of the module that decides by the state. Any callback may be NULL. */
struct node_replication_user {
    void *context;
    /* Puts local changes into the state. Called often, before each check for news, so it must be
     * cheap if nothing changed. */
    void (*collect)(void *context, uint64_t now_ms);
    /* Data was joined: replicas may have been added or removed, and caches lost. Called often, and
     * once when node_replication_ready() has become true. */
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
    bool has_seeds;        /* other members should exist, so this node needs a snapshot to be
                            * ready */
    uint32_t alone_us;     /* time until a node is ready without any ready member; 0: 3,000,000 */
    uint32_t reconcile_us; /* interval of anti-entropy with a random peer; 0: 1,000,000 */
    const char *policy;    /* this node's policy, for operators; NULL: none */
    const char *admin;     /* address of this node's admin port, for peers; NULL: unknown so far */
};

/* Messages between routers outside the shared state (aside.c). `ahead_ms`: cluster time minus
 * now_ms. */
struct node_replication_aside {
    void *context;
    /* Appends news, at most a few KiB, or nothing if there is none. */
    int (*write)(void *context, int64_t ahead_ms, uint64_t now_ms, struct buf *out);
    /* Reads another router's bytes, which may arrive in any order or get lost. An error means
     * malformed bytes. */
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
/* Sets the answer to NODE_CALL_EVENTS: `write` appends a JSON object. If this is not set, the call
 * is not supported. The context is borrowed until node_replication_destroy(). */
typedef int node_replication_events_write(void *context, struct slice request, struct buf *out);
void node_replication_events(struct node_replication *n, node_replication_events_write *write,
                             void *context);
/* Sets the answer to NODE_CALL_FIGURES, as node_replication_events() does for NODE_CALL_EVENTS. */
void node_replication_figures(struct node_replication *n, node_replication_events_write *write,
                              void *context);
void node_replication_check(const struct node_replication *n);

struct gossip *node_replication_gossip(struct node_replication *n);
bool node_replication_ready(const struct node_replication *n);
/* Why this node reaches no other live router though it has seeds. NULL: the node reaches another
 * router, has no seeds, or has just started. The node serves clients in any case. */
const char *node_replication_alone(const struct node_replication *n, uint64_t now_us);
/* The number of members reached by datagrams but not by TCP. */
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
/* Sets this node's new policy; `policy` must be a literal. */
void node_replication_policy(struct node_replication *n, const char *policy, uint64_t now_us);
/* The name of the member with this id, or NULL. Valid until the next call. */
const char *node_replication_name(const struct node_replication *n, uint64_t member);
/* How long a message takes from another router to this router, in ms: half the mean round trip to
 * live routers, with each round trip capped at two seconds. 0: not measured. */
double node_replication_travel_ms(const struct node_replication *n);

void node_replication_datagram(struct node_replication *n, const struct gossip_address *from,
                               const uint8_t *bytes, size_t len, uint64_t now_us);
/* Collects news and flushes. Call this after each change by the user, and when due. Cheap if there
 * is no news. */
void node_replication_run(struct node_replication *n, uint64_t now_us);
uint64_t node_replication_due_us(const struct node_replication *n);
/* True if a member is on another machine: the member answered from an address other than
 * loopback. */
bool node_replication_apart(const struct node_replication *n);
/* A short description of a member, for the list of problems. */
struct node_member_look {
    bool shown; /* true: operators see the member */
    char name[GOSSIP_NAME_MAX + 1];
    enum gossip_state state;
    bool self, draining;
    uint64_t up_ms;                  /* time since the member started, by cluster time; 0:
                                      * unknown */
    bool old;                        /* the member is dead, and another router has started since */
    char differs[NODE_DETAIL_MAX];   /* settings that must be equal but differ; empty: none */
    char filtered[NODE_ADDRESS_MAX]; /* address at which the member accepts no TCP; empty: TCP
                                      * works */
};
unsigned node_replication_look_count(const struct node_replication *n);
void node_replication_look(const struct node_replication *n, unsigned index, uint64_t now_us,
                           struct node_member_look *out);
/* Hides a dead or departed member until it comes back. False: no dead or departed member has this
 * name. */
bool node_replication_forget(struct node_replication *n, struct slice name);
/* The latest `now_us` passed to any function. */
uint64_t node_replication_now_us(const struct node_replication *n);

/* The keys for a call to be opened by io.call(). A key known to the member comes first. */
void node_replication_call_keys(struct node_replication *n, uint32_t id,
                                struct gossip_keyring *out);
/* Client side of a call. node_replication_answer() takes a chunk of the answer,
 * node_replication_answered() the end of the call. ERR_CLOSED: close the connection, because the
 * rest of the answer, perhaps gigabytes of a snapshot, is not needed. */
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

/* Asks all live members the same question. `done` gets a JSON object, member name -> answer (or
 * {"error": ...}), once all have answered, died or left, or after `timeout_us`. If there is no
 * memory, `done` gets an empty slice. ERR_FULL, ERR_NOMEM. */
MUST_USE int node_replication_ask(struct node_replication *n, uint8_t kind, struct slice request,
                                  uint64_t timeout_us, uint64_t now_us,
                                  void (*done)(void *context, struct slice json), void *context);

/* The functions below append JSON for the admin port. ERR_NOMEM, ERR_LIMIT.
 *
 * The members, with vectors and lag. */
MUST_USE int node_replication_members_json(const struct node_replication *n, uint64_t now_us,
                                           struct buf *out);
/* The members in short form. */
MUST_USE int node_replication_members_brief_json(const struct node_replication *n, uint64_t now_us,
                                                 struct buf *out);
/* The members that node_replication_ask() skips: name -> state. */
MUST_USE int node_replication_not_asked_json(const struct node_replication *n, uint64_t now_us,
                                             struct buf *out);
/* This node's digests (node/cluster/digests.h). */
MUST_USE int node_replication_digests_json(const struct node_replication *n, uint64_t now_us,
                                           struct buf *out);
/* Counters of replication, state and gossip. */
MUST_USE int node_replication_stats_json(const struct node_replication *n, uint64_t now_us,
                                         struct buf *out);
/* Metrics of the gossip, of the shared state and of anti-entropy. */
void node_replication_metrics(const struct node_replication *n, uint64_t now_us,
                              struct prometheus *p);

#endif
