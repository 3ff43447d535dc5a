/* A set of integers and a counter on top of a router's own replication (node/cluster), for
 * Maelstrom to judge. The settings are a router's, so a verdict applies to the router.
 *
 * An element of the set is an observation: the lower 48 bits are the id, the upper 16 bits name the
 * "replica". The counter is the sum of all nodes' own load gauges. Each reports additions and
 * subtractions as two numbers that only rise.
 *
 * Pure: time and randomness come in, datagrams go out through a callback. */
#ifndef TESTS_MAELSTROM_NODE_H
#define TESTS_MAELSTROM_NODE_H

#include <stdint.h>

#include "gossip/gossip.h"

struct mael_node;

struct mael_io {
    void *context;
    /* Sends to node number `to` in the cluster's list. */
    void (*send)(void *context, unsigned to, const uint8_t *bytes, size_t len);
    void (*random)(void *context, void *out, size_t len);
};

int mael_node_create(struct mael_node **out, const char *name, unsigned number, unsigned nodes,
                     const struct mael_io *io, uint64_t wall_ms, uint64_t now_us);
/* Begins to gossip, once. Happens automatically with the first message of another node, and 5 s
 * after the start. Not at once: the others may not be up yet, and Maelstrom ends a run in which a
 * node is called too early. */
void mael_node_begin(struct mael_node *n, uint64_t now_us);
void mael_node_destroy(struct mael_node *n);

void mael_node_datagram(struct mael_node *n, unsigned from, const uint8_t *bytes, size_t len,
                        uint64_t now_us);
void mael_node_run(struct mael_node *n, uint64_t now_us);
uint64_t mael_node_due_us(const struct mael_node *n);

/* Negative: refused. */
int mael_node_element_add(struct mael_node *n, int64_t element, uint64_t now_us);
bool mael_node_element_has(const struct mael_node *n, int64_t element);
void mael_node_elements(const struct mael_node *n, void (*visit)(void *context, int64_t element),
                        void *context);
void mael_node_counter_add(struct mael_node *n, int64_t delta, uint64_t now_us);
int64_t mael_node_counter(const struct mael_node *n);
/* Counts of the node's gossip, which must have begun. */
void mael_node_stats(const struct mael_node *n, struct gossip_stats *out);

#endif
