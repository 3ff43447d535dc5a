/* Signs of life of a replica, to find stalls: requests under way without progress (docs/adr/0023,
 * docs/adr/0048).
 *
 * An engine may hang while its port accepts connections, and even while the health check succeeds.
 * The engine *moves* with each token received by this router, and each time the token counts in the
 * metrics rise, for any client. It stands still when requests wait for tokens and, for longer than
 * `watchdog_ms`,
 *
 *   SILENT    the engine sent not a byte, not even an answer to a probe that any live server
 *             answers in milliseconds. Time without a chance to send probes does not count
 *   COUNTERS  the engine answers scrapes but counts no token. The time explained by the longest
 *             prompt is added, and more time if the evidence is weak
 *   STARVED   the engine may move, but no request of this router gets the first token: the health
 *             check hangs as well, or the metrics show that the engine does not have these requests
 *
 * Each data-parallel rank has separate signs, from the rank's streams and gauges. Silence and
 * health checks belong to the process. Routers report to each other the number of requests waiting
 * in vain, and whether they found the engine still.
 *
 * A replica that stands still is *stalled*: the router avoids it, and moves requests without a
 * token to other replicas. The stall is over when the engine moves. Or after a back-off, if the
 * server answers and reports no requests, a single request at a time tries the replica. Ending an
 * answer that has begun is a separate decision (node_signs_lost()), for which any sign of work
 * counts (node/replica/work.h), and takes at least the setting `stall-cut`. */
#ifndef NODE_REPLICA_HEALTH_H
#define NODE_REPLICA_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "node/replica/scrape.h"
#include "node/replica/terms.h"
#include "node/replica/work.h"

enum {
    NODE_BACKOFF_MIN_MS = 1000,
    NODE_BACKOFF_MAX_MS = 30000,
    NODE_BACKOFF_FORGET_MS = 60000, /* after this time the next back-off begins at the minimum
                                     * again */
    NODE_BACKOFF_LEVELS = 6,        /* levels from the first back-off to the longest */
    /* First back-off of a stall; long, because each trial may cost a request watchdog_ms. The
     * router that found the stall makes the first trial: after the back-off, it has this time for
     * the trial before others may make one. A stall found again without a trial is no news for the
     * others. */
    NODE_STALL_BACKOFF_MS = 5000,
    NODE_MOVES_MS = 5000, /* an engine is at work if it moved within this time */
};

/* A back-off. Level 1 has the caller's length, each further level is twice as long. */
struct node_backoff {
    uint64_t until_ms;
    uint8_t level; /* level of the last back-off, up to NODE_BACKOFF_LEVELS; 0: none yet */
    bool trial;    /* no answer has begun since the last back-off */
};

/* Begins a back-off, one level above the last back-off if that was recent, else at level 1. */
void node_backoff_again(struct node_backoff *b, uint32_t first_ms, uint64_t now_ms);
/* Begins a back-off unless a back-off is running: failures of requests sent earlier do not extend
 * it. */
void node_backoff_begin(struct node_backoff *b, uint32_t first_ms, uint64_t now_ms);
/* Begins a back-off of this level, at most NODE_BACKOFF_LEVELS. `first_ms`: the length at level
 * 1. */
void node_backoff_set(struct node_backoff *b, unsigned level, uint32_t first_ms, uint64_t now_ms);

/* A router's report in a byte: the number of requests that waited for watchdog_ms without a token,
 * at most NODE_STILL_WAITS; and the bit NODE_STILL_FOUND if the engine's counters stand still. */
enum { NODE_STILL_WAITS = 3, NODE_STILL_FOUND = 4 };

enum node_stall { NODE_STALL_NONE, NODE_STALL_SILENT, NODE_STALL_COUNTERS, NODE_STALL_STARVED };

struct node_signs {
    bool leaving;               /* the replica's health check says no */
    bool quiet;                 /* avoided, but not stalled yet: no sign of life for longer than
                                 * usual */
    bool proven;                /* a token came since the engine's start, for any client */
    bool starved;               /* the last stall was STARVED: tokens of other requests do not end
                                 * the trial after it */
    bool warned;                /* another router found the engine still, and nothing moved here
                                 * since */
    enum node_stall stall;      /* reason for the stall */
    struct node_backoff stalls; /* back-off until the next trial */
    uint64_t stalled_ms;        /* time since which the replica is stalled */
    uint64_t stalls_total;
    uint64_t moved_ms;     /* last token received here, or counted by the engine */
    uint64_t worked_ms;    /* moved_ms, or a later sign of work by another router, reported seconds
                            * late */
    uint64_t told_ms;      /* last token received here and reported to the others */
    uint64_t explained_ms; /* time without a sign of life that the longest prompt explains */
    struct node_work_seen work;
    uint8_t waits, heard_waits; /* requests that waited for watchdog_ms without a token: this
                                 * router's, at most NODE_STILL_WAITS; and all other routers' */
    bool found;                 /* this router found the engine still, though not silent; reported
                                 * while the stall or the trial after it lasts */
    bool heard_found;           /* another router reports `found` */
    uint64_t first_ms;          /* last time when an answer to this router began */
    uint64_t still_ms;          /* last scrape without progress since moved_ms; 0: none */
    uint64_t down_ms;           /* when the replica last went down */
    uint64_t tried_ms;          /* when a request was last sent to the replica */
};

/* A token came, or was counted by the engine. */
void node_signs_moved(struct node_signs *s, uint64_t now_ms);
/* The first token of an answer to this router came. */
void node_signs_answering(struct node_signs *s, uint64_t now_ms);
/* Another router saw the engine work lately. */
void node_signs_worked(struct node_signs *s, uint64_t now_ms);
/* The metrics were read; `before` is NULL for the first metrics. Returns true if the metrics show
 * work. */
bool node_signs_scraped(struct node_signs *s, const struct node_scrape *before,
                        const struct node_scrape *now, bool restarted, uint64_t now_ms);

/* This router's requests at the replica, and the signs received. Only sent requests that wait for
 * tokens count. Times are 0 if the event never happened. */
struct node_watched {
    unsigned waiting;            /* requests without a token yet */
    unsigned waiting_long;       /* waiting requests sent watchdog_ms ago or earlier */
    unsigned plain_long;         /* those of waiting_long whose progress the engine's counters would
                                  * show */
    unsigned streaming;          /* requests with tokens, and more to come */
    uint64_t prefill_tokens_max; /* uncached tokens of the longest waiting prompt */
    uint64_t since_ms;           /* when the first waiting request began to wait */
    uint64_t token_ms;           /* last token received */
    uint64_t heard_ms;           /* last byte received of anything, probes included */
    uint64_t unasked_ms;         /* when this router last could not send a probe, for reasons in the
                                  * router */
    uint64_t asked_ms;           /* when the oldest unanswered quick probe was sent; 0: all were
                                  * answered */
    uint64_t health_asked_ms;    /* when the oldest unanswered health check was sent, which may be
                                  * slow; 0: all were answered */
};

struct node_replica;

/* Judges the signs: returns the reason if the replica stands still now, else NODE_STALL_NONE. */
enum node_stall node_signs_judge(const struct node_replica *k, const struct node_watched *w,
                                 uint64_t watchdog_ms, uint64_t now_ms);
/* Judges the signs, and stores the result in the replica's `signs`. */
void node_signs_watch(struct node_replica *k, const struct node_watched *w, uint64_t watchdog_ms,
                      uint64_t now_ms);
/* True if tokens or counters show that the engine is at work. */
bool node_signs_are_moving(const struct node_signs *s, uint64_t now_ms);

/* --- between routers */

/* This router's report in a byte: NODE_STILL_WAITS, NODE_STILL_FOUND. */
uint8_t node_signs_report(const struct node_signs *s);
/* Takes in the others' reports: the number of waiting requests, and whether a router found the
 * engine still. If such a finding ends before any sign of work, its router had no request for a
 * trial. Then the replica is on trial here. */
void node_signs_hear(struct node_signs *s, unsigned waits, bool found, uint64_t now_ms);

/* --- what has begun there */

/* True if an answer that has begun, but sent no byte since `since_ms`, is lost. There was no sign
 * of work for stall_cut_ms (or for the explained time, if longer). And either the metrics were read
 * and report single steps, or no byte at all came from the process (`heard_ms`: the last byte), or
 * the replica is no longer watched. If the engine lives and reports no steps, answers are never
 * judged lost. stall_cut_ms 0: never. */
bool node_signs_lost(const struct node_replica *k, uint64_t since_ms, uint64_t heard_ms,
                     uint64_t stall_cut_ms, uint64_t now_ms);
/* True if the engine's metrics report single steps. */
bool node_signs_tells_steps(const struct node_replica *k);

/* The kind of stall in a word: "silent", "counters", "starved"; "" for none. */
const char *node_stall_name(enum node_stall stall);

#endif
