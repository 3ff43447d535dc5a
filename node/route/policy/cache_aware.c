/* The default: least cost in seconds (node/route/cost.h); of near-equal ones the one with the
 * fewest requests. What costs do not know, how long a line gets inside an engine, is seldom worse
 * there. Each of R routers looks at one in R of the equal ones, so that not all of them run to the
 * same one while none has heard of the others.
 *
 * A slow replica that is due (node/route/due.c) comes first: its cost says that nobody should go
 * there, while the cheapest has a line. */
#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/route/policy.h"

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

/* The best of the equal ones so far: rather one that was looked at, rather one with few requests.
 */
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

/* The cheapest that is due. in->count: none is. */
static unsigned due_of(const struct node_policy_input *in)
{
    unsigned due = in->count;
    for (unsigned i = 0; i < in->count; i++) {
        const struct node_candidate *c = &in->candidates[i];
        if (c->is_due && (due == in->count || c->cost.total_s < in->candidates[due].cost.total_s))
            due = i;
    }
    return due;
}

unsigned node_policy_least_cost(const struct node_policy_input *in)
{
    unsigned due = due_of(in);
    if (due < in->count)
        return due;
    double limit = tie_of(in, in->candidates[least_of(in)].cost.total_s);
    struct best best = {.looked = false};
    for (unsigned i = 0; i < in->count; i++) {
        if (in->candidates[i].cost.total_s <= limit)
            best_take(&best, in, i,
                      in->routers <= 1 || LEFT_OUT(LOOKS) ||
                          prng_below(in->prng, in->routers) == 0);
    }
    return best.at;
}

const struct node_policy node_policy_cache_aware = {
    .name = "cache_aware", .wants_costs = true, .choose = node_policy_least_cost};
