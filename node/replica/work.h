/* Signs of work: the series of an engine's /metrics that move while the engine computes, for any
 * client. An engine with signs of work lives, however long a stream is silent, so an answer that
 * has begun goes on (node/replica/health.h, docs/adr/0048). Counters of the HTTP server or the
 * process are no signs: probes raise them, even in front of a hanging core.
 *
 * The table is in scrape_table.c: the first rows are signs. A STEP moves during each answer: if an
 * engine has such a series and it does not move, the engine stands still. Other signs move when a
 * request begins or ends: they may be constant for long.
 *
 * A counter counts as moved when it is above the greatest reading so far. If a process is read in
 * parts, counters go down and up again without any work. A counter below the greatest reading for
 * long is a new count from then on. A gauge moves when it changes. Rounded gauges are signs too,
 * but no STEP. */
#ifndef NODE_REPLICA_WORK_H
#define NODE_REPLICA_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum {
    NODE_WORK_SIGNS = 19,     /* number of signs, the first rows of the table */
    NODE_WORK_TOLD = 18,      /* the sign reported by other routers (scraped.h): the last row of the
                               * signs */
    NODE_WORK_LOWER_MAX = 3,  /* consecutive readings below the greatest before the count begins
                               * anew */
    NODE_WORK_TELL_MS = 3000, /* shortest interval between reports of this router's own tokens */
};

/* A reading, by the rows of the table; -1: the series is missing. */
struct node_work_reading {
    double value[NODE_WORK_SIGNS];
};

/* The readings so far. Zeroed: none. */
struct node_work_seen {
    double most[NODE_WORK_SIGNS]; /* greatest reading of a counter; last reading of a gauge */
    uint8_t lower[NODE_WORK_SIGNS];
    uint32_t known; /* bits 1 << row */
};

/* Adds a reading. Returns true if it shows work since the earlier readings; the first reading does
 * not. */
bool node_work_take(struct node_work_seen *seen, const struct node_work_reading *now);
/* Forgets the count of work that another router reported: the next count is from a different
 * router. */
void node_work_told_anew(struct node_work_seen *seen);
/* True if the reading has a series of single steps: then no movement means a stall. */
bool node_work_tells_steps(const struct node_work_reading *w);

#endif
