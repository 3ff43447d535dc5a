/* Figures that answers taught about models, as bytes for the next life of this process: tokens of a
 * prompt, and lengths of answers. The router asks the replicas again which models they serve. */
#ifndef NODE_REPLICA_MODEL_KEEP_H
#define NODE_REPLICA_MODEL_KEEP_H

#include "base/buf.h"
#include "node/replica/model.h"

/* Appends the figures of the next models, at most NODE_MODELS_KEPT. Begin with *at = 0. Returns 1;
 * or 0, with nothing appended, if there are no more. ERR_NOMEM. */
enum { NODE_MODELS_KEPT = 64 };
MUST_USE int node_models_keep(struct node_models *m, unsigned *at, struct buf *out);

/* Takes in what one call of node_models_keep() appended, for models of which nothing was learned
 * yet. Malformed figures, and those that the table has no place for, are learned again. */
void node_models_recall(struct node_models *m, struct slice kept);

#endif
