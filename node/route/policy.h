/* A policy only picks a candidate. Candidates are filtered before: they serve the model, are
 * healthy and not excluded. Booking and recording follow later. Each policy is a pure function of
 * the input, so it is tested without a router.
 *
 * To add a policy: write a file in node/route/policy/ with `const struct node_policy
 * node_policy_<name>`, and add the name to policy_table.c.
 */
#ifndef NODE_ROUTE_POLICY_H
#define NODE_ROUTE_POLICY_H

#include "base/prng.h"
#include "node/route/cost.h"
#include "node/route/router.h"

struct node_candidate {
    unsigned replica;
    uint64_t name_hash;     /* keyed; equal for equal names at all routers of a cluster */
    uint64_t requests;      /* in flight at the replica */
    uint64_t tokens;        /* prompt tokens in flight; tokens still in prefill count twice */
    uint64_t cached_tokens; /* of this prompt, predicted */
    uint64_t tier_tokens;   /* cached tokens that must be loaded from a tier */
    double matched_tokens;  /* prompt tokens recorded for the replica, before rounding to the
                             * engine's blocks */
    unsigned owner;         /* place of the router that prefers this candidate among equals */
    double weight;          /* share of the work, relative to the other replicas; > 0 */
    double load_s;          /* time to load the request's adapter; 0: no adapter, or the adapter has
                             * a slot */
    double tokens_per_s;    /* believed prefill rate for this prompt */
    double line_s;          /* queue time of the prompts ahead, without late and foreign work */
    double believed_per_s;  /* believed prefill rate of the replica, without present delays */
    double placed_tokens;   /* prompt tokens that this router placed at the replica lately */
    /* Set only if costs are needed, down to times_slower. The conditions at the replica: */
    struct node_cost_input meets;
    double ttft_s;       /* predicted time to the first token */
    double beyond_s;     /* part of the queue time: the wait if more requests would run than ever
                          * ran at the replica */
    double times_slower; /* factor by which the replica seems slower than its own samples, because
                          * answers are overdue */
    /* Set by the rule (choose.c): */
    struct node_cost cost;
    bool is_due; /* slow, without a queue, with less work than the replica's speed deserves, while
                  * the cheapest replica has a queue */
};

struct node_policy_input {
    const struct node_candidate *candidates;
    unsigned count;       /* > 0 */
    bool weighted;        /* the candidates' weights differ; if false, policies ignore weights */
    uint64_t session_key; /* keyed hash of the session; 0: none */
    uint64_t prefix_key;  /* hash of the prompt's first blocks; 0: none */
    unsigned routers;     /* number of routers that choose among the candidates at the same time,
                           * including this router */
    unsigned place;       /* this router's place in the order of these routers */
    double unseen_s;      /* work that other routers may have placed lately, not yet reported to
                           * this router */
    double near_tie;      /* share of the least cost within which costs count as equal */
    double load_bound;    /* prefix_hash: limit of a replica's requests in flight, as a multiple of
                           * the mean */
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

/* The policy with this name, or NULL. */
const struct node_policy *node_policy_find(const char *name);

/* Policies that other policies fall back to. */
extern const struct node_policy node_policy_prefix_hash, node_policy_least_request;

/* Helpers for several policies. */

/* The score of a candidate for a key in rendezvous hashing (Thaler and Ravishankar, 1998; with
 * weights Schindelhauer and Schomaker, 2005). The key belongs to the candidate with the highest
 * score. So when a replica leaves, only that replica's keys move, and they come back with the
 * replica. */
double node_policy_score(const struct node_policy_input *in, uint64_t key,
                         const struct node_candidate *c);

/* An amount in flight relative to the candidate's weight: twice the weight halves the amount. */
static inline double node_policy_share(const struct node_policy_input *in, double amount,
                                       const struct node_candidate *c)
{
    return in->weighted ? amount / c->weight : amount;
}

/* A random choice among equal candidates in a single pass, by weight. Returns true if this
 * candidate replaces the present choice. `*sum` starts at 0 and adds up the weights. In the end
 * each candidate has a probability in proportion to the weight. */
bool node_policy_equal_takes(const struct node_policy_input *in, const struct node_candidate *c,
                             double *sum);

/* A random candidate, by weight, other than `without`. If `without` is in->count, none is left out.
 * Otherwise in->count must be above 1. */
unsigned node_policy_draw(const struct node_policy_input *in, unsigned without);

/* The candidate with the least amount in flight relative to the weight, at random among equals.
 * `of` gives a candidate's amount; in the second function this is the number of requests. */
unsigned node_policy_least(const struct node_policy_input *in,
                           uint64_t (*of)(const struct node_candidate *c));
unsigned node_policy_least_requests(const struct node_policy_input *in);
/* The candidate with the least cost, at random among near ties. */
unsigned node_policy_least_cost(const struct node_policy_input *in);
/* The next candidate in rotation. If weights differ, a candidate's turns are in proportion to the
 * weight, and spread evenly. */
unsigned node_policy_next_turn(const struct node_policy_input *in);

#endif
