/* A router as in the daemon (router, replication, shell with all ports), without engines: a bench
 * adds observations and requests by hand. */
#ifndef TESTS_BENCH_GOSSIP_NODE_H
#define TESTS_BENCH_GOSSIP_NODE_H

#include <uv.h>

#include "crdt/state.h"
#include "node/node.h"

enum { NODE_REPLICAS = 96 };

struct bench_node_setup {
    unsigned number; /* the node's name is router-NUMBER */
    uint16_t port;   /* of 127.0.0.1, UDP and TCP */
    uint16_t seed;   /* port of a seed; 0: none */
    uint16_t told;   /* port announced to peers; 0: the true port */
    uint64_t index_bytes;
    const char *key_file;
};

struct bench_node {
    struct node_router *router;
    struct node_replication *replication;
    struct crdt_state *state;
};

/* All NODE_REPLICAS replicas are up. Exits with a message on any failure. */
void bench_node_start(struct bench_node *n, uv_loop_t *loop, const struct bench_node_setup *setup);

#endif
