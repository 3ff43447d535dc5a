/* Room at an engine that reports nothing of it: how many requests, and how much context, run there
 * at once, by answers that are not streamed. Of these only the length is seen: if one took many
 * times what the engine takes for it, that part of what was under way ran at once (Little's law).
 * Of streams a late first token would say the same, but it is late for other reasons, too
 * (docs/adr/0065).
 *
 * Engines limit either. The one that is the limit is the same each time, so it is the one whose
 * samples are less apart; the value is their median. Samples fade (node/replica/learn.h), so a
 * stall is no limit for long. The most that run is a setting of all engines of a model: a replica
 * at which something waited is believed to be like the others (fleet.h). Contexts are counted as
 * they are booked: prefixes that several share do no harm. What ran at once at any time disproves a
 * limit below it, and so does the engine's own gauge.
 *
 * A limit shows only once prompts wait. Until then what was never seen to run at once may not: the
 * cost is reckoned as if the most that did were the limit. */
#ifndef NODE_REPLICA_ROOM_H
#define NODE_REPLICA_ROOM_H

#include <stdbool.h>

#include "node/replica/learn.h"

/* So much, of requests or of tokens of context. */
struct node_room_amount {
    double requests, tokens;
};

/* Part of struct node_replica. Zeroed: no limit was seen. */
struct node_room {
    struct node_speed requests, tokens;   /* that fit, by own samples */
    struct node_room_amount most;         /* that is believed to fit; 0: no limit is known */
    struct node_room_amount ran;          /* the most that was seen to run here, */
    struct node_room_amount ran_anywhere; /* and at any of its model; 0: too little was seen */
    double ran_surely;                    /* requests: own streams, or by the engine's gauge */
    uint32_t ended;                       /* answers that came to their end */
};

/* What took `took_s` had to wait: it takes `takes_s` where it need not, and a decode step
 * `step_s`. */
bool node_room_waited(double took_s, double takes_s, double step_s);
bool node_room_exceeds(const struct node_room *r, struct node_room_amount amount);
/* So much ran at once, and no more had room; or so much did although less was believed to fit. */
void node_room_add(struct node_room *r, struct node_room_amount ran, uint64_t now_ms);

/* The limit by own samples, of the two the one that they agree on; 0: the other, or too few. */
struct node_room_amount node_room_own(const struct node_room *r, uint64_t now_ms);

/* So many own streams ran at once. */
void node_room_streamed(struct node_room *r, double requests);
/* So much was seen to run at once, as far as is known of other routers'. Returns whether it is more
 * than at any of its model before. */
bool node_room_ran(struct node_room *r, struct node_room_amount ran);
/* The engine's gauges, while `booked` requests are there; a gauge that it does not have is < 0.
 * More that run disprove a limit, and so does a reading by which none waits although more are
 * there. Returns whether the limit is to be reckoned anew. */
bool node_room_told(struct node_room *r, double running, double waiting, double booked,
                    bool restarted);
/* Seconds that are put on `more` beside `booked`, for what goes beyond the most that ever ran;
 * before that says something, beyond twice what is at a replica on average (requests_typical), or
 * eight. */
double node_room_beyond_s(const struct node_room *r, struct node_room_amount booked,
                          struct node_room_amount more, double requests_typical,
                          double residence_s);

/* Seconds until `more` finds room beside `booked`, each of which stays for `residence_s`. */
double node_room_wait_s(const struct node_room *r, struct node_room_amount booked,
                        struct node_room_amount more, double residence_s);

#endif
