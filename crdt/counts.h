/* How many blocks each replica was last seen using in each generation. The routing rule walks these
 * counters to estimate what a cache still holds and what a prompt would push out of it.
 *
 * They can be derived from the live entries of the index, and are kept so that no decision walks
 * those. One ring per replica, long enough for all live generations; places outside of them are 0.
 *
 * A replicated index has a digest beside each counter, the sum modulo 2^64 of one hash per entry:
 * two routers compare digests to see whether they hold the same.
 */
#ifndef CRDT_COUNTS_H
#define CRDT_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct crdt_counts {
    uint32_t *blocks;        /* [replica][generation & mask] */
    uint32_t *entries;       /* the same, counting entries */
    uint64_t *blocks_total;  /* [replica] */
    uint64_t *entries_total; /* [replica] */
    uint64_t *by_generation; /* [generation & mask], entries of all replicas */
    uint64_t *digest;        /* [replica][generation & mask]; NULL: none is kept */
    uint64_t *digest_by_generation;
    struct crdt_counts_part { /* NULL: not split */
        uint32_t *blocks; /* as above, of the entries that are not apart, and of those that are */
        uint64_t *blocks_total;
    } parts[2];
    uint64_t live; /* entries of all replicas and generations */
    uint32_t replicas;
    uint32_t mask;
};

/* Bytes that crdt_counts_init() will allocate. */
uint64_t crdt_counts_bytes(uint32_t replicas, uint32_t generations, bool digests);
MUST_USE int crdt_counts_init(struct crdt_counts *c, uint32_t replicas, uint32_t generations,
                              bool digests);
void crdt_counts_free(struct crdt_counts *c);
/* Counts entries apart and others each by themselves, too, from zero on: the caller adds what there
 * is with crdt_counts_part_add(). ERR_NOMEM. */
MUST_USE int crdt_counts_split(struct crdt_counts *c);
void crdt_counts_part_add(struct crdt_counts *c, unsigned replica, uint32_t generation,
                          uint32_t weight, bool apart);

/* True if the counter has room for one more entry of this weight. */
bool crdt_counts_fits(const struct crdt_counts *c, unsigned replica, uint32_t generation,
                      uint32_t weight);
/* `hash` of the entry, if digests are kept; `apart`: by its id (crdt_index_is_apart()). */
void crdt_counts_add(struct crdt_counts *c, unsigned replica, uint32_t generation, uint32_t weight,
                     uint64_t hash, bool apart);
void crdt_counts_subtract(struct crdt_counts *c, unsigned replica, uint32_t generation,
                          uint32_t weight, uint64_t hash, bool apart);

/* Both return how many entries went. */
uint64_t crdt_counts_drop_generation(struct crdt_counts *c, uint32_t generation);
uint64_t crdt_counts_drop_replica(struct crdt_counts *c, unsigned replica);

#endif
