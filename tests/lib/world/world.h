/* A world in virtual time, in one thread: nodes, the network between them, and a queue of
 * events. All chance is drawn from one seed, so the same seed gives the same run, as `trace`
 * shows.
 *
 *   queue.h    events and their times
 *   memory.h   its own memory never runs out
 *   world.c    time; nodes that come, pause and go
 *   net.c      datagrams: delay, loss, copies, damage, cuts, translated addresses
 *   router.c   a node that is a whole router: struct node, its clocks, its seeds
 *   call.c     calls between routers: byte streams that stall and break
 *   use.h      operations of tests on routers: replicas, prompts, choices
 *
 * A node runs a *program*: a whole router, or a test's own (a bare gossip, in
 * tests/lib/gossip_net.h). The unit tests of gossip, cluster and routing, the bench of routing
 * (tests/bench/quality) and the simulator (tests/sim) all run on this. */
#ifndef TESTS_LIB_WORLD_WORLD_H
#define TESTS_LIB_WORLD_WORLD_H

#include "base/prng.h"
#include "gossip/keyring.h"
#include "node/node.h"
#include "tests/lib/world/queue.h"

enum {
    WORLD_PORT = 7000,
    WORLD_SOCKET_MAX = 4096, /* datagrams that wait for a node that is paused */
    WORLD_SEEDS_MAX = 3,
    WORLD_LEAVE_US = 500000, /* from its leave message until a router is gone */
    WORLD_HEADERS = 28,      /* bytes of IPv4 and UDP */
};

struct world;
struct world_node;
struct world_call;

struct world_datagram {
    unsigned from;
    uint32_t from_life;
    struct gossip_address source; /* as the target sees it */
    struct gossip_address target;
    bool damaged;
    uint32_t delivered_to_life; /* of its target; 0: not delivered yet. Lives start at 1. */
    size_t len;
    uint8_t bytes[];
};

/* --- nodes ---------------------------------------------------------------------------------- */

/* The program of a node. Times are the node's own. */
struct world_program {
    void (*receive)(struct world_node *n, struct world_datagram *d);
    void (*run)(struct world_node *n); /* called when due, or after an event */
    uint64_t (*due_us)(const struct world_node *n);
    void (*late)(struct world_node *n, uint64_t late_us); /* paused for so long; or NULL */
};
extern const struct world_program world_router;

struct world_node {
    struct world *world;
    unsigned number;
    char name[32];
    uint64_t id; /* gossip_node_id() of its name */
    bool up;
    bool leaving;
    uint32_t life;
    unsigned ticks;           /* of a router, in all of its lives */
    uint64_t paused_until_us; /* 0: runs */
    struct gossip_address address;
    struct prng random; /* of this life */
    const struct world_program *program;
    void *process; /* of a program that is no router */

    /* Its monotonic clock = base + (now - since) * (1 + ppm / 10^6); its wall clock. */
    uint64_t mono_base_us, mono_since_us;
    int32_t ppm;
    int64_t wall_offset_us;

    uint64_t wake_us;               /* the next planned event; UINT64_MAX: none */
    uint64_t wake_tag;              /* events with another tag are void */
    struct world_datagram **socket; /* while it is paused */
    unsigned socket_count;

    /* For a router. `config` and `keyring` are set for all, and may be changed until the router
     * starts; without a keyring in `config` it knows no other router. */
    struct node_config config;
    struct gossip_keyring keyring;
    struct node *node;                         /* NULL: not up */
    bool unadvertised;                         /* does not announce its address */
    bool calls_refused;                        /* its datagrams arrive, connections to it do not */
    unsigned events[NODE_REPLICATION_EVENTS];  /* of this life */
    char detail[NODE_REPLICATION_EVENTS][160]; /* of the last one */
    bool has[NODE_REPLICAS_MAX];               /* reported by node_router_watch() */
};

/* --- the network ---------------------------------------------------------------------------- */

struct world_link {
    bool cut;
    uint64_t clogged_until_us; /* packets arrive afterwards */
    uint64_t narrow_until_us;  /* no large packet gets through */
    uint64_t last_us;          /* arrival of the last packet, where order is kept */
};

struct world_net {
    struct world_link *links;            /* [from * count + to] */
    uint64_t delay_min_us, delay_max_us; /* of each packet; [300, 300] */
    uint64_t delay_median_us; /* not 0: lognormal around it instead, as within one data centre */
    double slow;              /* factor of that */
    double loss, duplicate, reorder, flip; /* chances */
    bool ordered;
    uint64_t packets, bytes; /* sent, headers counted */
    uint64_t damaged;
    uint64_t astray; /* sent to an address that leads nowhere from there */

    /* Nodes of one host (not 0) see each other on its loopback, 127.x, which leads nowhere else. */
    unsigned *host;
    /* A node (not 0) that this one sees at 99.x, not where all others do. */
    unsigned translated, translated_for;
    /* world_virtual_address() leads to a running node, perhaps the sender: drawn for each packet,
     * or once for each port (then answers seem to come from that address). */
    enum { WORLD_VIRTUAL_NONE, WORLD_VIRTUAL_EACH, WORLD_VIRTUAL_PINNED } virtual_ip;
    uint16_t *pinned; /* per node: target of its own port, + 1; 0: not drawn yet */
    uint16_t *alias;  /* per address: the node there, + 1; 0: as at the start */
    /* A node (not 0) behind a translator: all others see the node at 99.so many, and reach it only
     * there. */
    uint8_t *behind;
    /* Nodes of different regions are farther apart by so much, one way, and lose more. */
    unsigned *region;
    uint64_t far_us;
    double far_loss;

    void *context;
    bool (*block)(void *context, unsigned from, unsigned to, const uint8_t *bytes, size_t len);
    /* A datagram was sent to where its target is not, or not any more. */
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
    uint64_t wall_ms; /* at 0 us */
    uint64_t trace;   /* hash of all that happened */
    uint64_t events;  /* taken so far */
    struct prng prng;
    struct world_queue queue; /* the context of its events is the world */
    struct world_node *nodes;
    unsigned count;
    struct world_net net;
    struct world_hooks hooks;
    struct gossip_keyring keyring; /* of all, at first */
    unsigned seeds;                /* so many of the first nodes are all nodes' seeds; [1] */
    bool checks;                   /* routers check themselves every 8 s and at the end; [true] */
    bool closing;                  /* at the end: events only free their data */
    struct world_call *calls;
    size_t call_bytes_max;  /* that a stream moves at a time, */
    uint64_t call_pause_us; /* so often at most */
    uint64_t call_stall_us; /* and breaks after so long without progress; [3,000,000] */
};

/* All nodes are down. Each is configured as a daemon is without options, but for a small index, and
 * named "router-NUMBER". Fields of the world may be changed as long as nothing has happened. */
void world_open(struct world *w, unsigned count, uint64_t seed);
void world_close(struct world *w);

static inline uint64_t world_ms(const struct world *w)
{
    return w->now_us / 1000;
}
void world_run_until(struct world *w, uint64_t until_us);
void world_run(struct world *w, uint64_t us);
/* Runs until `done`, called every millisecond, or for at most `us`. Returns the result of
 * `done`. */
bool world_until(struct world *w, uint64_t us, bool (*done)(struct world *w));
/* An event so much later. */
void world_put(struct world *w, uint64_t later_us, const struct world_event *e);
bool world_chance(struct world *w, double p);
void world_trace(struct world *w, uint64_t what);

/* --- a node's life, whatever its program is --- */

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
/* The node's next event may have another time than before. */
void world_wake_plan(struct world_node *n);
/* Datagrams wait meanwhile. */
void world_pause(struct world_node *n, uint64_t until_us);
/* For `io.random` of programs. */
void world_random(struct world_node *n, void *out, size_t len);

/* --- of a router --- */

/* Begins a life: sets its seeds, and ticks once a second. */
void world_start(struct world *w, unsigned number);
/* The same, but an error of node_create() is returned, and the router is down. */
MUST_USE int world_try_start(struct world *w, unsigned number);
/* Its process is gone, with all its state. */
void world_kill(struct world *w, unsigned number);
/* The node announces its departure, and is gone a little later. */
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
/* 10.turn.high.low: a node that comes back elsewhere has another turn. */
struct gossip_address world_address(unsigned node, unsigned turn);
struct gossip_address world_virtual_address(void);
bool world_address_equal(const struct gossip_address *a, const struct gossip_address *b);
int world_address_node(
    const struct gossip_address *a); /* number of the node with that address; -1: none */
/* The address of a node as another one sees it. */
struct gossip_address world_seen_at(const struct world *w, unsigned from, unsigned to);
/* From now on the node sends from, and gets what is sent to, another address. */
void world_move(struct world *w, unsigned number, unsigned address);
void world_send(struct world_node *from, const struct gossip_address *to, const uint8_t *bytes,
                size_t len);
/* The same from a port of its own. */
void world_knock(struct world_node *from, const struct gossip_address *to, const uint8_t *bytes,
                 size_t len);
struct world_datagram *world_datagram_copy(const struct world_datagram *d);
/* The datagram has reached a running node. */
void world_deliver(struct world_node *n, struct world_datagram *d);
/* Puts a datagram on the wire unchanged; takes ownership. */
void world_post(struct world *w, struct world_datagram *d, unsigned to, uint64_t at_us);
uint64_t world_delay_us(struct world *w);
/* The same, from one node to another. */
uint64_t world_way_us(struct world *w, unsigned from, unsigned to);
/* The node that receives packets from that node to that address; -1: none. */
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
    uint32_t id; /* the client's */
    uint8_t kind;
    unsigned chunks; /* taken */
    struct gossip_call *asks, *answers;
    struct node_serve *serve;
    bool requested, ended; /* at the server */
    uint64_t moved_us;     /* last progress */
};

void world_calls_open(struct world *w);
void world_calls_close(struct world *w);
int world_call_open(struct world_node *client, uint32_t id, const struct gossip_address *to,
                    uint8_t kind, struct slice request);
/* Breaks all calls of a node that is about to go. */
void world_calls_of_node_end(struct world_node *n);
/* A call of that client that is under way, or NULL. */
struct world_call *world_call_of(struct world *w, unsigned client);

#endif
