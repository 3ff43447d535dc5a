/* What all routers counted, for who looks: each second each of them is asked for its counters, and
 * a snapshot has the answers (live.h). Rates are the reader's: counters of a router begin anew when
 * it restarts, and `since_ms` shows that. */
#ifndef NODE_ADMIN_TOGETHER_H
#define NODE_ADMIN_TOGETHER_H

#include "node/admin/admin_internal.h"

enum {
    TOGETHER_EVERY_MS = 1000,
    TOGETHER_TIMEOUT_US = 1500000,
    /* Of all answers in a snapshot; more is left out, and readers show one router alone. About 100
     * routers. */
    TOGETHER_BYTES_MAX = 64 * 1024,
};

struct admin_together {
    struct admin *admin;
    bool asking;
    uint64_t asked_ms;
    struct buf nodes; /* JSON: router -> its counters; empty: not known */
};

void admin_together_init(struct admin_together *t, struct admin *admin);
void admin_together_free(struct admin_together *t);
/* While somebody looks: asks, if it is time. */
void admin_together_tick(struct admin_together *t, uint64_t now_ms);
/* The member `cluster` of a snapshot: {"ttft_bounds_s": [...], "nodes": {...}}. */
void admin_together_write(const struct admin_together *t, struct json_writer *w);
/* For node_replication_figures(); the context is the admin. */
MUST_USE int admin_together_answer(void *admin, struct slice request, struct buf *out);

#endif
