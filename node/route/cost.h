/* The cost of a request at one replica, in seconds: the rule of docs/routing.md.
 *
 *   queue      booked prefill work that is not done, over the prefill rate
 *   uncached   prompt tokens that are not cached, over the rate, and the time to load those that a
 *              tier has
 *   displaced  tokens still needed that this prompt would evict, over the rate; only the share
 *              that c, below, has of uncached
 *   decode     o*more           steps are clearly longer than at the fastest
 *            + o*b*K            steps of this answer are longer because of the others
 *            + n*b*in*o/2       steps of the others are longer because of this request
 *            + n*c/rate         its prefill delays the others; c is uncached, but of tokens cached
 *                               at another replica only the part 1/(1+f): the f requests that
 *                               follow find them cached
 *
 *   adapter    loading the adapter if it has no slot, and the cost of the evicted adapter to
 *              others
 *
 *   total = queue + uncached + W * displaced + V * decode + adapter
 *
 * V has the factor N / (N + m) for the last three parts of decode, where m requests run at a
 * replica on average and N at any engine at once: the more run, the less one more slows each of
 * them, while a queue is as long for each (docs/adr/0031). All replicas have the same factor.
 * With a factor that falls with a replica's own n, the busiest would get the most.
 *
 * Queue and decode, the parts that depend on work under way, are divided by the replica's weight.
 * n requests with K tokens of context are in flight there; o tokens of output are expected; b is
 * the time that one token of context adds to a decode step. The terms are kept without their
 * weights, the total has them. */
#ifndef NODE_ROUTE_COST_H
#define NODE_ROUTE_COST_H

struct node_cost_input {
    double queue_s;
    double prompt_tokens;
    double cached_tokens;   /* at most prompt_tokens */
    double restored_tokens; /* tokens computable while a tier loads some of those */
    double output_tokens;
    double displaced_tokens;
    double requests;         /* n */
    double requests_typical; /* m */
    double context_tokens;   /* K */
    double tokens_per_s;     /* prefill rate, > 0 */
    double copied_tokens;    /* of the uncached ones, those that some replica is known to have */
    double followers;        /* f, that want these while they are computed (docs/adr/0043) */
    double step_context_s;   /* b */
    double step_more_s;      /* by which a step is clearly longer than at the fastest */
    double displaced_weight;
    double decode_weight;
    double weight;     /* of the replica, > 0 */
    double load_s;     /* until its adapter is loaded; 0: no adapter, or in a slot */
    double unloaded_s; /* cost to others of the adapter that is evicted */
};

struct node_cost {
    double queue_s;
    double uncached_s;
    double displaced_s;
    double decode_s;
    double adapter_s;
    double total_s;
};

struct node_cost node_cost_of(const struct node_cost_input *in);

#endif
