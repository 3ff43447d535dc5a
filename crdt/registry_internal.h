/* Shared by the registry's files. Each file calls only files above it in this list:
 *
 *   registry_rank.c    the order of rows
 *   registry_places.c  places of rows, lookups
 *   registry.c         rows: joining, wishes, asking
 *   registry_life.c    time, forgetting, the invariants */
#ifndef CRDT_REGISTRY_INTERNAL_H
#define CRDT_REGISTRY_INTERNAL_H

#include "base/hash.h"
#include "crdt/registry.h"

enum {
    CRDT_REGISTRY_PLACES_MAX = CRDT_REPLICAS_MAX + CRDT_ROWS_MAX,
    CRDT_LOOKUP_PLACES = 4 * CRDT_ROWS_MAX, /* open addressing, so mostly empty */
};

/* A hash table from a key to a place, with linear probing; 0 is empty. Entries are never removed.
 * Instead the table is rebuilt when an rkey changes or a row is removed, which is rare. */
struct crdt_registry_lookup {
    uint16_t place[CRDT_LOOKUP_PLACES];
};

struct crdt_registry {
    struct crdt_registry_config config; /* with defaults in place of zeroes */
    unsigned places;                    /* config.slots places for slots, then config.rows_max
                                         * places for waiting rows */
    unsigned count;                     /* greatest slot ever used, plus 1 */
    uint32_t now, floor;                /* seconds */
    uint64_t version;
    uint64_t digest;
    struct crdt_registry_stats stats;
    char no_name[CRDT_NAME_MAX]; /* the last invalid name */
    uint16_t no_name_len;
    uint64_t no_name_by;       /* the router that sent the last invalid name */
    struct hash_secret secret; /* a constant: all routers must compute the same keys */
    struct crdt_registry_lookup by_key, by_rkey;
    bool held[CRDT_REPLICAS_MAX];
    uint64_t news[(CRDT_REGISTRY_PLACES_MAX + 63) / 64];
    unsigned news_count;
    uint32_t rkey_before[CRDT_REPLICAS_MAX]; /* by slot: the rkey before the present rkey; for
                                              * BUG(SKIP_FENCE) */
    /* The arrays below are indexed by place. Memory pages without rows are never touched. */
    uint32_t rkey[CRDT_REGISTRY_PLACES_MAX]; /* 0: no row at this place */
    uint64_t hash[CRDT_REGISTRY_PLACES_MAX];
    struct crdt_replica row[CRDT_REGISTRY_PLACES_MAX];
};

static inline bool crdt_registry_occupied(const struct crdt_registry *r, unsigned place)
{
    return r->row[place].name_len > 0;
}

static inline bool crdt_registry_is_news(const struct crdt_registry *r, unsigned place)
{
    return r->news[place / 64] >> place % 64 & 1;
}

/* --- registry_rank.c --- */

/* A row with a lower standing goes first. */
enum crdt_standing {
    CRDT_STANDING_OWN, /* named or lately seen up by this router */
    CRDT_STANDING_TOLD,
    CRDT_STANDING_EXCESS, /* beyond CRDT_TOLD_MAX names of a router */
    CRDT_STANDING_DOWN,   /* this router tried the replica, and it did not answer */
    CRDT_STANDING_REMOVED,
};
/* A row's rank: smaller rows get slots first and are kept first. */
struct crdt_registry_rank {
    enum crdt_standing standing;
    uint32_t born;
    uint64_t key;
};
bool crdt_registry_is_smaller(struct crdt_registry_rank a, struct crdt_registry_rank b);
struct crdt_registry_rank crdt_registry_rank_of(const struct crdt_registry *r,
                                                const struct crdt_replica *row);
/* True if this router saw the replica up within `ttl_s`. */
bool crdt_registry_is_up(const struct crdt_registry *r, const struct crdt_replica *row);

/* --- registry.c --- */

/* Updates hash, digest and version after a change of the row. */
void crdt_registry_rehash(struct crdt_registry *r, unsigned place);
/* True if all data derived from the row is correct. */
bool crdt_registry_is_derived(const struct crdt_registry *r, unsigned place);

/* --- registry_places.c --- */

/* The place of an rkey's row, or -1. */
MUST_USE int crdt_registry_find_rkey(const struct crdt_registry *r, uint32_t rkey);
/* Rebuilds both look-ups after changes of rows. */
void crdt_registry_index(struct crdt_registry *r);
/* Returns a place for another row of this rank: a slot if a slot is free and no row waits,
 * otherwise a place to wait. If rows_max rows are kept, removes the greatest of them. ERR_FULL: the
 * new row would be the greatest. */
MUST_USE int crdt_registry_room(struct crdt_registry *r, struct crdt_registry_rank rank);
/* Books a row that was written to `place`. */
void crdt_registry_occupy(struct crdt_registry *r, unsigned place);
/* A row was added or removed, or changed rank: decides again which rows are in use and which
 * wait. */
void crdt_registry_arrange(struct crdt_registry *r);
/* crdt_registry_next_in(): the place of the waiting row that is next to get a slot.
 * crdt_registry_next_out(): the place of the row that would lose its slot to a waiting row. -1:
 * there is no such row. */
MUST_USE int crdt_registry_next_in(const struct crdt_registry *r);
MUST_USE int crdt_registry_next_out(const struct crdt_registry *r);
/* Removes the row. The caller must call crdt_registry_index() afterwards. */
void crdt_registry_remove(struct crdt_registry *r, unsigned place);

#endif
