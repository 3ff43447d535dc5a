/* Shared by the registry's files. Each calls only those above it:
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

/* A table from a number to a place, by linear probing; 0 is empty. Nothing is taken out: it is
 * filled anew when an rkey changes or a row goes, which is rare. */
struct crdt_registry_lookup {
    uint16_t place[CRDT_LOOKUP_PLACES];
};

struct crdt_registry {
    struct crdt_registry_config config; /* without zeroes */
    unsigned places;                    /* config.slots, then config.rows_max to wait */
    unsigned count;                     /* one more than the greatest slot that was ever in use */
    uint32_t now, floor;                /* seconds */
    uint64_t version;
    uint64_t digest;
    struct crdt_registry_stats stats;
    char no_name[CRDT_NAME_MAX]; /* the last of stats.no_names, */
    uint16_t no_name_len;
    uint64_t no_name_by;       /* and its sender */
    struct hash_secret secret; /* a constant: all routers must compute the same keys */
    struct crdt_registry_lookup by_key, by_rkey;
    bool held[CRDT_REPLICAS_MAX];
    uint64_t news[(CRDT_REGISTRY_PLACES_MAX + 63) / 64];
    unsigned news_count;
    uint32_t rkey_before[CRDT_REPLICAS_MAX]; /* for BUG(SKIP_FENCE) */
    /* By place; pages that no row needs are never touched. */
    uint32_t rkey[CRDT_REGISTRY_PLACES_MAX]; /* of the row; 0: there is none */
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

/* The less, the better. */
enum crdt_standing {
    CRDT_STANDING_OWN, /* named by this router, or seen up lately */
    CRDT_STANDING_TOLD,
    CRDT_STANDING_EXCESS, /* told by a router that told many that were not seen up */
    CRDT_STANDING_DOWN,   /* tried, and nothing serves there */
    CRDT_STANDING_REMOVED,
};
/* The place of a row in the order of those that have slots, and are kept. */
struct crdt_registry_rank {
    enum crdt_standing standing;
    uint32_t born;
    uint64_t key;
};
bool crdt_registry_is_smaller(struct crdt_registry_rank a, struct crdt_registry_rank b);
struct crdt_registry_rank crdt_registry_rank_of(const struct crdt_registry *r,
                                                const struct crdt_replica *row);
/* This router saw it up lately. */
bool crdt_registry_is_up(const struct crdt_registry *r, const struct crdt_replica *row);

/* --- registry.c --- */

/* The row changed: its hash, the digest and the version follow. */
void crdt_registry_rehash(struct crdt_registry *r, unsigned place);
/* True if the data derived from the row is right. */
bool crdt_registry_is_derived(const struct crdt_registry *r, unsigned place);

/* --- registry_places.c --- */

/* The place of an rkey's row, or -1. */
MUST_USE int crdt_registry_find_rkey(const struct crdt_registry *r, uint32_t rkey);
/* Both look-ups follow what happened to the rows. */
void crdt_registry_index(struct crdt_registry *r);
/* Room for one more row of this rank: a slot if one is free and nobody waits, a place to wait, or
 * ERR_FULL. */
MUST_USE int crdt_registry_room(struct crdt_registry *r, struct crdt_registry_rank rank);
/* A row stands there now. */
void crdt_registry_occupy(struct crdt_registry *r, unsigned place);
/* A row came, went, or changed its rank: decides again which rows are in use and which wait. */
void crdt_registry_arrange(struct crdt_registry *r);
/* The row that waits and is next to have a slot, and that which would give its own; or -1. */
MUST_USE int crdt_registry_next_in(const struct crdt_registry *r);
MUST_USE int crdt_registry_next_out(const struct crdt_registry *r);
/* The row is gone; crdt_registry_index() has to follow. */
void crdt_registry_remove(struct crdt_registry *r, unsigned place);

#endif
