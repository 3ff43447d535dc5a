#include "node/route/due.h"

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"

static double speed_of(const struct node_candidate *c)
{
    return c->believed_per_s * c->weight;
}

/* Limits for a due replica. Most follow from the cheapest replica, placed_each from all replicas'
 * recent work. */
struct measure {
    double slow;         /* prefill rate below which a replica is slow */
    double slow_max_s;   /* longest time to compute the uncached part */
    double computed_max; /* most tokens to compute */
    double adapter_s;
    double placed_each; /* tokens placed lately, per unit of speed */
};

static struct measure measure_of(const struct node_candidate *candidates, unsigned count,
                                 const struct node_candidate *least)
{
    double fastest = 0, placed = 0, speeds = 0;
    for (unsigned i = 0; i < count; i++) {
        fastest = number_max(fastest, candidates[i].believed_per_s);
        placed += candidates[i].placed_tokens;
        speeds += speed_of(&candidates[i]);
    }
    return (struct measure){
        .slow = fastest / RULE(CLEARLY),
        .slow_max_s = RULE(DUE_SLOWER) * (least->cost.queue_s + least->cost.uncached_s),
        .computed_max = RULE(CLEARLY) * (least->meets.prompt_tokens - (double)least->cached_tokens),
        .adapter_s = least->cost.adapter_s,
        .placed_each = placed / speeds,
    };
}

static bool is_due(const struct node_candidate *c, const struct measure *m)
{
    return c->believed_per_s < m->slow && c->cost.queue_s <= 0 &&
           c->cost.adapter_s <= m->adapter_s && c->cost.uncached_s <= m->slow_max_s &&
           c->meets.prompt_tokens - (double)c->cached_tokens <= m->computed_max &&
           c->placed_tokens < m->placed_each * speed_of(c);
}

unsigned node_due_find(struct node_candidate *candidates, unsigned count)
{
    const struct node_candidate *least = &candidates[0];
    for (unsigned i = 1; i < count; i++)
        least = candidates[i].cost.total_s < least->cost.total_s ? &candidates[i] : least;
    if (count < 2 || least->cost.queue_s <= 0 || LEFT_OUT(DUE))
        return count;
    const struct measure m = measure_of(candidates, count, least);
    unsigned due = count;
    for (unsigned i = 0; i < count; i++) {
        candidates[i].is_due = is_due(&candidates[i], &m);
        if (candidates[i].is_due &&
            (due == count || candidates[i].cost.total_s < candidates[due].cost.total_s))
            due = i;
    }
    return due;
}
