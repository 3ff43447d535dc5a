/* The rule: chooses the candidate that gets a request.
 *
 *   1. What does the request cost at each candidate, in seconds, for all requests (cost.h)?
 *   2. If a request may find no room at a replica, shorter steps there are no advantage.
 *   3. If a slow replica is due, the request goes there, whatever the cost (due.h).
 *   4. If not, the policy chooses. cache_aware takes the cheapest replica, or among equally good
 *      replicas the least busy (policy/cache_aware.c). Other policies ignore steps 1 to 3.
 *   5. Nothing else decides.
 *
 * The input is a table of numbers. Before that, eligible.c selects the replicas in the table, and
 * candidate.c computes the conditions at each; afterwards book.c books the request.
 * docs/routing.md is this page for operators. */
#include <math.h>

#include "base/check.h"
#include "node/replica/ablation.h"
#include "node/route/due.h"
#include "node/route/router_internal.h"

/* Computes the cost, without the terms that a simulation leaves out (LEFT_OUT). Aborts if the cost
 * is not a finite number, because a comparison would then choose the wrong replica. */
static struct node_cost cost_of(struct node_cost_input *in)
{
    if (LEFT_OUT(DISPLACED))
        in->displaced_tokens = 0;
    if (LEFT_OUT(TIER))
        in->restored_tokens = 0;
    if (LEFT_OUT(CROWD))
        in->step_context_s = 0;
    if (LEFT_OUT(STEP_MORE))
        in->step_more_s = 0;
    if (LEFT_OUT(ADAPTER))
        in->load_s = in->unloaded_s = 0;
    struct node_cost cost = node_cost_of(in);
    CHECK(isfinite(cost.total_s));
    return cost;
}

/* The cheapest replica where no more requests would run at once than ever before; NULL: none. */
static const struct node_candidate *cheapest_with_room(const struct node_router *r)
{
    const struct node_candidate *least = NULL;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        const struct node_candidate *c = &r->candidates[i];
        if (c->beyond_s <= 0 && (!least || c->cost.total_s < least->cost.total_s))
            least = c;
    }
    return least;
}

static double begins_s(const struct node_candidate *c)
{
    return c->cost.queue_s + c->cost.uncached_s + c->cost.adapter_s;
}

/* Part of the decode cost: the excess of the steps over the fastest replica's steps. */
static double slower_s(const struct node_candidate *c)
{
    return c->meets.output_tokens * c->meets.step_more_s / c->weight;
}

/* If a request may find no room at a replica, shorter steps there are no advantage over a replica
 * that has room and would begin sooner (docs/adr/0042). */
static void pace_forget(struct node_router *r)
{
    const struct node_candidate *other = LEFT_OUT(PACE_FORGET) ? NULL : cheapest_with_room(r);
    for (unsigned i = 0; other && i < r->candidate_count; i++) {
        struct node_candidate *c = &r->candidates[i];
        double shorter_s = slower_s(other) - slower_s(c);
        if (c->beyond_s <= 0 || shorter_s <= 0 || begins_s(other) > begins_s(c))
            continue;
        c->cost.decode_s += shorter_s;
        c->cost.total_s += r->config.decode_weight * shorter_s;
    }
}

static struct node_policy_input input_of(struct node_router *r, const struct node_request *request,
                                         const struct node_policy *policy)
{
    uint64_t session = 0;
    if (request->session.len > 0)
        session = hash64(&r->common->secret, request->session.at, request->session.len) | 1;
    bool weighted = false;
    for (unsigned i = 1; i < r->candidate_count && !weighted; i++)
        weighted = r->candidates[i].weight != r->candidates[0].weight;
    return (struct node_policy_input){
        .candidates = r->candidates,
        .count = r->candidate_count,
        .weighted = weighted,
        .session_key = session,
        .prefix_key = policy->wants_costs ? 0 : node_router_prefix_key(request->chain),
        .near_tie = r->config.near_tie,
        .routers = r->routers,
        .place = r->place,
        .unseen_s = node_router_unseen_s(r),
        .load_bound = r->config.load_bound,
        .prng = &r->prng,
        .turn = &r->turn,
    };
}

unsigned node_router_choose(struct node_router *r, const struct node_request *request,
                            const struct node_policy *policy)
{
    unsigned count = r->candidate_count, chosen = count;

    /* 1. The cost at each candidate. If the policy needs no costs, only explain.c and shadow mode
     * ask for them. */
    for (unsigned i = 0; r->has_costs && i < count; i++)
        r->candidates[i].cost = cost_of(&r->candidates[i].meets);

    /* 2. A replica that may have no room is charged with the steps of a replica with room. */
    if (r->has_costs)
        pace_forget(r);

    /* 3. If only costs counted, a slow replica would stay idle while requests queue elsewhere. */
    if (r->has_costs && policy->wants_costs)
        chosen = node_due_find(r->candidates, count);

    /* 4. The policy's choice. cache_aware takes the least cost, or a cost about as low. */
    if (chosen == count) {
        const struct node_policy_input input = input_of(r, request, policy);
        chosen = policy->choose(&input);
    }

    /* 5. Nothing else decides. */
    CHECK(chosen < count);
    return chosen;
}
