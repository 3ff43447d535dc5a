/* The checkpoints' positions in tokens, as reported in answers.
 *
 * The tokens of a part of a prompt are estimated from bytes, and a cache is filled block by block.
 * But the next turn of a conversation begins with an earlier prompt, whose tokens an answer has
 * reported. The cached tokens of a system text were reported by an earlier answer too. So the
 * cached tokens of a new prompt are mostly known exactly: by the last checkpoint shared by the
 * prompt and the cache.
 *
 *     end of a prompt   the tokens of the prompt and the answer, all of which the engine computed.
 *                       The router learns whether the next prompt repeats the answer (most
 *                       templates leave reasoning out).
 *     a fork            cached tokens of a prompt which left the cached path there
 *
 * Memory is bounded: each place has NODE_RULER_WAYS marks, and a new mark replaces the oldest. The
 * model is part of a checkpoint's id (base/chain.h). */
#ifndef NODE_REPLICA_RULER_H
#define NODE_REPLICA_RULER_H

#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "node/replica/learn.h"

enum { NODE_RULER_PLACES = 8192, NODE_RULER_WAYS = 4 };

struct node_ruler_mark {
    uint64_t id;         /* id of the checkpoint; 0: none */
    uint32_t tail_bytes; /* bytes of text between the checkpoint and the mark */
    uint32_t tokens;     /* tokens from the prompt's beginning to the mark */
    uint32_t answer;     /* tokens of the answer after the mark; 0 for a fork */
};

struct node_ruler;

/* ERR_NOMEM. */
MUST_USE int node_ruler_create(struct node_ruler **out);
void node_ruler_destroy(struct node_ruler *r);

void node_ruler_note(struct node_ruler *r, const struct node_ruler_mark *mark);
/* The last mark noted for the checkpoint `id`; NULL: none. Valid until the next note. */
const struct node_ruler_mark *node_ruler_at(const struct node_ruler *r, uint64_t id);

/* Appends the next marks, at most NODE_RULER_KEPT, as bytes for the next start of this process.
 * Begin with *at = 0. Returns 1; or 0, with nothing appended, if there are no more. ERR_NOMEM. */
enum { NODE_RULER_KEPT = 1024 };
MUST_USE int node_ruler_keep(const struct node_ruler *r, unsigned *at, struct buf *out);
/* Notes the marks appended by a call of node_ruler_keep(). */
void node_ruler_recall(struct node_ruler *r, struct slice kept);

/* Cached tokens of a prompt that continues after the mark, if everything up to the mark is
 * cached. */
double node_ruler_tokens(const struct node_ruler *r, const struct node_ruler_mark *mark);
/* A prompt that continues after the mark had this number of cached tokens, in blocks of `block`
 * tokens (0: not known). */
void node_ruler_found(struct node_ruler *r, const struct node_ruler_mark *mark, double tokens,
                      double block);

#endif
