/* Small estimators that learn from traffic and forget slowly. Plain values, no allocation.
 *
 * struct node_ratio: a ratio of two sums (bytes per token, tokens per answer), so a long sample
 * weighs more than a short sample. The sums start from a prior of a stated weight. Samples beyond
 * `horizon` (in units of the lower sum) fade.
 *
 * struct node_speed: tokens or steps per second, without a prior. The value is reached by a third
 * of the last samples: many things slow an answer down, almost nothing makes it faster than the
 * engine allows. Samples fade: without new samples the number halves every RULE(HALF_LIFE_MS).
 *
 * struct node_fading: a sum of parts, fading with a stated half-life. */
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

/* Returns a ratio that starts at `value`, as if `weight` units of the lower sum had been seen. */
struct node_ratio node_ratio_of(double value, double weight, double horizon);
double node_ratio_value(const struct node_ratio *r);
/* node_ratio_keep() writes the ratio's sums for the next start of this process; node_ratio_recall()
 * reads them back, and leaves the horizon. Returns false if the bytes are invalid; `r` is then
 * unchanged. */
void node_ratio_keep(const struct node_ratio *r, struct wire_writer *w);
bool node_ratio_recall(struct node_ratio *r, struct wire_reader *in);

/* Adds a sample, clamped to within a factor of RULE(TRUST) of the present value: a single absurd
 * sample does little, and a lasting change still gets through. Ignored unless `below` > 0. */
void node_ratio_add(struct node_ratio *r, double above, double below);

/* A value, and the number of votes for it: samples, peers, or a prior. */
struct node_vote {
    double value;
    double votes;
};

/* The upper median: the greatest value reached by at least half of all votes. So of two different
 * samples the faster wins: the replica is chosen, and the result corrects the value. With the
 * slower value the replica would never be chosen. 0 without votes. Sorts `votes`. */
double node_votes_median(struct node_vote *votes, unsigned count);

enum {
    NODE_SPEED_RECENT_MAX = 21, /* 14 slow answers in a row say nothing yet, 15 do */
};

struct node_speed {
    double value;     /* 0 without samples */
    uint64_t samples; /* all samples, this router's and others', each counted once */
    uint64_t at_ms;   /* time of the last sample */
    unsigned fresh;   /* number of unfaded samples at at_ms */
    float recent[NODE_SPEED_RECENT_MAX]; /* the last samples, `fresh` of them, the newest last */
    float heard;                         /* another router's value */
    unsigned heard_fresh;                /* number of samples behind `heard` */
    uint64_t heard_ms;                   /* time when `heard` came */
};

/* Adds a sample; ignored unless it is > 0. */
void node_speed_add(struct node_speed *s, double sample, uint64_t now_ms);
/* Takes another router's value, based on this number of samples. */
void node_speed_hear(struct node_speed *s, double value, uint64_t samples, uint64_t now_ms);
/* Number of unfaded samples now: this router's, or the samples behind the reported value, whichever
 * are more. */
unsigned node_speed_fresh(const struct node_speed *s, uint64_t now_ms);
/* The value reached by a third of the present samples; `beside` counts as one more sample (0:
 * none). */
double node_speed_third(const struct node_speed *s, double beside, uint64_t now_ms);

struct node_fading {
    double sum;     /* the faded sum at at_ms */
    uint64_t at_ms; /* time of `sum` */
};

/* The faded sum now: a part of age half_ms counts half. */
double node_fading_now(const struct node_fading *f, double half_ms, uint64_t now_ms);
void node_fading_add(struct node_fading *f, double amount, double half_ms, uint64_t now_ms);
/* Mean age of a part. The faded sum of a steady rate, divided by this age, is the rate. */
double node_fading_mean_ms(double half_ms);

#endif
