/* Back-offs of a replica (node/replica/replica.h) between routers: a router that finds a replica
 * in trouble reports this, and the others avoid the replica too. When the back-off is over, a
 * single router makes a single trial for all (docs/adr/0021).
 *
 *   phases in a router's report, from the router's own observations:
 *     CLOSED ──failures──> OPEN ──back-off over──> DUE ──its request──> TRYING ──answer──> CLOSED
 *                           ^                                              │
 *                           └───────────────────── failed ─────────────────┘
 *
 *   how other routers react: OPEN: they avoid the replica too. DUE: the routers take turns by the
 *   hash of router and replica, each TURN_MS after the previous router, in case the previous router
 *   has nothing to send. TRYING: they wait for the outcome. A success is a cure; each router counts
 *   and reports the cures.
 *
 * When another router's back-off begins, this router also avoids the replica until the health
 * check succeeds, for WARNED_MS at most. A replica that just died may have answered here a moment
 * before. Otherwise own observations outweigh reports: a router that has lately seen the replica
 * answer, and not fail since, ignores others' back-offs. So a router cut off from the engines
 * does not take them away from the others.
 *
 * A replica that fails only some requests may never fail several in a row. So the share of recent
 * failures counts too (struct node_tally, node_replica_tally()). */
#ifndef NODE_REPLICA_BREAKER_H
#define NODE_REPLICA_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/replica/terms.h"

struct node_replica;

enum {
    NODE_BREAKER_TURN_MS = 500,    /* delay between the turns of two routers when a trial is due */
    NODE_BREAKER_TURNS_MAX = 8,    /* longest wait for a turn, in turns */
    NODE_BREAKER_WARNED_MS = 500,  /* time that this router has for a health check after another
                                    * router's back-off began */
    NODE_BREAKER_WORKED_MS = 5000, /* a success outweighs other routers' reports for this time */
    NODE_BREAKER_CURED_MS = 60000, /* a success outweighs other routers' reports for this time if it
                                    * came while they reported trouble */
};

/* Recent attempts: whole answers, and failures not caused by the request itself. Such failures are
 * connections that failed or broke, and errors after which another replica answered well. Attempts
 * of clients that left, attempts at full queues, and errors perhaps caused by the request count as
 * neither. */
struct node_tally {
    double attempts; /* fading number of attempts, at most NODE_TALLY_RECENT */
    double failures;
};
enum {
    NODE_TALLY_RECENT = 32,
    NODE_TALLY_FAILURES_MIN = 5, /* fewer failures than this say nothing */
    NODE_TALLY_SHARE = 5,        /* a share of failures below 1 in this number says nothing */
    NODE_TALLY_OTHERS = 2,       /* a share below this multiple of the other replicas' share says
                                  * nothing: the requests, or a common dependency, are to blame */
};

enum node_breaker_phase {
    NODE_BREAKER_CLOSED,
    NODE_BREAKER_DUE, /* if routers report several phases, the one furthest down this list counts */
    NODE_BREAKER_TRYING,
    NODE_BREAKER_OPEN,
};

/* Part of struct node_replica. */
struct node_breaker {
    bool trying;   /* a request of this router is the trial */
    uint8_t cured; /* number of this router's successful trials, modulo 256; reported to the
                    * others */
    /* The other routers' reports. */
    enum node_breaker_phase heard;
    uint8_t heard_level; /* level of the longest reported back-off: 1: 1 s, 2: 2 s, 3: 4 s, ... */
    unsigned ahead;      /* number of routers with an earlier turn */
    uint32_t cures;      /* sum of the cures reported by other routers */
    /* Own observations. */
    uint64_t due_ms;    /* when other routers' reports made a trial due */
    uint64_t warned_ms; /* when another router's back-off began; 0: never, or checked since */
    uint64_t worked_ms; /* when an answer last began; 0: never */
    uint64_t proved_ms; /* when an answer last began while others reported trouble; 0: never */
};

/* The other routers' reports about a replica, merged. Starts zeroed. */
struct node_breaker_heard {
    enum node_breaker_phase phase;
    uint8_t level;
    unsigned ahead;
    uint32_t cures;
};
/* Adds a router's report. `before`: if a trial is due, that router's turn comes before this
 * router's. */
void node_breaker_heard_add(struct node_breaker_heard *h, uint8_t reported, uint8_t cured,
                            bool before);
void node_breaker_hear(struct node_replica *k, const struct node_breaker_heard *h, uint64_t now_ms);

/* This router's report: phase and level in a byte. */
uint8_t node_breaker_report(const struct node_replica *k, uint64_t now_ms);

/* True if another router's back-off has just begun and this router has seen no sign of the replica
 * since. Then the caller checks the replica's health now. */
bool node_breaker_warned(const struct node_replica *k, uint64_t now_ms);
/* True if the replica is avoided because of other routers' reports, or because another router makes
 * the trial. */
bool node_breaker_avoids(const struct node_replica *k, uint64_t now_ms);

/* A request is sent to the replica: part of node_replica_sent(). */
void node_breaker_sent(struct node_replica *k, uint64_t now_ms);
/* An answer has begun: part of node_replica_answering(). */
void node_breaker_worked(struct node_replica *k, uint64_t now_ms);
/* A request ended with this outcome: part of node_replica_ended(). */
void node_breaker_ended(struct node_replica *k, enum node_outcome outcome, uint64_t now_ms);

#endif
