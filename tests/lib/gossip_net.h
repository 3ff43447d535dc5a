/* Bare gossips in a world (tests/lib/world), for the unit tests of gossip/.
 *
 * Every node's application is a set of numbered items, (origin, number, time made); a delta carries
 * some of the items made at the node. net_item() makes an item, and the network records the time of
 * arrival at each node. */
#ifndef TESTS_LIB_GOSSIP_NET_H
#define TESTS_LIB_GOSSIP_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "tests/lib/world/world.h"

enum { NET_NODES_MAX = 640, NET_ITEMS_MAX = 4096 };

/* Every node's seeds at the start: nodes 0 and 1; 0; the node before; none; a node behind the
 * virtual address. */
enum net_seeds {
    NET_SEEDS_TWO,
    NET_SEEDS_ONE,
    NET_SEEDS_CHAIN,
    NET_SEEDS_NONE,
    NET_SEEDS_VIRTUAL,
};

struct net_node {
    struct net *net;
    struct world_node *at;
    unsigned index;
    struct gossip *gossip; /* NULL: not running */
    struct buf pending;    /* items not sent yet, 16 bytes each */
    uint32_t made;         /* items made here, in all lives */
    uint8_t *have;         /* [origin * NET_ITEMS_MAX + number]: bit */
    uint64_t lost, applied, refuse;
    uint64_t messages, messages_settled, message_bytes, message_hash;
    uint64_t member_calls, self_calls;
    bool paused;   /* does not run, and arriving packets are lost */
    bool meltdown; /* set by the test: produce() always has more */
    unsigned item_bytes;
};

struct net {
    struct world world; /* time, chance and the network */
    struct net_node nodes[NET_NODES_MAX];
    /* Latency of items: for each item of origin 0, the number of nodes that have the item, and the
     * time of the last arrival. */
    uint64_t *latencies; /* of each item at each node, microseconds */
    size_t latencies_len, latencies_cap;
    struct gossip_config config; /* a template: name, epoch and address are filled in */
    bool advertise;
    enum net_seeds seeds;
};

struct net *net_new(unsigned count, uint64_t seed);
void net_free(struct net *net);
/* A network with all nodes started, and sessions between all. */
struct net *net_new_meshed(unsigned count, uint64_t seed);
/* Checks every node, then frees the network. */
void net_finish(struct net *net);
/* Starts a node, with seeds by net->seeds. `fresh`: with an empty application. */
void net_start(struct net *net, unsigned index, uint64_t epoch, bool fresh);
void net_start_all(struct net *net);
/* Starts a node with a separate configuration. */
int net_create(struct net *net, unsigned index, const struct gossip_config *config);
void net_kill(struct net *net, unsigned index);
/* Runs until `until_us`, or until `done` returns true; NULL: never. Returns the last result of
 * `done`. */
bool net_run(struct net *net, uint64_t until_us, bool (*done)(struct net *net));
void net_for(struct net *net, uint64_t us);
/* Delivers bytes as if received now. */
void net_inject(struct net *net, unsigned to, const struct gossip_address *from,
                const uint8_t *bytes, size_t len);

/* Makes an item at the node. */
void net_item(struct net *net, unsigned index);
/* Makes `items` items at random running nodes, 5 ms apart on average. */
void net_items(struct net *net, unsigned items);
bool net_has(const struct net *net, unsigned index, unsigned origin, uint32_t number);

/* True if every running node has all items made by running nodes. */
bool net_converged(struct net *net);
/* True if all running nodes see each other alive, with sessions. */
bool net_meshed(struct net *net);
enum gossip_state net_state(const struct net *net, unsigned at, unsigned of);
struct gossip_stats net_stats(const struct net *net, unsigned index);
uint64_t net_node(unsigned index);
void net_check(const struct net *net);
/* The quantile (0 .. 1) of the latencies recorded. */
uint64_t net_latency(struct net *net, double quantile);

#endif
