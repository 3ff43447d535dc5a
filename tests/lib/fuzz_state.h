/* Shared by the fuzz targets of the replicated state: a small state with a few replicas and
 * routers, and entries in each part. */
#ifndef TESTS_LIB_FUZZ_STATE_H
#define TESTS_LIB_FUZZ_STATE_H

#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/hash.h"
#include "crdt/state.h"
#include "tests/lib/state_help.h"

static inline struct crdt_state *fuzz_state(uint64_t self)
{
    struct crdt_state_config config = {.index = {.bytes_max = 5 << 17,
                                                 .replicas_max = 8,
                                                 .ttl_generations = 2,
                                                 .generation = 1000,
                                                 .replicated = true},
                                       .self = self,
                                       .outbox_bytes = 4096};
    struct crdt_state *s = NULL;
    CHECK(crdt_state_create(&s, &config) == 0);
    crdt_state_epoch(s, 1);
    crdt_state_router(s, 1, 1);
    crdt_state_router(s, 2, 1);
    static const char *const names[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++)
        CHECK(state_replica(s, slice_of_cstr(names[i])) == (int)i);
    static struct chain chain = {.length = 60};
    for (unsigned i = 0; i < chain.length; i++)
        chain.points[i] =
            (struct chain_point){.id = hash_mix(self * 1000 + i), .code = checkpoint_code(i)};
    CHECK(crdt_state_observe(s, &chain, self % 3) == 60);
    CHECK(crdt_state_bind(s, hash_mix(77), 1) == 1);
    crdt_state_load(s, 0, &(struct crdt_load){.requests = 3, .prefill_tokens = 5000});
    crdt_state_sight(s, 1, &(struct crdt_sight){.configured = true, .health = 1});
    crdt_state_learned(s, 2, &(struct crdt_learned){.rate = 9000, .cache_tokens = 1 << 20});
    return s;
}

static inline void fuzz_tell(struct crdt_state *s)
{
    uint8_t delta[1160];
    while (crdt_state_produce(s, 1, delta, sizeof delta) > 0)
        continue;
}

static inline struct crdt_digest fuzz_digest(const struct crdt_state *s)
{
    struct crdt_digest d;
    crdt_state_digest(s, 0, &d);
    return d;
}

static inline bool fuzz_same(const struct crdt_digest *a, const struct crdt_digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* True if memory sufficed. If not, joining twice may differ from joining once. */
static inline bool fuzz_roomy(struct crdt_state *s)
{
    struct crdt_state_stats stats;
    crdt_state_stats(s, &stats);
    return stats.full == 0 && crdt_index_floor(crdt_state_index(s)) == 998;
}

#endif
