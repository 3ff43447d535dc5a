/* Learned figures of a replica, shared between routers: this router's report, the others' reports,
 * and the output for operators. The tables are in learned.c, with a row per figure.
 *
 *     struct node_replica  --node_replica_report()-->  struct crdt_learned, for the others
 *     others' reports  --node_heard_add()-->  struct node_heard
 *             --node_replica_hear()-->  struct node_replica
 *
 * The figure with the most samples counts, this router's or another router's (node/route/share.h
 * says why). */
#ifndef NODE_REPLICA_LEARNED_H
#define NODE_REPLICA_LEARNED_H

#include "node/replica/replica.h"

/* This router's figures, learned here or by others. Figures without samples are left out. */
struct crdt_learned node_replica_report(const struct node_replica *k);

enum { NODE_HEARD_FIGURES_MAX = 8 };

/* The other routers' reports about a replica, merged. Starts zeroed except for `rkey`. Borrows the
 * reports. */
struct node_heard {
    uint32_t rkey; /* key of the present cache */
    uint64_t cache_tokens;
    uint32_t adapter_slots;
    const struct crdt_learned *figure[NODE_HEARD_FIGURES_MAX]; /* the report with the most samples
                                                                * for each figure */
    const struct crdt_learned *belief; /* report of the router with the most prompts seen */
};
void node_heard_add(struct node_heard *h, const struct crdt_learned *reported);
void node_replica_hear(struct node_replica *k, const struct node_heard *h, uint64_t now_ms);

/* Adds another router's sums, and the router's evidence about the cache `rkey`. The caller sets
 * `who`. */
void node_others_add(struct node_others *sum, const struct crdt_learned *reported, uint32_t rkey);

/* A figure for operators: a field of the object "learned" in `/replicas`, and a metric. */
struct node_learned_row {
    const char *key;    /* name in the JSON object "learned" */
    double unit;        /* factor from the metric's unit to the JSON's: 1000 for s to ms */
    const char *metric; /* NULL: none */
    const char *help;
    double (*value)(const struct node_replica *k);
};
extern const struct node_learned_row node_learned_rows[];
extern const unsigned node_learned_rows_count;

#endif
