/* Which requests came lately that begin with the same prefix: others like them follow. What is
 * computed of that prefix for one of them serves the next, so it is no loss as long as they come
 * (docs/adr/0043). Times are the caller's, in ms. */
#ifndef NODE_ROUTE_FOLLOWERS_H
#define NODE_ROUTE_FOLLOWERS_H

#include <stdint.h>

enum { NODE_FOLLOWERS_ROWS = 4096, NODE_FOLLOWERS_MAX = 8 };

/* All zero is valid: nothing came yet. A prefix has two rows to choose from; of their owners the
 * one that came last stays. */
struct node_followers {
    struct node_followers_row {
        uint64_t prefix_id;
        uint64_t at_ms[NODE_FOLLOWERS_MAX]; /* of the last ones, in a ring */
        uint64_t count;                     /* of all */
    } rows[NODE_FOLLOWERS_ROWS];
};

/* A request came whose prefix is known up to this checkpoint (base/checkpoint.h). */
void node_followers_note(struct node_followers *f, uint64_t prefix_id, uint64_t now_ms);
/* How many of them came in the last `within_ms`; at most NODE_FOLLOWERS_MAX are remembered. */
unsigned node_followers_within(const struct node_followers *f, uint64_t prefix_id, double within_ms,
                               uint64_t now_ms);

#endif
