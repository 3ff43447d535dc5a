/* Checks the usage of an answer before the router believes it: impossible figures are corrected,
 * and teach nothing. Engines do report such figures. For example, an engine that recomputes a
 * request may count its cached tokens each time, so that they exceed the prompt. */
#ifndef NODE_REPLICA_USAGE_H
#define NODE_REPLICA_USAGE_H

#include <stdbool.h>

#include "node/replica/terms.h"

/* Corrects impossible figures. A count beyond NODE_USAGE_TOKENS_MAX reads as not reported (-1; for
 * media 0). More cached tokens than the prompt has are cut to the prompt; more media tokens read as
 * not reported. Returns false if a figure was impossible. */
bool node_usage_clean(struct node_usage *usage);

#endif
