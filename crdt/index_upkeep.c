#include <string.h>

#include "base/bug.h"
#include "base/check.h"
#include "crdt/index_internal.h"

enum {
    DEMOTE_AT = 3, /* the sweeper turns sets of at most 3 holders into single entries */
    /* While lost caches are in memory, sketches cannot be compared. So the sweeper then visits
     * HASTE times as many buckets. HASTE_BUCKETS_MAX keeps each call to a few milliseconds. */
    HASTE = 128,
    HASTE_BUCKETS_MAX = 1 << 18,
};

/* --- the floor ------------------------------------------------------------------------------ */

static void raise_floor(struct crdt_index *x, uint32_t floor, uint64_t *counter)
{
    uint32_t newest = x->window.now + 1;
    for (uint32_t g = x->window.floor; g < floor && g <= newest; g++) {
        *counter += crdt_counts_drop_generation(&x->counts, g);
        crdt_table_drop_generation(&x->table, g);
    }
    crdt_window_set(&x->window, x->window.now, floor);
    if (x->replicated)
        crdt_spans_floor(&x->spans, floor);
}

bool crdt_index_make_space(struct crdt_index *x)
{
    while (x->table.single + x->table.sets >= x->slots_limit) {
        if (x->window.floor >= x->window.now)
            return false;
        raise_floor(x, x->window.floor + 1, &x->stats.evicted);
    }
    return true;
}

/* --- the sweeper ---------------------------------------------------------------------------- */

void crdt_index_lap_begin(struct crdt_index *x)
{
    x->lap_left = x->table.buckets;
    x->lap_floor = x->window.floor;
    x->lap_remains = x->remains;
    memcpy(x->lap_retired, x->retired, sizeof x->lap_retired);
}

/* Turns a set of `alive` live stamps into single entries again. False: there is no room without
 * moving other entries. */
static bool demote(struct crdt_index *x, uint32_t bucket, unsigned slot, uint32_t alive)
{
    uint64_t entry = x->table.bucket[bucket].slot[slot];
    uint32_t set = crdt_entry_set(entry);
    struct crdt_place place = crdt_table_place(&x->table, crdt_table_id(&x->table, bucket, entry));
    if (crdt_table_room(&x->table, place) + 1 < alive ||
        x->table.single + x->table.sets + alive > x->slots_limit)
        return false;
    crdt_table_remove(&x->table, bucket, slot);
    uint32_t at = 0;
    uint32_t stamp = 0;
    while (crdt_holders_next(&x->holders, set, &at, &stamp))
        CHECK(crdt_index_put(x, place, crdt_entry(place.tag, crdt_entry_code(entry), stamp)) !=
              NULL);
    crdt_table_note_move(&x->table, place.first);
    crdt_table_note_move(&x->table, place.second);
    crdt_holders_destroy(&x->holders, set);
    return true;
}

static void sweep_set(struct crdt_index *x, uint32_t bucket, unsigned slot)
{
    uint64_t *entry = &x->table.bucket[bucket].slot[slot];
    uint32_t set = crdt_entry_set(*entry);
    uint64_t id = crdt_table_id(&x->table, bucket, *entry);
    uint32_t at = 0;
    uint32_t stamp = 0;
    while (x->replicated && crdt_holders_next_dead(&x->holders, set, &at, &stamp))
        crdt_index_book_gone(x, id, crdt_entry_code(*entry), stamp);
    uint32_t alive = crdt_holders_tidy(&x->holders, &set, &x->table.reclaimed);
    *entry = crdt_entry_of_set((uint32_t)(*entry >> 32), crdt_entry_code(*entry), set) |
             (*entry & CRDT_ENTRY_SECOND);
    if (alive > 0 && alive <= DEMOTE_AT)
        (void)demote(x, bucket, slot, alive);
    if (alive > 0)
        return;
    crdt_holders_destroy(&x->holders, set);
    crdt_table_remove(&x->table, bucket, slot);
}

static void lap_end(struct crdt_index *x)
{
    if (x->base < x->lap_floor)
        x->base = x->lap_floor;
    for (unsigned r = 0; r < x->replicas; r++)
        x->retired[r] &= (uint16_t)~x->lap_retired[r];
    x->retirements = 0;
    for (unsigned r = 0; r < x->replicas; r++)
        x->retirements += (uint32_t)__builtin_popcount(x->retired[r]);
    x->remains -= x->lap_remains;
    crdt_index_lap_begin(x);
}

static uint64_t pace(const struct crdt_index *x, uint32_t buckets)
{
    uint64_t n = buckets;
    if (x->replicated && x->retirements > 0 && n < HASTE_BUCKETS_MAX)
        n = n * HASTE < HASTE_BUCKETS_MAX ? n * HASTE : HASTE_BUCKETS_MAX;
    return n < x->table.buckets ? n : x->table.buckets;
}

uint32_t crdt_index_sweep(struct crdt_index *x, uint32_t buckets)
{
    uint64_t before = x->table.reclaimed;
    for (uint64_t n = pace(x, buckets); n > 0; n--) {
        const struct crdt_bucket *b = &x->table.bucket[x->hand];
        for (unsigned used = b->used; used != 0; used &= used - 1) {
            unsigned slot = (unsigned)__builtin_ctz(used);
            if (crdt_entry_is_set(b->slot[slot])) {
                sweep_set(x, x->hand, slot);
            } else if (crdt_entry_is_dead(&x->window, b->slot[slot])) {
                crdt_index_book_gone_entry(x, x->hand, b->slot[slot]);
                crdt_table_remove(&x->table, x->hand, slot);
                x->table.reclaimed++;
            }
        }
        if (++x->hand == x->table.buckets)
            x->hand = 0;
        if (--x->lap_left == 0)
            lap_end(x);
    }
    crdt_spans_settle(&x->spans);
    return (uint32_t)(x->table.reclaimed - before);
}

static void sweep_all(struct crdt_index *x)
{
    crdt_index_lap_begin(x);
    (void)crdt_index_sweep(x, x->table.buckets);
}

/* --- events --------------------------------------------------------------------------------- */

/* Gives the replica an incarnation that no entry in memory has. */
static void retire(struct crdt_index *x, unsigned replica)
{
    const uint16_t all = (1u << CRDT_INCARNATIONS) - 1;
    unsigned present = x->window.incarnation[replica] >> 12;
    if ((x->retired[replica] | 1u << present) == all)
        sweep_all(x); /* seven lost caches within a lap */
    bool first = x->retirements == 0;
    x->retired[replica] |= (uint16_t)(1u << present);
    x->retirements++;
    unsigned fresh = (unsigned)__builtin_ctz(~(unsigned)x->retired[replica]);
    CHECK(fresh < CRDT_INCARNATIONS);
    x->window.incarnation[replica] = (uint16_t)(fresh << 12);
    uint64_t forgotten = crdt_counts_drop_replica(&x->counts, replica);
    x->stats.forgotten += forgotten;
    x->remains += forgotten;
    if (first) /* the current lap reclaims no lost cache, so a new lap may begin at once */
        crdt_index_lap_begin(x);
}

void crdt_index_forget(struct crdt_index *x, unsigned replica, uint32_t rkey)
{
    CHECK(replica < x->replicas);
    /* In a replicated index, even entries below the floor may still be in a sketch under the old
     * rkey. */
    bool has_entries =
        x->replicated ? x->spans.used[replica] : x->counts.entries_total[replica] > 0;
    if (has_entries && BUG(SKIP_FENCE))
        return;
    if (has_entries)
        retire(x, replica);
    if (x->replicated)
        crdt_spans_name(&x->spans, replica, rkey);
}

void crdt_index_floor_raise(struct crdt_index *x, uint32_t floor)
{
    if (floor > x->window.now + 1)
        floor = x->window.now + 1;
    if (floor > x->window.floor)
        raise_floor(x, floor, &x->stats.evicted);
}

void crdt_index_advance(struct crdt_index *x, uint32_t now_generation)
{
    uint32_t now = now_generation < UINT32_MAX - 1 ? now_generation : UINT32_MAX - 2;
    if (now <= x->window.now)
        return;
    if (crdt_index_floor_at(x, now) > x->window.floor)
        raise_floor(x, crdt_index_floor_at(x, now), &x->stats.expired);
    /* Sweeps at once before stamps could wrap: nothing was swept for thousands of generations, or
     * the clock jumped. */
    if (now + 1 - x->base >= CRDT_GENERATIONS)
        sweep_all(x);
    crdt_window_set(&x->window, now, x->window.floor);
}

uint32_t crdt_index_now(const struct crdt_index *x)
{
    return x->window.now;
}

uint32_t crdt_index_floor(const struct crdt_index *x)
{
    if (BUG(FLOOR_UNANNOUNCED))
        return crdt_index_floor_at(x, x->window.now);
    return x->window.floor;
}
