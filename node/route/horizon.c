/* How long what a cache holds is wanted: the horizon of the displaced term, learned from the ages
 * at which prefixes are used again. A chat's users think for a minute, an agent's tools for a
 * second, and engines differ by a hundred times in speed: no constant is right for all. */
#include <math.h>

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/route/router_internal.h"

/* The horizon in mean ages; prompts that the setting counts for, and that count at all. */
static const double ages = 4, weight_believed = 20, weight_max = 500;
static const double least_s = 2, most_s = 3600;
static const double grain = 0.05; /* smaller changes are not worth the table */

static void take(struct node_router *r, double horizon_s)
{
    r->horizon_s = horizon_s;
    node_decay_fill(&r->decay, r->common->generation_ms, horizon_s);
}

void node_router_horizon_begin(struct node_router *r, double believed_s)
{
    r->reuse_age = node_ratio_of(believed_s / ages, weight_believed, weight_max);
    take(r, believed_s);
}

/* The age itself is not known, only the generations between; but these are the age on average,
 * whatever their grain. */
void node_router_horizon_learn(struct node_router *r, unsigned replica)
{
    uint32_t now = crdt_index_ring(r->index, replica).newest - 1, then = r->generations[replica];
    if (then == 0 || LEFT_OUT(HORIZON)) /* nothing was found there */
        return;
    double age_s = then < now ? (now - then) * (double)r->common->generation_ms / 1000 : 0;
    node_ratio_add(&r->reuse_age, age_s, 1, INFINITY);
}

void node_router_horizon_follow(struct node_router *r)
{
    double s = number_min(number_max(node_ratio_value(&r->reuse_age) * ages, least_s), most_s);
    if (fabs(s - r->horizon_s) > grain * r->horizon_s)
        take(r, s);
}
