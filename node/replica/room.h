/* Room at an engine that reports nothing of it. What was never seen to run at once may not: the
 * cost is reckoned as if the most that ran at any replica of the model were the limit. How many run
 * is a setting, which is mostly the same for all of them. Contexts are counted as they are booked:
 * prefixes that several share do no harm.
 *
 * A streamed answer runs from its first token on. Of one that is not streamed only the length is
 * seen: what was beside it ran if it took no longer than the engine takes for it. */
#ifndef NODE_REPLICA_ROOM_H
#define NODE_REPLICA_ROOM_H

#include <stdbool.h>
#include <stdint.h>

/* So much, of requests or of tokens of context. */
struct node_room_amount {
    double requests, tokens;
};

/* Part of struct node_replica. Zeroed: nothing was seen. */
struct node_room {
    struct node_room_amount ran;          /* the most that was seen to run here, */
    struct node_room_amount ran_anywhere; /* and at any of its model; 0: too little was seen */
    uint32_t ended;                       /* answers that came to their end */
};

/* What took `took_s` had to wait: it takes `takes_s` where it need not, and a decode step
 * `step_s`. */
bool node_room_waited(double took_s, double takes_s, double step_s);

/* So much was seen to run at once, as far as is known of other routers'. Returns whether it is more
 * than at any of its model before. */
bool node_room_ran(struct node_room *r, struct node_room_amount ran);
/* Seconds that are put on `more` beside `booked`, for what goes beyond the most that ever ran;
 * before that says something, beyond twice what is at a replica on average (requests_typical), or
 * eight. */
double node_room_beyond_s(const struct node_room *r, struct node_room_amount booked,
                          struct node_room_amount more, double requests_typical,
                          double residence_s);

#endif
