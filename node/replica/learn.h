/* Small estimators that learn from traffic and forget slowly. Plain values, no allocation.
 *
 * struct node_ratio: a ratio of two sums (bytes per token, tokens per answer), in which a long
 * sample weighs more than a short one. It starts from a prior of a stated weight. Samples beyond
 * `horizon` (in units of the lower sum) fade.
 *
 * struct node_speed: tokens or steps per second, without a prior. Its value is what a third of the
 * last samples reach: much makes an answer slower than the engine is, and next to nothing makes it
 * faster. Samples fade: without new ones their number halves every RULE(HALF_LIFE_MS).
 *
 * struct node_fading: a sum whose parts fade with a stated half-life.
 */
#ifndef NODE_REPLICA_LEARN_H
#define NODE_REPLICA_LEARN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/wire.h"

struct node_ratio {
    double above;
    double below;
    double horizon;
};

/* Starts at `value` as if `weight` units of the lower sum had been seen. */
struct node_ratio node_ratio_of(double value, double weight, double horizon);
double node_ratio_value(const struct node_ratio *r);
/* For the next life of this process; and back, with the horizon that it has now. False: it is none,
 * and `r` is as it was. */
void node_ratio_keep(const struct node_ratio *r, struct wire_writer *w);
bool node_ratio_recall(struct node_ratio *r, struct wire_reader *in);

/* Adds a sample, clamped to within a factor of RULE(TRUST) of the present value: a single absurd
 * sample does little, and a lasting change still gets through. Ignored unless `below` > 0. */
void node_ratio_add(struct node_ratio *r, double above, double below);

/* A value, and how many samples (or peers, or a prior) vote for it. */
struct node_vote {
    double value;
    double votes;
};

/* The upper median: the greatest value that at least half of all votes reach. So of two samples
 * that disagree the faster is believed: the replica is chosen, and shows whether that is true. With
 * the slower it would never be chosen. 0 without votes. Sorts `votes`. */
double node_votes_median(struct node_vote *votes, unsigned count);

enum {
    NODE_SPEED_RECENT_MAX = 21, /* 14 slow answers in a row say nothing yet, 15 do */
};

struct node_speed {
    double value;     /* 0 without samples */
    uint64_t samples; /* ever taken for it, here or by other routers, each once */
    uint64_t at_ms;   /* of the last sample */
    unsigned fresh;   /* samples that it rests on, at that time */
    float recent[NODE_SPEED_RECENT_MAX]; /* the last samples, `fresh` of them, the newest last */
    float heard;                         /* another router's value, */
    unsigned heard_fresh;                /* samples that it rested on */
    uint64_t heard_ms;                   /* when that was heard */
};

/* `sample` must be > 0; otherwise it is ignored. */
void node_speed_add(struct node_speed *s, double sample, uint64_t now_ms);
/* Takes another router's value, which rests on so many samples. */
void node_speed_hear(struct node_speed *s, double value, uint64_t samples, uint64_t now_ms);
/* Samples that it rests on now, own ones or those behind what was heard, whichever are more. */
unsigned node_speed_fresh(const struct node_speed *s, uint64_t now_ms);
/* What a third of the samples that count now reach, with one vote for `beside` (0: none). */
double node_speed_third(const struct node_speed *s, double beside, uint64_t now_ms);

struct node_fading {
    double sum;     /* at */
    uint64_t at_ms; /* this time */
};

/* What is left of it: a part as old as half_ms counts half. */
double node_fading_now(const struct node_fading *f, double half_ms, uint64_t now_ms);
void node_fading_add(struct node_fading *f, double amount, double half_ms, uint64_t now_ms);
/* How old a part is on average: what is left of a steady rate, over this, is the rate. */
double node_fading_mean_ms(double half_ms);

#endif
