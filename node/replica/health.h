/* Signs of life of one replica, and of none: whether what is under way there moves.
 *
 * An engine may hang behind a port that takes connections, even behind a health check that is fine:
 * its process is stopped, its machine is gone, its GPU never answers. What shows it is that tokens
 * are wanted of it and none comes. The engine *moves* with each token that comes to this router and
 * with each count of tokens in its metrics, whoever they are for.
 *
 * It stands still when tokens are wanted of it and, for longer than `watchdog_ms`,
 *
 *   SILENT    not one byte came from it, not even an answer to a probe that any live server answers
 *             in milliseconds
 *   COUNTERS  its metrics are answered and count no token, beyond what its longest prompt explains
 *   STARVED   the engine may move, but no request of this router gets its first token: its health
 *             check hangs as well, or its metrics show that it does not have these requests
 *
 * COUNTERS needs more time where the evidence is weak: one lone request may wait for a grammar or
 * for its pictures, which no counter shows; SGLang counts the tokens of a request when it ends; an
 * engine that never gave a token to anybody may compile its kernels. The gauges of an engine are
 * those of its last step: one that hangs does not show what came since.
 *
 * A data-parallel rank has signs of its own, of its own streams and gauges, so that it is found
 * while other ranks of its process move. Silence and health checks are of the process.
 *
 * A replica that stands still is *stalled*: avoided, and what has no token there moves to others.
 * It is over when it moves. As nothing may be left there that could, a back-off goes by too, and
 * then, if the server answers and says that it is idle, one request at a time tries it.
 */
#ifndef NODE_REPLICA_HEALTH_H
#define NODE_REPLICA_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "node/replica/scrape.h"
#include "node/replica/terms.h"

enum {
    NODE_BACKOFF_MIN_MS = 1000,
    NODE_BACKOFF_MAX_MS = 30000,
    NODE_BACKOFF_FORGET_MS = 60000, /* after this the next back-off begins at the minimum again */
    NODE_STALL_BACKOFF_MS = 5000,   /* each trial may cost a request watchdog_ms */
    NODE_MOVES_MS = 5000,           /* an engine that moved so lately is at work */
};

struct node_backoff {
    uint64_t until_ms;
    uint32_t length_ms; /* of the last one; 0: none yet */
    bool trial;         /* no answer has begun since */
};

/* Of `min_ms`, twice as long when it comes again soon. Requests sent before it began do not extend
 * it when they fail. */
void node_backoff_begin(struct node_backoff *b, uint32_t min_ms, uint64_t now_ms);
/* Of that length, whatever it was before. */
void node_backoff_set(struct node_backoff *b, uint32_t length_ms, uint64_t now_ms);
/* How long the next one is, after one of that length. */
uint32_t node_backoff_longer(uint32_t length_ms);

enum node_stall { NODE_STALL_NONE, NODE_STALL_SILENT, NODE_STALL_COUNTERS, NODE_STALL_STARVED };

struct node_signs {
    bool leaving;               /* its health check said no */
    bool quiet;                 /* not stalled yet, but avoided: longer without a sign than usual */
    bool proven;                /* it gave a token since it started, to anybody */
    enum node_stall stall;      /* why it is stalled */
    struct node_backoff stalls; /* until it may be tried */
    uint64_t stalled_ms;        /* since when */
    uint64_t stalls_total;
    uint64_t moved_ms; /* a token of ours, or of its counters */
    uint64_t first_ms; /* a first token of ours */
    uint64_t still_ms; /* the last scrape that counted nothing since moved_ms; 0: none */
    uint64_t down_ms;  /* when it went down last */
    uint64_t tried_ms; /* when a request was sent there last */
};

static inline bool node_signs_avoided(const struct node_signs *s, uint64_t now_ms)
{
    return s->leaving || s->quiet || s->stall != NODE_STALL_NONE || s->stalls.until_ms > now_ms;
}

/* A token came, or was counted. */
void node_signs_moved(struct node_signs *s, uint64_t now_ms);
/* The first token of an answer of ours came. */
void node_signs_answering(struct node_signs *s, uint64_t now_ms);
/* Its metrics were read; `before` is NULL for the first ones. */
void node_signs_scraped(struct node_signs *s, const struct node_scrape *before,
                        const struct node_scrape *now, bool restarted, uint64_t now_ms);

/* What this router has there, and hears of it. Only requests that want tokens count, once they are
 * sent. Times are 0 where it never was so. */
struct node_watched {
    unsigned waiting;            /* have no token yet, */
    unsigned waiting_long;       /* watchdog_ms after they were sent */
    unsigned streaming;          /* have some, and want more */
    uint64_t prefill_tokens_max; /* the longest prompt of those that wait, less what is cached */
    uint64_t since_ms;           /* when there was something to wait for, first */
    uint64_t token_ms;           /* the last token */
    uint64_t heard_ms;           /* the last byte of anything, probes included */
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

/* In a word: "silent", "counters", "starved"; "" for none. */
const char *node_stall_name(enum node_stall stall);

#endif
