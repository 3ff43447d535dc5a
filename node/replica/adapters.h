/* LoRA adapters: the adapters in each engine's slots, the demand for each adapter, and the time of
 * a load (docs/adr/0034).
 *
 * An engine loads an adapter without a slot before the prompt. It evicts the least recently used
 * adapter without a running request. No engine reports the contents of the slots, so this table
 * follows each placed request, in the order of last use. Other routers' requests come in with their
 * reported loads (node/route/adapters.c).
 *
 * An adapter's demand, 0 to 1, is the recent rate of requests, relative to the *marginal* adapter:
 * the last adapter with a slot if the fleet's slots go to the adapters with the most demand.
 * Adapters of similar demand share replicas: rare adapters share the slots of few replicas, and so
 * evict no popular adapter elsewhere.
 *
 * The seconds of a load are the extra time of prompts whose adapter had to be loaded, compared with
 * prompts whose adapter had a slot. Both are medians of the last samples, per replica, or of the
 * fleet if the replica has few. A result below zero counts as zero.
 *
 * Adapters are named by keyed hashes, never 0. Times are milliseconds of the router's clock. */
#ifndef NODE_REPLICA_ADAPTERS_H
#define NODE_REPLICA_ADAPTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/replica/limits.h"

enum {
    NODE_ADAPTER_SLOTS_MAX = 128, /* most slots followed at a replica; further slots of an engine
                                   * are ignored */
    /* Slots assumed for an engine without a reported number. Too high is better than too low:
     * requests then return to the last replica with their adapter. If the adapter must be loaded
     * again, the load costs no more there than elsewhere. */
    NODE_ADAPTER_SLOTS = 32,
    NODE_ADAPTERS_MAX = 4096, /* adapters with tracked demand; new adapters replace those with the
                               * least demand */
};

struct node_adapters;

/* ERR_NOMEM. */
MUST_USE int node_adapters_create(struct node_adapters **out);
void node_adapters_destroy(struct node_adapters *a);
void node_adapters_check(const struct node_adapters *a);

/* --- what a replica holds ------------------------------------------------------------------- */

/* Sets the engine's number of slots; 0: no change. */
void node_adapters_slots(struct node_adapters *a, unsigned replica, unsigned slots);
unsigned node_adapters_slots_of(const struct node_adapters *a, unsigned replica);
/* The replica's engine restarted: all slots are empty. */
void node_adapters_forget(struct node_adapters *a, unsigned replica);
/* The number belongs to another replica from now on. */
void node_adapters_leave(struct node_adapters *a, unsigned replica);

/* A request for the adapter is placed at the replica, or ends there. */
void node_adapters_use(struct node_adapters *a, unsigned replica, uint32_t adapter,
                       uint64_t now_ms);
void node_adapters_release(struct node_adapters *a, unsigned replica, uint32_t adapter);
/* The replica used the adapter at `at_ms`, for another router or according to the engine's
 * report. */
void node_adapters_seen(struct node_adapters *a, unsigned replica, uint32_t adapter,
                        uint64_t at_ms);

bool node_adapters_hold(const struct node_adapters *a, unsigned replica, uint32_t adapter);

/* The consequences of using an adapter at a replica. */
struct node_adapter_need {
    bool loads;    /* the adapter has no slot */
    bool waits;    /* the adapter has no slot, and all slots are in use */
    double wanted; /* demand for the adapter to be evicted; 0: a slot is free */
    double unlike; /* 0..1: distance between the adapter's demand and the demand of the adapters in
                    * the slots */
};
struct node_adapter_need node_adapters_need(const struct node_adapters *a, unsigned replica,
                                            uint32_t adapter, uint64_t now_ms);
/* Number of adapters with a slot at the replica. */
unsigned node_adapters_held(const struct node_adapters *a, unsigned replica);

/* --- demand for each adapter ---------------------------------------------------------------- */

void node_adapters_asked(struct node_adapters *a, uint32_t adapter, uint64_t now_ms);
/* Called once a second. `slots` is the sum over the fleet. */
void node_adapters_tick(struct node_adapters *a, uint64_t slots, uint64_t now_ms);

/* --- what loading takes --------------------------------------------------------------------- */

/* A prompt with an adapter took `seconds` longer than expected for the prompt's tokens. `loaded`:
 * the adapter had to be loaded. */
void node_adapters_took(struct node_adapters *a, unsigned replica, bool loaded, double seconds);
double node_adapters_load_s(const struct node_adapters *a, unsigned replica);

#endif
