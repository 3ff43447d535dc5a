#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "crdt/index_state.h"

struct slow {
    const struct crdt_index *x;
    uint32_t from, to;
    uint64_t digest, entries;
    struct crdt_sketch *sketch;
};

static void slow_visit(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                       uint32_t generation)
{
    struct slow *s = context;
    if (generation < s->from || generation > s->to)
        return;
    struct crdt_symbol symbol = {.id48 = id48,
                                 .rkey = s->x->rkey[replica],
                                 .generation = generation & CRDT_GENERATION_MASK,
                                 .code = weight_code};
    s->digest += crdt_symbol_hash(&symbol);
    s->entries++;
    if (s->sketch != NULL)
        crdt_sketch_flip(s->sketch, &symbol, 1);
}

static struct slow slow(const struct crdt_index *x, uint32_t from, uint32_t to,
                        struct crdt_sketch *sketch)
{
    struct slow s = {.x = x, .from = from, .to = to, .sketch = sketch};
    crdt_index_each(x, slow_visit, &s);
    return s;
}

uint64_t crdt_index_digest(const struct crdt_index *x, uint32_t from)
{
    return slow(x, from, UINT32_MAX, NULL).digest;
}

uint64_t crdt_index_digest_at(const struct crdt_index *x, uint32_t generation)
{
    return slow(x, generation, generation, NULL).digest;
}

uint64_t crdt_index_entries_at(const struct crdt_index *x, uint32_t generation)
{
    return slow(x, generation, generation, NULL).entries;
}

uint32_t crdt_index_sketch_from(const struct crdt_index *x, uint32_t floor)
{
    uint32_t span = (x->ttl + 31) / 32;
    return (floor + span - 1) / span * span;
}

void crdt_index_sketch(const struct crdt_index *x, uint32_t from, struct crdt_sketch *out)
{
    memset(out, 0, sizeof *out);
    (void)slow(x, from, UINT32_MAX, out);
}

void crdt_index_estimate(const struct crdt_index *x, uint32_t from,
                         uint8_t out[CRDT_ESTIMATE_COUNTERS])
{
    struct crdt_sketch sketch;
    crdt_index_sketch(x, from, &sketch);
    memcpy(out, sketch.estimate, sizeof sketch.estimate);
}

uint32_t crdt_index_generation_of(const struct crdt_index *x, uint16_t generation_mod_4096)
{
    return crdt_stamp_generation(&x->window, generation_mod_4096);
}

int crdt_index_newest(const struct crdt_index *x, uint64_t id, uint8_t weight_code,
                      unsigned *replica_out, uint32_t *generation_out)
{
    bool found = false;
    for (unsigned r = 0; r < x->replicas; r++) {
        uint32_t g = 0;
        if (crdt_index_get(x, id, r, weight_code, &g) != 0)
            continue;
        if (found &&
            (g < *generation_out || (g == *generation_out && x->rkey[r] < x->rkey[*replica_out])))
            continue;
        found = true;
        *replica_out = r;
        *generation_out = g;
    }
    return found ? 0 : ERR_NOT_FOUND;
}

bool crdt_index_walk(const struct crdt_index *x, struct crdt_index_cursor *c, uint32_t buckets,
                     void (*visit)(void *context, uint64_t id48, uint8_t weight_code,
                                   unsigned replica, uint32_t generation),
                     void *context)
{
    (void)buckets;
    if (c->bucket == 0)
        crdt_index_each(x, visit, context);
    c->bucket = x->table.buckets;
    return false;
}
