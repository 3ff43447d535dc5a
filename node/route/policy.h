/* A policy picks one of the candidates, and does nothing else. Candidates are filtered before: they
 * serve the model, are healthy and not excluded. Booking and recording follow after, from the
 * choice. A policy is a pure function of its input, so each is tested without a router.
 *
 * Adding one: a file in node/route/policy/ that defines `const struct node_policy
 * node_policy_<name>`, and its name in policy_table.c.
 */
#ifndef NODE_ROUTE_POLICY_H
#define NODE_ROUTE_POLICY_H

#include "base/prng.h"
#include "node/route/cost.h"
#include "node/route/router.h"

struct node_candidate {
    unsigned replica;
    uint64_t name_hash;     /* keyed; the same for the same name in every node of a cluster */
    uint64_t requests;      /* in flight at the replica */
    uint64_t tokens;        /* prompt tokens in flight; those still in prefill count twice */
    uint64_t cached_tokens; /* of this prompt, predicted */
    uint64_t tier_tokens;   /* cached tokens that must be loaded from a tier */
    double matched_tokens;  /* prompt tokens recorded there, before rounding to the engine's
                             * blocks */
    unsigned owner;         /* place of the router that prefers this candidate among equals */
    double weight;          /* share of the work, relative to the others; > 0 */
    double load_s;          /* time to load the request's adapter; 0: it has none, or one in a
                             * slot */
    double tokens_per_s;    /* believed prefill rate for this prompt */
    double line_s;          /* queue time of the prompts ahead, without late and foreign work */
    double believed_per_s;  /* believed prefill rate of the replica, present delays aside */
    double placed_tokens;   /* prompt tokens that this router placed there lately */
    /* Set only if costs are needed, down to times_slower. The conditions there: */
    struct node_cost_input meets;
    double ttft_s;       /* predicted time to the first token */
    double beyond_s;     /* part of the queue time: more requests would run there than ever ran */
    double times_slower; /* factor by which the replica seems slower than its own samples, because
                          * answers are overdue */
    /* Set by the rule (choose.c): */
    struct node_cost cost;
    bool is_due; /* slow, without a queue, with less work than its speed deserves, while the
                  * cheapest has a queue */
};

struct node_policy_input {
    const struct node_candidate *candidates;
    unsigned count;       /* > 0 */
    bool weighted;        /* the candidates' weights differ; if they do not, policies ignore them */
    uint64_t session_key; /* keyed hash of the session; 0: none */
    uint64_t prefix_key;  /* hash of the prompt's first blocks; 0: none */
    unsigned routers;     /* routers that choose among the candidates at the same time, this one
                           * included */
    unsigned place;       /* this router's place in the order of these routers */
    double unseen_s;      /* work that other routers may have placed lately without a report here
                           * yet */
    double near_tie;      /* share of the least cost within which costs count as equal */
    double load_bound;    /* prefix_hash: most requests in flight at a replica, as a multiple of the
                           * mean */
    struct prng *prng;
    uint64_t *turn; /* counts choices: state of round robin */
};

struct node_policy {
    const char *name; /* as in node_policy_<name> */
    bool wants_costs;
    bool wants_chunks; /* needs prompts read as chunks (base/chain.h) */
    bool wants_session;
    /* Returns the index of the chosen candidate. */
    unsigned (*choose)(const struct node_policy_input *in);
};

/* The policy with that name, or NULL. */
const struct node_policy *node_policy_find(const char *name);

/* Other policies fall back to these. */
extern const struct node_policy node_policy_prefix_hash, node_policy_least_request;

/* Helpers of several policies. */

/* The score of a candidate for a key in rendezvous hashing (Thaler and Ravishankar, 1998; with
 * weights Schindelhauer and Schomaker, 2005). The key belongs to the candidate with the highest
 * score. So when a replica leaves, only its own keys move, and they come back with the replica. */
double node_policy_score(const struct node_policy_input *in, uint64_t key,
                         const struct node_candidate *c);

/* An amount in flight relative to the candidate's weight: twice the weight halves the amount. */
static inline double node_policy_share(const struct node_policy_input *in, double amount,
                                       const struct node_candidate *c)
{
    return in->weighted ? amount / c->weight : amount;
}

/* A random choice among equal candidates in one pass, by weight. Returns true if this candidate
 * replaces the one chosen so far. `*sum` starts at 0 and adds up the weights. In the end each
 * candidate was chosen with a probability in proportion to its weight. */
bool node_policy_equal_takes(const struct node_policy_input *in, const struct node_candidate *c,
                             double *sum);

/* A random candidate, by weight, other than `without`. If `without` is in->count, none is left out;
 * if not, in->count must be above 1. */
unsigned node_policy_draw(const struct node_policy_input *in, unsigned without);

/* The candidate with the least of an amount that is in flight, at random among equals. The second
 * function takes the number of requests. */
unsigned node_policy_least(const struct node_policy_input *in,
                           uint64_t (*of)(const struct node_candidate *c));
unsigned node_policy_least_requests(const struct node_policy_input *in);
/* The candidate with the least cost, at random among near ties. */
unsigned node_policy_least_cost(const struct node_policy_input *in);
/* The next candidate in rotation. If weights differ, each gets turns in proportion to its weight,
 * spread evenly. */
unsigned node_policy_next_turn(const struct node_policy_input *in);

#endif
