/* New settings for a running router: changes of live settings take effect, other changes wait for a
 * restart. Both are reported.
 *
 *   node_options_change(&in_force, &fresh, &told, &counts)
 *
 * `fresh` was loaded as at the start: the same flags and environment, the present file. Rows marked
 * `live` are copied into `in_force`, in place.
 *
 * A router has a single struct node_options in force. All other code borrows it as const and reads
 * settings where needed. Only this call changes the struct, between two events: no event sees half
 * a change. Rows without `live` never change, so their strings may be borrowed for the router's
 * lifetime; strings of live rows are valid during a single event. node_renew() recomputes the few
 * values kept elsewhere in another form (time limits, the router's policy and weights).
 *
 * Pure. */
#ifndef NODE_SETTINGS_CHANGE_H
#define NODE_SETTINGS_CHANGE_H

#include "node/settings/options.h"

/* The listener: `differs` is called for each row with a new value. The texts are borrowed for the
 * call. */
struct node_options_told {
    void (*differs)(void *context, const struct node_option *row, struct slice before,
                    struct slice now);
    void *context;
};

struct node_options_changes {
    unsigned changed; /* rows changed by this call */
    unsigned waiting; /* rows whose new values wait for a restart */
};

/* Sets `same` to true if `a` and `b` have the same value for this row, from whatever source.
 * ERR_NOMEM. */
MUST_USE int node_option_same(const struct node_options *a, const struct node_options *b,
                              const struct node_option *row, bool *same);

/* Puts the live rows of `fresh` in force, and counts the changes in `out`. The two structs swap the
 * values of these rows: `fresh` gets the former values. The caller frees both structs. `told` may
 * be NULL. ERR_NOMEM: nothing has changed. */
MUST_USE int node_options_change(struct node_options *in_force, struct node_options *fresh,
                                 const struct node_options_told *told,
                                 struct node_options_changes *out);

#endif
