/* How many blocks each replica was last seen using in each generation. The routing rule walks these
 * counters to estimate what a cache still holds and what a prompt would evict.
 *
 * The counters follow from the live entries of the index, but a routing decision has no time to
 * walk all entries. Each replica has a ring, long enough for all live generations. The ring's other
 * places are 0.
 *
 * In a replicated index each counter comes with a digest, the sum modulo 2^64 of the entries'
 * hashes. Two routers compare digests to see whether they hold the same entries.
 */
#ifndef CRDT_COUNTS_H
#define CRDT_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct crdt_counts {
    uint32_t *blocks;        /* blocks by [replica][generation & mask] */
    uint32_t *entries;       /* entries by [replica][generation & mask] */
    uint64_t *blocks_total;  /* blocks in all generations, by [replica] */
    uint64_t *entries_total; /* entries in all generations, by [replica] */
    uint64_t *by_generation; /* entries of all replicas by [generation & mask] */
    uint64_t *digest;        /* sums of entries' hashes by [replica][generation & mask]; NULL: not
                              * kept */
    uint64_t *digest_by_generation;
    struct crdt_counts_part { /* members are NULL until crdt_counts_split() */
        uint32_t *blocks;     /* as crdt_counts.blocks; part 1: ids apart, part 0: all others */
        uint64_t *blocks_total;
    } parts[2];
    uint64_t live; /* entries of all replicas and generations */
    uint32_t replicas;
    uint32_t mask;
};

/* Bytes allocated by crdt_counts_init(). */
uint64_t crdt_counts_bytes(uint32_t replicas, uint32_t generations, bool digests);
MUST_USE int crdt_counts_init(struct crdt_counts *c, uint32_t replicas, uint32_t generations,
                              bool digests);
void crdt_counts_free(struct crdt_counts *c);
/* From now on also counts ids apart and other ids separately, starting at 0. The caller adds the
 * existing entries with crdt_counts_part_add(). ERR_NOMEM. */
MUST_USE int crdt_counts_split(struct crdt_counts *c);
/* Bytes allocated by crdt_counts_split(); 0: not split. */
uint64_t crdt_counts_split_bytes(const struct crdt_counts *c);
void crdt_counts_part_add(struct crdt_counts *c, unsigned replica, uint32_t generation,
                          uint32_t weight, bool apart);

/* True if the counter has room for another entry of this weight. */
bool crdt_counts_fits(const struct crdt_counts *c, unsigned replica, uint32_t generation,
                      uint32_t weight);
/* `hash`: the entry's hash, used if digests are kept. `apart`: crdt_index_is_apart() of the entry's
 * id. */
void crdt_counts_add(struct crdt_counts *c, unsigned replica, uint32_t generation, uint32_t weight,
                     uint64_t hash, bool apart);
void crdt_counts_subtract(struct crdt_counts *c, unsigned replica, uint32_t generation,
                          uint32_t weight, uint64_t hash, bool apart);

/* Both return the number of removed entries. */
uint64_t crdt_counts_drop_generation(struct crdt_counts *c, uint32_t generation);
uint64_t crdt_counts_drop_replica(struct crdt_counts *c, unsigned replica);

#endif
