/* Helpers for tests of the replicated index. */
#ifndef TESTS_LIB_INDEX_HELP_H
#define TESTS_LIB_INDEX_HELP_H

#include "base/hash.h"
#include "crdt/index.h"
#include "tests/lib/test.h"

static inline struct crdt_index *make(uint64_t bytes, uint32_t replicas, uint32_t ttl, uint32_t now)
{
    struct crdt_index *x = NULL;
    struct crdt_index_config config = {.bytes_max = bytes,
                                       .replicas_max = replicas,
                                       .ttl_generations = ttl,
                                       .generation = now,
                                       .replicated = true};
    assert_int_equal(crdt_index_create(&x, &config), 0);
    crdt_index_check(x);
    return x;
}

static inline struct crdt_index_stats stats_of(const struct crdt_index *x)
{
    struct crdt_index_stats stats;
    crdt_index_stats(x, &stats);
    return stats;
}

static inline uint64_t id_of(uint64_t n)
{
    return hash_mix(n + 1);
}

/* Two laps of the sweep, which remove all dead entries. */
static inline void sweep(struct crdt_index *x)
{
    (void)crdt_index_sweep(x, UINT32_MAX);
    (void)crdt_index_sweep(x, UINT32_MAX);
    crdt_index_check(x);
}

#endif
