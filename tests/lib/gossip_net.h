/* A tiny network of gossips in one thread and virtual time, for the unit tests of gossip/. (What
 * proves the whole system is tests/sim.)
 *
 * Every node's application is a set of numbered items, (origin, number, when made); a delta carries
 * some of a node's own. net_item() makes one, the network records when it arrived where.
 */
#ifndef TESTS_LIB_GOSSIP_NET_H
#define TESTS_LIB_GOSSIP_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/prng.h"
#include "gossip/gossip.h"
#include "gossip/keyring.h"

enum { NET_NODES_MAX = 640, NET_ITEMS_MAX = 4096 };

/* Of whom every node knows at its start: nodes 0 and 1; 0; the one before it; none. */
enum net_seeds { NET_SEEDS_TWO, NET_SEEDS_ONE, NET_SEEDS_CHAIN, NET_SEEDS_NONE };

struct net_node {
    struct net *net;
    unsigned index;
    struct gossip *gossip; /* NULL: not running */
    struct gossip_keyring keyring;
    struct gossip_address address;
    struct buf pending; /* items not told yet, 16 bytes each */
    uint32_t made;      /* own items, in all lives */
    uint8_t *have;      /* [origin * NET_ITEMS_MAX + number]: bit */
    uint64_t lost, applied, refuse;
    uint64_t messages, messages_settled, message_bytes, message_hash;
    uint64_t member_calls, self_calls;
    bool paused;
    bool meltdown; /* set by the test to make produce endless */
    unsigned item_bytes;
};

struct net_packet {
    uint64_t at_us, serial;
    uint16_t to, len;
    struct gossip_address from;
    uint8_t *bytes;
};

struct net {
    struct net_node nodes[NET_NODES_MAX];
    unsigned count;
    uint64_t now_us;
    struct prng prng;
    struct net_packet *heap;
    size_t heap_len, heap_cap;
    uint64_t serial;
    uint64_t due[2 * 1024]; /* a tree of minima over the nodes */
    /* Of the network. */
    double loss, duplicate;
    uint64_t delay_min_us, delay_max_us;
    bool (*block)(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len);
    void *block_context;
    /* Called for each packet that is delivered. */
    void (*tap)(void *context, unsigned to, const struct gossip_address *from, const uint8_t *bytes,
                size_t len);
    void *tap_context;
    uint64_t packets, bytes;
    /* Latency of items: how many nodes have item i of origin 0 .., and when the last one got it. */
    uint64_t *latencies; /* of each item at each node, microseconds */
    size_t latencies_len, latencies_cap;
    struct gossip_config config; /* a template: name, epoch and address are filled in */
    bool advertise;
    enum net_seeds seeds;
    /* Nodes of one host (not 0) see each other on its loopback, which leads nowhere else. */
    unsigned host[NET_NODES_MAX];
    /* A node (not 0) that this one sees elsewhere than all others do. */
    unsigned translated, translated_for;
    uint64_t astray; /* packets to an address that leads nowhere from where they were sent */
    uint16_t alias[NET_NODES_MAX]; /* of an address: node + 1 */
};

struct net *net_new(unsigned count, uint64_t seed);
void net_free(struct net *net);
/* All started, and all with sessions to each other. */
struct net *net_new_meshed(unsigned count, uint64_t seed);
/* Checks every node, then frees. */
void net_finish(struct net *net);
/* Starts a node (its application is empty if `fresh`), with the seeds that net->seeds says. */
void net_start(struct net *net, unsigned index, uint64_t epoch, bool fresh);
void net_start_all(struct net *net);
/* The same with a configuration of its own. */
int net_create(struct net *net, unsigned index, const struct gossip_config *config);
/* From now on the node sends from, and gets what is sent to, another address. */
void net_alias(struct net *net, unsigned address, unsigned index);
void net_kill(struct net *net, unsigned index);
/* Runs until the time, or until `done` says so (NULL: never); whether it did. */
bool net_run(struct net *net, uint64_t until_us, bool (*done)(struct net *net));
void net_for(struct net *net, uint64_t us);
/* Delivers bytes as if they came in now. */
void net_inject(struct net *net, unsigned to, const struct gossip_address *from,
                const uint8_t *bytes, size_t len);

/* Makes one item at the node. */
void net_item(struct net *net, unsigned index);
/* So many at random nodes that run, 5 ms apart on average. */
void net_items(struct net *net, unsigned items);
bool net_has(const struct net *net, unsigned index, unsigned origin, uint32_t number);

/* Every running node has every item that a running node has made. */
bool net_converged(struct net *net);
/* All running nodes see each other alive, with sessions. */
bool net_meshed(struct net *net);
enum gossip_state net_state(const struct net *net, unsigned at, unsigned of);
struct gossip_stats net_stats(const struct net *net, unsigned index);
uint64_t net_node(unsigned index);
void net_check(const struct net *net);
/* The quantile (0 .. 1) of the latencies recorded. */
uint64_t net_latency(struct net *net, double quantile);

#endif
