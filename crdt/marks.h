/* What a router that reads an engine's KV-cache events says of single checkpoints: that one was
 * evicted there (*gone*), or is held though the index says no (*present*). Exceptions to what is
 * inferred, in the currency of the index.
 *
 * `present` is an ordinary observation. `gone` is an entry of weight 0 beside it, of another id
 * (crdt_gone_id). A checkpoint counts as held exactly if the generation of its own entry is greater
 * than that of its gone entry. For one checkpoint and cache that is a lattice of two maxima, in the
 * order
 *
 *     present(g) < gone(g) < present(g + 1) < gone(g + 1)
 *
 * so marks join in any order, like all of the index. Forgetting commutes: a gone entry is no older
 * than the entry that it contradicts, so it falls below the floor no sooner.
 */
#ifndef CRDT_MARKS_H
#define CRDT_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "crdt/state.h"

/* The id of the gone entry, with CHECKPOINT_CODE_BINDING, of a checkpoint of which the low 48 bits
 * count. The same at all routers and in all versions. */
static inline uint64_t crdt_gone_id(uint64_t id)
{
    return hash_mix((id & 0xffffffffffff) ^ UINT64_C(0x676f6e6500000000)) & 0xffffffffffff;
}

/* Whether a checkpoint whose own entry is of `generation` (0: or it has none) is gone there. */
bool crdt_index_is_gone(const struct crdt_index *x, uint64_t id, unsigned replica,
                        uint32_t generation);

/* The reader's word, which is queued for the others like any own observation. 1: it was news. 0:
 * nothing is said, for it would change nothing. Errors as crdt_state_observe().
 *
 * Gone: in the present generation, or in that of the entry that it contradicts if that is greater.
 * Nothing is said of what is not in the index. */
MUST_USE int crdt_state_mark_gone(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot);
/* Present: in the first generation from the present one on that is greater than that of the gone
 * entry and no less than `floor`, below which the caller holds nothing for present (it counts as at
 * most now + 1). ERR_AGAIN: the gone entry is of the next generation; say it again later. */
MUST_USE int crdt_state_mark_present(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot,
                                     uint32_t floor);

#endif
