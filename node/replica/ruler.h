/* Where checkpoints of prompts stand in tokens, as answers told.
 *
 * Tokens of a part of a prompt are estimated from its bytes, and a cache is filled block by block.
 * But the next turn of a conversation begins with a prompt whose tokens an answer has told, and
 * what a system text leaves in the cache was told by whoever had it before. So what a prompt will
 * find is mostly known to the token: by the last checkpoint that it shares with what is held.
 *
 *   end of a prompt   its tokens, and those of its answer: as far as the engine computed. Whether
 *                     the next prompt repeats an answer is learned (most templates leave reasoning
 *                     out).
 *   a fork            cached tokens of a prompt that left there what was held
 *
 * A bounded memory: of NODE_RULER_WAYS in one place the oldest gives way. Names of checkpoints hold
 * the model (base/chain.h).
 */
#ifndef NODE_REPLICA_RULER_H
#define NODE_REPLICA_RULER_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/replica/learn.h"

enum { NODE_RULER_PLACES = 8192, NODE_RULER_WAYS = 4 };

struct node_ruler_mark {
    uint64_t id;         /* of the checkpoint; 0: none */
    uint32_t tail_bytes; /* of text beyond it, */
    uint32_t tokens;     /* up to there, from the prompt's beginning */
    uint32_t answer;     /* of the answer, beyond that; 0 of a fork */
};

struct node_ruler;

/* ERR_NOMEM. */
MUST_USE int node_ruler_create(struct node_ruler **out);
void node_ruler_destroy(struct node_ruler *r);

void node_ruler_note(struct node_ruler *r, const struct node_ruler_mark *mark);
/* The last one that was noted of that checkpoint; NULL: none is. Valid until the next note. */
const struct node_ruler_mark *node_ruler_at(const struct node_ruler *r, uint64_t id);

/* Appends the next marks, at most NODE_RULER_KEPT, as bytes for the next life of this process.
 * Begin with *at = 0. 1, or 0 and nothing: there are no more. ERR_NOMEM. */
enum { NODE_RULER_KEPT = 1024 };
MUST_USE int node_ruler_keep(const struct node_ruler *r, unsigned *at, struct buf *out);
/* Notes what one such call appended. */
void node_ruler_recall(struct node_ruler *r, struct slice kept);

/* Tokens that a prompt which goes on behind the mark finds, where all of it is held. */
double node_ruler_tokens(const struct node_ruler *r, const struct node_ruler_mark *mark);
/* Such a prompt found so many of them, in blocks of `block` tokens (0: not known). */
void node_ruler_found(struct node_ruler *r, const struct node_ruler_mark *mark, double tokens,
                      double block);

#endif
