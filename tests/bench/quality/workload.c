#include "tests/bench/quality/workload.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "base/prng.h"
#include "tests/engine-sim/adapters.h"

void workload_free(struct workload *w)
{
    for (unsigned i = 0; i < w->count; i++)
        free(w->talks[i].asks);
    free(w->talks);
    if (w->units_free)
        w->units_free(w->units);
    *w = (struct workload){0};
}

void workload_shuffle(struct workload *w, uint64_t seed)
{
    struct prng prng;
    prng_seed(&prng, seed);
    for (unsigned i = 1; i < w->count; i++) {
        unsigned at = (unsigned)prng_below(&prng, i + 1);
        struct talk other = w->talks[at];
        w->talks[at] = w->talks[i];
        w->talks[i] = other;
    }
}

void workload_clip(struct workload *w, uint64_t tokens_max)
{
    unsigned talks = 0;
    for (unsigned i = 0; i < w->count; i++) {
        struct talk *t = &w->talks[i];
        unsigned kept = 0;
        for (unsigned j = 0; j < t->count; j++) {
            if (prompt_tokens(&t->asks[j].prompt) + t->asks[j].output_tokens <= tokens_max)
                t->asks[kept++] = t->asks[j];
        }
        t->count = kept;
        if (kept > 0)
            w->talks[talks++] = *t;
        else
            free(t->asks);
    }
    w->count = talks;
}

unsigned workload_asks(const struct workload *w)
{
    unsigned asks = 0;
    for (unsigned i = 0; i < w->count; i++)
        asks += w->talks[i].count;
    return asks;
}

uint32_t workload_adapter_count(const struct workload *w)
{
    uint32_t count = 0;
    for (unsigned i = 0; i < w->count; i++) {
        for (unsigned j = 0; j < w->talks[i].count; j++)
            count = count > w->talks[i].asks[j].adapter ? count : w->talks[i].asks[j].adapter;
    }
    return count;
}

double workload_output_mean(const struct workload *w)
{
    double sum = 0;
    for (unsigned i = 0; i < w->count; i++) {
        for (unsigned j = 0; j < w->talks[i].count; j++)
            sum += w->talks[i].asks[j].output_tokens;
    }
    return sum / workload_asks(w);
}

double workload_distinct_tokens(const struct workload *w)
{
    enum { BITS = 22 };
    uint8_t *seen = calloc(1u << BITS, 1); /* a few collisions do not matter */
    CHECK(seen != NULL);
    double tokens = 0;
    for (unsigned i = 0; i < w->count; i++) {
        for (unsigned j = 0; j < w->talks[i].count; j++) {
            const struct prompt *p = &w->talks[i].asks[j].prompt;
            uint64_t hash = p->space;
            for (uint32_t k = 0; k < p->count; k++) {
                hash = hash_mix(hash * 0x9e3779b97f4a7c15u + p->units[k] + 1);
                uint8_t *at = &seen[hash >> (64 - BITS)];
                tokens += *at ? 0 : p->unit_tokens;
                *at = 1;
            }
        }
    }
    free(seen);
    return tokens;
}

uint64_t workload_loads_at_best(const struct workload *w, unsigned slots)
{
    struct sim_adapters *sets = calloc(1, sizeof *sets);
    CHECK(sets != NULL);
    sets->slots_max = slots;
    uint64_t loads = 0;
    for (unsigned i = 0; i < w->count; i++) {
        uint64_t id = w->talks[i].asks[0].adapter;
        loads += sim_adapters_take(sets, id);
        sim_adapters_release(sets, id);
    }
    free(sets);
    return loads;
}
