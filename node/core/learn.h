/* Small estimators that learn from traffic and forget slowly. Plain values, no allocation.
 *
 * struct node_ratio: a ratio of two sums (tokens per second, bytes per token, tokens per answer).
 * Sums are robust where means of quotients are not: a long sample weighs more than a short one.
 * It starts from a prior of a stated weight; evidence beyond `horizon` (in units of the lower sum)
 * fades, so that it follows a replica that changes.
 *
 * struct node_line: least squares of y = a + b * x over fading sums, for the pace of decoding
 * (x: tokens in the running contexts, y: seconds a step). The prior is two points of the believed
 * line, which fade as samples come.
 */
#ifndef NODE_CORE_LEARN_H
#define NODE_CORE_LEARN_H

struct node_ratio {
    double above;
    double below;
    double horizon;
};

/* Starts at `value` as if `weight` units of the lower sum had been seen. */
struct node_ratio node_ratio_of(double value, double weight, double horizon);
double node_ratio_value(const struct node_ratio *r);

/* Adds a sample. One sample moves nothing by more than a factor of `trust` from the present value
 * (its upper part is clamped), so a single absurd one does little and a lasting change still gets
 * through. `below` must be > 0; otherwise it is ignored. */
void node_ratio_add(struct node_ratio *r, double above, double below, double trust);

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
