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
    uint64_t requests;      /* in flight */
    uint64_t tokens;        /* prompt tokens in flight; those still in prefill count twice */
    uint64_t cached_tokens; /* of this prompt, predicted */
    uint64_t tier_tokens;   /* of these, to be loaded from a tier */
    double matched_tokens;  /* of the prompt, recorded there, before the engine's rounding */
    unsigned owner;         /* place of the router that prefers this candidate among equals */
    double weight;          /* share of the work, relative to the others; > 0 */
    double load_s;          /* until its adapter is loaded; 0: no adapter, or in a slot */
    double tokens_per_s;    /* believed rate for this prompt, and */
    double line_s;          /* time of the prompts ahead in the line; the rest */
    double believed_per_s;  /* the same, whatever is late there just now */
    double placed_tokens;   /* of prompts that this router placed there lately */
    /* Only if costs are needed: the conditions there, and */
    struct node_cost_input meets;
    double ttft_s;       /* until its first token, */
    double beyond_s;     /* part of the queue time for running more than ever ran, */
    double times_slower; /* than its own samples say, by answers that should have ended. */
    /* By the rule (choose.c): */
    struct node_cost cost;
    bool is_due; /* slow, no line, less than its speed deserves, while the cheapest has one */
};

struct node_policy_input {
    const struct node_candidate *candidates;
    unsigned count;       /* > 0 */
    bool weighted;        /* their weights differ: else no policy looks at them */
    uint64_t session_key; /* keyed hash of the session; 0: none */
    uint64_t prefix_key;  /* hash of the prompt's first blocks; 0: none */
    unsigned routers;     /* that choose among them at the same time, this one included */
    unsigned place;       /* this router's place among these */
    double unseen_s;      /* work that the others may have placed lately, unknown yet */
    double near_tie;      /* share of the least cost within which costs count as equal */
    double load_bound;    /* times the mean of requests in flight */
    struct prng *prng;
    uint64_t *turn; /* counts choices: state of round robin */
};

struct node_policy {
    const char *name; /* <name> */
    bool wants_costs;
    bool wants_chunks; /* prompts are to be read as chunks (base/chain.h) */
    bool wants_session;
    /* The index of a candidate, below count. */
    unsigned (*choose)(const struct node_policy_input *in);
};

/* By name, or NULL. */
const struct node_policy *node_policy_find(const char *name);

/* Others fall back to these. */
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

/* Weighted choice among equals, one by one. True if this candidate replaces the earlier ones, which
 * weigh `*sum` together with it: in the end each is drawn in proportion to its weight. `*sum`
 * starts at 0. */
bool node_policy_equal_takes(const struct node_policy_input *in, const struct node_candidate *c,
                             double *sum);

/* A random candidate, by weight; never `without` (in->count: none is left out, else count > 1). */
unsigned node_policy_draw(const struct node_policy_input *in, unsigned without);

/* The candidate with the least of something that is in flight, at random among equals; and with the
 * fewest requests. */
unsigned node_policy_least(const struct node_policy_input *in,
                           uint64_t (*of)(const struct node_candidate *c));
unsigned node_policy_least_requests(const struct node_policy_input *in);
/* The least cost, drawn among near ties. */
unsigned node_policy_least_cost(const struct node_policy_input *in);
/* The next in rotation; with weights each in proportion to its weight, spread evenly. */
unsigned node_policy_next_turn(const struct node_policy_input *in);

#endif
