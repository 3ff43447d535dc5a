/* Room at an engine without reported limits. More work than was ever seen to run at once may have
 * to wait. For the cost, the limit is the most work that ran at any replica of the model. The
 * number of running requests is a setting, usually equal at all of them. Contexts count as booked:
 * prefixes shared by several requests do no harm.
 *
 * A streamed answer runs from the first token on. An answer that is not streamed shows only the
 * duration: if the answer took no longer than the engine needs, all requests in flight were
 * running. */
#ifndef NODE_REPLICA_ROOM_H
#define NODE_REPLICA_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* An amount of work: requests, and tokens of context. */
struct node_room_amount {
    double requests, tokens;
};

/* Part of struct node_replica. Zeroed: nothing was seen. */
struct node_room {
    struct node_room_amount ran;          /* the most work seen running at this replica */
    struct node_room_amount ran_anywhere; /* the most work seen running at any replica of the model;
                                           * 0: too little was seen */
    uint32_t ended;                       /* number of complete answers to this router's requests */
};

/* Returns true if a request that took `took_s` must have waited. Without waiting it takes
 * `takes_s`, and a decode step `step_s`. */
bool node_room_waited(double took_s, double takes_s, double step_s);

/* The load `ran` was seen to run at once, other routers' work included as far as known. Returns
 * true if as much never ran before at any replica of the model. */
bool node_room_ran(struct node_room *r, struct node_room_amount ran);
/* Seconds that the work `more` has to wait, if `booked` and `more` together are beyond the most
 * work ever seen running. Before that is known, the limit is twice the replicas' average number of
 * requests (requests_typical), and at least eight. */
double node_room_beyond_s(const struct node_room *r, struct node_room_amount booked,
                          struct node_room_amount more, double requests_typical,
                          double residence_s);

#endif
