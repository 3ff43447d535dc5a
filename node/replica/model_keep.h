/* Figures that answers taught about models, as bytes for the next life of this process: tokens of a
 * prompt, and lengths of answers. The router asks the replicas again which models they serve. */
#ifndef NODE_REPLICA_MODEL_KEEP_H
#define NODE_REPLICA_MODEL_KEEP_H

#include "base/buf.h"
#include "node/replica/model.h"

/* Appends the next ones, at most NODE_MODELS_KEPT; begin with *at = 0. 1, or 0 and nothing: there
 * are no more. ERR_NOMEM. */
enum { NODE_MODELS_KEPT = 64 };
MUST_USE int node_models_keep(struct node_models *m, unsigned *at, struct buf *out);

/* Takes in what one such call appended, of models of which nothing was learned yet. What is
 * malformed, and what the table has no place for, is learned anew. */
void node_models_recall(struct node_models *m, struct slice kept);

#endif
