/* Finds slow replicas that are due: idle, with less work than their speed allows. If only costs
 * counted, a much slower replica would stay idle even while the cheapest replica has a queue,
 * because each answer would be slower there. But a request would begin sooner there than in the
 * queue (docs/adr/0039). Pure. */
#ifndef NODE_ROUTE_DUE_H
#define NODE_ROUTE_DUE_H

#include "node/route/policy.h"

/* Sets is_due of the candidates. Call after their costs are known. Returns the index of the
 * cheapest due candidate; `count`: none. */
unsigned node_due_find(struct node_candidate *candidates, unsigned count);

#endif
