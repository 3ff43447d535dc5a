/* A set of HTTP statuses, as health-statuses writes it: numbers and ranges of them, separated by
 * commas: "200..299", "200,204,429". */
#ifndef NODE_SETTINGS_STATUSES_H
#define NODE_SETTINGS_STATUSES_H

#include <stdbool.h>

#include "base/slice.h"

enum { NODE_STATUS_RANGES_MAX = 8 };

struct node_statuses {
    struct {
        unsigned from, to; /* both are in it */
    } ranges[NODE_STATUS_RANGES_MAX];
    unsigned count;
};

/* NULL, or what would be right (a literal); `out` is then unchanged. */
const char *node_statuses_parse(struct slice text, struct node_statuses *out);
bool node_statuses_has(const struct node_statuses *s, unsigned status);

#endif
