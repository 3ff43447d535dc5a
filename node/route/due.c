/* What a slow replica is due. By its cost alone a replica that is much slower than the others
 * stands idle while even the cheapest has a line: every answer would be slower there. Whoever waits
 * in the line would rather have begun (docs/adr/0039). */

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/route/router_internal.h"

void node_router_due_placed(struct node_replica *k, double prompt_tokens, uint64_t now_ms)
{
    node_fading_add(&k->placed_tokens, prompt_tokens, RULE(HALF_LIFE_MS), now_ms);
}

static double placed_now(const struct node_replica *k, uint64_t now_ms)
{
    return node_fading_now(&k->placed_tokens, RULE(HALF_LIFE_MS), now_ms);
}

static const struct node_replica *replica_of(const struct node_router *r,
                                             const struct node_candidate *c)
{
    return &r->replicas[c->replica];
}

static double fastest_of(const struct node_router *r)
{
    double fastest = 0;
    for (unsigned i = 0; i < r->candidate_count; i++)
        fastest = number_max(fastest, replica_of(r, &r->candidates[i])->tokens_per_s);
    return fastest;
}

static double speed_of(const struct node_replica *k)
{
    return k->tokens_per_s * k->weight;
}

/* What a replica of so much speed deserves of all that was placed. */
static double deserved_tokens(const struct node_router *r, double speed, uint64_t now_ms)
{
    double placed = 0, speeds = 0;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        const struct node_replica *k = replica_of(r, &r->candidates[i]);
        placed += placed_now(k, now_ms);
        speeds += speed_of(k);
    }
    return placed * speed / speeds;
}

static const struct node_candidate *cheapest(const struct node_router *r)
{
    const struct node_candidate *least = &r->candidates[0];
    for (unsigned i = 1; i < r->candidate_count; i++) {
        if (r->candidates[i].cost.total_s < least->cost.total_s)
            least = &r->candidates[i];
    }
    return least;
}

void node_router_due_find(struct node_router *r, const struct node_size *size, uint64_t now_ms)
{
    if (r->candidate_count < 2 || LEFT_OUT(DUE))
        return;
    const struct node_candidate *least = cheapest(r);
    if (least->cost.queue_s <= 0)
        return;
    double slow = fastest_of(r) / RULE(CLEARLY);
    double slow_max_s = RULE(DUE_SLOWER) * (least->cost.queue_s + least->cost.uncached_s);
    double computed_max = RULE(CLEARLY) * (size->prompt_tokens - (double)least->cached_tokens);
    for (unsigned i = 0; i < r->candidate_count; i++) {
        struct node_candidate *c = &r->candidates[i];
        const struct node_replica *k = replica_of(r, c);
        c->is_due = k->tokens_per_s < slow && c->cost.queue_s <= 0 &&
                    c->cost.adapter_s <= least->cost.adapter_s &&
                    c->cost.uncached_s <= slow_max_s &&
                    size->prompt_tokens - (double)c->cached_tokens <= computed_max &&
                    placed_now(k, now_ms) < deserved_tokens(r, speed_of(k), now_ms);
    }
}
