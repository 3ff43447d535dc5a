/* Small estimators that learn from traffic and forget slowly. Plain values, no allocation.
 *
 * struct node_ratio: a ratio of two sums (bytes per token, tokens per answer). In a ratio of sums a
 * long sample weighs more than a short one, so it is more robust than a mean of quotients. It
 * starts from a prior of a stated weight. Samples beyond `horizon` (in units of the lower sum)
 * fade, so that it follows a replica that changes.
 *
 * struct node_speed: tokens or steps per second, without a prior. Its value is the upper median of
 * the last samples while these are few. One absurd sample (an engine's first answer, a stall)
 * changes nothing; three that agree are believed, however far they are from the prior. Once it
 * rests on many, each sample moves it towards itself by at most a twentieth. Samples fade: without
 * new ones their number halves every NODE_SPEED_HALF_MS.
 *
 * struct node_line: least squares of y = a + b * x over fading sums. The prior is two points of the
 * believed line, which fade as samples come.
 */
#ifndef NODE_REPLICA_LEARN_H
#define NODE_REPLICA_LEARN_H

#include <stdint.h>

struct node_ratio {
    double above;
    double below;
    double horizon;
};

/* Starts at `value` as if `weight` units of the lower sum had been seen. */
struct node_ratio node_ratio_of(double value, double weight, double horizon);
double node_ratio_value(const struct node_ratio *r);

/* Adds a sample, clamped to within a factor of `trust` of the present value: a single absurd sample
 * does little, and a lasting change still gets through. Ignored unless `below` > 0. */
void node_ratio_add(struct node_ratio *r, double above, double below, double trust);

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
    NODE_SPEED_RECENT_MAX = 15,
    NODE_SPEED_HALF_MS = 16000,
};

struct node_speed {
    double value;     /* 0 without samples */
    uint64_t samples; /* ever taken for it, here or by other routers, each once */
    uint64_t at_ms;   /* of the last sample, or of the last value of another router */
    unsigned fresh;   /* samples that it rests on, at that time */
    float recent[NODE_SPEED_RECENT_MAX]; /* the last samples, at most `fresh`, the newest last */
};

/* `sample` must be > 0; otherwise it is ignored. */
void node_speed_add(struct node_speed *s, double sample, uint64_t now_ms);
/* One more sample led to this value, by a fit through all of them. */
void node_speed_set(struct node_speed *s, double value, uint64_t now_ms);
/* Takes another router's value, which rests on so many samples. */
void node_speed_hear(struct node_speed *s, double value, uint64_t samples, uint64_t now_ms);
/* Samples that it rests on now. */
unsigned node_speed_fresh(const struct node_speed *s, uint64_t now_ms);

struct node_line {
    double w, x, y, xx, xy;
    double horizon; /* samples that count */
};

struct node_line node_line_of(double a, double b, double x_typical, double horizon);
void node_line_add(struct node_line *l, double x, double y);
/* As if it rested on so many samples. */
void node_line_weigh(struct node_line *l, double samples);

/* The line that fits best among those with a >= 0 and 0 <= b <= b_max. */
void node_line_fit(const struct node_line *l, double b_max, double *a, double *b);

#endif
