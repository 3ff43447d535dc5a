/* The conditions at each candidate: the input of the rule (choose.c). */
#include <math.h>

#include "base/checkpoint.h"
#include "base/err.h"
#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/route/router_internal.h"

double node_router_queue_s(struct node_router *r, struct node_replica *replica, double rate,
                           uint64_t now_ms)
{
    node_router_load_advance(r, replica, now_ms);
    double others = LEFT_OUT(QUEUE_OTHERS) ? 0 : (double)replica->load.remote.prefill_tokens;
    return node_load_queue_s(r->bookings, &replica->load, rate, now_ms) + others / rate;
}

/* Foreign requests have an unknown size, so each counts as the mean of this router's requests to
 * the replica. */
static double foreign_queue_s(const struct node_slot *s, const struct node_under_way *all,
                              double rate)
{
    if (all->foreign_waiting <= 0 || s->chosen == 0 || LEFT_OUT(QUEUE_FOREIGN))
        return 0;
    double uncached = (double)(int64_t)(s->prompt_tokens - s->cached_tokens);
    return all->foreign_waiting * number_max(uncached, 0) / (double)s->chosen / rate;
}

/* True if the optimistic belief of an idle replica applies (node/replica/fleet.h): the replica
 * computes no prompt. A replica with few samples must also have no request under way. */
static bool is_tried(const struct node_replica *k, const struct node_under_way *all)
{
    bool computes = k->load.prefill_tokens + k->load.remote.prefill_tokens > 0;
    return !LEFT_OUT(TRIED) && !computes &&
           (all->requests <= 0 || k->shown.rate.samples > RULE(FEW));
}

/* The believed prefill rate. A replica with few samples is believed to be no faster than the prompt
 * that it computes now (`head`) shows. Without this, the router would place more prompts behind
 * that prompt until the first byte (docs/adr/0042). */
static double rate_shown(const struct node_replica *k, const struct node_head *head,
                         const struct node_under_way *all, uint64_t now_ms)
{
    if (is_tried(k, all))
        return k->believed.idle_tokens_per_s;
    double shown = number_max(head->tokens, RULE(TIMED_TOKENS));
    if (LEFT_OUT(RATE_SHOWN) || shown >= k->believed.tokens_per_s * head->since_s ||
        node_speed_fresh(&k->shown.rate, now_ms) > RULE(FEW))
        return k->believed.tokens_per_s;
    return shown / head->since_s;
}

/* The further delay to expect from the prompt that the replica computes now (`head`). A prompt that
 * takes more than twice the expected time, and LATE_S more, is late for another reason, and for an
 * unknown time. The guess is that the delay lasts as long again, as for all waits of unknown cause.
 * LATE_S covers engine time outside the computation, such as for a tokenizer, and the delay of
 * other routers' reports. */
static double late_s(const struct node_head *head, double rate)
{
    if (LEFT_OUT(LATE))
        return 0;
    return number_max(head->since_s - RULE(CLEARLY) * head->tokens / rate - RULE(LATE_S), 0);
}

/* The candidates' mean load, and the longest step that counts as normal at this load: not much
 * longer than the fastest replica's. */
struct typical {
    double requests, context_tokens;
    double step_s;
};

/* The step time at this number of requests. At 0 requests the optimistic belief applies
 * (node/replica/fleet.h). */
static double tried_step_s(const struct node_replica *k, double requests, double context_tokens)
{
    double times = requests > 0 || LEFT_OUT(TRIED)
                       ? 1
                       : k->believed.idle_step_base_s / k->believed.step_base_s;
    return node_believed_step_s(&k->believed, context_tokens) * times;
}

/* Factor by which a replica is slower than believed, from answers without a stream: overdue answers
 * relative to finished answers. Until the first answer ends there is no other sign of a slow
 * replica, while a fast replica has answered hundreds by then (docs/adr/0042). */
static double times_slower(const struct node_replica *k, const struct node_size *size, double rate,
                           double context_tokens, uint64_t now_ms)
{
    double answer_s = size->output_tokens * node_believed_step_s(&k->believed, context_tokens);
    double due = node_load_due_whole(&k->load, 1 / rate, answer_s, now_ms);
    double times = due / (RULE(FEW) + k->room.ended);
    return times <= 1 || LEFT_OUT(WHOLE_LATE) ||
                   node_speed_fresh(&k->shown.rate, now_ms) > RULE(FEW)
               ? 1
               : times;
}

/* Computes the means and the longest normal step. Stores the load under way at each candidate in
 * r->under_way. */
static struct typical typical_of(struct node_router *r, uint64_t now_ms)
{
    struct typical t = {.step_s = INFINITY};
    for (unsigned i = 0; i < r->candidate_count; i++) {
        const struct node_replica *k = &r->replicas[r->candidates[i].replica];
        struct node_under_way *all = &r->under_way[i];
        *all = node_under_way(&k->foreign, &k->load, now_ms);
        t.requests += all->requests / r->candidate_count;
        t.context_tokens += all->context_tokens / r->candidate_count;
    }
    for (unsigned i = 0; i < r->candidate_count; i++)
        t.step_s = number_min(t.step_s,
                              node_believed_step_s(&r->replicas[r->candidates[i].replica].believed,
                                                   t.context_tokens));
    /* With many requests the limit is higher, because a step without context is then extrapolated
     * far from all samples. */
    double crowded = number_min(t.requests / RULE(CROWD), 1);
    t.step_s *= RULE(SLIGHTLY) + crowded * (RULE(CLEARLY) - RULE(SLIGHTLY));
    return t;
}

static struct node_deepest deepest_of(const struct node_router *r, const struct chain *chain)
{
    unsigned length = 0;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned known = r->lengths[r->candidates[i].replica];
        length = known > length ? known : length;
    }
    if (length == 0)
        return (struct node_deepest){0};
    return (struct node_deepest){chain->points[length - 1].id, chain->points[length - 1].blocks};
}

/* Uncached tokens of the prompt that another candidate has in the cache. */
static double copied_of(const struct node_router *r, double held_blocks,
                        const struct node_size *size, double uncached_tokens)
{
    double beyond = (r->deepest.blocks - held_blocks) * size->block_tokens;
    return number_min(number_max(beyond, 0), uncached_tokens);
}

/* Requests expected to need the prefix during the next `copied_s` seconds, in which this copy is
 * computed: as many as in the last `copied_s` seconds. Each other router is assumed to have the
 * same number. */
static double followers_of(const struct node_router *r, double copied_s, uint64_t now_ms)
{
    if (copied_s <= 0 || LEFT_OUT(FOLLOWERS))
        return 0;
    unsigned here = node_followers_within(&r->followers, r->deepest.id, copied_s * 1000, now_ms);
    return (double)here * (r->routers > 1 ? r->routers : 1);
}

static void candidate_fill(struct node_router *r, struct node_candidate *c,
                           const struct node_request *request, const struct node_size *size,
                           const struct typical *typical, uint64_t now_ms)
{
    unsigned k = c->replica;
    struct node_replica *replica = &r->replicas[k];
    struct node_holding holds = node_router_holding(r, k, request, size);
    struct node_room_amount booked = node_load_booked(&replica->load);
    c->name_hash = replica->name_hash;
    c->owner = node_router_owner(r, k);
    c->weight = replica->weight;
    c->requests = (uint64_t)booked.requests;
    c->tokens = (uint64_t)booked.tokens + replica->load.prefill_tokens +
                replica->load.remote.prefill_tokens;
    c->cached_tokens = (uint64_t)holds.cached_tokens;
    c->tier_tokens = (uint64_t)holds.tier_tokens;
    c->matched_tokens = holds.matched_tokens;
    struct node_adapter_cost adapter = node_router_adapter_cost(r, k, size, now_ms);
    c->load_s = adapter.load_s;
    c->is_due = false;
    c->tokens_per_s = replica->believed.tokens_per_s;
    c->believed_per_s = replica->believed.tokens_per_s;
    c->placed_tokens = node_fading_now(&r->slots[k].placed_tokens, RULE(HALF_LIFE_MS), now_ms);
    if (!typical)
        return;
    struct node_head head = node_load_head(r->bookings, &replica->load, now_ms);
    struct node_under_way all = r->under_way[c - r->candidates];
    double rate = rate_shown(replica, &head, &all, now_ms);
    double slower = times_slower(replica, size, rate, all.context_tokens, now_ms);
    rate /= slower;
    double residence_s =
        size->output_tokens * node_believed_step_s(&replica->believed, all.context_tokens) * slower;
    c->tokens_per_s = rate;
    c->line_s = node_router_queue_s(r, replica, rate, now_ms);
    double queue_s = c->line_s + late_s(&head, rate) + foreign_queue_s(&r->slots[k], &all, rate);
    double new_tokens = size->prompt_tokens - holds.cached_tokens;
    struct node_room_amount more = {1, new_tokens + size->output_tokens / 2};
    double wait_s =
        number_max(queue_s, node_foreign_wait_s(&replica->foreign, &replica->load, &all, new_tokens,
                                                residence_s, node_replica_near_tokens(replica)));
    c->beyond_s = node_room_beyond_s(&replica->room, booked, more, typical->requests, residence_s);
    c->times_slower = slower;
    double copied_tokens = copied_of(r, holds.blocks, size, new_tokens);
    double restored_tokens = holds.tier_tokens * node_ratio_value(&r->restore);
    c->ttft_s = wait_s + (new_tokens + restored_tokens) / rate + adapter.load_s;
    c->meets = (struct node_cost_input){
        .queue_s = wait_s + c->beyond_s,
        .prompt_tokens = size->prompt_tokens,
        .cached_tokens = holds.cached_tokens,
        .restored_tokens = restored_tokens,
        .output_tokens = size->output_tokens,
        .displaced_tokens = holds.displaced_tokens,
        .requests = all.requests,
        .requests_typical = typical->requests,
        .context_tokens = all.context_tokens,
        .tokens_per_s = rate,
        .copied_tokens = copied_tokens,
        .followers = followers_of(r, copied_tokens / rate, now_ms),
        .step_context_s = RULE(STEP_GROWTH) * replica->believed.step_base_s * slower,
        .step_more_s = number_max(
            tried_step_s(replica, all.requests, typical->context_tokens) * slower - typical->step_s,
            0),
        .displaced_weight = r->config.displaced_weight,
        .decode_weight = r->config.decode_weight,
        .weight = replica->weight,
        .load_s = adapter.load_s,
        .unloaded_s = adapter.unloaded_s,
    };
}

enum {
    TOKEN_ID_BYTES = 4,  /* bytes per token id, as the chain counts them */
    FLEET_EVERY_MS = 10, /* shortest interval between two computations of the believed speeds */
};

static void candidates_fill(struct node_router *r, const struct node_request *request,
                            const struct node_size *size, bool costs, uint64_t now_ms)
{
    struct typical typical;
    if (costs) {
        r->deepest = deepest_of(r, request->chain);
        typical = typical_of(r, now_ms);
    }
    for (unsigned i = 0; i < r->candidate_count; i++)
        candidate_fill(r, &r->candidates[i], request, size, costs ? &typical : NULL, now_ms);
    r->has_costs = costs;
}

/* --- the request and its candidates ---------------------------------------------------------- */

static struct node_size size_of(struct node_router *r, const struct node_request *request)
{
    const struct node_model *row = node_models_row(r->models, request->model);
    bool has_chain = request->chain && request->chain->bytes > 0;
    double bytes = (double)(has_chain ? request->chain->bytes : request->body_bytes);
    double tokens = bytes / node_ratio_value(&row->bytes_per_token), media = 0;
    if (has_chain && request->chain->token_ids)
        tokens = bytes / TOKEN_ID_BYTES;
    else if (has_chain && !LEFT_OUT(KINDS))
        tokens =
            node_tokens_of(&row->tokens, request->chain->bytes, &request->chain->content, &media);
    unsigned media_count = has_chain ? chain_media(&request->chain->content) : 0;
    double text_bytes = bytes - (double)media_count * CHAIN_MEDIUM_BYTES;
    struct node_size size = {
        .model = node_models_row_number(r->models, row),
        .prompt_tokens = tokens,
        .output_tokens = node_ratio_value(&row->output_tokens),
        .mean_block_tokens = CHECKPOINT_BLOCK_BYTES * tokens / number_max(bytes, 1),
        .block_tokens = CHECKPOINT_BLOCK_BYTES * (tokens - media) / number_max(text_bytes, 1),
        .medium_tokens = media_count > 0 ? media / media_count : 0,
    };
    if (size.prompt_tokens > UINT32_MAX / 2)
        size.prompt_tokens = UINT32_MAX / 2;
    if (request->output_tokens_max > 0 && size.output_tokens > request->output_tokens_max)
        size.output_tokens = request->output_tokens_max;
    return size;
}

int node_router_evaluate(struct node_router *r, const struct node_request *request,
                         const struct node_need *need, const struct node_replica_set *excluded,
                         bool costs, uint64_t now_ms, struct node_size *size)
{
    node_router_clock(r, now_ms);
    node_router_match_ahead(r, request->chain);
    node_router_loads_take(r, now_ms);
    int err = node_router_candidates_find(r, request, need, excluded, now_ms);
    if (err != ERR_OK)
        return err;
    if (r->fleet_stale && now_ms >= r->fleet_ms + FLEET_EVERY_MS)
        node_router_fleet_believe(r, now_ms);
    *size = size_of(r, request);
    size->adapter = node_router_adapter_of(r, request);
    size->adapter_held = node_router_adapter_held(r, size->adapter);
    node_router_match(r, request);
    node_router_measure(r, request, size);
    candidates_fill(r, request, size, costs, now_ms);
    return ERR_OK;
}
