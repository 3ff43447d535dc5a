/* A set of HTTP statuses, as written in health-statuses: numbers and ranges, separated by commas:
 * "200..299", "200,204,429". */
#ifndef NODE_SETTINGS_STATUSES_H
#define NODE_SETTINGS_STATUSES_H

#include <stdbool.h>

#include "base/slice.h"

enum { NODE_STATUS_RANGES_MAX = 8 };

struct node_statuses {
    struct {
        unsigned from, to; /* both inclusive */
    } ranges[NODE_STATUS_RANGES_MAX];
    unsigned count;
};

/* Reads a set. Returns NULL, or a literal that says a correct form; `out` is then unchanged. */
const char *node_statuses_parse(struct slice text, struct node_statuses *out);
bool node_statuses_has(const struct node_statuses *s, unsigned status);

#endif
