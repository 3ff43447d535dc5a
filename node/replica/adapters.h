/* LoRA adapters: the adapters in each engine's slots, the demand for each adapter, and the time
 * that a load takes (docs/adr/0034).
 *
 * If a prompt's adapter has no slot, the engine loads the adapter before it computes the prompt. If
 * all slots are taken, the engine evicts the least recently used adapter without a running request.
 * No engine reports the contents of the slots, so this table follows each placed request, in the
 * order of last use. Other routers' requests are known from the loads that those routers report
 * (node/route/adapters.c).
 *
 * An adapter's demand is a number from 0 to 1. It is 1/2 if recent requests for the adapter were as
 * many as for the *marginal* adapter, and more if they were more. If the fleet's slots went to the
 * most requested adapters, the marginal adapter would be the last with a slot. Adapters of similar
 * demand share replicas: rare adapters share the slots of few replicas, and so evict no popular
 * adapter elsewhere.
 *
 * The time of a load is learned for each replica from the last prompts with an adapter. It is the
 * median extra time of prompts whose adapter had to be loaded, less the median extra time of the
 * others. A result below zero counts as zero. A replica with few samples has the median of the
 * fleet's load times.
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
    /* Slots assumed for an engine that reports no number. Too high is better than too low: requests
     * then return to the last replica with their adapter. If the adapter must be loaded again, the
     * load costs no more there than elsewhere. */
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
/* Forgets everything about replica number `replica`: the number now belongs to another replica. */
void node_adapters_leave(struct node_adapters *a, unsigned replica);

/* node_adapters_use(): a request with the adapter was placed at the replica.
 * node_adapters_release(): the request ended. */
void node_adapters_use(struct node_adapters *a, unsigned replica, uint32_t adapter,
                       uint64_t now_ms);
void node_adapters_release(struct node_adapters *a, unsigned replica, uint32_t adapter);
/* Another router's report or the engine's says that the replica used the adapter at `at_ms`. */
void node_adapters_seen(struct node_adapters *a, unsigned replica, uint32_t adapter,
                        uint64_t at_ms);

bool node_adapters_hold(const struct node_adapters *a, unsigned replica, uint32_t adapter);

/* The consequences of using an adapter at a replica. */
struct node_adapter_need {
    bool loads;    /* the adapter has no slot */
    bool waits;    /* the adapter has no slot, and all slots are in use */
    double wanted; /* demand for the adapter that would be evicted; 0: none would be */
    double unlike; /* 0..1: distance between the adapter's demand and the mean demand of the
                    * adapters in the slots; 0 if none would be evicted */
};
struct node_adapter_need node_adapters_need(const struct node_adapters *a, unsigned replica,
                                            uint32_t adapter, uint64_t now_ms);
/* Number of adapters with a slot at the replica. */
unsigned node_adapters_held(const struct node_adapters *a, unsigned replica);

/* --- demand for each adapter ---------------------------------------------------------------- */

void node_adapters_asked(struct node_adapters *a, uint32_t adapter, uint64_t now_ms);
/* Computes demands and the fleet's load time anew; called once a second. `slots`: number of slots
 * of the whole fleet. */
void node_adapters_tick(struct node_adapters *a, uint64_t slots, uint64_t now_ms);

/* --- what loading takes --------------------------------------------------------------------- */

/* A prompt with an adapter took `seconds` longer than expected for the prompt's tokens. `loaded`:
 * the adapter had to be loaded. */
void node_adapters_took(struct node_adapters *a, unsigned replica, bool loaded, double seconds);
double node_adapters_load_s(const struct node_adapters *a, unsigned replica);

#endif
