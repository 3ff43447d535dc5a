/* Signs of life of one replica, and of none: whether what is under way there moves
 * (docs/adr/0023, docs/adr/0048).
 *
 * An engine may hang behind a port that takes connections, even behind a health check that is fine.
 * It *moves* with each token that comes to this router and with each count of tokens in its
 * metrics, whoever they are for. It stands still when tokens are wanted of it and, for longer than
 * `watchdog_ms`,
 *
 *   SILENT    not one byte came from it, not even an answer to a probe that any live server answers
 *             in milliseconds. Time in which this router could send no probe does not count
 *   COUNTERS  its metrics are answered and count no token, beyond what its longest prompt explains;
 *             longer where the evidence is weak
 *   STARVED   the engine may move, but no request of this router gets its first token: its health
 *             check hangs as well, or its metrics show that it does not have these requests
 *
 * A data-parallel rank has signs of its own, of its own streams and gauges. Silence and health
 * checks are of the process. Routers tell each other how many requests wait there in vain, and that
 * they found it still.
 *
 * A replica that stands still is *stalled*: avoided, and what has no token there moves to others.
 * It is over when it moves; or after a back-off, if the server answers and says that it is idle,
 * one request at a time tries it. To end an answer that has begun is a judgement of its own
 * (node_signs_lost()), by any sign of work (node/replica/work.h), and takes `stall-cut`.
 */
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
    NODE_BACKOFF_FORGET_MS = 60000, /* after this the next back-off begins at the minimum again */
    NODE_BACKOFF_LEVELS = 6,        /* from the first to the longest */
    /* Each trial may cost a request watchdog_ms. The router that found a stall makes the first
     * one, and has as long again for it before the others may. A stall that is found again
     * without one is no news for them. */
    NODE_STALL_BACKOFF_MS = 5000,
    NODE_MOVES_MS = 5000, /* an engine that moved so lately is at work */
};

/* The first is as long as the caller says, each level is twice as long as the one before. */
struct node_backoff {
    uint64_t until_ms;
    uint8_t level; /* of the last one, up to NODE_BACKOFF_LEVELS; 0: none yet */
    bool trial;    /* no answer has begun since */
};

/* One level up if the last one was lately. */
void node_backoff_again(struct node_backoff *b, uint32_t first_ms, uint64_t now_ms);
/* The same, unless it backs off: requests sent before do not extend it when they fail. */
void node_backoff_begin(struct node_backoff *b, uint32_t first_ms, uint64_t now_ms);
/* Of that level, or the longest. */
void node_backoff_set(struct node_backoff *b, unsigned level, uint32_t first_ms, uint64_t now_ms);

/* What a router tells the others of what waits there: up to NODE_STILL_WAITS requests that have no
 * token after watchdog_ms, and whether it found the engine still by its counters. */
enum { NODE_STILL_WAITS = 3, NODE_STILL_FOUND = 4 };

enum node_stall { NODE_STALL_NONE, NODE_STALL_SILENT, NODE_STALL_COUNTERS, NODE_STALL_STARVED };

struct node_signs {
    bool leaving;               /* its health check said no */
    bool quiet;                 /* not stalled yet, but avoided: longer without a sign than usual */
    bool proven;                /* it gave a token since it started, to anybody */
    bool starved;               /* the last stall was STARVED, which no token of others ends */
    bool warned;                /* another router says so, and nothing moved here since then */
    enum node_stall stall;      /* why it is stalled */
    struct node_backoff stalls; /* until it may be tried */
    uint64_t stalled_ms;        /* since when */
    uint64_t stalls_total;
    uint64_t moved_ms;     /* a token of ours, or of its counters */
    uint64_t worked_ms;    /* the same, or what another router saw: it is late by seconds */
    uint64_t told_ms;      /* the last token of ours that was reported */
    uint64_t explained_ms; /* what it has to compute may take so long without a sign */
    struct node_work_seen work;
    uint8_t waits, heard_waits; /* requests without a token: of this router, of the others */
    bool found;                 /* its counters stood still, and it is not known to move since */
    bool heard_found;           /* another router says so */
    uint64_t first_ms;          /* a first token of ours */
    uint64_t still_ms;          /* the last scrape that counted nothing since moved_ms; 0: none */
    uint64_t down_ms;           /* when it went down last */
    uint64_t tried_ms;          /* when a request was sent there last */
};

/* A token came, or was counted. */
void node_signs_moved(struct node_signs *s, uint64_t now_ms);
/* The first token of an answer of ours came. */
void node_signs_answering(struct node_signs *s, uint64_t now_ms);
/* Another router saw it work, lately. */
void node_signs_worked(struct node_signs *s, uint64_t now_ms);
/* Its metrics were read; `before` is NULL for the first ones. Returns whether they show work. */
bool node_signs_scraped(struct node_signs *s, const struct node_scrape *before,
                        const struct node_scrape *now, bool restarted, uint64_t now_ms);

/* What this router has there, and hears of it. Only requests that want tokens count, once they are
 * sent. Times are 0 where it never was so. */
struct node_watched {
    unsigned waiting;      /* have no token yet, */
    unsigned waiting_long; /* watchdog_ms after they were sent */
    unsigned plain_long;   /* and of those: it is nothing that keeps them out of the counters */
    unsigned streaming;    /* have some, and want more */
    uint64_t prefill_tokens_max; /* the longest prompt of those that wait, less what is cached */
    uint64_t since_ms;           /* when there was something to wait for, first */
    uint64_t token_ms;           /* the last token */
    uint64_t heard_ms;           /* the last byte of anything, probes included */
    uint64_t unasked_ms;         /* when no probe could be sent to it last, by a lack of ours */
    uint64_t asked_ms;           /* since when a probe goes without its answer that takes a live
                                    server no time; 0: none does */
    uint64_t health_asked_ms;    /* the same of the health check, whatever it takes */
};

struct node_replica;

/* Whether it stands still now. */
enum node_stall node_signs_judge(const struct node_replica *k, const struct node_watched *w,
                                 uint64_t watchdog_ms, uint64_t now_ms);
/* Judges, and keeps the signs. */
void node_signs_watch(struct node_replica *k, const struct node_watched *w, uint64_t watchdog_ms,
                      uint64_t now_ms);
/* Whether the engine is at work, by its tokens and counters. */
bool node_signs_are_moving(const struct node_signs *s, uint64_t now_ms);

/* --- between routers */

/* What this router tells of it: NODE_STILL_*. */
uint8_t node_signs_report(const struct node_signs *s);
/* What all others tell: how many requests wait, and whether one found it still. A finding that ends
 * without work seen leaves a trial: its router had no request for one. */
void node_signs_hear(struct node_signs *s, unsigned waits, bool found, uint64_t now_ms);

/* --- what has begun there */

/* Whether an answer that has begun, and of which nothing came since `since_ms`, is lost: nothing
 * showed work for stall_cut_ms (or for as long as is explained, where that is longer), though the
 * engine tells of its steps and was read, or though anything would have shown that its process
 * lives (`heard_ms`: the last byte of anything), or because it is no longer watched. Where the
 * engine lives and tells nothing, nobody knows. stall_cut_ms 0: never. */
bool node_signs_lost(const struct node_replica *k, uint64_t since_ms, uint64_t heard_ms,
                     uint64_t stall_cut_ms, uint64_t now_ms);
/* Whether its metrics tell, or told, of single steps. */
bool node_signs_tells_steps(const struct node_replica *k);

/* In a word: "silent", "counters", "starved"; "" for none. */
const char *node_stall_name(enum node_stall stall);

#endif
