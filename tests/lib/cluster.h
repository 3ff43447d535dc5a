/* A few whole routers in one process and virtual time: real node, crdt and gossip code over a
 * network that delivers every packet after 300 us, unless a test cuts it. For unit tests of the
 * seam; faults in numbers are the business of tests/sim. */
#ifndef TESTS_LIB_CLUSTER_H
#define TESTS_LIB_CLUSTER_H

#include "base/checkpoint.h"
#include "base/prng.h"
#include "node/node.h"

enum { CLUSTER_NODES_MAX = 8, CLUSTER_EVENTS_MAX = 256 };

struct cluster;

struct cluster_node {
    struct cluster *cluster;
    unsigned number;
    char name[32];
    bool up;
    /* Set before cluster_start(). */
    int64_t wall_off_ms;
    uint32_t generation_ms; /* 0: as a daemon has it */
    bool other_hash;        /* another secret than the others */
    struct gossip_keyring keyring;
    struct node *node; /* NULL: not up */
    unsigned events[NODE_REPLICATION_EVENTS];
    char detail[NODE_REPLICATION_EVENTS][160]; /* of the last one */
    bool has[NODE_REPLICAS_MAX];               /* what io.replica told */
};

struct cluster_packet {
    uint64_t at_us;
    unsigned from, to;
    uint32_t len;
    uint8_t bytes[GOSSIP_DATAGRAM_MAX];
};

struct cluster_call {
    uint64_t at_us;
    unsigned client, server;
    uint32_t id;
    uint8_t kind;
    struct buf request;
    struct node_serve *serve;
};

struct cluster {
    uint64_t now_us;
    struct prng prng;
    struct gossip_keyring keyring;
    struct cluster_node nodes[CLUSTER_NODES_MAX];
    unsigned count;
    struct cluster_packet *packets;
    unsigned packet_count, packet_room;
    struct cluster_call calls[64];
    unsigned call_count;
    bool cut[CLUSTER_NODES_MAX][CLUSTER_NODES_MAX]; /* from, to */
    bool has_no_first;                              /* node 0 has a seed too, node 1 */
    uint32_t routers_max;                           /* 0: the gossip's own limit */
    uint64_t lose_every;                            /* 0: no packet is lost */
    uint64_t packets_sent;
    uint64_t ticked_us;
};

void cluster_init(struct cluster *c, unsigned count, uint64_t seed);
void cluster_free(struct cluster *c);
/* Node 0 is the seed of all others. */
void cluster_start(struct cluster *c, unsigned number);
void cluster_kill(struct cluster *c, unsigned number);
/* Lets time pass. Routers tick once a second. */
void cluster_run(struct cluster *c, uint64_t us);
/* Until all that are up are ready and see each other; fails the test after 20 s. */
void cluster_settle(struct cluster *c);
/* Until `done` or for at most `us`; whether it was. */
bool cluster_until(struct cluster *c, uint64_t us, bool (*done)(struct cluster *c));
/* Whether the digests of all that are up are equal. */
bool cluster_agrees(struct cluster *c);

/* Configures the replica at the node and finds it healthy. Returns its index. */
unsigned cluster_replica(struct cluster *c, unsigned number, const char *name);
/* A prompt of so many tokens; equal seeds share all of their common length. */
void cluster_prompt(struct chain *out, uint64_t seed, unsigned tokens);
/* Chooses at the node, and lets it tell the others. */
struct node_decision cluster_choose(struct cluster *c, unsigned number, const struct chain *chain);
/* The answer came whole. */
void cluster_finish(struct cluster *c, unsigned number, struct node_decision d,
                    const struct node_usage *usage);

static inline uint64_t cluster_ms(const struct cluster *c)
{
    return c->now_us / 1000;
}

#endif
