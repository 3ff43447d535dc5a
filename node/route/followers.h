/* Recent requests with the same prefix: more such requests are likely to follow. A prefix computed
 * for a request serves the next, so this work is not lost while requests come (docs/adr/0043).
 * Times are the caller's, in ms. */
#ifndef NODE_ROUTE_FOLLOWERS_H
#define NODE_ROUTE_FOLLOWERS_H

#include <stdint.h>

enum { NODE_FOLLOWERS_ROWS = 4096, NODE_FOLLOWERS_MAX = 8 };

/* All zero is valid: no request yet. A prefix may use either of two rows. A new prefix replaces the
 * row with the older last request. */
struct node_followers {
    struct node_followers_row {
        uint64_t prefix_id;
        uint64_t at_ms[NODE_FOLLOWERS_MAX]; /* times of the last requests, in a ring */
        uint64_t count;                     /* number of all requests */
    } rows[NODE_FOLLOWERS_ROWS];
};

/* A request came with a known prefix up to this checkpoint (base/checkpoint.h). */
void node_followers_note(struct node_followers *f, uint64_t prefix_id, uint64_t now_ms);
/* Number of requests with this prefix in the last `within_ms`, at most NODE_FOLLOWERS_MAX. */
unsigned node_followers_within(const struct node_followers *f, uint64_t prefix_id, double within_ms,
                               uint64_t now_ms);

#endif
