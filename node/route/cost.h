/* The cost of a request at one replica, in seconds: the rule of docs/routing.md.
 *
 *   queue      booked prefill work that is not done, over the prefill rate
 *   uncached   uncached prompt tokens, over the rate, and the time to load tokens from a tier
 *   displaced  still needed tokens that this prompt would evict, over the rate; multiplied by
 *              c / uncached (c is below)
 *   decode     o*more           steps are clearly longer than at the fastest replica
 *            + o*b*K            steps of this answer are longer because of other requests
 *            + n*b*in*o/2       steps of other answers are longer because of this request
 *            + n*c/rate         this request's prefill delays the others; c is uncached, but tokens
 *                               cached at another replica count only 1/(1+f): the f requests
 *                               expected to follow find these tokens cached
 *   adapter    loading the adapter if it has no slot, and the cost of the evicted adapter to
 *              others
 *
 *   total = queue + uncached + W * displaced + V * decode + adapter
 *
 * The last three parts of decode have the factor N / (N + m). On average m requests run at a
 * replica, and N at any engine at once. The more requests run, the less another request slows each,
 * while a queue is as long for each (docs/adr/0031). All replicas have the same factor. If the
 * factor fell with each replica's n, the busiest replica would get the most requests.
 *
 * Queue and decode, the parts that depend on work under way, are divided by the replica's weight. n
 * requests with K tokens of context are in flight there; o tokens of output are expected; b is the
 * time that each token of context adds to a decode step; `in` is the number of prompt tokens;
 * `more` is step_more_s below. The terms in struct node_cost are without W and V; total_s includes
 * the weights. */
#ifndef NODE_ROUTE_COST_H
#define NODE_ROUTE_COST_H

struct node_cost_input {
    double queue_s;
    double prompt_tokens;
    double cached_tokens;   /* expected cached tokens, at most prompt_tokens */
    double restored_tokens; /* tokens that could be computed while a tier loads cached tokens */
    double output_tokens;
    double displaced_tokens;
    double requests;         /* n */
    double requests_typical; /* m */
    double context_tokens;   /* K */
    double tokens_per_s;     /* prefill rate, > 0 */
    double copied_tokens;    /* uncached tokens of the prompt that another candidate has cached */
    double followers;        /* f: requests expected to need these tokens while they are computed
                              * (docs/adr/0043) */
    double step_context_s;   /* b */
    double step_more_s;      /* time by which a step exceeds the longest step that counts as normal
                              * (candidate.c); 0: normal */
    double displaced_weight;
    double decode_weight;
    double weight;     /* the replica's weight, > 0 */
    double load_s;     /* time to load the request's adapter; 0: no adapter, or the adapter has a
                        * slot */
    double unloaded_s; /* cost to other requests of evicting an adapter */
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
