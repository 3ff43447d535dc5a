/* Places a request: finds the candidates and their conditions, applies the rule (choose.c), and
 * books the choice. From then on all routers count the request. */
#include "base/check.h"
#include "base/err.h"
#include "node/replica/constants.h"
#include "node/route/router_internal.h"
#include "node/route/shade.h"

/* With fewer samples of the prefill rate, a decision has no predicted TTFT. */
enum { RATE_SAMPLES_MIN = 8 };

static uint32_t to_u32(double x)
{
    return x <= 0 ? 0 : x >= UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

static struct node_work work_of(struct node_router *r, const struct node_candidate *c,
                                const struct node_request *request, const struct node_size *size,
                                uint64_t now_ms)
{
    bool costs = r->has_costs;
    struct node_replica *replica = &r->replicas[c->replica];
    double rate = c->tokens_per_s;
    double line_s = costs ? c->line_s : node_router_queue_s(r, replica, rate, now_ms);
    double uncached = size->prompt_tokens - (double)c->cached_tokens;
    uncached += (double)c->tier_tokens * node_ratio_value(&r->restore);
    struct node_work work = {
        .replica = c->replica,
        .model = size->model,
        .prefill_tokens = to_u32(uncached + c->load_s * rate),
        .prompt_tokens = to_u32(size->prompt_tokens),
        .cached_tokens = to_u32((double)c->cached_tokens),
        .tier_tokens = to_u32((double)c->tier_tokens),
        .context_tokens = to_u32(size->prompt_tokens + size->output_tokens / 2),
        .prompt_bytes = request->chain ? request->chain->bytes : 0,
        .token_ids = request->chain && request->chain->token_ids,
        .continues = request->continues,
        .several = request->several,
        .content = request->chain ? request->chain->content : (struct chain_content){0},
        .ttft_s = costs ? c->ttft_s : line_s + uncached / rate,
        .line_tokens = line_s * rate + uncached,
        .tokens_per_s = rate,
        .beside = replica->load.requests + (uint32_t)replica->load.remote.requests,
        .context_beside =
            (double)replica->load.context_tokens + (double)replica->load.remote.context_tokens,
        .generation = node_router_ring(r, c->replica).newest,
        .answer_whole = request->answer_whole,
        .matched_tokens = to_u32(c->matched_tokens),
        .adapter = size->adapter,
        .adapter_loads = c->load_s > 0,
    };
    return work;
}

static int book(struct node_router *r, unsigned index, const struct node_work *work,
                const struct node_request *request, enum node_reason reason, uint64_t now_ms,
                struct node_decision *out)
{
    CHECK(index < r->candidate_count);
    const struct node_candidate *c = &r->candidates[index];
    struct node_replica *replica = &r->replicas[c->replica];
    struct node_replica *process = node_router_process_at(r, c->replica);
    struct node_slot *slot = &r->slots[c->replica];
    struct node_booking booking;
    int err = node_bookings_open(r->bookings, &replica->load, work, now_ms, &booking);
    if (err != ERR_OK)
        return err;
    node_router_touch(r, c->replica);
    node_router_adapter_use(r, c->replica, work->adapter, now_ms);
    node_replica_sent(process, process != replica, now_ms);
    node_router_slot(r, process)->used_ms = now_ms;
    if (node_reject_any(&process->reject))
        node_reject_sent(&process->reject, request->kind, node_router_reject_model(r, request),
                         now_ms);
    r->first_attempts += request->attempt <= 1;
    if (node_replica_set_has(&r->guesses, replica->rank.server))
        node_router_slot(r, process)->guessed_ms = now_ms;
    r->last_resorts += process->health == NODE_HEALTH_DOWN;
    slot->chosen++;
    slot->prompt_tokens += work->prompt_tokens;
    slot->cached_tokens += work->cached_tokens;
    *out = (struct node_decision){
        .replica = c->replica,
        .server = replica->rank.server,
        .rank = replica->rank.is_one ? replica->rank.number : -1,
        .booking = booking,
        .prompt_tokens = work->prompt_tokens,
        .cached_tokens = work->cached_tokens,
        .reason = reason,
        .ttft_s = replica->shown.rate.samples >= RATE_SAMPLES_MIN ? work->ttft_s : 0,
        .listed = node_models_listed(r->models, replica->rank.server),
    };
    r->decisions[reason]++;
    return ERR_OK;
}

/* Counts a request that found no replica; returns `err`. Waiting requests do not count, and neither
 * do failed retries, whose clients get the last attempt's answer. */
static int unroutable(struct node_router *r, const struct node_replica_set *excluded, int err)
{
    if (err == ERR_AGAIN || err == ERR_EXISTS)
        return err; /* the request waits */
    r->unroutable += node_router_is_first_attempt(excluded);
    return err;
}

static enum node_reason reason_of(const struct node_router *r, const struct node_request *request,
                                  const struct node_policy *policy, unsigned index)
{
    if (request->replica_wanted >= 0)
        return NODE_REASON_MAKER;
    if (policy != r->policy && r->candidate_count > 1)
        return NODE_REASON_PLAIN;
    return node_reason_of(r->candidates, r->candidate_count, index);
}

int node_router_place(struct node_router *r, const struct node_request *request,
                      const struct node_replica_set *excluded, uint64_t now_ms,
                      struct node_decision *out)
{
    struct node_size size;
    struct node_need need = node_router_need(r, request);
    const struct node_policy *policy = node_router_routed_by(r, request);
    /* In shadow mode the TTFT is estimated in the same way for both policies. */
    bool costs = policy->wants_costs || r->config.shadow;
    int err = node_router_evaluate(r, request, &need, excluded, costs, now_ms, &size);
    if (err != ERR_OK)
        return unroutable(r, excluded, err);
    unsigned index = node_router_choose(r, request, policy);
    const struct node_candidate *c = &r->candidates[index];
    struct node_work work = work_of(r, c, request, &size, now_ms);
    work.rendered = request->rendered;
    work.plain = policy != r->policy;
    err = book(r, index, &work, request, reason_of(r, request, policy, index), now_ms, out);
    if (err != ERR_OK)
        return err;
    if (policy->wants_costs) {
        if (r->deepest.id != 0 && node_router_is_first_attempt(excluded))
            node_followers_note(&r->followers, r->deepest.id, now_ms);
        node_router_placed(r, c->cost.uncached_s, now_ms);
        node_fading_add(&r->slots[c->replica].placed_tokens, size.prompt_tokens, RULE(HALF_LIFE_MS),
                        now_ms);
    }
    node_router_decision_keep(r, request, &size, policy, index, now_ms, out);
    if (request->chain && request->chain->length > 0) {
        node_router_record(r, request->chain, &size,
                           &node_bookings_get(r->bookings, out->booking)->work);
        node_router_events_recorded(r, request->chain);
    }
    if (r->config.shadow && node_router_is_first_attempt(excluded))
        node_router_shadow_place(r, request, now_ms, out);
    return ERR_OK;
}

int node_router_place_by_load(struct node_router *r, const struct node_request *request,
                              const struct node_replica_set *excluded, uint64_t now_ms,
                              struct node_decision *out)
{
    struct node_request bare = *request;
    bare.chain = NULL;
    bare.body_bytes = 0;
    struct node_size size;
    struct node_need need = node_router_need(r, request);
    need.least = 0; /* a batch may have several prompts, and each needs a context of its own */
    int err = node_router_evaluate(r, &bare, &need, excluded, false, now_ms, &size);
    if (err != ERR_OK)
        return unroutable(r, excluded, err);
    unsigned index = node_router_choose(r, &bare, &node_policy_least_request);
    /* The amount of work is unknown: the booking counts as a request without tokens. */
    struct node_work work = {
        .replica = r->candidates[index].replica, .model = size.model, .answer_whole = true};
    enum node_reason reason = request->replica_wanted >= 0 ? NODE_REASON_MAKER : NODE_REASON_LOAD;
    err = book(r, index, &work, request, reason, now_ms, out);
    if (err == ERR_OK)
        node_router_decision_keep(r, request, &size, &node_policy_least_request, index, now_ms,
                                  out);
    return err;
}
