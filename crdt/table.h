/* The table: buckets of a cache line with 7 entries of 8 bytes.
 *
 * An entry:
 *
 *     tag 32 | code 5 | stamp 26 | second 1
 *
 * The id (48 bits) is not stored: the upper 16 bits of the id and the tag choose the first bucket,
 * so the bucket and the tag give the id back. The second bucket is `mirror(tag) - first` modulo the
 * number of buckets. The same formula leads from the second bucket to the first, so an entry can
 * move without the id. The lowest bit is 1 if the entry is in the second bucket.
 *
 * If all incarnation bits of a stamp are 1, the other 22 bits are the number of a set of holders
 * (crdt/holders.h).
 *
 * Each bucket counts the entries that had to go to their second bucket (`overflow`). At 0, a
 * look-up reads a single cache line. If both buckets are full, an insert searches breadth first for
 * the nearest room and moves the few entries on the way there (cuckoo hashing; Li et al.,
 * "Algorithmic Improvements for Fast Concurrent Cuckoo Hashing", 2014, section 4.3.2).
 *
 * Dead entries (crdt/window.h) count as room.
 */
#ifndef CRDT_TABLE_H
#define CRDT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "crdt/window.h"

enum { CRDT_SLOTS = 7, CRDT_BUCKET_BYTES = 64 };

struct crdt_bucket {
    uint8_t used; /* bit s: slot s holds an entry, alive or dead */
    uint8_t spare[3];
    uint32_t overflow; /* entries in other buckets whose first bucket is this */
    uint64_t slot[CRDT_SLOTS];
};
_Static_assert(sizeof(struct crdt_bucket) == CRDT_BUCKET_BYTES, "a bucket is a cache line");
_Static_assert(CRDT_SLOTS <= 8, "`used` has a bit for each slot");

struct crdt_table {
    void *memory;
    struct crdt_bucket *bucket; /* aligned to the size of a bucket */
    const struct crdt_window *window;
    uint32_t buckets;
    uint64_t used;   /* entries, alive or dead, sets included */
    uint64_t sets;   /* entries with the number of a set */
    uint64_t single; /* entries without a set, with a generation not below the floor */
    uint64_t reclaimed;
    /* Entries without a set, alive or dead, by generation modulo 4,096. When the floor rises past a
     * generation, this count is subtracted from `single`. */
    uint32_t by_generation[CRDT_GENERATIONS];
    /* A ring of the buckets to which entries last moved. A walk that has passed such a bucket must
     * visit it again. */
    uint32_t *moved;
    uint32_t moved_mask;
    uint64_t moves; /* moves since the start */
};

/* A dead entry whose slot an insert reused. */
struct crdt_taken {
    bool any;
    uint32_t bucket;
    uint64_t entry;
};

/* The buckets in which an id may be. */
struct crdt_place {
    uint32_t tag;
    uint32_t first;
    uint32_t second; /* equal to `first` for a few ids */
};

MUST_USE int crdt_table_init(struct crdt_table *t, const struct crdt_window *window,
                             uint64_t bytes_max);
void crdt_table_free(struct crdt_table *t);
/* Makes the table remember the last `count` moves, a power of two. */
MUST_USE int crdt_table_remember(struct crdt_table *t, uint32_t count);
/* Checks the table's invariants. `span`: no stamp's age is greater. */
void crdt_table_check(const struct crdt_table *t, const uint16_t *retired, uint32_t span);

/* --- entries -------------------------------------------------------------------------------- */

enum { CRDT_ENTRY_SECOND = 1 };
#define CRDT_ENTRY_STAMP  UINT64_C(0x7fffffe)
#define CRDT_ENTRY_IS_SET ((uint64_t)CRDT_INCARNATION_MASK << 1)
_Static_assert(CRDT_ENTRY_STAMP >> 1 == (UINT64_C(1) << CRDT_STAMP_BITS) - 1, "of 26 bits");
_Static_assert(32 + 5 + CRDT_STAMP_BITS + 1 == 64, "tag, code, stamp and second fill an entry");
_Static_assert((CRDT_ENTRY_IS_SET & CRDT_ENTRY_STAMP) == CRDT_ENTRY_IS_SET,
               "the mark of a set is an incarnation that no stamp has");

static inline uint64_t crdt_entry(uint32_t tag, uint8_t code, uint32_t stamp)
{
    return (uint64_t)tag << 32 | (uint64_t)code << 27 | (uint64_t)stamp << 1;
}

static inline uint64_t crdt_entry_of_set(uint32_t tag, uint8_t code, uint32_t set)
{
    uint32_t stamp = (set >> 12) << CRDT_STAMP_LOW_BITS | (set & CRDT_GENERATION_MASK);
    return crdt_entry(tag, code, stamp) | CRDT_ENTRY_IS_SET;
}

static inline uint32_t crdt_entry_stamp(uint64_t entry)
{
    return (uint32_t)(entry & CRDT_ENTRY_STAMP) >> 1;
}

static inline bool crdt_entry_is_set(uint64_t entry)
{
    return (entry & CRDT_ENTRY_IS_SET) == CRDT_ENTRY_IS_SET;
}

static inline uint32_t crdt_entry_set(uint64_t entry)
{
    uint32_t stamp = crdt_entry_stamp(entry);
    return (stamp >> CRDT_STAMP_LOW_BITS) << 12 | (stamp & CRDT_GENERATION_MASK);
}

static inline uint8_t crdt_entry_code(uint64_t entry)
{
    return (uint8_t)(entry >> 27 & 31);
}

/* A set is never dead as such: only members of it are. */
static inline bool crdt_entry_is_dead(const struct crdt_window *w, uint64_t entry)
{
    return !crdt_entry_is_set(entry) && !crdt_stamp_alive(w, crdt_entry_stamp(entry));
}

/* As bits: the slots of the bucket with an entry, alive or dead, of this tag and code. */
static inline unsigned crdt_bucket_find(const struct crdt_bucket *b, uint32_t tag, uint8_t code,
                                        unsigned second)
{
    uint64_t key = crdt_entry(tag, code, 0) | second;
    unsigned found = 0;
    for (unsigned s = 0; s < CRDT_SLOTS; s++)
        found |= (unsigned)(((b->slot[s] ^ key) & ~CRDT_ENTRY_STAMP) == 0) << s;
    return found & b->used;
}

/* --- places --------------------------------------------------------------------------------- */

static inline uint32_t crdt_table_other(const struct crdt_table *t, uint32_t tag, uint32_t bucket)
{
    uint32_t mirror = (uint32_t)((hash_mix(tag) >> 32) * t->buckets >> 32);
    return mirror >= bucket ? mirror - bucket : mirror + t->buckets - bucket;
}

static inline struct crdt_place crdt_table_place(const struct crdt_table *t, uint64_t id)
{
    uint64_t high = id >> 32 & 0xffff;
    uint32_t tag = (uint32_t)id;
    uint64_t mix = hash_mix(tag);
    /* The id's upper 16 bits choose one of 65,536 ranges of buckets, the tag a bucket of the
     * range. */
    uint32_t start = (uint32_t)(high * t->buckets >> 16);
    uint32_t width = (uint32_t)((high + 1) * t->buckets >> 16) - start;
    uint32_t first = start + (uint32_t)((uint64_t)(uint32_t)mix * width >> 32);
    uint32_t mirror = (uint32_t)((mix >> 32) * t->buckets >> 32);
    uint32_t second = mirror >= first ? mirror - first : mirror + t->buckets - first;
    return (struct crdt_place){.tag = tag, .first = first, .second = second};
}

static inline void crdt_table_prefetch(const struct crdt_table *t, struct crdt_place place)
{
    __builtin_prefetch(&t->bucket[place.first]);
}

/* To be called when the first bucket is in the processor's cache. */
static inline void crdt_table_prefetch_second(const struct crdt_table *t, struct crdt_place place)
{
    if (t->bucket[place.first].overflow > 0)
        __builtin_prefetch(&t->bucket[place.second]);
}

/* The id of an entry in a bucket. Exact if the table has CRDT_EXACT_BUCKETS or more. With fewer,
 * all ids with the same bucket and tag give the same result. */
enum { CRDT_EXACT_BUCKETS = 65536 };
uint64_t crdt_table_id(const struct crdt_table *t, uint32_t bucket, uint64_t entry);
/* The result of crdt_table_id() for an entry of `id` at this place. */
static inline uint64_t crdt_table_id_at(const struct crdt_table *t, struct crdt_place place,
                                        uint64_t id)
{
    return t->buckets >= CRDT_EXACT_BUCKETS
               ? id & UINT64_C(0xffffffffffff)
               : crdt_table_id(t, place.first, crdt_entry(place.tag, 0, 0));
}

/* --- changing ------------------------------------------------------------------------------- */

/* Inserts an entry, without looking for an equal one. `entry` comes without CRDT_ENTRY_SECOND.
 * Returns the new entry, valid until the next change, or NULL if there is no room. In either case
 * *taken is the dead entry whose slot was reused, if any. */
uint64_t *crdt_table_insert(struct crdt_table *t, struct crdt_place place, uint64_t entry,
                            struct crdt_taken *taken);
/* Notes that an entry moved to this bucket. */
void crdt_table_note_move(struct crdt_table *t, uint32_t bucket);
/* Number of entries that could be inserted at `place` without moving others. */
unsigned crdt_table_room(const struct crdt_table *t, struct crdt_place place);
void crdt_table_remove(struct crdt_table *t, uint32_t bucket, unsigned slot);
/* Changes the generation of an entry without a set. */
void crdt_table_restamp(struct crdt_table *t, uint64_t *entry, uint32_t generation);
/* Updates `single`: the floor is about to rise above this generation. */
void crdt_table_drop_generation(struct crdt_table *t, uint32_t generation);

#endif
