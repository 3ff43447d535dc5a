/* Whole answers: one time for two unknowns, how long a token of prefill and a step of decode take
 * (docs/adr/0036). By least squares of relative errors a stall has next to no weight,
 *
 *     sum over answers of (1 - (prefill * p + steps * d) / seconds)^2   is least.
 *
 * The few answers of one replica, which are much alike, do not tell the two apart; all answers of
 * the fleet do. So the fleet's are explained first; a replica differs from that by one factor for
 * both, and only as it has more answers by one for each.
 */
#ifndef NODE_REPLICA_WHOLE_H
#define NODE_REPLICA_WHOLE_H

/* Seconds of a token of prefill, and of a decode step. 0: unknown. */
struct node_whole_base {
    double prefill_s, decode_s;
};

/* Part of struct node_replica. Zeroed: no answers. */
struct node_whole {
    double count, pp, pd, dd, p, d; /* sums, of prefill tokens and steps per second of an answer */
    struct node_whole_base base;    /* how the fleet's answers are explained */
};

/* One more answer. Older ones fade. */
void node_whole_add(struct node_whole *w, double prefill_per_s, double steps_per_s);

/* The replica's own speeds. Needs a base and an answer. */
struct node_whole_base node_whole_explain(const struct node_whole *w);

/* How many times faster it is than `base`, all in all. Needs an answer. */
double node_whole_factor(const struct node_whole *w, struct node_whole_base base);

/* Adds the answers of one replica to the fleet's, as they would be if it were so many times slower.
 */
void node_whole_pool(struct node_whole *fleet, const struct node_whole *w, double factor);

/* What explains the fleet's answers best, from `fleet->base` on. */
struct node_whole_base node_whole_explain_fleet(const struct node_whole *fleet);

#endif
