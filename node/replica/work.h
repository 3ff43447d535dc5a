/* Signs of work: what of an engine's /metrics moves while it computes, for whomever. An engine that
 * shows work lives, however long it says nothing on a stream, so an answer that has begun there
 * goes on (node/replica/health.h, docs/adr/0048). What the HTTP server or the process counts by
 * itself is no sign: probes raise it, also in front of a core that hangs.
 *
 * The table is in scrape_table.c: its first rows are signs. A STEP moves while one answer is
 * computed: an engine that has such a series and does not move it stands still. Others move when a
 * request begins or ends: that they stand still shows nothing.
 *
 * A counter counts as moved when it is above what was ever read of it, for a process that is read
 * in parts goes down and up again without any work; one that stays below is another count from then
 * on. A gauge moves when it changes. Rounded gauges are signs as well, but no STEP.
 */
#ifndef NODE_REPLICA_WORK_H
#define NODE_REPLICA_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

enum {
    NODE_WORK_SIGNS = 19,     /* rows of the table */
    NODE_WORK_TOLD = 18,      /* the last of them: what another router tells (scraped.h) */
    NODE_WORK_LOWER_MAX = 3,  /* readings in a row below the most, from which it counts anew */
    NODE_WORK_TELL_MS = 3000, /* tokens of ours are reported at most so often */
};

/* One reading, by the rows of the table; -1: the series is not there. */
struct node_work_reading {
    double value[NODE_WORK_SIGNS];
};

/* What was read so far. Zeroed: nothing. */
struct node_work_seen {
    double most[NODE_WORK_SIGNS]; /* of a counter; of a gauge: the last one */
    uint8_t lower[NODE_WORK_SIGNS];
    uint32_t known; /* bits 1 << row */
};

/* Takes a reading in. Returns whether it shows work since those before; the first one does not. */
bool node_work_take(struct node_work_seen *seen, const struct node_work_reading *now);
/* The count of another router is about to come, and goes on from nothing that was read before. */
void node_work_told_anew(struct node_work_seen *seen);
/* Whether a reading tells of single steps, so that its standing still means something. */
bool node_work_tells_steps(const struct node_work_reading *w);

#endif
