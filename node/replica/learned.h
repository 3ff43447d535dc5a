/* What is held of a replica and shared between routers: how it is reported, how the others' reports
 * are taken in, how it is shown. The tables are in learned.c, a row a figure.
 *
 *   struct node_replica  --node_replica_report()-->  struct crdt_learned, for the others
 *   theirs  --node_heard_add()-->  struct node_heard
 *           --node_replica_hear()-->  struct node_replica
 *
 * Of the others' figures the one that rests on the most samples counts, and only if it rests on
 * more than this router's own (node/route/share.h says why).
 */
#ifndef NODE_REPLICA_LEARNED_H
#define NODE_REPLICA_LEARNED_H

#include "node/replica/replica.h"

/* What is held, learned here or by others; no defaults. */
struct crdt_learned node_replica_report(const struct node_replica *k);

enum { NODE_HEARD_FIGURES_MAX = 8 };

/* What the others report of one replica. Starts zeroed but for `rkey`. Borrows the reports. */
struct node_heard {
    uint32_t rkey; /* of its present cache */
    uint64_t cache_tokens;
    uint32_t adapter_slots;
    const struct crdt_learned *figure[NODE_HEARD_FIGURES_MAX]; /* the one with the most samples */
    const struct crdt_learned *belief; /* of the router that has seen the most prompts */
};
void node_heard_add(struct node_heard *h, const struct crdt_learned *reported);
void node_replica_hear(struct node_replica *k, const struct node_heard *h, uint64_t now_ms);

/* Adds another router's sums, and what it knows of the cache named `rkey`; `who` is the caller's.
 */
void node_others_add(struct node_others *sum, const struct crdt_learned *reported, uint32_t rkey);

/* A line of `/replicas` and a metric, of one value. */
struct node_learned_row {
    const char *key;    /* in the JSON object "learned" */
    double unit;        /* of the metric in that of the JSON: 1000 for ms where the metric has s */
    const char *metric; /* NULL: none */
    const char *help;
    double (*value)(const struct node_replica *k);
};
extern const struct node_learned_row node_learned_rows[];
extern const unsigned node_learned_rows_count;

#endif
