/* What a router that reads an engine's KV-cache events says of single checkpoints: that one was
 * evicted there (*gone*), or is held though the index says no (*present*). Exceptions to what is
 * inferred, in the currency of the index.
 *
 * A cache may turn over several times within a generation, so a checkpoint has CRDT_WORDS *words*
 * for each, gone and present by turns: entries of weight 0 beside its own, each of another id
 * (crdt_word_id). The first word of a generation is gone; a word that is said again in a later
 * generation begins anew there. So of the words that have the generation of the first one the last
 * counts, but what was observed in a later generation is held:
 *
 *     observed(g) < gone(g) < present(g) < gone(g) < ... < observed(g + 1)
 *
 * Each entry is a maximum, so marks join in any order, like all of the index. Forgetting commutes:
 * a word is no older than the observation that it contradicts, so it falls below the floor no
 * sooner.
 */
#ifndef CRDT_MARKS_H
#define CRDT_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "crdt/state.h"

enum { CRDT_WORDS = 8 }; /* of a checkpoint in one generation */

/* The id of a word, with CHECKPOINT_CODE_BINDING, of a checkpoint of which the low 48 bits count.
 * The same at all routers and in all versions. */
static inline uint64_t crdt_word_id(uint64_t id, unsigned word)
{
    uint64_t name = UINT64_C(0x676f6e6500000000) + ((uint64_t)word << 48);
    return hash_mix((id & 0xffffffffffff) ^ name) & 0xffffffffffff;
}

/* Whether a checkpoint whose own entry is of `generation` (0: or it has none) is gone there. */
bool crdt_index_is_gone(const struct crdt_index *x, uint64_t id, unsigned replica,
                        uint32_t generation);

/* The reader's word, which is queued for the others like any own observation. 1: it was news. 0:
 * nothing is said, for it would change nothing. ERR_AGAIN: all words of this generation are said;
 * say it again later. Errors as crdt_state_observe().
 *
 * Nothing is said of what is not in the index. */
MUST_USE int crdt_state_mark_gone(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot);
/* It is observed, too: in the present generation or `floor`, below which the caller holds nothing
 * for present (it counts as at most now + 1). */
MUST_USE int crdt_state_mark_present(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot,
                                     uint32_t floor);

#endif
