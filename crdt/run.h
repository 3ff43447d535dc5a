/* A run: observations of a single cache in a single generation, as they are queued, sent and
 * received.
 *
 * On the wire: the length of the rest, rkey 4, generation 4, the weight codes in *pieces*, then 6
 * bytes an id. The pieces end where the remaining bytes are exactly the ids for all codes so far.
 * Codes cost next to nothing: a decision on a prompt yields neighbouring checkpoints, and the code
 * of a checkpoint follows from the ordinal (base/checkpoint.h). A piece is (start, length):
 *
 *   start < CHECKPOINT_MAX     the codes of the ordinals start, start + 1, ...
 *   otherwise                  `length` times the code start - CHECKPOINT_MAX
 *
 * A run does not record the true ordinal: any ordinal with the same codes will do.
 */
#ifndef CRDT_RUN_H
#define CRDT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/wire.h"
#include "crdt/limits.h"

enum {
    CRDT_RUN_OVERHEAD_MAX = 14 /* bytes of a run with 1 piece, without the ids */
};

/* An observation in one word: the id in the low 48 bits, the weight code above. */
static inline uint64_t crdt_point(uint64_t id, uint8_t code)
{
    return (id & 0xffffffffffff) | (uint64_t)code << 48;
}

struct crdt_run {
    uint32_t rkey;
    uint32_t generation;
    unsigned count;      /* 1 .. CRDT_RUN_MAX */
    struct slice pieces; /* borrowed */
    struct slice ids;
};

/* Writes a run with the length in front, of as many points as fit and a run may have. Returns the
 * number of points, 0 if none fits. */
unsigned crdt_run_write(struct wire_writer *w, uint32_t rkey, uint32_t generation,
                        const uint64_t *points, unsigned count);
/* Reads and checks a run that fills the rest of `r`, after the length. Sets r->bad if it is
 * malformed. */
void crdt_run_read(struct wire_reader *r, struct crdt_run *out);
/* Unpacks `count` ids and codes. */
void crdt_run_unpack(const struct crdt_run *run, uint64_t ids[CRDT_RUN_MAX],
                     uint8_t codes[CRDT_RUN_MAX]);

#endif
