/* Back-offs of a replica (node/replica/replica.h) between routers: one that finds a replica in
 * trouble says so, the others avoid it as well, and when the back-off is over one trial is made for
 * all (docs/adr/0021).
 *
 *   what a router reports of its own eyes:
 *     CLOSED ──failures──> OPEN ──back-off over──> DUE ──its request──> TRYING ──answer──> CLOSED
 *                           ^                                              │
 *                           └───────────────────── failed ─────────────────┘
 *
 *   what another one makes of it: OPEN: avoided here too. DUE: the routers take turns by the hash
 *   of router and replica, each TURN_MS behind the one before, in case that one has nothing to
 *   send. TRYING: it waits for the outcome. A success is a cure, which is counted and reported.
 *
 * When another router's back-off begins, the replica is avoided here too until its health check
 * says yes, for WARNED_MS at most: what has just died may have answered here a moment before. Else
 * own eyes outweigh reports: a router that has lately seen the replica answer, and not fail since,
 * takes no notice of others' back-offs. So one that is cut off from the engines takes them from
 * nobody else.
 *
 * A replica that fails some of its requests and answers the others has no failures in a row: so the
 * recent ones are counted, too (struct node_tally, node_replica_tally()).
 */
#ifndef NODE_REPLICA_BREAKER_H
#define NODE_REPLICA_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/replica/terms.h"

struct node_replica;

enum {
    NODE_BREAKER_TURN_MS = 500,    /* a router waits for the one before it, when a trial is due */
    NODE_BREAKER_TURNS_MAX = 8,    /* no router waits for more than these */
    NODE_BREAKER_WARNED_MS = 500,  /* another's back-off began: own eyes look again */
    NODE_BREAKER_WORKED_MS = 5000, /* a success outweighs others' reports for so long, */
    NODE_BREAKER_CURED_MS = 60000, /* or so long if it proved them wrong */
};

/* Recent attempts: whole answers, and failures that no request can bring about by itself, which are
 * connections that failed or broke, and errors after which another replica answered well. Those of
 * clients that left, of full queues, and errors that may be the request's own count as neither. */
struct node_tally {
    double attempts; /* fading: NODE_TALLY_RECENT of them, at most */
    double failures;
};
enum {
    NODE_TALLY_RECENT = 32,
    NODE_TALLY_FAILURES_MIN = 5, /* fewer say nothing, */
    NODE_TALLY_SHARE = 5,        /* nor does less than one in so many, */
    NODE_TALLY_OTHERS = 2,       /* nor less than so many times the share of the others: then it is
                                    what is asked, or what all stand on */
};

enum node_breaker_phase {
    NODE_BREAKER_CLOSED,
    NODE_BREAKER_DUE, /* in the order in which another router's report counts */
    NODE_BREAKER_TRYING,
    NODE_BREAKER_OPEN,
};

/* Part of struct node_replica. */
struct node_breaker {
    bool trying;   /* a request of this router is the trial */
    uint8_t cured; /* own trials that succeeded, modulo 256: reported */
    /* Of the others. */
    enum node_breaker_phase heard;
    uint8_t heard_level; /* how long the longest back-off is: 1: 1 s, 2: 2 s, 3: 4 s, ... */
    unsigned ahead;      /* routers whose turn comes before this one's */
    uint32_t cures;      /* sum of what they reported */
    /* Here. */
    uint64_t due_ms;    /* since when a trial is due by the others' reports */
    uint64_t warned_ms; /* when another's back-off began; 0: never, or it was looked at since */
    uint64_t worked_ms; /* an answer began; 0: never */
    uint64_t proved_ms; /* the same, against what others reported */
};

/* What the others report of one replica, gathered. Starts zeroed. */
struct node_breaker_heard {
    enum node_breaker_phase phase;
    uint8_t level;
    unsigned ahead;
    uint32_t cures;
};
/* Adds the report of one router; `before` this one, if a trial is due. */
void node_breaker_heard_add(struct node_breaker_heard *h, uint8_t reported, uint8_t cured,
                            bool before);
void node_breaker_hear(struct node_replica *k, const struct node_breaker_heard *h, uint64_t now_ms);

/* What this router reports: phase and level in one byte. */
uint8_t node_breaker_report(const struct node_replica *k, uint64_t now_ms);

/* Whether another router's back-off has just begun, and nothing was seen of the replica since: its
 * health is to be asked for now. */
bool node_breaker_warned(const struct node_replica *k, uint64_t now_ms);
/* Whether it is avoided for what others report, or because it is another's turn. */
bool node_breaker_avoids(const struct node_replica *k, uint64_t now_ms);

/* A request is sent there: part of node_replica_sent(). */
void node_breaker_sent(struct node_replica *k, uint64_t now_ms);
/* An answer has begun: part of node_replica_answering(). */
void node_breaker_worked(struct node_replica *k, uint64_t now_ms);
/* One ended so: part of node_replica_ended(). */
void node_breaker_ended(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms);

#endif
