/* What an engine tells of an answer, before it is believed: what cannot be true is not added up as
 * it came, and teaches nothing. Engines do tell such: one that recomputes a request may count what
 * it finds cached each time, and then more of the prompt was cached than there is. */
#ifndef NODE_REPLICA_USAGE_H
#define NODE_REPLICA_USAGE_H

#include <stdbool.h>

#include "node/replica/terms.h"

/* Corrects what cannot be true. A count beyond NODE_USAGE_TOKENS_MAX reads as not reported (-1; of
 * media 0). More cached tokens than the prompt has are all of it; more media tokens read as not
 * reported. False: there was something. */
bool node_usage_clean(struct node_usage *usage);

#endif
