/* What a request costs at one replica, in seconds: the rule of docs/routing.md.
 *
 *   queue      prefill work booked there and not done, over its prefill rate
 *   uncached   prompt tokens that it does not hold, over its rate, and what it takes to bring back
 *              those that a tier holds
 *   displaced  tokens still wanted that this prompt would push out of its cache, over its rate; of
 *              them only the share that c, below, has of uncached
 *   decode     o*more           steps are longer than at the fastest, clearly
 *            + o*b*K            steps of this answer are longer because of the others
 *            + n*b*in*o/2       steps of the others are longer because of this request
 *            + n*c/rate         its prefill holds the others up; c is uncached, but of what another
 *                               replica holds the part 1/(1+f): the f requests that follow find it
 *
 *   adapter    loading the adapter that is not held there, and what it costs others that one gives
 *              way for it
 *
 *   total = queue + uncached + W * displaced + V * decode + adapter
 *
 * Of V those three have N / (N + m), where m requests run at a replica on average and N at any
 * engine at once: the more run, the less one of them is slowed by one more, while a queue is as
 * long for each (docs/adr/0031). All replicas have the same factor. With one that falls with their
 * own n the busiest would get the most.
 *
 * Queue and decode, which are what is under way there, are divided by the weight of the replica.
 * n requests with K tokens of context are in flight there; o tokens of output are expected; b is
 * the time that one token of context adds to a decode step. The terms are kept without their
 * weights, the total has them.
 */
#ifndef NODE_ROUTE_COST_H
#define NODE_ROUTE_COST_H

struct node_cost_input {
    double queue_s;
    double prompt_tokens;
    double cached_tokens;   /* at most prompt_tokens */
    double restored_tokens; /* that it could compute while a tier brings some of those back */
    double output_tokens;
    double displaced_tokens;
    double requests;         /* n */
    double requests_typical; /* m */
    double context_tokens;   /* K */
    double tokens_per_s;     /* prefill rate, > 0 */
    double copied_tokens;    /* of the uncached ones, those that some replica is known to hold */
    double followers;        /* f, that want these while they are computed (docs/adr/0043) */
    double step_context_s;   /* b */
    double step_more_s;      /* by which a step is clearly longer than at the fastest */
    double displaced_weight;
    double decode_weight;
    double weight;     /* of the replica, > 0 */
    double load_s;     /* until its adapter can be used; 0: it has none, or it is held */
    double unloaded_s; /* what it costs others that one gives way for it */
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
