/* Shared by the files of the replication. Each file calls only files above it in this list:
 *
 *   members.c      members and their metadata, events, the callbacks of the user
 *   message.c      messages of anti-entropy
 *   aside.c        messages outside the state
 *   look.c         which members operators see
 *   json.c         output for operators; metrics.c
 *   serve.c        answers other routers' calls
 *   call.c         calls to other routers
 *   clock.c        agreeing on cluster time
 *   reconcile.c    anti-entropy
 *   join.c         becoming ready
 *   replication.c  start and end, callbacks of the gossip */
#ifndef NODE_CLUSTER_REPLICATION_INTERNAL_H
#define NODE_CLUSTER_REPLICATION_INTERNAL_H

#include "base/err.h"
#include "base/prng.h"
#include "base/wire.h"
#include "crdt/state.h"
#include "gossip/gossip.h"
#include "node/cluster/replication.h"

/* A member, with the contents of the member's metadata. */
struct node_peer {
    uint64_t node;
    uint64_t epoch;
    enum gossip_state state;
    bool ready, draining;
    bool mismatch;
    bool understood; /* as in struct gossip_member */
    bool quarantined;
    bool foreign_said; /* the event for a member without a common version was sent */
    bool refuses;      /* the member refused a call for a snapshot: no version is common, or the
                        * kind is unknown there */
    bool forgotten;    /* hidden by an operator after it died or left */
    struct gossip_versions speaks;
    struct node_agreement agreement; /* settings that must agree; all 0: unknown so far */
    uint64_t started_ms;             /* cluster time when the member started */
    unsigned calls_failed;           /* failed calls in a row; the next call uses another address of
                                      * the member */
    uint64_t calls_failed_us;        /* when the first of these failed calls began; 0: the last call
                                      * succeeded */
    uint64_t told_us;                /* earliest time of the next event about a failed snapshot or
                                      * TCP */
    char name[GOSSIP_NAME_MAX + 1];
    char admin[NODE_ADMIN_MAX + 1];
    char version[NODE_VERSION_MAX + 1];
    char policy[NODE_POLICY_MAX + 1]; /* empty: unknown */
    uint32_t names_max;               /* the member's setting replicas-max; 0: unknown */
    bool hinted;                      /* the event NODE_REPLICATION_DIFFERS was sent */
};

/* Cluster time as announced by a peer. */
struct node_clock {
    uint64_t node;
    int64_t off_ms; /* the peer's cluster time minus this node's monotonic clock */
    uint64_t heard_us;
    uint64_t age_s; /* how long the peer had been ready at heard_us */
};

/* Anti-entropy messages begin with kind, flags, the sender's cluster time, and the seconds for
 * which the sender has been ready. */
enum node_message {
    NODE_MESSAGE_SUMMARY = 1, /* a summary (crdt/state.h), which begins a round */
    NODE_MESSAGE_STEP,        /* a later step of a round */
    NODE_MESSAGE_EQUAL,       /* answer: the states are equal */
    NODE_MESSAGE_DIFFERS,     /* answer: the states differ, perhaps only by data in transit */
    NODE_MESSAGE_CLOCK_ASK,
    NODE_MESSAGE_CLOCK,
    NODE_MESSAGE_INCOMPARABLE, /* answer: the indexes have no common generation */
    NODE_MESSAGE_ASIDE,        /* no part of anti-entropy: node_replication_aside() */
};
enum { NODE_MESSAGE_FORCE = 1 }; /* flag: repair, even if data may be in transit */

/* True if operators see the router. A departed router is shown for a minute. A dead router is shown
 * for ten minutes, or until an operator hides it, or another router has the address. Gossip
 * remembers a dead router for longer and dials it now and then, which heals a partition
 * (gossip/watch.c). */
bool node_member_shown(const struct node_replication *n, const struct gossip_member *m,
                       uint64_t now_us);

/* A round of anti-entropy begun by this node. */
struct node_round {
    uint64_t peer; /* the other node of the round; 0: none yet */
    bool open;
    bool force;
    uint64_t began_us, ended_us; /* ended_us: last message in either direction */
    uint64_t bytes_out, bytes_in;
    bool equal, differs, incomparable, worked, too_many;
    uint64_t differences, joined;
};

struct node_reconcile {
    uint64_t due_us;
    uint64_t forced_us;               /* when a round was last forced */
    bool differed;                    /* the last round found a difference, perhaps only by data in
                                       * transit */
    uint64_t cut_due_us, cut_wait_us; /* earliest time of the next walk for a cut; the wait after
                                       * that walk */
    uint64_t lost;                    /* the author of lost deltas; 0: none */
    struct node_round round;          /* the current or last round */
    struct node_round repair;         /* the last round that found differences */
    uint64_t rounds, rounds_equal, rounds_unsettled, rounds_incomparable, rounds_worked,
        rounds_too_many, rounds_unanswered;
    uint64_t differences, joined, bytes_out, bytes_in;
};

enum { NODE_CALL_PROGRESS_US = 10000000 }; /* a call without progress for this time has failed */
enum { NODE_AGAIN_US = 60000000 };         /* retry and report interval of lasting conditions */
enum { NODE_TRY_AGAIN_US = 3000000 };      /* time from a failed NODE_CALL_TRY to the next */
enum node_call_use {
    NODE_CALL_FREE,
    NODE_CALL_JOIN,
    NODE_CALL_ASK,
    NODE_CALL_TRY, /* tests if TCP works; the answer is ignored */
};
struct node_call {
    enum node_call_use use;
    uint32_t id;
    uint64_t peer;
    uint64_t began_us;
    uint64_t until_us;   /* deadline for progress */
    bool answered;       /* at least a part of the answer has come */
    unsigned ask, asked; /* for NODE_CALL_ASK: indexes in `asks`, and in `asked` of that question */
    /* For snapshots. */
    bool has_head, has_vector;
    uint64_t bytes, chunks;
};

struct node_asked {
    char name[GOSSIP_NAME_MAX + 1];
    uint64_t node;
    enum { ASKED_WAITING, ASKED_OPEN, ASKED_DONE } state;
    int err;
    struct buf answer;
};

struct node_ask {
    bool open;
    uint8_t kind;
    struct buf request;
    uint64_t until_us;
    uint64_t answer_bytes;
    struct node_asked *asked;
    unsigned count;
    void (*done)(void *context, struct slice json);
    void *context;
};

struct node_replication {
    struct node_replication_config config;
    char admin[NODE_ADMIN_MAX + 1];
    struct node_replication_io io;
    struct node_replication_user user;
    struct node_state *state; /* borrowed */
    struct gossip *gossip;
    struct prng prng;
    uint64_t now_us; /* the latest `now_us` passed to any function */

    bool ready;
    bool draining;
    uint64_t started_us, ready_us;
    uint64_t started_ms;    /* cluster time at the start */
    uint64_t join_due_us;   /* time of the next try to join */
    uint64_t snapshot_of;   /* peer from which to fetch a snapshot although ready; 0: none */
    uint64_t unreached_us;  /* since when all calls to join have failed; 0: no failure, or no
                             * call */
    bool lacks_snapshot;    /* ready without a snapshot, because no call succeeded */
    bool joining_announced; /* the latest argument of gossip_joining() */
    struct buf kept;        /* deltas that arrived while joining */
    bool kept_all;
    unsigned join_waits; /* number of snapshot heads with routers unknown here */
    uint64_t not_from;   /* the peer of the last failed snapshot */
    uint64_t repair_us;  /* no further snapshot for repair before this time */
    uint64_t snapshots, snapshots_failed, snapshot_bytes, snapshot_us;

    struct node_peer *peers; /* GOSSIP_MEMBERS_MAX */
    unsigned peer_count;

    struct node_clock clocks[NODE_CLOCKS_MAX];
    uint64_t clock_checked_us;
    uint64_t jump_due_us; /* since when cluster time seems to be far off; 0: it does not */
    uint64_t clock_forward, clock_back, clock_slewed_ms;

    struct node_reconcile reconcile;
    struct buf message; /* the message being built */
    uint64_t reports_due_us;
    uint64_t watch_due_us;
    uint64_t born_us;
    const char *alone; /* the last logged reason */
    struct {
        uint64_t again_us; /* no further event before this time */
        uint64_t count;    /* the count in the last event */
    } name_taken, refused_key, replicas_full, routers_full, name_refused, other_cluster;
    struct gossip_address other_cluster_at[NODE_STRANGERS_MAX]; /* logged addresses; the oldest are
                                                                 * overwritten */
    unsigned other_clusters;                                    /* number of logged addresses */

    uint32_t call_id;
    struct node_call calls[NODE_CALLS_MAX];
    struct node_ask asks[NODE_ASKS_MAX];
    uint64_t try_due_us; /* time of the next NODE_CALL_TRY; 0: no call so far */
    unsigned tried;      /* index of the peer of the last NODE_CALL_TRY */
    uint64_t serving, served;

    uint64_t delta_errors, message_errors;
    node_replication_events_write *events_write; /* NULL: NODE_CALL_EVENTS is not supported */
    void *events_context;
    node_replication_events_write *figures_write; /* NULL: NODE_CALL_FIGURES is not supported */
    void *figures_context;
    struct node_replication_aside aside;
    uint64_t aside_due_us;
    uint64_t parts_skipped, messages_skipped; /* received, but of unknown kinds */
};

static inline uint64_t node_replication_ms(uint64_t now_us)
{
    return now_us / 1000;
}

void node_replication_event(struct node_replication *n, enum node_replication_event event,
                            uint64_t node, int64_t value);
void node_replication_event_detail(struct node_replication *n, enum node_replication_event event,
                                   uint64_t node, int64_t value, const char *detail);
/* The member's settings that must agree with this node's but do not; empty: all agree. */
void node_peer_differs(const struct node_replication *n, const struct node_peer *p,
                       char out[NODE_DETAIL_MAX]);
/* True if a live member takes no call because TCP is filtered on the way; `out`: the member's
 * address. */
bool node_peer_filtered(const struct node_replication *n, const struct node_peer *p,
                        uint64_t now_us, char out[NODE_ADDRESS_MAX]);
/* Sends the event NODE_REPLICATION_TCP_FILTERED if TCP to the member is filtered. */
void node_peer_tell_filtered(struct node_replication *n, struct node_peer *p, uint64_t now_us);
/* True if calls to the member have failed, but too few to count as filtered. */
bool node_peer_doubted(const struct node_peer *p);
/* Records whether a call to the member succeeded. */
void node_peer_called(struct node_replication *n, uint64_t node, bool through, uint64_t began_us);
/* The member's settings that may differ from this node's and do; empty: none. */
void node_peer_hints(const struct node_replication *n, const struct node_peer *p,
                     char out[NODE_DETAIL_MAX]);
/* HOST:PORT; empty: unknown. */
void node_address_text(const struct gossip_address *a, char out[NODE_ADDRESS_MAX]);
/* The member's row, or NULL. */
struct node_peer *node_replication_peer(const struct node_replication *n, uint64_t node);
/* True if the member is alive or suspected. */
bool node_peer_lives(const struct node_peer *p);
/* True if the member lives, is understood and not in quarantine. Then the member's reports count,
 * and calls can succeed. */
bool node_peer_counts(const struct node_peer *p);
/* Describes which protocol versions the member and this node use, and the remedy. */
void node_peer_speaks(const struct node_replication *n, const struct node_peer *p,
                      char out[NODE_DETAIL_MAX]);
/* Updates this node's metadata in the gossip. */
void node_replication_meta(struct node_replication *n, uint64_t now_us);
struct slice node_meta_write(const struct node_replication *n, uint8_t out[GOSSIP_META_MAX]);
MUST_USE int node_meta_read(struct node_peer *p, struct slice meta);
/* The crdt_state was replaced: passes the live routers to the new state, and informs the user. */
void node_replication_rewound(struct node_replication *n);
/* Calls the user's joined(). */
void node_replication_joined(struct node_replication *n);
/* Calls the user's reports(). */
void node_replication_reports(struct node_replication *n, uint64_t now_us);

/* Informs the state whether the member's reports count. */
void node_peer_publish(struct node_replication *n, const struct node_peer *p);
/* Returns the seconds for which this node has been ready, as sent in messages. The number has two
 * bytes: from 18 h on all nodes count as equally old. */
uint16_t node_clock_age_s(const struct node_replication *n, uint64_t now_us);
static inline uint16_t node_clock_age_cut(uint64_t age_s)
{
    return age_s < UINT16_MAX ? (uint16_t)age_s : UINT16_MAX;
}

/* message.c */
MUST_USE int node_message_begin(struct node_replication *n, enum node_message kind, uint8_t flags,
                                uint64_t now_us);
/* Sends n->message. False: the peer cannot take a message now. */
bool node_message_send(struct node_replication *n, uint64_t peer, uint64_t now_us);
/* Sends an empty message of this kind. */
void node_message_say(struct node_replication *n, uint64_t peer, enum node_message kind,
                      uint64_t now_us);

/* aside.c */
void node_aside_run(struct node_replication *n, uint64_t now_us);
uint64_t node_aside_due(const struct node_replication *n);
/* False: the message is of another kind. */
bool node_aside_message(struct node_replication *n, uint64_t peer, struct slice bytes,
                        uint64_t now_us);

/* lie.c: lies to the other routers, for BUG(LIES). */
void node_lie(struct node_replication *n, uint64_t now_us);

/* join.c */
void node_join_run(struct node_replication *n, uint64_t now_us);
uint64_t node_join_due(const struct node_replication *n);
/* Keeps a delta applied before the snapshot is complete. */
void node_join_keep(struct node_replication *n, const struct crdt_origin *origin,
                    struct slice delta);
void node_join_again(struct node_replication *n, uint64_t now_us);
void node_join_answer(struct node_replication *n, struct node_call *call, struct slice chunk,
                      uint64_t now_us);
void node_join_answered(struct node_replication *n, struct node_call *call, int err,
                        uint64_t now_us);

/* reconcile.c */
/* True if the node has to join again, because the cluster time was set back. */
bool node_reconcile_run(struct node_replication *n, uint64_t now_us);
void node_reconcile_lost(struct node_replication *n, uint64_t node, uint64_t now_us);
void node_reconcile_message(struct node_replication *n, uint64_t peer, struct slice bytes,
                            bool settled, uint64_t now_us);

/* clock.c */
void node_clock_heard(struct node_replication *n, uint64_t node, uint64_t cluster_ms,
                      uint64_t age_s, uint64_t now_us);
/* True if the node has to join again, because the cluster time was set back. */
bool node_clock_check(struct node_replication *n, uint64_t now_us);
/* Sets a joining node's time to a ready member's. The node sent the request at `asked_us`. */
void node_clock_adopt(struct node_replication *n, uint64_t node, uint64_t cluster_ms,
                      uint64_t asked_us, uint64_t now_us);

/* call.c */
struct node_call *node_call_open(struct node_replication *n, enum node_call_use use, uint64_t peer,
                                 uint8_t kind, struct slice request, uint64_t now_us);
struct node_call *node_call_find(struct node_replication *n, uint32_t id);
/* Handle a part, and the end, of an answer to a question to all members, or to a NODE_CALL_TRY. */
MUST_USE int node_call_answer(struct node_replication *n, const struct node_call *c,
                              struct slice chunk);
void node_call_answered(struct node_replication *n, struct node_call *c, int err, uint64_t now_us);
void node_call_run(struct node_replication *n, uint64_t now_us);
uint64_t node_call_due(const struct node_replication *n);
void node_ask_free(struct node_ask *a);

#endif
