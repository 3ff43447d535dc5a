/* Counters of all routers, for viewers: each second this router asks every router, and a snapshot
 * contains the answers (live.h). The viewer computes rates: a router's counters begin anew after a
 * restart, and `since_ms` reveals this. */
#ifndef NODE_ADMIN_TOGETHER_H
#define NODE_ADMIN_TOGETHER_H

#include "node/admin/admin_internal.h"

enum {
    TOGETHER_EVERY_MS = 1000,
    TOGETHER_TIMEOUT_US = 1500000,
    /* Bytes of all answers in a snapshot, enough for about 100 routers. If there are more, all
     * answers are left out, and viewers show this router alone. */
    TOGETHER_BYTES_MAX = 64 * 1024,
};

struct admin_together {
    struct admin *admin;
    bool asking;
    uint64_t asked_ms;
    struct buf nodes; /* JSON: router -> counters; empty: unknown */
};

void admin_together_init(struct admin_together *t, struct admin *admin);
void admin_together_free(struct admin_together *t);
/* Asks all routers when due; called while there are viewers. */
void admin_together_tick(struct admin_together *t, uint64_t now_ms);
/* Writes the field `cluster` of a snapshot: {"ttft_bounds_s": [...], "nodes": {...}}. */
void admin_together_write(const struct admin_together *t, struct json_writer *w);
/* The question for the counters of shadow mode. To an empty question a router answers with all
 * counters. Older routers answer every question with all counters. */
#define TOGETHER_SHADOW SLICE("shadow")
/* Writes the answers of a cluster with this router alone: an object with a single key, "".
 * ERR_NOMEM. */
MUST_USE int admin_together_alone(struct admin *a, struct slice request, struct buf *out);
/* Answers for node_replication_figures(). The context is the admin. */
MUST_USE int admin_together_answer(void *admin, struct slice request, struct buf *out);

#endif
