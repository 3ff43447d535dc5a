#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "crdt/index_internal.h"

void crdt_index_stats(const struct crdt_index *x, struct crdt_index_stats *out)
{
    const struct crdt_table *t = &x->table;
    uint64_t fixed = crdt_index_fixed_bytes(x);
    *out = x->stats;
    out->bytes = fixed + ((uint64_t)t->buckets + 1) * CRDT_BUCKET_BYTES +
                 crdt_arena_bytes(x->holders.arena.units);
    out->split_bytes = crdt_counts_split_bytes(&x->counts);
    out->bytes_used = fixed + t->used * CRDT_BUCKET_BYTES / CRDT_SLOTS +
                      (uint64_t)x->holders.arena.used * (CRDT_UNIT_BYTES + 1);
    out->buckets = t->buckets;
    out->slots = (uint64_t)t->buckets * CRDT_SLOTS;
    out->slots_limit = x->slots_limit;
    out->slots_live = t->single + t->sets;
    out->entries = x->counts.live;
    out->promoted = t->sets;
    out->reclaimed = t->reclaimed;
    out->retired = x->retirements;
}

struct recount {
    const struct crdt_index *x;
    struct crdt_counts counts;
};

static void recount(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                    uint32_t generation)
{
    struct recount *again = context;
    const struct crdt_index *x = again->x;
    CHECK(replica < again->counts.replicas);
    uint64_t hash = 0;
    if (x->replicated)
        hash = crdt_spans_mark(&x->spans, id48, weight_code,
                               crdt_stamp(&x->window, replica, generation))
                   .hash;
    crdt_counts_add(&again->counts, replica, generation, checkpoint_weight(weight_code), hash,
                    crdt_index_is_apart(id48));
}

static bool all_zero(const void *bytes, size_t size)
{
    const char *at = bytes;
    return size == 0 || (at[0] == 0 && memcmp(at, at + 1, size - 1) == 0);
}

/* Recounts the replicas up to the last with entries, and checks the others for zeroes. Slots are
 * assigned from 0 on, so most of the 2,048 are unused. */
static void check_counts(const struct crdt_index *x)
{
    const struct crdt_counts *c = &x->counts;
    struct recount again = {.x = x};
    const struct crdt_counts *a = &again.counts;
    size_t used = c->replicas;
    while (used > 1 && c->entries_total[used - 1] == 0)
        used--;
    CHECK(crdt_counts_init(&again.counts, (uint32_t)used, x->ttl + 2, x->replicated) == 0);
    bool split = c->parts[0].blocks != NULL;
    CHECK(!split || crdt_counts_split(&again.counts) == 0);
    crdt_index_each(x, recount, &again);
    for (unsigned i = 0; i < ARRAY_LEN(c->parts) && split; i++) {
        const struct crdt_counts_part *p = &c->parts[i], *q = &a->parts[i];
        CHECK(memcmp(p->blocks, q->blocks, used * (c->mask + 1) * sizeof *p->blocks) == 0);
        CHECK(memcmp(p->blocks_total, q->blocks_total, used * sizeof *p->blocks_total) == 0);
    }
    size_t length = (size_t)c->mask + 1;
    size_t all = used * length, rest = (c->replicas - used) * length;
    CHECK(memcmp(c->blocks, a->blocks, all * sizeof *c->blocks) == 0);
    CHECK(memcmp(c->entries, a->entries, all * sizeof *c->entries) == 0);
    CHECK(memcmp(c->blocks_total, a->blocks_total, used * sizeof *c->blocks_total) == 0);
    CHECK(memcmp(c->entries_total, a->entries_total, used * sizeof *c->entries_total) == 0);
    CHECK(memcmp(c->by_generation, a->by_generation, length * sizeof *c->by_generation) == 0);
    CHECK(c->live == a->live);
    CHECK(all_zero(c->blocks + all, rest * sizeof *c->blocks));
    CHECK(all_zero(c->entries + all, rest * sizeof *c->entries));
    CHECK(all_zero(c->blocks_total + used, (c->replicas - used) * sizeof *c->blocks_total));
    if (x->replicated) {
        CHECK(memcmp(c->digest, a->digest, all * sizeof *c->digest) == 0);
        CHECK(all_zero(c->digest + all, rest * sizeof *c->digest));
        CHECK(memcmp(c->digest_by_generation, a->digest_by_generation,
                     length * sizeof *c->digest_by_generation) == 0);
    }
    crdt_counts_free(&again.counts);
}

static void recount_sketch(const struct crdt_index *x, struct crdt_spans *again, uint64_t id,
                           uint8_t code, uint32_t stamp)
{
    uint32_t generation = crdt_stamp_generation(&x->window, stamp);
    if (!crdt_spans_alive(&x->spans, generation))
        return;
    struct crdt_mark mark = crdt_spans_mark(&x->spans, id, code, stamp);
    crdt_spans_flip(again, generation, &mark, 1);
}

/* Invariant 6: the sketches are correct for all entries in memory, alive or dead. */
static void check_sketches(const struct crdt_index *x)
{
    const struct crdt_spans *s = &x->spans;
    struct crdt_spans again;
    CHECK(crdt_spans_init(&again, &x->window, x->replicas, x->ttl) == 0);
    for (uint32_t i = 0; i < x->table.buckets; i++) {
        const struct crdt_bucket *b = &x->table.bucket[i];
        for (unsigned used = b->used; used != 0; used &= used - 1) {
            uint64_t entry = b->slot[__builtin_ctz(used)];
            uint64_t id = crdt_table_id(&x->table, i, entry);
            uint8_t code = crdt_entry_code(entry);
            uint32_t stamp = crdt_entry_stamp(entry);
            uint32_t at = 0;
            if (!crdt_entry_is_set(entry)) {
                recount_sketch(x, &again, id, code, stamp);
                continue;
            }
            uint32_t set = crdt_entry_set(entry);
            while (crdt_holders_next(&x->holders, set, &at, &stamp))
                recount_sketch(x, &again, id, code, stamp);
            at = 0;
            while (crdt_holders_next_dead(&x->holders, set, &at, &stamp))
                recount_sketch(x, &again, id, code, stamp);
        }
    }
    crdt_spans_settle(&again);
    CHECK(s->first == x->window.floor / s->length);
    for (unsigned i = 0; i < CRDT_PENDING; i++)
        CHECK(s->pending[i].sketch == NULL);
    for (uint32_t i = 0; i < s->count; i++) {
        CHECK(s->dirty[i] || !again.dirty[i]);
        if (s->dirty[i]) /* otherwise the span is empty */
            CHECK(memcmp(&s->ring[i], &again.ring[i], sizeof *s->ring) == 0);
    }
    crdt_spans_free(&again);
}

/* Invariant 2: within the two buckets of an id, no live entry or set occurs twice. */
static void check_unique(const struct crdt_index *x, uint32_t bucket, unsigned slot)
{
    const struct crdt_table *t = &x->table;
    uint64_t entry = t->bucket[bucket].slot[slot];
    uint32_t tag = (uint32_t)(entry >> 32);
    unsigned second = entry & CRDT_ENTRY_SECOND;
    uint32_t both[2] = {bucket, crdt_table_other(t, tag, bucket)};
    for (unsigned side = 0; side < (both[0] == both[1] ? 1 : 2); side++) {
        const struct crdt_bucket *b = &t->bucket[both[side]];
        unsigned found = crdt_bucket_find(b, tag, crdt_entry_code(entry), second ^ side);
        for (; found != 0; found &= found - 1) {
            unsigned s = (unsigned)__builtin_ctz(found);
            if ((side == 0 && s == slot) || crdt_entry_is_dead(&x->window, b->slot[s]))
                continue;
            CHECK(!crdt_entry_is_set(entry) && !crdt_entry_is_set(b->slot[s]));
            CHECK(crdt_stamp_replica(crdt_entry_stamp(entry)) !=
                  crdt_stamp_replica(crdt_entry_stamp(b->slot[s])));
        }
    }
}

void crdt_index_check(const struct crdt_index *x)
{
    const struct crdt_window *w = &x->window;
    CHECK(w->floor <= w->now + 1 && w->floor >= crdt_index_floor_at(x, w->now));
    CHECK(x->base <= w->floor && w->now + 1 - x->base < CRDT_GENERATIONS);
    uint32_t retirements = 0;
    for (unsigned r = 0; r < x->replicas; r++) {
        CHECK((x->retired[r] >> (w->incarnation[r] >> 12) & 1) == 0);
        retirements += (uint32_t)__builtin_popcount(x->retired[r]);
    }
    CHECK(retirements == x->retirements);
    uint32_t span = w->now + 1 - x->base;
    crdt_table_check(&x->table, x->retired, span);
    crdt_arena_check(&x->holders.arena);
    uint64_t units = 0;
    for (uint32_t i = 0; i < x->table.buckets; i++) {
        const struct crdt_bucket *b = &x->table.bucket[i];
        for (unsigned used = b->used; used != 0; used &= used - 1) {
            unsigned slot = (unsigned)__builtin_ctz(used);
            uint64_t entry = b->slot[slot];
            if (crdt_entry_is_dead(w, entry))
                continue;
            check_unique(x, i, slot);
            if (!crdt_entry_is_set(entry))
                continue;
            crdt_holders_check(&x->holders, crdt_entry_set(entry), x->retired, span);
            units += UINT64_C(1) << crdt_arena_order(&x->holders.arena, crdt_entry_set(entry));
        }
    }
    CHECK(units == x->holders.arena.used);
    check_counts(x);
    if (x->replicated)
        check_sketches(x);
    struct crdt_index_stats stats;
    crdt_index_stats(x, &stats);
    CHECK(stats.bytes <= stats.bytes_max && stats.slots_live <= stats.slots);
}
