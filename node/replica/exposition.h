/* A line of the Prometheus text exposition format 0.0.4, or of OpenMetrics 1.0: a name, labels, a
 * value. All slices are borrowed from the text. */
#ifndef NODE_REPLICA_EXPOSITION_H
#define NODE_REPLICA_EXPOSITION_H

#include "base/err.h"
#include "base/slice.h"

/* The line without leading blanks and the trailing CR; empty if the line has no sample. */
struct slice node_exposition_line(struct slice line);
/* Removes the name from `line` and returns it; empty: the line does not begin with a name. */
struct slice node_exposition_name(struct slice *line);

typedef void (*node_exposition_label)(void *context, struct slice name, struct slice value);
/* Reads the part of a line after the name: calls `each` for every label, and sets *value. Label
 * values keep their escapes. A timestamp and an exemplar after the value are skipped. ERR_SYNTAX:
 * the line is invalid. */
MUST_USE int node_exposition_sample(struct slice rest, node_exposition_label each, void *context,
                                    double *value);

#endif
