#include <string.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "crdt/index_state.h"

void crdt_index_stats(const struct crdt_index *x, struct crdt_index_stats *out)
{
    const struct crdt_table *t = &x->table;
    uint64_t fixed = sizeof *x + crdt_counts_bytes(x->replicas, x->ttl + 2);
    *out = x->stats;
    out->bytes = fixed + ((uint64_t)t->buckets + 1) * CRDT_BUCKET_BYTES +
                 crdt_arena_bytes(x->holders.arena.units);
    out->bytes_used = fixed + t->used * CRDT_BUCKET_BYTES / CRDT_SLOTS +
                      (uint64_t)x->holders.arena.used * (CRDT_UNIT_BYTES + 1);
    out->buckets = t->buckets;
    out->slots = (uint64_t)t->buckets * CRDT_SLOTS;
    out->slots_limit = x->slots_limit;
    out->slots_live = t->single + t->sets;
    out->entries = x->counts.live;
    out->promoted = t->sets;
    out->reclaimed = t->reclaimed;
}

static void recount(void *context, uint64_t id48, uint8_t weight_code, unsigned replica,
                    uint32_t generation)
{
    (void)id48;
    crdt_counts_add(context, replica, generation, checkpoint_weight(weight_code));
}

static void check_counts(const struct crdt_index *x)
{
    const struct crdt_counts *c = &x->counts;
    struct crdt_counts again;
    CHECK(crdt_counts_init(&again, x->replicas, x->ttl + 2) == 0);
    crdt_index_each(x, recount, &again);
    size_t length = (size_t)c->mask + 1;
    CHECK(memcmp(c->blocks, again.blocks, c->replicas * length * sizeof *c->blocks) == 0);
    CHECK(memcmp(c->entries, again.entries, c->replicas * length * sizeof *c->entries) == 0);
    CHECK(memcmp(c->blocks_total, again.blocks_total, c->replicas * sizeof *c->blocks_total) == 0);
    CHECK(memcmp(c->entries_total, again.entries_total, c->replicas * sizeof *c->entries_total) ==
          0);
    CHECK(memcmp(c->by_generation, again.by_generation, length * sizeof *c->by_generation) == 0);
    CHECK(c->live == again.live);
    crdt_counts_free(&again);
}

/* Invariant 2: within its two buckets, no live entry or set stands twice. */
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
    for (unsigned r = 0; r < x->replicas; r++)
        CHECK((x->retired[r] >> (w->incarnation[r] >> 12) & 1) == 0);
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
    struct crdt_index_stats stats;
    crdt_index_stats(x, &stats);
    CHECK(stats.bytes <= stats.bytes_max && stats.slots_live <= stats.slots);
}
