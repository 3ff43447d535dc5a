/* One line of the Prometheus text exposition format 0.0.4, or of OpenMetrics 1.0: a name, labels, a
 * value. All slices are borrowed from the text. */
#ifndef NODE_REPLICA_EXPOSITION_H
#define NODE_REPLICA_EXPOSITION_H

#include "base/err.h"
#include "base/slice.h"

/* The line without blanks before it and the CR behind it; empty: it has no sample. */
struct slice node_exposition_line(struct slice line);
/* The name, which `line` loses; empty: it does not begin with one. */
struct slice node_exposition_name(struct slice *line);

typedef void (*node_exposition_label)(void *context, struct slice name, struct slice value);
/* What stands behind the name. A value of a label keeps its escapes. Behind the value a timestamp
 * and an exemplar are allowed and passed over. ERR_SYNTAX. */
MUST_USE int node_exposition_sample(struct slice rest, node_exposition_label each, void *context,
                                    double *value);

#endif
