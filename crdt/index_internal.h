/* Shared by the index's files: index.c (creation, learning), index_ask.c (asking, walking),
 * index_agree.c (bookkeeping; digests and sketches), index_upkeep.c (time, memory, the sweeper) and
 * index_check.c (accounting, invariants). */
#ifndef CRDT_INDEX_INTERNAL_H
#define CRDT_INDEX_INTERNAL_H

#include "crdt/counts.h"
#include "crdt/holders.h"
#include "crdt/index.h"
#include "crdt/spans.h"
#include "crdt/table.h"
#include "crdt/window.h"

enum { CRDT_PROMOTE_AT = 6 }; /* single entries of an id; with the next holder they become a set */

struct crdt_index {
    struct crdt_window window;
    struct crdt_table table;
    struct crdt_holders holders;
    struct crdt_counts counts;
    struct crdt_spans spans; /* not in use if the index is not replicated */
    bool replicated;
    uint32_t replicas;
    uint32_t seen; /* slots from this number on never had an entry */
    uint32_t ttl;
    uint64_t slots_limit;
    struct crdt_index_stats stats; /* only the counts since the start; crdt_index_stats() fills in
                                    * the others */

    /* The sweeper. At the end of a lap, all entries already dead at the lap's start are gone. */
    uint32_t hand;
    uint32_t lap_left;                       /* buckets until this lap ends */
    uint32_t retirements;                    /* bits set in `retired` */
    uint32_t base;                           /* no generation in memory is older */
    uint32_t lap_floor;                      /* the floor when this lap began */
    uint64_t remains;                        /* upper bound of lost caches' entries in memory */
    uint64_t lap_remains;                    /* `remains` when this lap began */
    uint16_t retired[CRDT_REPLICAS_MAX];     /* bits of lost incarnations that may be in memory */
    uint16_t lap_retired[CRDT_REPLICAS_MAX]; /* `retired` when this lap began */
};

/* The floor for `now` if memory suffices. */
static inline uint32_t crdt_index_floor_at(const struct crdt_index *x, uint32_t now)
{
    return now > x->ttl ? now - x->ttl : 0;
}

/* Bytes of the fixed parts: everything but the table and the sets. */
uint64_t crdt_index_fixed_bytes(const struct crdt_index *x);

/* Begins a new lap of the sweeper, from where the hand is now. */
void crdt_index_lap_begin(struct crdt_index *x);

/* True if another slot may be used. Raises the floor if necessary, but never above `now`: entries
 * in use now are worth more than new entries. */
bool crdt_index_make_space(struct crdt_index *x);

/* --- bookkeeping: counters, digests and sketches change with the entries --------------------- */

/* An observation: everything needed for the bookkeeping of an entry. */
struct crdt_item {
    struct crdt_place place;
    uint64_t id;
    uint32_t generation;
    uint16_t replica;
    uint8_t code;
};

/* Books a new live entry, or an entry that moved up from the generation `known`. */
void crdt_index_book_new(struct crdt_index *x, const struct crdt_item *item);
void crdt_index_book_newer(struct crdt_index *x, const struct crdt_item *item, uint32_t known);
/* Books a dead entry whose memory is reused. */
void crdt_index_book_gone(struct crdt_index *x, uint64_t id, uint8_t code, uint32_t stamp);
/* Books a dead entry of the table, not a set, whose memory is reused. */
void crdt_index_book_gone_entry(struct crdt_index *x, uint32_t bucket, uint64_t entry);

/* As crdt_table_insert(), with the bookkeeping for the dead entry whose slot was taken. */
uint64_t *crdt_index_put(struct crdt_index *x, struct crdt_place place, uint64_t entry);

/* --- what the table knows of an id, for learning and for asking ------------------------------ */

struct crdt_lookup {
    uint64_t *entry;  /* the live single entry of the replica, or NULL */
    uint64_t *set;    /* the entry with the number of the id's set, or NULL */
    unsigned holders; /* live single entries, of any replica */
};

static inline void crdt_look_in(const struct crdt_index *x, uint32_t bucket, unsigned second,
                                uint32_t tag, uint8_t code, unsigned replica,
                                struct crdt_lookup *out)
{
    struct crdt_bucket *b = &x->table.bucket[bucket];
    for (unsigned found = crdt_bucket_find(b, tag, code, second); found != 0; found &= found - 1) {
        uint64_t *entry = &b->slot[__builtin_ctz(found)];
        uint32_t stamp = crdt_entry_stamp(*entry);
        if (crdt_entry_is_set(*entry)) {
            out->set = entry;
        } else if (crdt_stamp_alive(&x->window, stamp)) {
            out->holders++;
            if (crdt_stamp_replica(stamp) == replica)
                out->entry = entry;
        }
    }
}

static inline struct crdt_lookup crdt_look_up(const struct crdt_index *x, struct crdt_place place,
                                              uint8_t code, unsigned replica)
{
    struct crdt_lookup found = {0};
    crdt_look_in(x, place.first, 0, place.tag, code, replica, &found);
    bool done = found.entry != NULL || found.set != NULL;
    if (!done && x->table.bucket[place.first].overflow > 0)
        crdt_look_in(x, place.second, CRDT_ENTRY_SECOND, place.tag, code, replica, &found);
    return found;
}

#endif
