/* A cluster in one process: 3 to 256 routers in a world (tests/lib/world), with a network that
 * loses, repeats, delays, reorders, damages and replays packets, beside engines that restart and
 * clocks that jump. One seed decides everything, so a run can be had again.
 *
 *   node     what a router's life follows       net      what the network is like; an intruder
 *   engines  what is routed to, and probing     work     requests
 *   nemesis  what goes wrong                    model    what was ever observed
 *   oracle   what must hold after each step     rest     what must hold when all is healed
 *
 * A run has three parts: the cluster starts; `seconds` of work and trouble; then all is healed, the
 * work ends, and within a bounded time everybody must agree on exactly what was observed. A broken
 * rule prints its name, the time and the seed, and ends the process.
 */
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
};

#define SIM_MS UINT64_C(1000)
#define SIM_S  UINT64_C(1000000)

/* What goes wrong, and what that must leave intact. */
enum sim_profile {
    SIM_CALM,   /* nothing: then nothing may ever be missed, suspected or repaired */
    SIM_STRICT, /* packets only, and no anti-entropy: the stream of deltas alone must suffice */
    SIM_JOIN,   /* the same, with restarts one after another: snapshots that take long, deltas lost
                 * while they last, suspicions; nothing else may be needed to mend that */
    SIM_STORM,  /* everything */
    SIM_PRESSURE, /* everything, and indexes too small for what is observed */
    SIM_PROFILES,
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
    unsigned unadvertised; /* each so manieth node does not say where it is; 0: all do */
    unsigned seeds;        /* so many of the first nodes are everybody's */
    bool verbose;
};

/* What a node has of another one, as last seen. */
struct sim_seen {
    uint64_t epoch, seq;
    uint64_t suspected_us; /* since when it is suspected although it runs; 0: it is not */
};

/* What the oracles remember of a node. */
struct sim_record {
    uint32_t memory;           /* moves when it lost what it had observed */
    uint64_t started_us;       /* this life */
    uint64_t ready_us;         /* when it was first seen to be, in this life; 0: not yet */
    uint64_t stamp_ms;         /* the greatest wall-clock time that it ever told */
    struct gossip_stats begun; /* when work began */
    struct sim_seen *seen;     /* per node of the cluster */
    uint64_t *reported;        /* see reported.c */
    uint32_t floor_seen;
    unsigned bookings_open;
    int slot_of_engine[SIM_ENGINES_MAX]; /* -1: this router does not have it */
};

struct sim_engine {
    char name[32];
    bool up;
    bool listed; /* in the routers' configurations */
    bool removed;
    bool draining;
    uint64_t started_ms; /* wall clock */
    unsigned running;
    struct sim_log *log; /* what its process has told of its cache so far */
};

struct sim_model;

struct sim_world {
    struct world world; /* first: it is the context of its events */
    struct sim_config config;
    struct sim_record records[SIM_NODES_MAX];
    struct world_datagram *captured[SIM_CAPTURED_MAX];
    unsigned captured_count;
    struct sim_engine engines[SIM_ENGINES_MAX];
    struct sim_model *model;
    uint64_t index_buckets; /* of every node's index */
    bool measuring;         /* nothing is remembered */
    bool working;           /* requests are made */
    uint64_t steps, compared, required, rest_us;
    uint64_t requests, unroutable;
    uint64_t replays, garbage, crashes, restarts;
};

/* What is remembered of the node. */
static inline struct sim_record *sim_of(const struct world_node *n)
{
    struct sim_world *w = (struct sim_world *)(void *)n->world;
    return &w->records[n->number];
}

/* --- run.c ---------------------------------------------------------------------------------- */

/* Deltas and snapshots alone must do: there is no anti-entropy. */
static inline bool sim_pure_stream(const struct sim_world *w)
{
    return w->config.profile == SIM_STRICT || w->config.profile == SIM_JOIN;
}

/* Settings follow from the seed, but for what is not negative here. */
void sim_config_of_seed(struct sim_config *c, uint64_t seed, int profile, int nodes);
const char *sim_profile_text(enum sim_profile p);
struct sim_world *sim_world_open(const struct sim_config *config);
void sim_world_close(struct sim_world *w);
/* Everybody starts, and finds one another. */
void sim_start(struct sim_world *w);
/* The whole of it: start, trouble, rest. */
void sim_run(struct sim_world *w);
/* A rule is broken: says so and ends the process. */
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
/* Its process is gone, with everything. */
void sim_node_crash(struct sim_world *w, unsigned node);
/* It announces that it leaves, and is gone a little later. */
void sim_node_leave(struct sim_world *w, unsigned node);

/* --- net.c ---------------------------------------------------------------------------------- */

void sim_net_open(struct sim_world *w);
void sim_net_close(struct sim_world *w);
/* As calm as the profile has it. */
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
void sim_engines_close(struct sim_world *w);

/* --- events.c ------------------------------------------------------------------------------- */

/* Each engine tells events of its cache, which two routers follow, over connections with gaps. */
void sim_events_begin(struct sim_world *w);
/* The process ends, and another begins if `again`. */
void sim_events_reset(struct sim_engine *e, bool again);
/* What a node holds of the engines' own logs is a state that they went through. */
void sim_events_check(struct sim_world *w, struct world_node *n);

/* --- work.c --------------------------------------------------------------------------------- */

void sim_work_begin(struct sim_world *w);
/* One request at a node, now. `last` (may be NULL) is what it showed of its last point. */
struct sim_fact;
void sim_work_request_of(struct sim_world *w, struct world_node *n, unsigned conversation,
                         unsigned points, struct sim_fact *last);
void sim_work_request(struct sim_world *w, struct world_node *n, unsigned conversation,
                      struct sim_fact *last);

/* --- nemesis.c ------------------------------------------------------------------------------ */

void sim_nemesis_begin(struct sim_world *w);
void sim_nemesis_heal(struct sim_world *w);
/* A node has met the others and taken the first chunk of a snapshot. */
void sim_nemesis_joining(struct sim_world *w, struct world_node *n);

/* --- model.c -------------------------------------------------------------------------------- */

struct sim_fact {
    uint64_t id48;
    uint64_t replica; /* key of its name */
    uint32_t rkey;
    uint32_t generation;
    uint8_t code;
};
struct sim_model *sim_model_create(void);
void sim_model_free(struct sim_model *m);
/* Somebody observed it. */
void sim_model_add(struct sim_model *m, const struct sim_fact *f);
bool sim_model_has(const struct sim_model *m, const struct sim_fact *f);
/* Node's own observations, so that none may vanish while it lives. */
void sim_model_own(struct sim_model *m, unsigned node, uint32_t memory, const struct sim_fact *f);
void sim_model_each_own(const struct sim_model *m,
                        void (*visit)(void *context, unsigned node, uint32_t memory,
                                      const struct sim_fact *f),
                        void *context);

/* --- oracle.c ------------------------------------------------------------------------------- */

/* Cheap: after each step of a node. */
void sim_oracle_step(struct sim_world *w, struct world_node *n);
/* Dear: now and then, over everything. */
void sim_oracle_all(struct sim_world *w);
/* Everything that a node shows was observed by somebody, is not fenced and not expired. */
void sim_oracle_visible(struct sim_world *w, struct world_node *n);
/* What one has and the other has not, for whoever looks into a run that failed. */
void sim_oracle_differing_say(struct sim_world *w, const struct world_node *a,
                              const struct world_node *b, uint32_t from);
/* What comes in later than it is kept must be refused, and leave no trace. */
void sim_oracle_late(struct sim_world *w, struct world_node *n, unsigned slot, uint32_t generation);
void sim_oracle_event(struct sim_world *w, struct world_node *n, enum node_replication_event event);
/* What a node counts of packets that it took for good. */
uint64_t sim_oracle_taken(const struct world_node *n);

/* --- reported.c ----------------------------------------------------------------------------- */

/* A node's reports of others only move forward, */
void sim_reported_check(struct sim_world *w, struct world_node *n);
/* and none are kept of a router that it holds for dead. */
void sim_reported_dead_check(struct sim_world *w, struct world_node *n);
void sim_reported_open(struct sim_world *w, struct world_node *n);
void sim_reported_forget(struct sim_world *w, struct world_node *n);
void sim_reported_close(struct world_node *n);

/* --- rest.c --------------------------------------------------------------------------------- */

/* Waits until all agree; broken if that takes longer than it may. Then checks what they agree on.
 */
void sim_rest(struct sim_world *w);
/* Whether a node counts any load of that router. */
bool sim_rest_load_of(struct world_node *n, uint64_t router);
/* What everybody believes, for whoever looks into a run that failed. */
void sim_beliefs_say(struct sim_world *w);
bool sim_rest_agreed(struct sim_world *w, char *why, size_t why_size);

#endif
