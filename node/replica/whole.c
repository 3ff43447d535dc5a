#include "node/replica/whole.h"

#include <stdbool.h>

#include "node/replica/constants.h"
#include "node/replica/learn.h"

enum { FLEET_STEPS = 6 };

void node_whole_add(struct node_whole *w, double prefill_per_s, double steps_per_s)
{
    double keep = w->count < NODE_SPEED_RECENT_MAX ? 1 : 1 - 1.0 / NODE_SPEED_RECENT_MAX;
    w->count = w->count * keep + 1;
    w->pp = w->pp * keep + prefill_per_s * prefill_per_s;
    w->pd = w->pd * keep + prefill_per_s * steps_per_s;
    w->dd = w->dd * keep + steps_per_s * steps_per_s;
    w->p = w->p * keep + prefill_per_s;
    w->d = w->d * keep + steps_per_s;
}

/* The sums with both times measured in units of `base`. */
static struct node_whole relative(const struct node_whole *w, struct node_whole_base base)
{
    struct node_whole r = *w;
    r.pp *= base.prefill_s * base.prefill_s;
    r.pd *= base.prefill_s * base.decode_s;
    r.dd *= base.decode_s * base.decode_s;
    r.p *= base.prefill_s;
    r.d *= base.decode_s;
    return r;
}

/* Finds the prefill time *p and the decode time *d that fit the answers best, in units of the base.
 * `alike` is the weight of a penalty on a difference between them: alike * (p - d)^2. False: a best
 * time is not above zero. */
static bool fit(const struct node_whole *r, double alike, double *p, double *d)
{
    double det = (r->pp + alike) * (r->dd + alike) - (r->pd - alike) * (r->pd - alike);
    *p = (r->p * (r->dd + alike) - r->d * (r->pd - alike)) / det;
    *d = (r->d * (r->pp + alike) - r->p * (r->pd - alike)) / det;
    return *p > 0 && *d > 0;
}

/* Returns the common factor for both times that fits the answers best. */
static double fit_one(const struct node_whole *r)
{
    return (r->p + r->d) / (r->pp + 2 * r->pd + r->dd);
}

struct node_whole_base node_whole_explain(const struct node_whole *w)
{
    struct node_whole r = relative(w, w->base);
    double p, d;
    if (!fit(&r, RULE(WHOLE_ALIKE) / r.count * (r.pp + r.dd), &p, &d))
        p = d = fit_one(&r);
    return (struct node_whole_base){w->base.prefill_s * p, w->base.decode_s * d};
}

double node_whole_factor(const struct node_whole *w, struct node_whole_base base)
{
    struct node_whole r = relative(w, base);
    return 1 / fit_one(&r);
}

void node_whole_pool(struct node_whole *fleet, const struct node_whole *w, double factor)
{
    fleet->count += w->count;
    fleet->pp += w->pp / (factor * factor);
    fleet->pd += w->pd / (factor * factor);
    fleet->dd += w->dd / (factor * factor);
    fleet->p += w->p / factor;
    fleet->d += w->d / factor;
}

struct node_whole_base node_whole_explain_fleet(const struct node_whole *fleet)
{
    struct node_whole_base base = fleet->base;
    for (unsigned i = 0; i < FLEET_STEPS; i++) {
        struct node_whole r = relative(fleet, base);
        double p, d;
        if (!fit(&r, RULE(WHOLE_FLEET) * (r.pp + r.dd), &p, &d))
            break;
        base.prefill_s *= p;
        base.decode_s *= d;
    }
    return base;
}
