/* A batch of observations of any caches and generations: a snapshot carries millions of them.
 *
 * Entries come in the order of the index's table. A batch begins with a small table of the caches
 * in it and with the oldest generation. An entry is an id (6 bytes) and a tail. The tail packs
 * weight code, generation and cache in as many bits as this batch needs, rounded up to bytes (two
 * or three). Neighbouring entries of the same id and code (a set of holders) share the id. In this
 * layout a number is a size in bytes:
 *
 *   caches 2, { rkey 4 }, oldest generation 4, bits of a generation 1, of a cache 1,
 *   singles varint, sets varint,
 *   { id 6, tail }                      for each single entry
 *   { id 6, code 1, count varint, { tail without code } }     for each set
 */
#ifndef CRDT_BATCH_H
#define CRDT_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"
#include "base/wire.h"
#include "crdt/limits.h"

struct crdt_batch_entry {
    uint64_t id48;
    uint32_t generation;
    uint16_t slot;
    uint8_t code;
};

/* Appends a batch of `count` > 0 entries; `rkey_of_slot` has CRDT_REPLICAS_MAX rkeys. The entries'
 * generations must be less than 4,096 apart. ERR_NOMEM. */
MUST_USE int crdt_batch_append(struct buf *out, const struct crdt_batch_entry *entries,
                               unsigned count, const uint32_t *rkey_of_slot);

struct crdt_batch {
    unsigned caches;
    struct slice rkeys;
    uint32_t oldest;
    uint8_t generation_bits;
    uint8_t cache_bits;
    unsigned singles;
    unsigned sets;
    struct slice singles_bytes; /* borrowed */
    struct slice sets_bytes;
};

/* Reads and checks a whole batch; sets r->bad if it is malformed. */
void crdt_batch_read(struct wire_reader *r, struct crdt_batch *out);

/* Unpacks a checked batch piece by piece: each call writes up to `max` entries to `out` and returns
 * their number, 0 at the end. An entry's `slot` is the index of the cache in the batch's table of
 * caches. */
struct crdt_batch_reader {
    const struct crdt_batch *block;
    struct wire_reader singles;
    struct wire_reader sets;
    uint64_t id48;
    uint32_t set_left;
    uint8_t code;
};
struct crdt_batch_reader crdt_batch_reader_of(const struct crdt_batch *block);
unsigned crdt_batch_next(struct crdt_batch_reader *r, struct crdt_batch_entry *out, unsigned max);

#endif
