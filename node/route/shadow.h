/* The comparison of the router's policy with a plain policy, on the operator's traffic.
 *
 *   shadow     The plain policy routes every request. The choice of the router's own policy is only
 *              counted: the cached tokens and the time to the first token there are predictions.
 *              The believed caches and loads are those after the policy's own choices: prompts are
 *              recorded at these choices as well, under separate ids (crdt/index.h).
 *   control    The router's own policy routes requests, except for a share of the conversations,
 *              which the plain policy routes. Both sides are measured.
 *
 * A plain value: no allocation, no clock. Owned by the router (router_internal.h). */
#ifndef NODE_ROUTE_SHADOW_H
#define NODE_ROUTE_SHADOW_H

#include <stdint.h>

#include "base/chain.h"
#include "base/json_write.h"

enum { NODE_SHADOW_MINUTES = 60 }; /* the last hour, with sums per minute */

enum node_shadow_mode { NODE_SHADOW_OFF, NODE_SHADOW_ON, NODE_SHADOW_CONTROL, NODE_SHADOW_MODES };
enum node_shadow_side { NODE_SHADOW_PLAIN, NODE_SHADOW_POLICY, NODE_SHADOW_SIDES };

/* Counts of a side's requests with ended answers. */
struct node_shadow_counts {
    uint64_t requests;
    uint64_t prompt_tokens; /* as the engine reported; if not reported, the estimate of the
                             * prediction */
    uint64_t cached_tokens; /* cached prompt tokens; only answers with both figures count */
    uint64_t first_tokens;  /* streams with a first token and a predicted TTFT */
    double ttft_s;          /* sum of the TTFTs of these streams; for predictions, of the
                             * estimates */
    double estimated_s;     /* the sum of the estimates for the plain policy in shadow mode */
};

struct node_shadow_sums {
    struct node_shadow_counts sides[NODE_SHADOW_SIDES];
    uint64_t moved; /* requests that the policy would have sent elsewhere in shadow mode */
};

struct node_shadow {
    enum node_shadow_mode mode;
    struct node_shadow_sums totals[NODE_SHADOW_MODES]; /* sums since the start */
    struct node_shadow_minute {
        uint64_t number; /* the minute's number, from 1; 0: unused */
        struct node_shadow_sums sums;
    } minutes[NODE_SHADOW_MINUTES]; /* the last hour, in the present mode */
};

/* A finished request of a side. */
struct node_shadow_answer {
    uint64_t prompt_tokens, cached_tokens; /* both 0: not reported */
    double ttft_s;                         /* < 0: none, or not to be compared */
    double estimated_s;                    /* 0: not needed */
};

/* "off", "shadow", "control"; "plain", "policy". */
const char *node_shadow_mode_text(enum node_shadow_mode mode);
const char *node_shadow_side_text(enum node_shadow_side side);

/* Sets the mode. Another mode, or `anew` (other policies), begins with an empty hour. Totals go
 * on. */
void node_shadow_mode_set(struct node_shadow *s, enum node_shadow_mode mode, bool anew);
/* `side` answered a request of the present mode. */
void node_shadow_add(struct node_shadow *s, enum node_shadow_side side,
                     const struct node_shadow_answer *a, uint64_t now_ms);
/* The policy would have sent an answered request elsewhere. */
void node_shadow_moved(struct node_shadow *s, uint64_t now_ms);
/* Adds `more` to sums, or subtracts `less` from them. */
void node_shadow_sums_add(struct node_shadow_sums *to, const struct node_shadow_sums *more);
void node_shadow_sums_subtract(struct node_shadow_sums *from, const struct node_shadow_sums *less);
/* Minutes of the last hour since the first counted request of the present mode; 0: none. */
unsigned node_shadow_minutes(const struct node_shadow *s, uint64_t now_ms);
/* The sums of the present mode over the last hour. */
struct node_shadow_sums node_shadow_hour(const struct node_shadow *s, uint64_t now_ms);
/* Sum of the TTFTs predicted for the router's own policy in shadow mode: the estimates, plus the
 * time by which the plain policy's streams were later than estimated. The causes of this delay
 * would delay other choices as well. */
double node_shadow_predicted_s(const struct node_shadow_sums *sums);
/* True if the plain policy routes the conversation; every router has the same result. `share` is in
 * 0..1. */
bool node_shadow_is_control(uint64_t conversation, double share);

/* Copies a prompt's checkpoints under separate ids. */
void node_shadow_chain(struct chain *out, const struct chain *chain);

/* Writes an object: the mode, the sums of the last hour, and the totals of each mode. */
void node_shadow_write(const struct node_shadow *s, const char *policy, const char *plain,
                       double control_share, uint64_t now_ms, struct json_writer *w);

#endif
