/* Values of settings as text: reading by type, writing back, and describing correct values. Used by
 * options.c and print.c. */
#ifndef NODE_SETTINGS_VALUE_H
#define NODE_SETTINGS_VALUE_H

#include "base/err.h"
#include "node/settings/options.h"

/* Reads `value` into the row's field of `o`; a list gains an entry. ERR_SYNTAX, ERR_RANGE, ERR_FULL
 * (list) or ERR_NOMEM; the field is then unchanged. */
MUST_USE int node_option_value_read(struct node_options *o, const struct node_option *row,
                                    struct slice value);

/* Checks `value` like node_option_value_read(), and stores nothing. ERR_SYNTAX or ERR_RANGE. */
MUST_USE int node_option_value_test(const struct node_option *row, struct slice value);

/* Appends which values this row accepts: "want a time with its unit from 100ms to 1h, such as 1s".
 * `value` is the refused value. */
MUST_USE int node_option_value_want(const struct node_option *row, struct slice value,
                                    struct buf *out);

/* Writes a number in the row's unit as text: "4s", "64MiB", "0.5". */
MUST_USE int node_option_number_format(const struct node_option *row, double number,
                                       struct buf *out);

/* Appends the GRAPEVINE_NAME of a setting. */
MUST_USE int node_option_variable_append(struct buf *out, const char *name);
/* Appends the source of a value: "flag --listen", "GRAPEVINE_LISTEN", "grapevine.yaml:12",
 * "default". */
MUST_USE int node_option_origin_append(struct buf *out, const char *name,
                                       struct node_option_origin origin);

/* Reads a time such as "2s" or "500ms", as each setting for a time does. ERR_SYNTAX, ERR_RANGE. */
MUST_USE int node_option_time_read(struct slice value, uint64_t *ms);

/* Reads on, true, yes (*out = true), off, false and no (*out = false), in upper or lower case.
 * Returns false for any other text. */
bool node_option_bool_read(struct slice value, bool *out);

/* Finds the candidate nearest to `name` by edit distance; NULL: none is near. Offer a candidate per
 * call; start zeroed except for `name`. */
struct node_option_nearest {
    struct slice name;
    const char *best;
    unsigned distance;
};
void node_option_nearest_offer(struct node_option_nearest *n, const char *candidate);

void node_option_list_clear(struct node_strings *list);
/* Returns the size of the row's field in struct node_options. */
size_t node_option_field_bytes(const struct node_option *row);

#endif
