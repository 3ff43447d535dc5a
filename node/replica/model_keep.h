/* Figures learned about models, as bytes for the next start of this process: tokens of a prompt,
 * and lengths of answers. After the start the router asks the replicas again which models they
 * serve. */
#ifndef NODE_REPLICA_MODEL_KEEP_H
#define NODE_REPLICA_MODEL_KEEP_H

#include "base/buf.h"
#include "node/replica/model.h"

/* Appends the figures of the next models, at most NODE_MODELS_KEPT. Begin with *at = 0. Returns 1;
 * or 0, with nothing appended, if there are no more. ERR_NOMEM. */
enum { NODE_MODELS_KEPT = 64 };
MUST_USE int node_models_keep(struct node_models *m, unsigned *at, struct buf *out);

/* Takes in the bytes from a call of node_models_keep(), for models without learned figures.
 * Malformed figures, and figures without a place in the table, are learned again. */
void node_models_recall(struct node_models *m, struct slice kept);

#endif
