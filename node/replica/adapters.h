/* Which LoRA adapters the engines hold, how much each is wanted, and what loading one takes
 * (docs/adr/0034).
 *
 * An adapter that is in none of an engine's slots is loaded before the prompt, and the one used
 * least recently, of those that no running request uses, gives way. No engine tells what is in its
 * slots, so each request that is placed is followed here, in the order of last use. Requests of
 * other routers come in with their loads (node/route/adapters.c).
 *
 * How much an adapter is wanted, 0 to 1, is how often it was asked for lately, held against the
 * adapter that just has a slot when the most wanted ones have the slots of the fleet (the
 * *marginal* one). Like goes to like: what is asked for seldom shares the slots of few replicas, so
 * that it evicts nothing that is wanted elsewhere.
 *
 * The seconds of a load are what the prompts of adapters that were not held took longer than
 * expected, against those of adapters that were: medians of the last samples, of each replica, or
 * of the fleet where it has few. They count while they are above zero.
 *
 * Adapters are named by keyed hashes, never 0. Times are milliseconds of the router's clock.
 */
#ifndef NODE_REPLICA_ADAPTERS_H
#define NODE_REPLICA_ADAPTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/replica/limits.h"

enum {
    NODE_ADAPTER_SLOTS_MAX = 128, /* followed of one replica; an engine with more has that many */
    /* Of an engine that does not say. Rather too many: what is believed to be held where it was
     * used last goes there again, which costs at most the load that it costs anywhere. */
    NODE_ADAPTER_SLOTS = 32,
    NODE_ADAPTERS_MAX = 4096, /* whose demand is followed; beyond, the least wanted give way */
};

struct node_adapters;

/* ERR_NOMEM. */
MUST_USE int node_adapters_create(struct node_adapters **out);
void node_adapters_destroy(struct node_adapters *a);
void node_adapters_check(const struct node_adapters *a);

/* --- what a replica holds ------------------------------------------------------------------- */

/* The engine has so many slots. */
void node_adapters_slots(struct node_adapters *a, unsigned replica, unsigned slots);
unsigned node_adapters_slots_of(const struct node_adapters *a, unsigned replica);
/* It is empty: its engine began anew. */
void node_adapters_forget(struct node_adapters *a, unsigned replica);
/* Another replica has this number from now on. */
void node_adapters_leave(struct node_adapters *a, unsigned replica);

/* A request that wants it is placed there, and ends there. */
void node_adapters_use(struct node_adapters *a, unsigned replica, uint32_t adapter,
                       uint64_t now_ms);
void node_adapters_release(struct node_adapters *a, unsigned replica, uint32_t adapter);
/* It was in use there at that time, for another router or as the engine says. */
void node_adapters_seen(struct node_adapters *a, unsigned replica, uint32_t adapter,
                        uint64_t at_ms);

bool node_adapters_hold(const struct node_adapters *a, unsigned replica, uint32_t adapter);

/* What it would mean to use it there. */
struct node_adapter_need {
    bool loads;    /* it is not held */
    bool waits;    /* and every slot is in use */
    double wanted; /* how much the one that gives way is; 0: a slot is free */
    double unlike; /* 0..1: how far it is from what is held there, in how much it is wanted */
};
struct node_adapter_need node_adapters_need(const struct node_adapters *a, unsigned replica,
                                            uint32_t adapter, uint64_t now_ms);
/* How many adapters are held there. */
unsigned node_adapters_held(const struct node_adapters *a, unsigned replica);

/* --- how much each is wanted ---------------------------------------------------------------- */

void node_adapters_asked(struct node_adapters *a, uint32_t adapter, uint64_t now_ms);
/* Once a second: `slots` are those of the fleet. */
void node_adapters_tick(struct node_adapters *a, uint64_t slots, uint64_t now_ms);

/* --- what loading takes --------------------------------------------------------------------- */

/* The prompt of an adapter took so much longer than its tokens should. */
void node_adapters_took(struct node_adapters *a, unsigned replica, bool loaded, double seconds);
double node_adapters_load_s(const struct node_adapters *a, unsigned replica);

#endif
