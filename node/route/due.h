/* What a slow replica is due. By its cost alone a replica that is much slower than the others
 * stands idle while even the cheapest has a line: every answer would be slower there. Whoever waits
 * in the line would rather have begun (docs/adr/0039). Pure.
 */
#ifndef NODE_ROUTE_DUE_H
#define NODE_ROUTE_DUE_H

#include "node/route/policy.h"

/* Sets is_due of the candidates, whose costs are known. The cheapest of those that are; `count`:
 * none is. */
unsigned node_due_find(struct node_candidate *candidates, unsigned count);

#endif
