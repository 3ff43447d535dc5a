/* Whole answers give a single time for two unknowns, the times of a prefill token and of a decode
 * step (docs/adr/0036). Fitted by least squares of relative errors, which give a stall next to no
 * weight:
 *
 *       sum over answers of (1 - (prefill * p + steps * d) / seconds)^2   is least.
 *
 * A replica's few, similar answers do not separate the two times; the fleet's answers do. So the
 * fleet's times are fitted first. A replica with few answers differs by a common factor for both
 * times, and with more answers by a factor for each. */
#ifndef NODE_REPLICA_WHOLE_H
#define NODE_REPLICA_WHOLE_H

/* Seconds of a prefill token, and of a decode step. 0: unknown. */
struct node_whole_base {
    double prefill_s, decode_s;
};

/* Part of struct node_replica. Zeroed: no answers. */
struct node_whole {
    double count, pp, pd, dd, p, d; /* number of answers; sums over the answers of prefill tokens
                                     * per second (p), of steps per second (d), and of products of
                                     * the two */
    struct node_whole_base base;    /* the fit to the fleet's answers */
};

/* Adds an answer. Older answers fade. */
void node_whole_add(struct node_whole *w, double prefill_per_s, double steps_per_s);

/* Returns the times that fit the replica's own answers best. Needs a base and an answer. */
struct node_whole_base node_whole_explain(const struct node_whole *w);

/* Returns a replica's speed by its answers, relative to `base`: 2 is twice as fast. Needs an
 * answer. */
double node_whole_factor(const struct node_whole *w, struct node_whole_base base);

/* Adds the answers of a replica that is faster by `factor` to the fleet's answers, scaled to the
 * fleet's speed. */
void node_whole_pool(struct node_whole *fleet, const struct node_whole *w, double factor);

/* Returns the times that fit the fleet's answers best, starting from `fleet->base`. */
struct node_whole_base node_whole_explain_fleet(const struct node_whole *fleet);

#endif
