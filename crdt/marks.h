/* Marks correct the index for single checkpoints, from an engine's KV-cache events: the engine
 * evicted the checkpoint (*gone*), or holds it although the index says no (*present*). Marks are
 * index entries too.
 *
 * A cache may turn over several times within a generation. So a checkpoint has CRDT_WORDS *words*
 * for each generation, which mean gone, present, gone and so on. A word is an index entry of weight
 * 0 with a separate id (crdt_word_id). Only words with the same generation as the first word count,
 * and the last of these is valid. In a later generation the words start again with the first word.
 * A checkpoint observed in a later generation is held:
 *
 *     observed(g) < gone(g) < present(g) < gone(g) < ... < observed(g + 1)
 *
 * Each entry is a maximum, so marks join in any order, like the whole index. Forgetting commutes
 * with joining: a mark is never older than the contradicted observation, so the mark falls below
 * the floor no sooner.
 */
#ifndef CRDT_MARKS_H
#define CRDT_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "crdt/state.h"

enum { CRDT_WORDS = 8 }; /* words of a checkpoint per generation */

/* The id of a checkpoint's word, an entry with weight code CHECKPOINT_CODE_BINDING. The id depends
 * on the low 48 bits of the checkpoint's `id`, and must be the same at all routers and in all
 * versions. */
static inline uint64_t crdt_word_id(uint64_t id, unsigned word)
{
    uint64_t name = UINT64_C(0x676f6e6500000000) + ((uint64_t)word << 48);
    return hash_mix((id & 0xffffffffffff) ^ name) & 0xffffffffffff;
}

/* True if the checkpoint is marked gone on the replica. `generation`: the generation of the
 * checkpoint's entry; 0: no entry. */
bool crdt_index_is_gone(const struct crdt_index *x, uint64_t id, unsigned replica,
                        uint32_t generation);

/* Marks a checkpoint gone, for the reader of KV-cache events. The word is queued for the other
 * routers like any observation of this router. 1: it was news. 0: the word would change nothing and
 * was not written. ERR_AGAIN: all words of this generation are used up, try again later. Errors as
 * crdt_state_observe().
 *
 * A checkpoint without an index entry is not marked. */
MUST_USE int crdt_state_mark_gone(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot);
/* Marks a checkpoint present, and observes it in the present generation or `floor`, whichever is
 * later. The caller ignores entries below `floor`. A `floor` above now + 1 counts as now + 1. */
MUST_USE int crdt_state_mark_present(struct crdt_state *s, uint64_t id, uint8_t code, unsigned slot,
                                     uint32_t floor);

#endif
