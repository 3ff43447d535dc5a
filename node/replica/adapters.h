/* LoRA adapters: the adapters that each engine has in a slot, the demand for each adapter, and the
 * time of a load (docs/adr/0034).
 *
 * An engine loads an adapter without a slot before the prompt. It evicts the least recently used
 * adapter that no running request uses. No engine reports its slots, so this table follows each
 * placed request, in the order of last use. Requests of other routers come in with their loads
 * (node/route/adapters.c).
 *
 * An adapter's demand, 0 to 1, is its recent rate of requests, relative to the *marginal* adapter.
 * That is the last one with a slot if the fleet's slots go to the adapters with the most demand.
 * Adapters of similar demand share replicas: rare adapters share the slots of few replicas, so that
 * they evict no popular one elsewhere.
 *
 * The seconds of a load are the extra time of prompts that needed a load of their adapter, compared
 * with prompts that found the adapter in a slot. Both are medians of the last samples, per replica,
 * or of the fleet if the replica has few. A result below zero counts as zero.
 *
 * Adapters are named by keyed hashes, never 0. Times are milliseconds of the router's clock. */
#ifndef NODE_REPLICA_ADAPTERS_H
#define NODE_REPLICA_ADAPTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "node/replica/limits.h"

enum {
    NODE_ADAPTER_SLOTS_MAX = 128, /* slots followed at one replica; an engine with more counts as
                                   * having this number */
    /* Slots assumed for an engine that does not report their number. Too high is better than too
     * low: requests then return to the replica that used their adapter last. If the adapter must
     * be loaded again, that costs no more there than elsewhere. */
    NODE_ADAPTER_SLOTS = 32,
    NODE_ADAPTERS_MAX = 4096, /* adapters with tracked demand; the ones with the least demand make
                               * room for new ones */
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
/* The replica's engine restarted: its slots are empty. */
void node_adapters_forget(struct node_adapters *a, unsigned replica);
/* The number belongs to another replica from now on. */
void node_adapters_leave(struct node_adapters *a, unsigned replica);

/* A request for the adapter is placed at the replica, or ends there. */
void node_adapters_use(struct node_adapters *a, unsigned replica, uint32_t adapter,
                       uint64_t now_ms);
void node_adapters_release(struct node_adapters *a, unsigned replica, uint32_t adapter);
/* The replica used the adapter at that time, for another router or as its engine reports. */
void node_adapters_seen(struct node_adapters *a, unsigned replica, uint32_t adapter,
                        uint64_t at_ms);

bool node_adapters_hold(const struct node_adapters *a, unsigned replica, uint32_t adapter);

/* The consequences of using an adapter at a replica. */
struct node_adapter_need {
    bool loads;    /* the adapter has no slot */
    bool waits;    /* the adapter has no slot, and all slots are in use */
    double wanted; /* demand for the adapter that would be evicted; 0: a slot is free */
    double unlike; /* 0..1: distance of the adapter's demand from that of the adapters in the
                    * slots */
};
struct node_adapter_need node_adapters_need(const struct node_adapters *a, unsigned replica,
                                            uint32_t adapter, uint64_t now_ms);
/* Number of adapters that have a slot at the replica. */
unsigned node_adapters_held(const struct node_adapters *a, unsigned replica);

/* --- demand for each adapter ---------------------------------------------------------------- */

void node_adapters_asked(struct node_adapters *a, uint32_t adapter, uint64_t now_ms);
/* Called once a second. `slots` is the sum over the fleet. */
void node_adapters_tick(struct node_adapters *a, uint64_t slots, uint64_t now_ms);

/* --- what loading takes --------------------------------------------------------------------- */

/* A prompt with an adapter took `seconds` longer than its tokens should. `loaded`: the adapter had
 * to be loaded. */
void node_adapters_took(struct node_adapters *a, unsigned replica, bool loaded, double seconds);
double node_adapters_load_s(const struct node_adapters *a, unsigned replica);

#endif
