/* The default: least cost in seconds (node/route/cost.h), and among near-equal candidates the
 * fewest requests. Effects outside the cost model, such as a growing queue inside an engine, are
 * seldom worse at the candidate with the fewest requests. Each of R routers considers 1 in R of the
 * equal candidates. So they do not all choose the same replica before they hear of each other's
 * choices.
 *
 * The other routers' placements at the same moment are not known yet. If they fill up the cheapest
 * replicas, as water fills a vessel, all costs up to the water's level count as equal
 * (water-filling; Goren, Vargaftik and Moses, 2020). Among these replicas each router prefers a
 * share, so that no two routers choose the same. Only queues fill up: differences between caches
 * remain, whatever others place. */
#include <math.h>

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/route/policy.h"

enum { LEVEL_STEPS = 10 };

/* The cost up to which the unseen work of other routers fills the cheapest replicas. */
static double level_of(const struct node_policy_input *in, double least)
{
    double low = least, high = least + in->unseen_s;
    for (unsigned step = 0; step < LEVEL_STEPS; step++) {
        double level = (low + high) / 2, filled = 0;
        for (unsigned i = 0; i < in->count; i++) {
            double cost = in->candidates[i].cost.total_s;
            filled += cost < level ? level - cost : 0;
        }
        if (filled > in->unseen_s)
            high = level;
        else
            low = level;
    }
    return low;
}

static bool is_ours(const struct node_policy_input *in, const struct node_candidate *c)
{
    return c->owner == in->place;
}

/* The part of the request's cost that is independent of work under way. */
static double still_s(const struct node_candidate *c)
{
    return c->cost.uncached_s + c->cost.displaced_s + c->cost.adapter_s;
}

static unsigned least_of(const struct node_policy_input *in)
{
    unsigned least = 0;
    for (unsigned i = 1; i < in->count; i++) {
        if (in->candidates[i].cost.total_s < in->candidates[least].cost.total_s)
            least = i;
    }
    return least;
}

static double tie_of(const struct node_policy_input *in, double least)
{
    double share = LEFT_OUT(NEAR_TIE) ? 0 : least * in->near_tie;
    return least + number_max(share, RULE(TIE_S));
}

/* The candidates that cost at most `limit`, of which at most `still` by still_s(). */
struct equal {
    double limit, still;
    bool ours; /* only candidates of this router's share */
};

static bool is_equal(const struct node_policy_input *in, const struct node_candidate *c,
                     const struct equal *e)
{
    return c->cost.total_s <= e->limit && still_s(c) <= e->still && (!e->ours || is_ours(in, c));
}

/* The candidates that count as equal to the cheapest, after the unseen work of other routers. */
static struct equal equal_of(const struct node_policy_input *in)
{
    const struct node_candidate *least = &in->candidates[least_of(in)];
    double tie = tie_of(in, least->cost.total_s), own = INFINITY;
    struct equal e = {tie, INFINITY, false};
    if (in->routers <= 1 || in->count < RULE(FEW) * in->routers)
        return e;
    struct equal filled = {number_max(tie, level_of(in, least->cost.total_s)),
                           tie_of(in, still_s(least)), true};
    for (unsigned i = 0; i < in->count; i++) {
        if (is_equal(in, &in->candidates[i], &filled))
            own = number_min(own, in->candidates[i].cost.total_s);
    }
    filled.ours = own < INFINITY && !LEFT_OUT(SHARES);
    if (filled.ours)
        filled.limit = number_min(filled.limit, tie_of(in, own));
    return filled;
}

/* The best equal candidate so far: preferably a candidate that this router considers, preferably
 * with few requests. */
struct best {
    bool looked;
    double requests;
    double equals;
    unsigned at;
};

static void best_take(struct best *best, const struct node_policy_input *in, unsigned i, bool looks)
{
    const struct node_candidate *c = &in->candidates[i];
    double requests =
        looks && !LEFT_OUT(FEWEST) ? node_policy_share(in, (double)c->requests, c) : 0;
    if (best->equals > 0 &&
        (looks < best->looked || (looks == best->looked && requests > best->requests)))
        return;
    if (looks != best->looked || requests != best->requests)
        best->equals = 0;
    best->looked = looks;
    best->requests = requests;
    if (node_policy_equal_takes(in, c, &best->equals))
        best->at = i;
}

unsigned node_policy_least_cost(const struct node_policy_input *in)
{
    struct equal equal = equal_of(in);
    struct best best = {.looked = false};
    for (unsigned i = 0; i < in->count; i++) {
        if (is_equal(in, &in->candidates[i], &equal))
            best_take(&best, in, i,
                      in->routers <= 1 || LEFT_OUT(LOOKS) ||
                          prng_below(in->prng, in->routers) == 0);
    }
    return best.at;
}

const struct node_policy node_policy_cache_aware = {
    .name = "cache_aware", .wants_costs = true, .choose = node_policy_least_cost};
