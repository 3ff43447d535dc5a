/* A cluster in a single process: 3 to 256 routers in a world (tests/lib/world). The network loses,
 * repeats, delays, reorders, damages and replays packets, engines restart, and clocks jump. The
 * seed decides everything, so a run can be repeated.
 *
 *   node     the life of a router                 net      the network; an intruder
 *   engines  the replicas, and probing            work     requests
 *   nemesis  the troubles                         profile  their kinds and rates
 *   book     observations, and what follows       reported routers' reports of each other
 *   oracle   rules after each step                rest     rules after healing
 *
 * A run has three parts: the cluster starts; `seconds` of work and trouble; then everything is
 * healed, the work ends, and within a bounded time all routers must agree on exactly the
 * observations. A broken rule prints the rule's name, the time and the seed, and ends the
 * process. */
#ifndef TESTS_SIM_SIM_H
#define TESTS_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bug.h"
#include "base/prng.h"
#include "gossip/keyring.h"
#include "node/node.h"
#include "tests/lib/world/world.h"

enum {
    SIM_NODES_MAX = 256,
    SIM_ENGINES_MAX = 64,
    SIM_POINTS_MAX = 96,    /* of a prompt */
    SIM_CAPTURED_MAX = 512, /* datagrams kept for replay */
    SIM_JUMPS_MAX = 16,
    SIM_RETIRED_MAX = 1024, /* names of engines that are gone */
};

#define SIM_MS UINT64_C(1000)
#define SIM_S  UINT64_C(1000000)

/* The troubles of a run, and the guarantees that must survive. */
enum sim_profile {
    SIM_CALM,     /* none: then nothing may ever be missed, suspected or repaired */
    SIM_STRICT,   /* packets only, and no anti-entropy: the stream of deltas alone must suffice */
    SIM_JOIN,     /* as SIM_STRICT, with restarts one after another: long snapshots, deltas lost
                 * meanwhile, suspicions; no other repair may be needed */
    SIM_STORM,    /* everything */
    SIM_PRESSURE, /* everything, and indexes smaller than the observations need */
    SIM_LONG,     /* everything, seldom, for an hour: keys, members and observations grow old */
    SIM_ONE_SEED, /* everything, no node announces an address, and addresses change */
    SIM_WAN,      /* two regions, or every node far from every other; half of the runs without
                   * trouble: then no node may be suspected */
    SIM_CHURN,    /* replicas are replaced, each by a replica with a new name */
    SIM_BUILDS,   /* routers of several versions of the protocol, some without a common version */
    SIM_PROFILES,
    SIM_SERVICE = SIM_PROFILES, /* whole services (tests/sim/service), never chosen by the seed */
    SIM_NAMES,                  /* number of profile names */
};

struct sim_config {
    uint64_t seed;
    unsigned nodes;
    unsigned engines;
    unsigned seconds; /* of work and trouble */
    enum sim_profile profile;
    unsigned requests_s;   /* in the whole cluster */
    uint32_t relay_above;  /* 0: gossip's own */
    uint64_t ring_bytes;   /* 0: gossip's own */
    uint32_t reconcile_us; /* 0: node's own */
    uint64_t index_bytes;
    uint32_t generation_ms;
    uint32_t ttl_ms;
    uint64_t check_every;  /* steps between full checks of a node */
    double loss;           /* of every packet, always; for measuring */
    bool spread_start;     /* nodes start over several seconds */
    uint32_t forget_us;    /* 0: gossip's own */
    uint32_t away_ms_max;  /* absence of a router */
    bool clocks_rise;      /* no clock is set back while the router is away */
    double elsewhere;      /* chance of a return at another address */
    bool far_all;          /* each node is far from every other */
    bool quiet;            /* no trouble beyond the network's usual trouble */
    unsigned unadvertised; /* 1 node in `unadvertised` does not announce an address; 0: all do */
    unsigned seeds;        /* the first `seeds` nodes are all nodes' seeds */
    bool verbose;
};

/* A node's view of another node, as last seen. */
struct sim_seen {
    uint64_t epoch, seq;
    uint64_t suspected_us;      /* since when suspected although running; 0: not */
    uint64_t deaf_seq, deaf_us; /* no news of the node since then, although there was some */
    struct gossip_address at;   /* last known address */
    enum gossip_state state;
    uint64_t incarnation;
    uint64_t lived_us;    /* last time alive to this node, or last change of either */
    uint64_t at_since_us; /* since when `at` is known */
    uint64_t
        reports_us; /* last time with the same reports of that node as the node itself; 0: never */
};

/* The oracles' record of a node. */
struct sim_record {
    uint32_t generation;                      /* greatest since observations were last lost */
    bool configured[SIM_ENGINES_MAX];         /* the node's own configuration names the engine */
    unsigned turn_of_engine[SIM_ENGINES_MAX]; /* name of the engine that the node knows */
    uint64_t started_us;                      /* this life */
    uint64_t ready_us;                        /* first seen ready in this life; 0: not yet */
    uint64_t message_us;                      /* last message of anti-entropy received; 0: never */
    uint64_t gone_us;                         /* end of the process; 0: up */
    uint64_t resumed_us;                      /* end of the last pause */
    uint64_t nonsense_us;                     /* time of the last nonsense; 0: never */
    int64_t off_ms; /* cluster time minus the world's clock, as last seen */
    struct sim_jump {
        uint64_t at_us;
        int64_t from_ms;
    } jumps[SIM_JUMPS_MAX]; /* recent values of off_ms before jumps */
    unsigned jumps_count;
    bool behind;                          /* the wall clock is behind what others remember */
    uint64_t messages_out;                /* sent in this life */
    uint64_t messages_taken;              /* accepted by the others */
    uint64_t messages_again;              /* maybe accepted twice: in two lives of a receiver */
    const struct gossip_address *hearing; /* the source of the datagram being read */
    uint64_t stamp_ms;                    /* the greatest wall-clock time ever announced */
    struct gossip_stats begun;            /* when work began */
    struct sim_seen *seen;                /* per node of the cluster */
    uint64_t *reported;                   /* see reported.c */
    uint32_t floor_seen;
    unsigned bookings_open;
    int slot_of_engine[SIM_ENGINES_MAX]; /* -1: missing at this router */
};

struct sim_engine {
    char name[32];
    unsigned turn; /* number of earlier names */
    bool up;
    bool listed; /* in the routers' configurations */
    bool removed;
    bool draining;
    uint64_t started_ms; /* wall clock */
    unsigned running;
};

struct sim_book;

struct sim_world {
    struct world world; /* first: it is the context of its events */
    struct sim_config config;
    struct sim_record records[SIM_NODES_MAX];
    struct world_datagram *captured[SIM_CAPTURED_MAX];
    unsigned captured_count;
    struct sim_engine engines[SIM_ENGINES_MAX];
    struct sim_retired {
        char name[32];
        unsigned engine, turn;
        uint64_t named_us; /* last time when a router named it */
    } retired[SIM_RETIRED_MAX];
    unsigned retired_count;
    struct sim_book *book;
    uint64_t index_buckets; /* of every node's index */
    bool nonsense;          /* a router sent nonsense */
    uint64_t looked_us;
    bool measuring; /* nothing is recorded */
    bool working;   /* requests are made */
    uint64_t steps, compared, required, rest_us;
    uint64_t requests, unroutable;
    uint64_t replays, garbage, crashes, restarts;
};

/* The record of the node. */
static inline struct sim_record *sim_of(const struct world_node *n)
{
    struct sim_world *w = (struct sim_world *)(void *)n->world;
    return &w->records[n->number];
}

/* --- run.c ---------------------------------------------------------------------------------- */

/* Deltas and snapshots alone must suffice: there is no anti-entropy. */
static inline bool sim_pure_stream(const struct sim_world *w)
{
    return w->config.profile == SIM_STRICT || w->config.profile == SIM_JOIN;
}

/* Settings follow from the seed, except for parameters that are not negative. */
void sim_config_of_seed(struct sim_config *c, uint64_t seed, int profile, int nodes);
struct sim_world *sim_world_open(const struct sim_config *config);
void sim_world_close(struct sim_world *w);
/* All nodes start, and find one another. */
void sim_start(struct sim_world *w);
/* The whole run: start, trouble, rest. */
void sim_run(struct sim_world *w);
/* A rule is broken: prints which, and ends the process. */
_Noreturn void sim_broken(const struct sim_world *w, const char *rule, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sim_say(const struct sim_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static inline uint64_t sim_wall_ms(const struct sim_world *w)
{
    return w->world.wall_ms + world_ms(&w->world);
}

/* --- node.c --------------------------------------------------------------------------------- */

void sim_nodes_open(struct sim_world *w);
/* A router begins a life. */
void sim_node_start(struct sim_world *w, unsigned node, bool elsewhere);
/* The router's process is gone, with all state. */
void sim_node_crash(struct sim_world *w, unsigned node);
/* The node announces its departure, and is gone a little later. */
void sim_node_leave(struct sim_world *w, unsigned node);

/* --- net.c ---------------------------------------------------------------------------------- */

void sim_net_open(struct sim_world *w);
void sim_net_close(struct sim_world *w);
/* Makes the network as calm as in the profile. */
void sim_net_heal(struct sim_world *w);
/* Keeps a datagram now and then. */
void sim_net_capture(struct sim_world *w, const struct world_datagram *d);
/* Puts a captured or a made-up datagram on the wire. */
void sim_net_replay(struct sim_world *w);
void sim_net_garbage(struct sim_world *w, unsigned to);

/* --- engines.c ------------------------------------------------------------------------------ */

void sim_engines_open(struct sim_world *w);
/* A router begins with some of the configured engines. */
void sim_engines_configure(struct sim_world *w, struct world_node *n);
void sim_engines_probe_begin(struct sim_world *w, struct world_node *n);
int sim_engine_of_slot(const struct sim_world *w, const struct world_node *n, unsigned slot);
void sim_engine_restart(struct sim_world *w, unsigned engine);
/* An engine of another name takes the engine's place: routers follow at their next probe. */
void sim_engine_replace(struct sim_world *w, unsigned engine);
/* True if the name belonged to an engine that is gone. */
bool sim_engine_retired(const struct sim_world *w, struct slice name);
/* Checks that names that no router names are forgotten in time. */
void sim_engines_names_check(struct sim_world *w, struct world_node *n);
void sim_engines_look(struct sim_world *w);

/* --- work.c --------------------------------------------------------------------------------- */

void sim_work_begin(struct sim_world *w);
/* A request at a node, now. `last` (may be NULL) is the fact shown by the last point. */
struct sim_fact {
    uint64_t id48;
    uint8_t code;
    unsigned engine;
};
void sim_work_request_of(struct sim_world *w, struct world_node *n, unsigned conversation,
                         unsigned points, struct sim_fact *last);
void sim_work_request(struct sim_world *w, struct world_node *n, unsigned conversation,
                      struct sim_fact *last);

/* --- profile.c ------------------------------------------------------------------------------ */

const char *sim_profile_text(enum sim_profile p);
/* Time limit for agreement after healing. */
uint64_t sim_patience_us(const struct sim_world *w);
/* Troubles begin, one after the other, many of them at the same time. */
void sim_trouble_begin(struct sim_world *w);
/* All is well again, except for the nodes that stay dead. */
void sim_trouble_end(struct sim_world *w);

/* --- nemesis.c ------------------------------------------------------------------------------ */

unsigned sim_any_node(struct sim_world *w);
uint64_t sim_between(struct sim_world *w, uint64_t low, uint64_t high);
void sim_later(struct sim_world *w, uint64_t us, void (*happen)(void *, struct world_event *),
               unsigned node, uint64_t a);
/* Each trouble ends by itself. */
void sim_bad_weather(struct sim_world *w);
void sim_partition(struct sim_world *w, uint64_t length_us);
void sim_clog_link(struct sim_world *w);
void sim_narrow_one(struct sim_world *w);
void sim_intruder(struct sim_world *w);
void sim_node_goes(struct sim_world *w, bool politely);
void sim_pause_one(struct sim_world *w, uint64_t least_ms, uint64_t most_ms);
void sim_clock_moves(struct sim_world *w);
/* A node restarts with a clock that is ahead, and is ready before any message from the others. */
void sim_clock_ahead(struct sim_world *w);
void sim_engine_trouble(struct sim_world *w);
void sim_rejoin(struct sim_world *w);
/* A node that holds the key sends malformed frames, as a broken build would. */
void sim_nonsense(struct sim_world *w);
/* The translator in front of a node changes the node's address. */
void sim_translated_anew(struct sim_world *w);
/* An event: the node is back, if the life still has the same number. */
void sim_start_again(void *context, struct world_event *e);
/* A node has met the others and taken the first chunk of a snapshot. */
void sim_nemesis_joining(struct sim_world *w, struct world_node *n);

/* --- book.c --------------------------------------------------------------------------------- */

struct sim_book *sim_book_create(void);
void sim_book_free(struct sim_book *b);
/* An engine's process begins; a router has read the start time. */
void sim_book_started(struct sim_world *w, unsigned engine);
/* The engine's later processes belong to another engine. */
void sim_book_replaced(struct sim_world *w, unsigned engine);
void sim_book_read(struct sim_world *w, const struct world_node *n, unsigned engine);
/* The node's readings count from now on: start times are no news before the node has joined. */
void sim_book_joined(struct sim_world *w, const struct world_node *n);
/* The node has lost everything; in a `new_life` also the start times read. */
void sim_book_forget(struct sim_world *w, const struct world_node *n, bool new_life);
/* The node's clock was set to a wrong time, and observations made at a right time move along. */
void sim_book_set(struct sim_world *w, const struct world_node *n);
/* The node's clock, which had been in generation `ahead`, was set back: observations from what is
 * now the future may be there, moved back as much. */
void sim_book_set_back(struct sim_world *w, const struct world_node *n, uint32_t ahead);
/* The node may have forgotten the engine's name, if no router named the engine for long in the
 * node's view. */
void sim_book_dropped(struct sim_world *w, const struct world_node *n, unsigned engine);
/* A router has sent the prompt to the engine, now. */
void sim_book_observed(struct sim_world *w, struct world_node *n, unsigned engine, uint64_t id48,
                       uint8_t code);
/* A node shows the observation for the process with start time `started`. Returns true if a router
 * made this observation. */
bool sim_book_seen(struct sim_world *w, const struct world_node *n, unsigned engine,
                   uint64_t started, uint64_t id48, uint8_t code, uint32_t generation);
/* Checks that the node still has the observations of this life. */
void sim_book_kept(struct sim_world *w, struct world_node *n);
/* Checks that all nodes have the observations of every living node. */
void sim_book_spread(struct sim_world *w);
/* Everything is known of the engines' last processes. */
void sim_book_processes(struct sim_world *w, struct world_node *n);
/* By the node's cluster time: the present generation, and the oldest to be kept (under pressure,
 * the oldest that the node claims to keep). */
struct sim_generations {
    uint32_t least, most; /* they differ just after a clock was set back */
} sim_generation(const struct world_node *n);
uint32_t sim_floor(const struct world_node *n);

/* --- oracle.c ------------------------------------------------------------------------------- */

/* Cheap: after each step of a node. */
void sim_oracle_step(struct sim_world *w, struct world_node *n);
/* Expensive: now and then, over everything. */
void sim_oracle_all(struct sim_world *w);
/* Checks that all entries that a node shows were observed, and are neither fenced nor expired. */
void sim_oracle_visible(struct sim_world *w, struct world_node *n);
/* Prints the entries that only one of the two has, to examine a failed run. */
void sim_oracle_differing_say(struct sim_world *w, const struct world_node *a,
                              const struct world_node *b, uint32_t from);
/* Checks that an observation too old to keep is refused, and leaves no trace. */
void sim_oracle_late(struct sim_world *w, struct world_node *n, unsigned slot, uint32_t generation);
/* The node's cluster time was `from_ms` off the world's clock until now. */
void sim_oracle_jumped(struct sim_world *w, struct world_node *n, int64_t from_ms);
/* `of_member`: the node takes over a member's time, on joining. */
void sim_oracle_event(struct sim_world *w, struct world_node *n, enum node_replication_event event,
                      bool of_member, int64_t value);
/* -1: no node's. */
int sim_number_of(const struct sim_world *w, uint64_t node);

/* --- heard.c -------------------------------------------------------------------------------- */

/* A datagram reaches a router. */
void sim_heard_deliver(struct sim_world *w, struct world_node *n, struct world_datagram *d);
/* A datagram goes to an address where its target is not. */
void sim_heard_missed(void *context, unsigned from, const struct gossip_address *to,
                      const uint8_t *bytes);
/* A member's state changes in the router's view. */
void sim_heard_event(struct sim_world *w, struct world_node *n, struct slice member);
/* Every now and then, `passed_us` after the last time. */
void sim_heard_look(struct sim_world *w, struct world_node *n, uint64_t passed_us);

/* --- reported.c ----------------------------------------------------------------------------- */

/* Checks that a node's reports of others only move forward. */
void sim_reported_check(struct sim_world *w, struct world_node *n);
/* Checks that no report of a router believed dead is kept. */
void sim_reported_dead_check(struct sim_world *w, struct world_node *n);
/* Notes the routers whose reports are the same everywhere. */
void sim_reported_look(struct sim_world *w);
/* True if each router's reports were the same at each other router a short time ago, not
 * necessarily all at one moment: in a wide network some report is always under way. */
bool sim_reported_agreed(struct sim_world *w, char *why, size_t why_size);
/* Checks that after healing reports match their routers' configurations and views. */
void sim_reported_rest_check(struct sim_world *w, struct world_node *n);
void sim_reported_open(struct sim_world *w, struct world_node *n);
void sim_reported_forget(struct sim_world *w, struct world_node *n);
void sim_reported_close(struct world_node *n);

/* --- rest.c --------------------------------------------------------------------------------- */

/* Waits until all agree; broken if that takes too long. Then checks the agreed state. */
void sim_rest(struct sim_world *w);
/* True if a node counts any load of `router`. */
bool sim_rest_load_of(struct world_node *n, uint64_t router);
/* Prints all nodes' beliefs, to examine a failed run. */
void sim_beliefs_say(struct sim_world *w);
/* To be called repeatedly: remembers earlier sights of distant routers' reports. */
bool sim_rest_agreed(struct sim_world *w, char *why, size_t why_size);

#endif
