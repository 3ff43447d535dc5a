#include "node/core/learn.h"

struct node_ratio node_ratio_of(double value, double weight, double horizon)
{
    return (struct node_ratio){.above = value * weight, .below = weight, .horizon = horizon};
}

double node_ratio_value(const struct node_ratio *r)
{
    return r->above / r->below;
}

void node_ratio_add(struct node_ratio *r, double above, double below, double trust)
{
    if (!(below > 0) || !(above >= 0))
        return;
    double expected = node_ratio_value(r) * below;
    if (above > expected * trust)
        above = expected * trust;
    if (above < expected / trust)
        above = expected / trust;
    r->above += above;
    r->below += below;
    if (r->below > r->horizon) {
        double keep = r->horizon / r->below;
        r->above *= keep;
        r->below *= keep;
    }
}

struct node_line node_line_of(double a, double b, double x_typical, double horizon)
{
    struct node_line l = {.horizon = horizon};
    node_line_add(&l, 0, a);
    node_line_add(&l, x_typical, a + b * x_typical);
    return l;
}

void node_line_weigh(struct node_line *l, double samples)
{
    double by = samples / l->w;
    l->w *= by;
    l->x *= by;
    l->y *= by;
    l->xx *= by;
    l->xy *= by;
}

void node_line_add(struct node_line *l, double x, double y)
{
    l->w += 1;
    l->x += x;
    l->y += y;
    l->xx += x * x;
    l->xy += x * y;
    if (l->w > l->horizon)
        node_line_weigh(l, l->horizon);
}

void node_line_fit(const struct node_line *l, double b_max, double *a, double *b)
{
    /* det / (w * xx) is the share of the spread in x; without spread the slope means nothing. */
    double det = l->w * l->xx - l->x * l->x;
    *b = det > 1e-9 * l->w * l->xx ? (l->w * l->xy - l->x * l->y) / det : 0;
    if (*b < 0)
        *b = 0;
    if (*b > b_max)
        *b = b_max;
    *a = (l->y - *b * l->x) / l->w;
    if (*a < 0) {
        *a = 0;
        *b = l->x > 0 ? l->y / l->x : 0;
        if (*b > b_max)
            *b = b_max;
    }
}
