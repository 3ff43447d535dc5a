/* Checks the usage of an answer before the router believes it: impossible figures are corrected,
 * and teach nothing. Engines do report such figures. For example, an engine recomputing a request
 * may count the cached tokens each time, and so report more than the prompt has. */
#ifndef NODE_REPLICA_USAGE_H
#define NODE_REPLICA_USAGE_H

#include <stdbool.h>

#include "node/replica/terms.h"

/* Corrects impossible figures. A count beyond NODE_USAGE_TOKENS_MAX reads as not reported (-1; for
 * media 0). If there are more cached tokens than prompt tokens, the prompt's number is used. If
 * there are more media tokens than prompt tokens, they read as not reported. Returns false if a
 * figure was impossible. */
bool node_usage_clean(struct node_usage *usage);

#endif
