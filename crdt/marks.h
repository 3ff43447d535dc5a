/* Marks correct the index for single checkpoints, from an engine's KV-cache events: the checkpoint
 * was evicted there (*gone*), or is held although the index says no (*present*). They are index
 * entries themselves.
 *
 * A cache may turn over several times within a generation. So a checkpoint has CRDT_WORDS *words*
 * for each, alternately gone and present: entries of weight 0 beside its own, each with another id
 * (crdt_word_id). A generation's first word is gone; a word repeated in a later generation begins
 * anew there. Among the words with the first one's generation the last counts. A checkpoint
 * observed in a later generation is held:
 *
 *     observed(g) < gone(g) < present(g) < gone(g) < ... < observed(g + 1)
 *
 * Each entry is a maximum, so marks join in any order, like all of the index. Forgetting commutes:
 * a mark is no older than the observation that it contradicts, so the mark falls below the floor no
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

/* True if a checkpoint is gone there. `generation`: of its own entry; 0: no entry. */
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
