/* The slots in which an engine holds LoRA adapters: a new adapter replaces the least recently used
 * of the idle adapters. Pure. */
#ifndef TESTS_ENGINE_SIM_ADAPTERS_H
#define TESTS_ENGINE_SIM_ADAPTERS_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_ADAPTERS_MAX = 256 };

struct sim_adapters {
    uint32_t slots_max; /* at most SIM_ADAPTERS_MAX; 0: the engine takes no adapters */
    uint32_t count;
    struct {
        uint64_t id; /* never 0 */
        uint32_t users;
    } slots[SIM_ADAPTERS_MAX]; /* the most recently used first */
};

bool sim_adapters_has(const struct sim_adapters *a, uint64_t id);
/* True if a request can use the adapter now: the adapter has a slot, or a slot is free or idle. */
bool sim_adapters_can(const struct sim_adapters *a, uint64_t id);
/* Adds a user of the adapter, for which sim_adapters_can() is true. Returns true if the adapter had
 * to be loaded. */
bool sim_adapters_take(struct sim_adapters *a, uint64_t id);
void sim_adapters_release(struct sim_adapters *a, uint64_t id);

#endif
