/* The router as a whole: creation, checks, changes of settings, and work done each second. */
#include <limits.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/replica/constants.h"
#include "node/route/router_internal.h"
#include "node/route/shade.h"

enum {
    SWEEP_BUCKETS_MIN = 256, /* buckets swept per tick */
    SWEEP_LAP_S = 600,       /* time of one lap over the whole table */
};

void node_router_renew(struct node_router *r, const struct node_router_config *config)
{
    const char *name = r->config.name;
    const struct node_policy *policy = r->policy, *plain = r->plain;
    r->policy = node_policy_find(config->policy);
    r->plain = node_policy_find(config->plain_policy);
    CHECK(r->policy != NULL && r->plain != NULL && !r->plain->wants_costs);
    r->config = *config;
    r->config.shadow &= r->policy->wants_costs;
    node_shadow_mode_set(&r->shadow,
                         r->config.shadow            ? NODE_SHADOW_ON
                         : config->control_share > 0 ? NODE_SHADOW_CONTROL
                                                     : NODE_SHADOW_OFF,
                         r->policy != policy || r->plain != plain);
    if (r->index != NULL)
        node_router_shadow_split(r);
    r->config.name = name;
    if (config->replica_requests_max == 0)
        r->config.replica_requests_max = UINT32_MAX;
    for (unsigned i = 0; i < r->replica_count; i++)
        node_replica_failures_max(&r->replicas[i], config->prior.probe_failures_max);
}

int node_router_create(struct node_router **out, const struct node_router_config *config,
                       struct node_state *state)
{
    if (!node_policy_find(config->policy) || !node_policy_find(config->plain_policy))
        return ERR_NOT_FOUND;
    struct node_router *r = calloc(1, sizeof *r);
    if (!r)
        return ERR_NOMEM;
    r->config.name = config->name;
    node_router_renew(r, config);
    r->state = state;
    r->common = node_state_config_of(state);
    CHECK(r->common->replicas_max <= NODE_REPLICAS_MAX);
    node_router_state_take(r);
    prng_seed(&r->prng, config->seed);
    r->restore = node_ratio_of(RULE(RESTORE), RULE(RESTORE_PRIOR), RULE(RESTORE_TOKENS));
    node_decay_fill(&r->decay, r->common->generation_ms, config->reuse_horizon_ms / 1000.0);
    r->replicas = calloc(NODE_REPLICAS_MAX, sizeof *r->replicas);
    r->slots = calloc(NODE_REPLICAS_MAX, sizeof *r->slots);
    int err = r->replicas && r->slots ? ERR_OK : ERR_NOMEM;
    if (err == ERR_OK)
        err = node_models_create(&r->models, &r->common->secret, config->prior.bytes_per_token,
                                 RULE(OUTPUT));
    if (err == ERR_OK)
        err = node_bookings_create(&r->bookings);
    if (err == ERR_OK)
        err = node_adapters_create(&r->adapters);
    if (err == ERR_OK)
        err = node_answered_create(&r->answered, &r->common->secret);
    if (err == ERR_OK)
        err = node_ruler_create(&r->ruler);
    if (err == ERR_OK)
        err = node_renderings_create(&r->renderings, &r->common->secret);
    if (err != ERR_OK) {
        node_router_destroy(r);
        return err;
    }
    *out = r;
    return ERR_OK;
}

void node_router_destroy(struct node_router *r)
{
    if (!r)
        return;
    node_bookings_destroy(r->bookings);
    node_shade_destroy(r->shade);
    node_answered_destroy(r->answered);
    node_renderings_destroy(r->renderings);
    node_adapters_destroy(r->adapters);
    node_ruler_destroy(r->ruler);
    node_models_destroy(r->models);
    free(r->events.told);
    free(r->recalled);
    free(r->replicas);
    free(r->slots);
    free(r);
}

bool node_router_engines_tell_usage(const struct node_router *r)
{
    return r->engines_tell_usage;
}

const struct node_policy *node_router_policy(const struct node_router *r)
{
    return r->policy;
}

void node_router_check(const struct node_router *r)
{
    const struct node_load *loads[NODE_REPLICAS_MAX];
    for (unsigned k = 0; k < r->replica_count; k++) {
        loads[k] = &r->replicas[k].load;
        if (!r->replicas[k].absent)
            node_believed_check(&r->replicas[k].believed);
    }
    node_bookings_check(r->bookings, loads, r->replica_count);
    node_router_shadow_check(r);
    node_router_presence_check(r);
    node_models_check(r->models);
    node_adapters_check(r->adapters);
    node_renderings_check(r->renderings);
    node_state_check(r->state);
    CHECK(r->crdt == node_state_crdt(r->state) && r->index == node_state_index(r->state));
}

void node_router_tick(struct node_router *r, uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    node_router_apart_follow(r);
    node_router_presence_update(r);
    node_router_slots_leave(r);
    node_router_events_follow(r);
    node_router_ranks_tick(r, now_ms);
    node_router_shares_find(r);
    struct crdt_index_stats stats;
    crdt_index_stats(r->index, &stats);
    node_router_shadow_notice(r, &stats);
    double seconds = now_ms > r->ticked_ms ? (double)(now_ms - r->ticked_ms) / 1000 : 0;
    if (r->ticked_ms == 0 || seconds > 60)
        seconds = 1;
    r->ticked_ms = now_ms;
    crdt_index_sweep(r->index,
                     SWEEP_BUCKETS_MIN + (uint32_t)((double)stats.buckets * seconds / SWEEP_LAP_S));
    r->engines_tell_usage = r->replica_count > 0;
    for (unsigned k = 0; k < r->replica_count; k++) {
        struct node_replica *replica = &r->replicas[k];
        bool tells = replica->engine == NODE_ENGINE_VLLM || replica->engine == NODE_ENGINE_SGLANG;
        r->engines_tell_usage &= tells || replica->absent;
        node_router_saw(r, k);
        node_router_load_advance(r, replica, now_ms);
        node_replica_size_fade(replica, seconds);
        node_belief_moved(&replica->belief);
    }
    node_router_adapters_tick(r, now_ms);
    node_router_renderings_tick(r, now_ms);
    node_router_models_believe(r);
    node_router_fleet_believe(r, now_ms);
}
