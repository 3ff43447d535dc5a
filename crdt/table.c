#include "crdt/table.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

enum { SEARCH_MAX = 256 }; /* buckets that an insert tries before it gives up */

int crdt_table_init(struct crdt_table *t, const struct crdt_window *window, uint64_t bytes_max)
{
    uint64_t buckets = bytes_max / CRDT_BUCKET_BYTES;
    if (buckets < 3)
        return ERR_LIMIT;
    buckets--; /* alignment */
    if (buckets > INT32_MAX)
        buckets = INT32_MAX;
    *t = (struct crdt_table){.window = window, .buckets = (uint32_t)buckets};
    t->memory = calloc(buckets + 1, CRDT_BUCKET_BYTES);
    if (t->memory == NULL)
        return ERR_NOMEM;
    uintptr_t padding = -(uintptr_t)t->memory & (CRDT_BUCKET_BYTES - 1);
    t->bucket = (struct crdt_bucket *)((uint8_t *)t->memory + padding);
    return 0;
}

void crdt_table_free(struct crdt_table *t)
{
    free(t->memory);
    free(t->moved);
    t->memory = NULL;
    t->moved = NULL;
}

int crdt_table_remember(struct crdt_table *t, uint32_t count)
{
    t->moved = malloc(count * sizeof *t->moved);
    t->moved_mask = count - 1;
    return t->moved == NULL ? ERR_NOMEM : 0;
}

void crdt_table_note_move(struct crdt_table *t, uint32_t bucket)
{
    if (t->moved != NULL)
        t->moved[t->moves & t->moved_mask] = bucket;
    t->moves++;
}

/* The first bucket of an entry found in `bucket`. */
static uint32_t first_of(const struct crdt_table *t, uint32_t bucket, uint64_t entry)
{
    return entry & CRDT_ENTRY_SECOND ? crdt_table_other(t, (uint32_t)(entry >> 32), bucket)
                                     : bucket;
}

uint64_t crdt_table_id(const struct crdt_table *t, uint32_t bucket, uint64_t entry)
{
    uint64_t first = first_of(t, bucket, entry);
    /* The greatest `high` with (high * buckets >> 16) <= first. */
    uint64_t high = (((first + 1) << 16) - 1) / t->buckets;
    return high << 32 | entry >> 32;
}

/* Adds an entry to the count of the entry's generation, or subtracts it. */
static void account(struct crdt_table *t, uint64_t entry, int change)
{
    t->used += (uint64_t)change;
    if (crdt_entry_is_set(entry)) {
        t->sets += (uint64_t)change;
        return;
    }
    uint32_t stamp = crdt_entry_stamp(entry);
    t->by_generation[stamp & CRDT_GENERATION_MASK] += (uint32_t)change;
    if (crdt_stamp_generation(t->window, stamp) >= t->window->floor)
        t->single += (uint64_t)change;
}

void crdt_table_remove(struct crdt_table *t, uint32_t bucket, unsigned slot)
{
    struct crdt_bucket *b = &t->bucket[bucket];
    uint64_t entry = b->slot[slot];
    if (entry & CRDT_ENTRY_SECOND)
        t->bucket[first_of(t, bucket, entry)].overflow--;
    account(t, entry, -1);
    b->used &= (uint8_t) ~(1u << slot);
    b->slot[slot] = 0;
}

/* Returns a free slot of the bucket, if necessary after dropping a dead entry; -1 if all 7 are
 * alive. */
static int free_slot(struct crdt_table *t, uint32_t bucket, struct crdt_taken *taken)
{
    const struct crdt_bucket *b = &t->bucket[bucket];
    unsigned unused = ~(unsigned)b->used & ((1u << CRDT_SLOTS) - 1);
    if (unused != 0)
        return __builtin_ctz(unused);
    for (unsigned s = 0; s < CRDT_SLOTS; s++) {
        if (!crdt_entry_is_dead(t->window, b->slot[s]))
            continue;
        *taken = (struct crdt_taken){.any = true, .bucket = bucket, .entry = b->slot[s]};
        crdt_table_remove(t, bucket, s);
        t->reclaimed++;
        return (int)s;
    }
    return -1;
}

unsigned crdt_table_room(const struct crdt_table *t, struct crdt_place place)
{
    unsigned room = 0;
    for (unsigned side = 0; side < (place.first == place.second ? 1 : 2); side++) {
        const struct crdt_bucket *b = &t->bucket[side == 0 ? place.first : place.second];
        for (unsigned s = 0; s < CRDT_SLOTS; s++)
            room += (b->used >> s & 1) == 0 || crdt_entry_is_dead(t->window, b->slot[s]);
    }
    return room;
}

/* Moves a live entry to the entry's other bucket. */
static void move(struct crdt_table *t, uint32_t from, unsigned slot, uint32_t to, unsigned to_slot)
{
    struct crdt_bucket *a = &t->bucket[from];
    struct crdt_bucket *b = &t->bucket[to];
    uint64_t entry = a->slot[slot];
    if (entry & CRDT_ENTRY_SECOND)
        b->overflow--;
    else
        a->overflow++;
    b->slot[to_slot] = entry ^ CRDT_ENTRY_SECOND;
    b->used |= (uint8_t)(1u << to_slot);
    a->slot[slot] = 0;
    a->used &= (uint8_t) ~(1u << slot);
    crdt_table_note_move(t, to);
}

/* A step of the search: `bucket` is the other bucket of an entry in the parent step's bucket. */
struct step {
    uint32_t bucket;
    uint16_t parent;
    uint8_t slot;
};

/* Searches breadth first from the two buckets of an id to the nearest bucket with room, then moves
 * the entries on the path. A shortest path meets no bucket twice, so the moves do not disturb one
 * another. Entries of sets do not move: a set may have dead stamps, which must not slip behind the
 * sweeper's hand. Sets *bucket to the one of the two buckets that has room now, and *slot to the
 * free slot there. False: no room was found. */
static bool search(struct crdt_table *t, struct crdt_place place, uint32_t *bucket, unsigned *slot,
                   struct crdt_taken *taken)
{
    struct step queue[SEARCH_MAX];
    unsigned length = 0;
    queue[length++] = (struct step){.bucket = place.first, .parent = UINT16_MAX};
    if (place.second != place.first)
        queue[length++] = (struct step){.bucket = place.second, .parent = UINT16_MAX};
    for (unsigned i = 0; i < length; i++) {
        int room = free_slot(t, queue[i].bucket, taken);
        if (room >= 0) {
            struct step step = queue[i];
            while (step.parent != UINT16_MAX) {
                uint32_t from = queue[step.parent].bucket;
                move(t, from, step.slot, step.bucket, (unsigned)room);
                room = step.slot;
                step = queue[step.parent];
            }
            *bucket = step.bucket;
            *slot = (unsigned)room;
            return true;
        }
        const struct crdt_bucket *b = &t->bucket[queue[i].bucket];
        for (unsigned s = 0; s < CRDT_SLOTS && length < SEARCH_MAX; s++) {
            uint32_t other = crdt_table_other(t, (uint32_t)(b->slot[s] >> 32), queue[i].bucket);
            if (crdt_entry_is_set(b->slot[s]) || other == queue[i].bucket)
                continue;
            __builtin_prefetch(&t->bucket[other], 1);
            queue[length++] =
                (struct step){.bucket = other, .parent = (uint16_t)i, .slot = (uint8_t)s};
        }
    }
    return false;
}

uint64_t *crdt_table_insert(struct crdt_table *t, struct crdt_place place, uint64_t entry,
                            struct crdt_taken *taken)
{
    taken->any = false;
    uint32_t bucket = place.first;
    unsigned slot = 0;
    int room = free_slot(t, bucket, taken);
    if (room >= 0)
        slot = (unsigned)room;
    else if (!search(t, place, &bucket, &slot, taken))
        return NULL;
    if (bucket != place.first) {
        entry |= CRDT_ENTRY_SECOND;
        t->bucket[place.first].overflow++;
    }
    struct crdt_bucket *b = &t->bucket[bucket];
    b->slot[slot] = entry;
    b->used |= (uint8_t)(1u << slot);
    account(t, entry, 1);
    return &b->slot[slot];
}

void crdt_table_restamp(struct crdt_table *t, uint64_t *entry, uint32_t generation)
{
    uint32_t stamp = crdt_entry_stamp(*entry);
    t->by_generation[stamp & CRDT_GENERATION_MASK]--;
    stamp = (stamp & ~(uint32_t)CRDT_GENERATION_MASK) | (generation & CRDT_GENERATION_MASK);
    t->by_generation[stamp & CRDT_GENERATION_MASK]++;
    *entry = (*entry & ~CRDT_ENTRY_STAMP) | (uint64_t)stamp << 1;
}

void crdt_table_drop_generation(struct crdt_table *t, uint32_t generation)
{
    t->single -= t->by_generation[generation & CRDT_GENERATION_MASK];
}

void crdt_table_check(const struct crdt_table *t, const uint16_t *retired, uint32_t span)
{
    const struct crdt_window *w = t->window;
    uint64_t used = 0;
    uint64_t sets = 0;
    uint64_t single = 0;
    uint32_t by_generation[CRDT_GENERATIONS] = {0};
    uint32_t *overflow = calloc(t->buckets, sizeof *overflow);
    CHECK(overflow != NULL);
    for (uint32_t i = 0; i < t->buckets; i++) {
        const struct crdt_bucket *b = &t->bucket[i];
        for (unsigned left = b->used; left != 0; left &= left - 1) {
            uint64_t entry = b->slot[__builtin_ctz(left)];
            used++;
            if (entry & CRDT_ENTRY_SECOND)
                overflow[first_of(t, i, entry)]++;
            struct crdt_place place = crdt_table_place(t, crdt_table_id(t, i, entry));
            CHECK(place.tag == entry >> 32);
            CHECK(place.first == first_of(t, i, entry));
            if (crdt_entry_is_set(entry)) {
                sets++;
                continue;
            }
            uint32_t stamp = crdt_entry_stamp(entry);
            unsigned r = crdt_stamp_replica(stamp);
            unsigned incarnation = crdt_stamp_incarnation(stamp);
            CHECK(incarnation == w->incarnation[r] >> 12 || (retired[r] >> incarnation & 1));
            CHECK((((uint32_t)w->newest - stamp) & CRDT_GENERATION_MASK) <= span);
            by_generation[stamp & CRDT_GENERATION_MASK]++;
            single += crdt_stamp_generation(w, stamp) >= w->floor;
        }
    }
    CHECK(used == t->used && sets == t->sets && single == t->single);
    for (uint32_t i = 0; i < t->buckets; i++)
        CHECK(overflow[i] == t->bucket[i].overflow);
    for (unsigned g = 0; g < CRDT_GENERATIONS; g++)
        CHECK(by_generation[g] == t->by_generation[g]);
    free(overflow);
}
