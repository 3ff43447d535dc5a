/* A world in virtual time, in a single thread: nodes, the network between them, and a queue of
 * events. All random numbers come from a single seed, so equal seeds give equal runs and an equal
 * `trace`.
 *
 *   queue.h    events and their times
 *   memory.h   the world's memory never runs out
 *   world.c    time; the start, pause and end of nodes
 *   net.c      datagrams: delay, loss, copies, damage, cuts, translated addresses
 *   router.c   a node as a whole router: struct node, clocks, seeds
 *   call.c     calls between routers: byte streams, which stall and break
 *   use.h      operations of tests on routers: replicas, prompts, choices
 *
 * A node runs a *program*: a whole router, or a program of a test (a bare gossip, in
 * tests/lib/gossip_net.h). The unit tests of gossip, cluster and routing, the bench of routing
 * (tests/bench/quality) and the simulator (tests/sim) all use this world. */
#ifndef TESTS_LIB_WORLD_WORLD_H
#define TESTS_LIB_WORLD_WORLD_H

#include "base/prng.h"
#include "gossip/keyring.h"
#include "node/node.h"
#include "tests/lib/world/queue.h"

enum {
    WORLD_PORT = 7000,
    WORLD_SOCKET_MAX = 4096, /* datagrams waiting for a paused node */
    WORLD_SEEDS_MAX = 3,
    WORLD_LEAVE_US = 500000, /* from a router's leave message until the router is gone */
    WORLD_HEADERS = 28,      /* bytes of IPv4 and UDP */
};

struct world;
struct world_node;
struct world_call;

struct world_datagram {
    unsigned from;
    uint32_t from_life;
    struct gossip_address source; /* the source seen by the target */
    struct gossip_address target;
    bool damaged;
    uint32_t delivered_to_life; /* the target's life at delivery, from 1; 0: not delivered yet */
    size_t len;
    uint8_t bytes[];
};

/* --- nodes ---------------------------------------------------------------------------------- */

/* A node's program. Times are by the node's clock. */
struct world_program {
    void (*receive)(struct world_node *n, struct world_datagram *d);
    void (*run)(struct world_node *n); /* called when due, or after an event */
    uint64_t (*due_us)(const struct world_node *n);
    void (*late)(struct world_node *n, uint64_t late_us); /* called after a pause of `late_us`; or
                                                           * NULL */
};
extern const struct world_program world_router;

struct world_node {
    struct world *world;
    unsigned number;
    char name[32];
    uint64_t id; /* gossip_node_id() of the name */
    bool up;
    bool leaving;
    uint32_t life;
    unsigned ticks;           /* a router's ticks, in all lives */
    uint64_t paused_until_us; /* 0: runs */
    struct gossip_address address;
    struct prng random; /* for this life */
    const struct world_program *program;
    void *process; /* state of a program other than a router */

    /* Monotonic clock = base + (now - since) * (1 + ppm / 10^6); wall clock. */
    uint64_t mono_base_us, mono_since_us;
    int32_t ppm;
    int64_t wall_offset_us;

    uint64_t wake_us;               /* the next planned event; UINT64_MAX: none */
    uint64_t wake_tag;              /* events with another tag are void */
    struct world_datagram **socket; /* datagrams received during a pause */
    unsigned socket_count;

    /* For a router. `config` and `keyring` are set for all, and may be changed until the router
     * starts; without a keyring in `config`, the router is alone. */
    struct node_config config;
    struct gossip_keyring keyring;
    struct node *node;                         /* NULL: not up */
    bool unadvertised;                         /* does not announce an address */
    bool calls_refused;                        /* connections to the router fail, but datagrams
                                                * arrive */
    unsigned events[NODE_REPLICATION_EVENTS];  /* counts in this life */
    char detail[NODE_REPLICATION_EVENTS][160]; /* details of the last event of each kind */
    bool has[NODE_REPLICAS_MAX];               /* reported by node_router_watch() */
};

/* --- the network ---------------------------------------------------------------------------- */

struct world_link {
    bool cut;
    uint64_t clogged_until_us; /* packets arrive afterwards */
    uint64_t narrow_until_us;  /* no large packet gets through */
    uint64_t last_us;          /* arrival of the last packet, if order is kept */
};

struct world_net {
    struct world_link *links;            /* [from * count + to] */
    uint64_t delay_min_us, delay_max_us; /* delay of each packet; default [300, 300] */
    uint64_t delay_median_us; /* not 0: the delay is lognormal around this value, as within a data
                               * centre */
    double slow;              /* factor of delay_median_us */
    double loss, duplicate, reorder, flip; /* probabilities */
    bool ordered;
    uint64_t packets, bytes; /* packets sent, and bytes with headers */
    uint64_t damaged;
    uint64_t astray; /* packets sent to an address without a node */

    /* Nodes of the same host (not 0) see each other on the host's loopback, 127.x, which other
     * hosts cannot reach. */
    unsigned *host;
    /* Node `translated` (not 0) appears at 99.x to node `translated_for`, and at the usual address
     * to all others. */
    unsigned translated, translated_for;
    /* world_virtual_address() leads to a running node, perhaps the sender: random for each packet,
     * or once for each port; in the second case answers seem to come from the virtual address. */
    enum { WORLD_VIRTUAL_NONE, WORLD_VIRTUAL_EACH, WORLD_VIRTUAL_PINNED } virtual_ip;
    uint16_t *pinned; /* per node: target of the node's port, + 1; 0: none yet */
    uint16_t *alias;  /* per address: the node's number + 1; 0: as at the start */
    /* By node; not 0: behind a translator. All others see the node at 99.N, N being this value, and
     * reach it only there. */
    uint8_t *behind;
    /* Nodes of different regions have a longer delay by far_us, one way, and lose more packets
     * (far_loss). */
    unsigned *region;
    uint64_t far_us;
    double far_loss;

    void *context;
    bool (*block)(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len);
    /* A datagram was sent to an address without a node, or from which the node has moved. */
    void (*missed)(void *context, unsigned from, const struct gossip_address *to,
                   const uint8_t *bytes);
    /* A datagram is delivered. */
    void (*tap)(void *context, struct world_node *to, const struct world_datagram *d);
};

/* --- the world ------------------------------------------------------------------------------ */

/* A test's hooks into routers; any may be NULL. */
struct world_hooks {
    void *context;
    /* Replaces the delivery: calls world_router.receive() itself. */
    void (*deliver)(void *context, struct world_node *n, struct world_datagram *d);
    void (*stepped)(void *context, struct world_node *n); /* after any step of the router */
    void (*ticked)(void *context, struct world_node *n);
    void (*event)(void *context, struct world_node *n, enum node_replication_event event,
                  struct slice member, int64_t value, struct slice detail);
    void (*replica)(void *context, struct world_node *n, unsigned replica, bool present);
    void (*chunk)(void *context, struct world_node *client, const struct world_call *c);
};

struct world {
    uint64_t now_us;
    uint64_t wall_ms; /* wall clock at 0 us */
    uint64_t trace;   /* hash of all events */
    uint64_t events;  /* taken so far */
    struct prng prng;
    struct world_queue queue; /* the context of the queue's events is the world */
    struct world_node *nodes;
    unsigned count;
    struct world_net net;
    struct world_hooks hooks;
    struct gossip_keyring keyring; /* all routers' keyring, at first */
    unsigned seeds;                /* number of first nodes used as seeds by all nodes; default 1 */
    bool checks;                   /* routers check themselves every 8 s and at the end; default
                                    * true */
    bool closing;                  /* at the end: events only free their data */
    struct world_call *calls;
    size_t call_bytes_max;  /* bytes moved by a stream at a time */
    uint64_t call_pause_us; /* least time between two moves */
    uint64_t call_stall_us; /* a stream breaks after this time without progress; default
                             * 3,000,000 */
};

/* All nodes are down. Each is configured like a daemon without options, but with a small index, and
 * named "router-NUMBER". Fields of the world may be changed before the first event. */
void world_open(struct world *w, unsigned count, uint64_t seed);
void world_close(struct world *w);

static inline uint64_t world_ms(const struct world *w)
{
    return w->now_us / 1000;
}
void world_run_until(struct world *w, uint64_t until_us);
void world_run(struct world *w, uint64_t us);
/* Runs until `done`, called every millisecond, returns true, or for at most `us`. Returns the
 * result of `done`. */
bool world_until(struct world *w, uint64_t us, bool (*done)(struct world *w));
/* Adds an event at a time `later_us` from now. */
void world_put(struct world *w, uint64_t later_us, const struct world_event *e);
bool world_chance(struct world *w, double p);
void world_trace(struct world *w, uint64_t what);

/* --- a node's life, for any program --- */

uint64_t world_mono_us(const struct world_node *n);
uint64_t world_wall_ms(const struct world_node *n);
static inline bool world_runs(const struct world_node *n)
{
    return n->up && n->paused_until_us == 0;
}
void world_up(struct world_node *n);
void world_down(struct world_node *n);
/* Runs the node after any outside event. */
void world_touch(struct world_node *n);
/* Call after a change of the time of the node's next event. */
void world_wake_plan(struct world_node *n);
/* Datagrams wait meanwhile. */
void world_pause(struct world_node *n, uint64_t until_us);
/* For `io.random` of programs. */
void world_random(struct world_node *n, void *out, size_t len);

/* --- of a router --- */

/* Begins a life: sets the seeds, and ticks once a second. */
void world_start(struct world *w, unsigned number);
/* As world_start(), but returns an error of node_create(); the router is then down. */
MUST_USE int world_try_start(struct world *w, unsigned number);
/* The router's process ends, and all state is lost. */
void world_kill(struct world *w, unsigned number);
/* The node announces a departure, and ends a little later. */
void world_leave(struct world *w, unsigned number);
static inline struct gossip *world_gossip(const struct world_node *n)
{
    return node_replication_gossip(n->node->replication);
}
static inline struct crdt_state *world_state(const struct world_node *n)
{
    return node_state_crdt(n->node->state);
}

/* --- net.c --- */

void world_net_open(struct world *w);
void world_net_close(struct world *w);
/* 10.turn.high.low: a node restarted at another address has another turn. */
struct gossip_address world_address(unsigned node, unsigned turn);
struct gossip_address world_virtual_address(void);
bool world_address_equal(const struct gossip_address *a, const struct gossip_address *b);
int world_address_node(
    const struct gossip_address *a); /* number of the node with this address; -1: none */
/* The address of node `to` as node `from` sees it. */
struct gossip_address world_seen_at(const struct world *w, unsigned from, unsigned to);
/* From now on the node sends and receives at another address. */
void world_move(struct world *w, unsigned number, unsigned address);
void world_send(struct world_node *from, const struct gossip_address *to, const uint8_t *bytes,
                size_t len);
/* Sends from another port of the node, as a stranger. */
void world_knock(struct world_node *from, const struct gossip_address *to, const uint8_t *bytes,
                 size_t len);
struct world_datagram *world_datagram_copy(const struct world_datagram *d);
/* The datagram has reached a running node. */
void world_deliver(struct world_node *n, struct world_datagram *d);
/* Sends a datagram unchanged; takes ownership. */
void world_post(struct world *w, struct world_datagram *d, unsigned to, uint64_t at_us);
uint64_t world_delay_us(struct world *w);
/* The delay of a packet between two nodes. */
uint64_t world_way_us(struct world *w, unsigned from, unsigned to);
/* The node reached by packets of node `from` to this address; -1: none. */
int world_reached(const struct world *w, unsigned from, const struct gossip_address *to);
static inline struct world_link *world_link(struct world *w, unsigned from, unsigned to)
{
    return &w->net.links[(size_t)from * w->count + to];
}
/* No link is cut, clogged or narrow any more. */
void world_heal(struct world *w);

/* --- call.c --- */

struct world_call {
    bool used;
    uint32_t tag; /* events with another tag are void */
    unsigned client, server;
    uint32_t id; /* the client's id of the call */
    uint8_t kind;
    unsigned chunks; /* chunks received */
    struct gossip_call *asks, *answers;
    struct node_serve *serve;
    bool requested, ended; /* at the server */
    uint64_t moved_us;     /* last progress */
};

void world_calls_open(struct world *w);
void world_calls_close(struct world *w);
int world_call_open(struct world_node *client, uint32_t id, const struct gossip_address *to,
                    uint8_t kind, struct slice request);
/* Breaks all calls of an ending node. */
void world_calls_of_node_end(struct world_node *n);
/* A call in flight by this client, or NULL. */
struct world_call *world_call_of(struct world *w, unsigned client);

#endif
