/* The seam of crdt and gossip: changes of the state become deltas for the other routers, and their
 * deltas are joined into the state.
 *
 * It owns the gossip, and drives the deltas, anti-entropy and snapshots of the state that it
 * borrows (node/cluster/state.h). The router, which decides by that state, is its *user*: a table
 * of callbacks. Pure: the shell (node/io/gossip.c) and the simulator (tests/sim) drive it with the
 * same calls. node/cluster/README.md follows a delta through it.
 *
 * A node joins like this: the gossip reaches a seed; a live peer is asked for a snapshot (a *call*,
 * over TCP); live deltas are joined meanwhile; with the last chunk the vector of the snapshot's
 * start is adopted, and from then on the node is ready. If no member is ready, the node is ready
 * after `alone_us`: one must be the first.
 *
 * Anti-entropy: every `reconcile_us` a summary goes to one random peer. Equal states cost two
 * packets. What differs may just be on its way. So the difference is worked out and repaired only
 * if both had equal vectors, or if it has lasted for 3 s.
 *
 * Cluster time (node/cluster/state.h): each message of anti-entropy carries the sender's. A node
 * that joins takes the time of the member that it joins. Later each follows the median of all:
 * slowly where it is off by less than a generation, by a jump forward where it is behind by more.
 * The majority refuses the observations of a node that is far ahead of it; such a node forgets what
 * it observed, goes back and joins anew. An event reports each jump.
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
    NODE_CALL_SNAPSHOT = 1, /* request: generation floor; answer: vector, then chunks */
    NODE_CALL_DIGESTS,      /* answer: node_replication_digests_json() */
    NODE_CALL_EXPLAIN,      /* request and answer: what the user's explain() reads and writes */
    NODE_CALL_EVENTS,       /* the same of node_replication_events() */
};

/* What operators should know; the value in brackets, the detail in words after a colon. */
enum node_replication_event {
    NODE_REPLICATION_MEMBER_ALIVE, /* new, or back */
    NODE_REPLICATION_MEMBER_DEAD,  /* its load no longer counts */
    NODE_REPLICATION_MEMBER_LEFT,
    NODE_REPLICATION_READY,           /* joined [ms since the start]; without a member: alone,
                                         although members live: why */
    NODE_REPLICATION_SNAPSHOT_FAILED, /* [the error]; another peer is asked. Once a minute */
    NODE_REPLICATION_TCP_FILTERED,    /* a member that lives takes no call: where; not more than
                                         once a minute */
    NODE_REPLICATION_LOST,            /* deltas of a member are lost: anti-entropy repairs that */
    NODE_REPLICATION_CLOCK_FORWARD,   /* this node was behind the cluster [ms] */
    NODE_REPLICATION_CLOCK_BACK,      /* it was ahead of the majority, and joins anew [ms] */
    NODE_REPLICATION_MISMATCH,        /* settings that all must share differ at a member: which */
    NODE_REPLICATION_NAME_TAKEN,      /* two nodes that live have the member's name, or, without a
                                         member, this node's [signs]: where another of them is */
    NODE_REPLICATION_REFUSED_KEY,     /* somebody without the key asks to join [times]: where */
    NODE_REPLICATION_OTHER_CLUSTER,   /* a router of another cluster-name asks to join [times]:
                                         where; once for each such place in turn */
    NODE_REPLICATION_REPLICAS_FULL, /* [so many] replicas are in use: [detail] waits, and may be not
                                       the only one */
    NODE_REPLICATION_ROUTERS_FULL,  /* [so many] routers live: [detail] is refused, which may be
                                       this one; at most once a minute */
    NODE_REPLICATION_NOT_UNDERSTOOD, /* a member shares no version of the protocol: which */
    NODE_REPLICATION_DIFFERS, /* settings that need not be the same differ at a member: which */
    NODE_REPLICATION_NAME_REFUSED, /* a member told [so many] names of replicas that are none: the
                                      last; at most once a minute */
    NODE_REPLICATION_ALONE,        /* it knows no other router, though it has seeds: why */
    NODE_REPLICATION_EVENTS,
};
const char *node_replication_event_text(enum node_replication_event event);

struct node_replication_io {
    void *context;
    void (*send)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    /* From a port of its own (struct gossip_io); may be NULL. */
    void (*knock)(void *context, const struct gossip_address *to, const uint8_t *bytes, size_t len);
    void (*random)(void *context, void *out, size_t len);
    /* Opens a call to a peer; its answer comes through node_replication_answer() and _answered().
     * Negative error: none was opened. */
    int (*call)(void *context, uint32_t id, const struct gossip_address *to, uint8_t kind,
                struct slice request);
    /* Something for the log, see the enum. `member` is its name; it and `detail` are empty where
     * there is none. May be NULL. */
    void (*event)(void *context, enum node_replication_event event, struct slice member,
                  int64_t value, struct slice detail);
};

/* The module that decides by the state. All are called out of the calls below; any may be NULL. */
struct node_replication_user {
    void *context;
    /* Puts into the state what has changed here. Called before each look for news, so often: cheap
     * when nothing did. */
    void (*collect)(void *context, uint64_t now_ms);
    /* Something was joined, a delta or more: replicas appear and go, lost caches are forgotten.
     * Often called, too; and once when node_replication_ready() has become true. */
    void (*joined)(void *context);
    /* Others' reports may have changed. Not for each delta: every 100 ms. */
    void (*reports)(void *context, uint64_t now_ms);
    /* node_state_rewind() was called: the crdt_state is another one. */
    void (*rewound)(void *context);
    /* Answers NODE_CALL_EXPLAIN. */
    int (*explain)(void *context, struct slice request, uint64_t now_ms, struct buf *out);
};

struct node_replication_config {
    struct gossip_config gossip;
    bool has_seeds;        /* a member is expected: not ready before a snapshot */
    uint32_t alone_us;     /* 0: 3,000,000 */
    uint32_t reconcile_us; /* 0: 1,000,000; anti-entropy with one random peer */
    const char *policy;    /* of this node, for operators; NULL: none */
    const char *admin;     /* address of this node's admin port, for peers; NULL: not known yet */
};

/* What routers say to each other beside the state (aside.c). `ahead_ms`: so far is cluster time
 * from now_ms. */
struct node_replication_aside {
    void *context;
    /* Appends what is new, at most a few KiB; nothing where nothing is. */
    int (*write)(void *context, int64_t ahead_ms, uint64_t now_ms, struct buf *out);
    /* What another router wrote; in any order, some of it never. An error: malformed. */
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
/* From now on that is said, too; its context is borrowed until node_replication_destroy(). */
void node_replication_aside(struct node_replication *n, const struct node_replication_aside *aside);
/* From now on NODE_CALL_EVENTS is answered with what `write` appends, a JSON object; without it the
 * call is not supported. Its context is borrowed until node_replication_destroy(). */
typedef int node_replication_events_write(void *context, struct slice request, struct buf *out);
void node_replication_events(struct node_replication *n, node_replication_events_write *write,
                             void *context);
void node_replication_check(const struct node_replication *n);

struct gossip *node_replication_gossip(struct node_replication *n);
bool node_replication_ready(const struct node_replication *n);
/* Why it knows no other router that lives, though it has seeds; NULL: it does, or has none, or has
 * just started. It serves all the same: to be cut off is no reason to be out. */
const char *node_replication_alone(const struct node_replication *n, uint64_t now_us);
/* Members whose datagrams come and to which TCP does not get through. */
unsigned node_replication_filtered(const struct node_replication *n, uint64_t now_us);
/* Whether a router with this key and another cluster-name asked to join within the last minute. */
bool node_replication_knocked(const struct node_replication *n, uint64_t now_us);
/* The admin port is open there. */
void node_replication_admin(struct node_replication *n, const char *admin, uint64_t now_us);
/* What was set there. */
const char *node_replication_admin_is(const struct node_replication *n);
/* It takes no new requests any more, and will leave: for people who ask another router. */
void node_replication_draining(struct node_replication *n, uint64_t now_us);
/* This node has another policy from now on; a literal. */
void node_replication_policy(struct node_replication *n, const char *policy, uint64_t now_us);
/* A member's name by its id, or NULL. Valid until the next call. */
const char *node_replication_name(const struct node_replication *n, uint64_t member);
/* How long what is sent travels from another router to this one, in ms: half the mean of the round
 * trips to those that live, each two seconds at most. 0: none is measured. */
double node_replication_travel_ms(const struct node_replication *n);

void node_replication_datagram(struct node_replication *n, const struct gossip_address *from,
                               const uint8_t *bytes, size_t len, uint64_t now_us);
/* Call it after anything happened at the user, and when the time is due: it collects news and
 * flushes. Cheap when there is none. */
void node_replication_run(struct node_replication *n, uint64_t now_us);
uint64_t node_replication_due_us(const struct node_replication *n);
/* Whether a member that was met is on another machine: it answered, and not from the loopback. */
bool node_replication_apart(const struct node_replication *n);
/* The latest time that it was given. */
uint64_t node_replication_now_us(const struct node_replication *n);

/* The keys for a call that io.call() is to open: the one that the member has comes first. */
void node_replication_call_keys(struct node_replication *n, uint32_t id,
                                struct gossip_keyring *out);
/* Client side of a call. ERR_CLOSED: the rest of the answer is not wanted, hang up (a snapshot may
 * have gigabytes to come). */
MUST_USE int node_replication_answer(struct node_replication *n, uint32_t id, struct slice chunk,
                                     uint64_t now_us);
void node_replication_answered(struct node_replication *n, uint32_t id, int err, uint64_t now_us);

/* Server side: `next` appends a chunk of at most GOSSIP_CALL_CHUNK_MAX bytes; 1, or 0 at the end.
 */
struct node_serve;
MUST_USE int node_replication_serve(struct node_replication *n, uint8_t kind, struct slice request,
                                    uint64_t now_us, struct node_serve **out);
MUST_USE int node_replication_serve_next(struct node_replication *n, struct node_serve *s,
                                         struct buf *out);
void node_replication_serve_end(struct node_serve *s);

/* Asks all live members the same question; `done` gets one JSON object, member name -> answer (or
 * {"error": ...}), after all have answered, died or left, or `timeout_us`; nothing if there was no
 * memory for it. ERR_FULL, ERR_NOMEM. */
MUST_USE int node_replication_ask(struct node_replication *n, uint8_t kind, struct slice request,
                                  uint64_t timeout_us, uint64_t now_us,
                                  void (*done)(void *context, struct slice json), void *context);

/* JSON for the admin port: members with vectors and lag; members that node_replication_ask() passes
 * over (name -> state); this node's digests; counters. */
MUST_USE int node_replication_members_json(const struct node_replication *n, uint64_t now_us,
                                           struct buf *out);
/* The members in few words. */
MUST_USE int node_replication_members_brief_json(const struct node_replication *n, uint64_t now_us,
                                                 struct buf *out);
MUST_USE int node_replication_not_asked_json(const struct node_replication *n, uint64_t now_us,
                                             struct buf *out);
MUST_USE int node_replication_digests_json(const struct node_replication *n, uint64_t now_us,
                                           struct buf *out);
MUST_USE int node_replication_stats_json(const struct node_replication *n, uint64_t now_us,
                                         struct buf *out);
/* Metrics of gossip, the shared state and its comparison. */
void node_replication_metrics(const struct node_replication *n, uint64_t now_us,
                              struct prometheus *p);

#endif
