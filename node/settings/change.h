/* Other settings for a router that runs: what may change takes effect, the rest is named.
 *
 *   node_options_change(&in_force, &fresh, &told, &counts)
 *
 * `fresh` was loaded as at the start: the same flags and environment, the file as it is now. Rows
 * that are `live` are taken over into `in_force`, in place.
 *
 * A router has one struct node_options in force. All rooms borrow it as const and read a setting
 * where they use it. Only this call changes it, between two events: no event sees half a change.
 * Rows that are not live never change, so their strings may be borrowed as long as the router
 * lives; strings of live rows are good for one event. The few things that the rooms keep in another
 * form (time limits, the router's policy and weights) node_renew() makes anew.
 *
 * Pure.
 */
#ifndef NODE_SETTINGS_CHANGE_H
#define NODE_SETTINGS_CHANGE_H

#include "node/settings/options.h"

/* Hears of each row that differs. The texts are borrowed for the call. */
struct node_options_told {
    void (*differs)(void *context, const struct node_option *row, struct slice before,
                    struct slice now);
    void *context;
};

struct node_options_changes {
    unsigned changed; /* and in force */
    unsigned waiting; /* for a restart */
};

/* Whether both have the same value, wherever it comes from. ERR_NOMEM. */
MUST_USE int node_option_same(const struct node_options *a, const struct node_options *b,
                              const struct node_option *row, bool *same);

/* `fresh` gets the values that were in force of the rows that are taken over; in all others it
 * stays as it is. Both are freed apart. ERR_NOMEM: nothing has changed. */
MUST_USE int node_options_change(struct node_options *in_force, struct node_options *fresh,
                                 const struct node_options_told *told,
                                 struct node_options_changes *out);

#endif
