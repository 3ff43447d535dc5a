/* Room at an engine that does not report its limits. More work than was ever seen to run at once
 * may have to wait. The cost takes the most that ran at any replica of the model as the limit.
 * The number of running requests is a setting, usually the same at all of them. Contexts count as
 * booked: prefixes that several requests share do no harm.
 *
 * A streamed answer runs from its first token on. An answer that is not streamed shows only its
 * duration: the requests beside it ran if the answer took no longer than the engine needs. */
#ifndef NODE_REPLICA_ROOM_H
#define NODE_REPLICA_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* An amount of work: requests, and tokens of their context. */
struct node_room_amount {
    double requests, tokens;
};

/* Part of struct node_replica. Zeroed: nothing was seen. */
struct node_room {
    struct node_room_amount ran;          /* the most that was seen to run here */
    struct node_room_amount ran_anywhere; /* the most that was seen to run at any replica of its
                                           * model; 0: too little was seen */
    uint32_t ended;                       /* number of complete answers */
};

/* Returns true if a request that took `took_s` must have waited. Without waiting it takes
 * `takes_s`, and a decode step `step_s`. */
bool node_room_waited(double took_s, double takes_s, double step_s);

/* This load was seen to run at once, other routers' work included as far as known. Returns true if
 * it is more than before at any replica of its model. */
bool node_room_ran(struct node_room *r, struct node_room_amount ran);
/* Seconds that `more` has to wait in addition to `booked`, for work beyond the most that ever ran.
 * Before the most is known, the limit is twice the average of the replicas (requests_typical), or
 * eight. */
double node_room_beyond_s(const struct node_room *r, struct node_room_amount booked,
                          struct node_room_amount more, double requests_typical,
                          double residence_s);

#endif
