#include "base/number.h"
#include "node/route/router_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/checkpoint.h"
#include "base/err.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/replica/speed.h"

enum {
    SWEEP_BUCKETS_MIN = 256, /* per tick */
    SWEEP_LAP_S = 600,       /* one lap of the whole table takes about this long */
    TOKEN_ID_BYTES = 4,      /* as the chain counts them */
    FLEET_EVERY_MS = 10,     /* how fast all are believed to be is worked out no more often */
    USED_MS = 10000,         /* a replica that got a request so lately is in use */
    RATE_SAMPLES_MIN = 8,    /* from which on a predicted TTFT is more than a guess */
};

void node_router_renew(struct node_router *r, const struct node_router_config *config)
{
    struct node_router_config *c = &r->config;
    r->policy = node_policy_find(config->policy);
    CHECK(r->policy != NULL);
    c->policy = r->policy->name;
    c->displaced_weight = config->displaced_weight;
    c->decode_weight = config->decode_weight;
    c->near_tie = config->near_tie;
    c->cache_tokens = config->cache_tokens;
    c->load_bound = config->load_bound;
    c->replica_requests_max =
        config->replica_requests_max > 0 ? config->replica_requests_max : UINT32_MAX;
    c->all_down_refuse = config->all_down_refuse;
    c->probe_failures_max = config->probe_failures_max;
    for (unsigned i = 0; i < r->replica_count; i++)
        node_replica_failures_max(&r->replicas[i], config->probe_failures_max);
}

int node_router_create(struct node_router **out, const struct node_router_config *config,
                       struct node_state *state)
{
    if (!node_policy_find(config->policy))
        return ERR_NOT_FOUND;
    struct node_router *r = calloc(1, sizeof *r);
    if (!r)
        return ERR_NOMEM;
    r->config = *config;
    node_router_renew(r, config);
    r->state = state;
    r->common = node_state_config_of(state);
    CHECK(r->common->replicas_max <= NODE_REPLICAS_MAX);
    node_router_state_take(r);
    prng_seed(&r->prng, config->seed);
    r->restore = node_ratio_of(RULE(RESTORE), RULE(RESTORE_PRIOR), RULE(RESTORE_TOKENS));
    node_decay_fill(&r->decay, r->common->generation_ms, config->reuse_horizon_ms / 1000.0);
    r->replicas = calloc(NODE_REPLICAS_MAX, sizeof *r->replicas);
    int err = r->replicas ? ERR_OK : ERR_NOMEM;
    if (err == ERR_OK)
        err = node_models_create(&r->models, &r->common->secret, config->bytes_per_token,
                                 RULE(OUTPUT));
    if (err == ERR_OK)
        err = node_bookings_create(&r->bookings);
    if (err == ERR_OK)
        err = node_adapters_create(&r->adapters);
    if (err == ERR_OK)
        err = node_answered_create(&r->answered, &r->common->secret);
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
    node_answered_destroy(r->answered);
    node_renderings_destroy(r->renderings);
    node_adapters_destroy(r->adapters);
    node_models_destroy(r->models);
    free(r->replicas);
    free(r);
}

bool node_router_engines_tell_usage(const struct node_router *r)
{
    return r->engines_tell_usage;
}

const char *node_router_policy(const struct node_router *r)
{
    return r->policy->name;
}

bool node_router_wants_session(const struct node_router *r)
{
    return r->policy->wants_session;
}

bool node_router_wants_chunks(const struct node_router *r)
{
    return r->policy->wants_chunks;
}

void node_router_check(const struct node_router *r)
{
    const struct node_load *loads[NODE_REPLICAS_MAX];
    for (unsigned k = 0; k < r->replica_count; k++) {
        loads[k] = &r->replicas[k].load;
        if (!r->replicas[k].absent)
            node_replica_speed_check(&r->replicas[k]);
    }
    node_bookings_check(r->bookings, loads, r->replica_count);
    node_router_presence_check(r);
    node_models_check(r->models);
    node_adapters_check(r->adapters);
    node_renderings_check(r->renderings);
    node_state_check(r->state);
    CHECK(r->crdt == node_state_crdt(r->state) && r->index == node_state_index(r->state));
}

/* --- one decision --------------------------------------------------------------------------- */

/* Which replicas of one health: those that are well and known to accept such requests, all that are
 * well, that work, or all. */
enum takes { TAKES_PROVEN, TAKES_GOOD, TAKES_SPARE, TAKES_ALL };

/* It works, so it gets a request before one waits, though it be warming up. If it said that it is
 * full: once it has less of ours than then, or is not asked too often. */
static bool is_spare(const struct node_replica *k, unsigned against, uint64_t now_ms)
{
    return (against & (NODE_IN_TROUBLE | 1U << NODE_STANDING_REJECTS)) == 0 &&
           ((against & 1U << NODE_STANDING_FULL) == 0 ||
            node_replica_own_requests(k) < k->busy_requests ||
            now_ms >= k->signs.tried_ms + NODE_BUSY_AGAIN_MS);
}

static bool is_taken(const struct node_router *r, unsigned replica,
                     const struct node_request *request, enum takes takes, uint64_t now_ms)
{
    const struct node_replica *k = node_router_process_at(r, replica);
    if (takes == TAKES_ALL)
        return true;
    unsigned against = node_router_against(r, replica, now_ms);
    if (takes == TAKES_SPARE)
        return is_spare(k, against, now_ms);
    return against == 0 && !k->models_stale &&
           (takes == TAKES_GOOD || node_reject_proven(&k->reject, request->kind));
}

/* Returns whether there are any, though they may all be at their limit. */
static bool candidates_collect(struct node_router *r, const struct node_replica_set *serving,
                               const struct node_request *request, const uint64_t *excluded,
                               enum node_health health, enum takes takes, uint64_t now_ms)
{
    bool full = false;
    r->candidate_count = 0;
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *process = node_router_process_at(r, k);
        if (node_router_is_asked(r, k, serving, request, excluded) &&
            node_replica_usable(process, health) && is_taken(r, k, request, takes, now_ms)) {
            if (!node_replica_is_full(process, r->config.replica_requests_max))
                r->candidates[r->candidate_count++].replica = k;
            else
                full = true;
        }
    }
    return full || r->candidate_count > 0;
}

static bool is_idle(const struct node_replica *k)
{
    return node_replica_requests(k) == 0;
}

/* Whether no candidate has another process than the first. */
static bool is_one_process(const struct node_router *r)
{
    unsigned first = node_router_server(r, r->candidates[0].replica), i = 1;
    while (i < r->candidate_count && node_router_server(r, r->candidates[i].replica) == first)
        i++;
    return i == r->candidate_count;
}

/* The last one that can serve at all is not put at risk while it is in use, be it idle just now. */
static bool is_the_last_in_use(const struct node_router *r, const struct node_request *request,
                               uint64_t now_ms)
{
    const struct node_replica *k = node_router_process_at(r, r->candidates[0].replica);
    return request->company == NODE_COMPANY_ALONE && is_one_process(r) &&
           (!is_idle(k) || (k->used_ms != 0 && now_ms - k->used_ms < USED_MS));
}

enum { COMPANY_OTHERS_TURN = 1, COMPANY_BUSY = 2, COMPANY_KEPT = 4 };

/* How unwelcome the company there is to it; 0: it is as wanted. Where a suspect cannot be alone it
 * is at least with no other suspect: of this router by `kept`, of others by the order of routers at
 * each replica, which differs from replica to replica. */
static unsigned company_at(const struct node_router *r, unsigned replica,
                           const struct node_request *request)
{
    const struct node_replica *k = node_router_process_at(r, replica);
    if (request->company == NODE_COMPANY_ANY)
        return k->kept > 0 ? COMPANY_KEPT : 0;
    if (k->kept > 0 && (int)node_router_server(r, replica) != request->kept_for_it)
        return COMPANY_KEPT;
    unsigned busy = is_idle(k) ? 0 : COMPANY_BUSY;
    bool others = request->company == NODE_COMPANY_RATHER_ALONE && k->scraped.ahead > 0;
    return busy + (others ? COMPANY_OTHERS_TURN : 0);
}

/* Leaves those with the company that the request wants. ERR_EXISTS: there is none now. ERR_LIMIT:
 * nor will there be one soon. */
static int candidates_by_company(struct node_router *r, const struct node_request *request,
                                 uint64_t now_ms)
{
    if (request->company == NODE_COMPANY_ANY && r->kept == 0)
        return ERR_OK;
    if (is_the_last_in_use(r, request, now_ms))
        return ERR_LIMIT;
    unsigned least = UINT_MAX, left = 0;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned company = company_at(r, r->candidates[i].replica, request);
        least = company < least ? company : least;
    }
    bool any_but_kept = request->company == NODE_COMPANY_RATHER_ALONE && least < COMPANY_KEPT;
    if (least > 0 && !any_but_kept)
        return request->company == NODE_COMPANY_ALONE || request->may_wait ? ERR_EXISTS : ERR_OK;
    for (unsigned i = 0; i < r->candidate_count; i++) {
        unsigned k = r->candidates[i].replica;
        if (company_at(r, k, request) == least)
            r->candidates[left++].replica = k;
    }
    r->candidate_count = left;
    return ERR_OK;
}

/* ERR_UNREACHABLE: none of these can be chosen now. */
static int candidates_among(struct node_router *r, const struct node_replica_set *serving,
                            const struct node_request *request, const struct node_need *need,
                            const uint64_t *excluded, uint64_t now_ms)
{
    /* What is full is waited for rather than going to one in trouble, which has room as it fails.
     */
    static const struct {
        enum node_health health;
        enum takes takes;
    } choices[] = {{NODE_HEALTH_UP, TAKES_PROVEN},    {NODE_HEALTH_UP, TAKES_GOOD},
                   {NODE_HEALTH_UP, TAKES_SPARE},     {NODE_HEALTH_UP, TAKES_ALL},
                   {NODE_HEALTH_UNKNOWN, TAKES_GOOD}, {NODE_HEALTH_UNKNOWN, TAKES_SPARE},
                   {NODE_HEALTH_UNKNOWN, TAKES_ALL}};
    /* A replica that accepts such requests knows best whether a rejection is right. */
    for (unsigned i = request->rejected ? 0 : 1; i < ARRAY_LEN(choices); i++) {
        if (!candidates_collect(r, serving, request, excluded, choices[i].health, choices[i].takes,
                                now_ms))
            continue;
        node_router_candidates_sure(r, request, now_ms);
        node_router_candidates_fit(r, need);
        int err = r->candidate_count > 0 ? candidates_by_company(r, request, now_ms) : ERR_AGAIN;
        if (err == ERR_OK || choices[i].takes > TAKES_GOOD)
            return err;
    }
    return node_router_last_resort(r, serving, request, excluded);
}

/* None that fits can be chosen: those that may be too small, and those that denied the model. */
static int candidates_beyond(struct node_router *r, const struct node_request *request,
                             const struct node_need *need, bool cut, const uint64_t *excluded,
                             uint64_t now_ms)
{
    int err = ERR_UNREACHABLE;
    struct node_replica_set serving = r->servers.asked;
    if (cut && need->over == 0)
        err = candidates_among(r, &serving, request, need, excluded, now_ms);
    if (err == ERR_UNREACHABLE && node_router_denied_too(r, request, &serving))
        err = candidates_among(r, &serving, request, need, excluded, now_ms);
    if (err != ERR_UNREACHABLE)
        return err;
    return node_router_is_unknown(r, request) ? ERR_NOT_FOUND : ERR_UNREACHABLE;
}

static int candidates_find(struct node_router *r, const struct node_request *request,
                           const struct node_need *need, const uint64_t *excluded, uint64_t now_ms)
{
    node_router_servers_find(r, request, now_ms);
    node_router_reject_find(r, &r->servers.asked, request, now_ms);
    /* An estimate is no proof: what seems too short is tried where nothing else can be, and an
     * engine that refuses it says so. */
    struct node_replica_set fit = r->servers.asked;
    bool cut = request->replica_wanted < 0 && node_router_fit_keep(r, need, &fit);
    int err = candidates_among(r, &fit, request, need, excluded, now_ms);
    if (err != ERR_UNREACHABLE)
        return err;
    return candidates_beyond(r, request, need, cut, excluded, now_ms);
}

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

static int evaluate(struct node_router *r, const struct node_request *request,
                    const struct node_need *need, const uint64_t *excluded, bool costs,
                    uint64_t now_ms, struct node_size *size)
{
    node_router_clock(r, now_ms);
    node_router_match_ahead(r, request->chain);
    node_router_loads_take(r, now_ms);
    int err = candidates_find(r, request, need, excluded, now_ms);
    if (err != ERR_OK)
        return err;
    if (r->fleet_stale && now_ms >= r->fleet_ms + FLEET_EVERY_MS)
        node_router_fleet_believe(r, now_ms);
    *size = size_of(r, request);
    size->adapter = node_router_adapter_of(r, request);
    size->adapter_held = node_router_adapter_held(r, size->adapter);
    node_router_match(r, request);
    node_router_candidates_fill(r, request, size, costs, now_ms);
    if (costs)
        node_router_due_find(r, size, now_ms);
    return ERR_OK;
}

int node_router_evaluate(struct node_router *r, const struct node_request *request,
                         const uint64_t *excluded, bool costs, uint64_t now_ms,
                         struct node_size *size)
{
    struct node_need need = node_router_need(r, request);
    return evaluate(r, request, &need, excluded, costs, now_ms, size);
}

struct node_policy_input node_router_policy_input(struct node_router *r,
                                                  const struct node_request *request)
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
        .prefix_key = r->policy->wants_costs ? 0 : node_router_prefix_key(request->chain),
        .near_tie = r->config.near_tie,
        .routers = r->routers,
        .place = r->place,
        .unseen_s = node_router_unseen_s(r),
        .load_bound = r->config.load_bound,
        .prng = &r->prng,
        .turn = &r->turn,
    };
}

static uint32_t to_u32(double x)
{
    return x <= 0 ? 0 : x >= UINT32_MAX ? UINT32_MAX : (uint32_t)x;
}

static struct node_work work_of(struct node_router *r, const struct node_candidate *c,
                                const struct node_request *request, const struct node_size *size,
                                uint64_t now_ms)
{
    bool costs = r->policy->wants_costs;
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
        .content = request->chain ? request->chain->content : (struct chain_content){0},
        .ttft_s = costs ? c->ttft_s : line_s + uncached / rate,
        .line_tokens = line_s * rate + uncached,
        .tokens_per_s = rate,
        .beside = replica->load.requests + (uint32_t)replica->load.remote.requests,
        .context_beside =
            (double)replica->load.context_tokens + (double)replica->load.remote.context_tokens,
        .generation = crdt_index_ring(r->index, c->replica).newest,
        .answer_whole = request->answer_whole,
        .matched_tokens = to_u32(c->matched_tokens),
        .adapter = size->adapter,
        .adapter_loads = c->load_s > 0,
    };
    return work;
}

static int decide(struct node_router *r, unsigned index, const struct node_work *work,
                  const struct node_request *request, enum node_reason reason, uint64_t now_ms,
                  struct node_decision *out)
{
    CHECK(index < r->candidate_count);
    const struct node_candidate *c = &r->candidates[index];
    struct node_replica *replica = &r->replicas[c->replica];
    struct node_replica *process = node_router_process_at(r, c->replica);
    struct node_booking booking;
    int err = node_bookings_open(r->bookings, &replica->load, work, now_ms, &booking);
    if (err != ERR_OK)
        return err;
    node_router_touch(r, c->replica);
    node_router_adapter_use(r, c->replica, work->adapter, now_ms);
    process->rank_requests += process != replica;
    process->used_ms = now_ms;
    replica->chosen++;
    node_breaker_sent(process, now_ms);
    if (node_reject_any(&process->reject))
        node_reject_sent(&process->reject, request->kind, node_router_reject_model(r, request),
                         now_ms);
    r->first_attempts += request->attempt <= 1;
    process->signs.tried_ms = now_ms;
    if (node_replica_set_has(&r->guesses, replica->server))
        process->guessed_ms = now_ms;
    r->last_resorts += process->health == NODE_HEALTH_DOWN;
    replica->prompt_tokens += work->prompt_tokens;
    replica->cached_tokens += work->cached_tokens;
    *out = (struct node_decision){
        .replica = c->replica,
        .server = replica->server,
        .rank = replica->is_rank ? replica->rank : -1,
        .booking = booking,
        .prompt_tokens = work->prompt_tokens,
        .cached_tokens = work->cached_tokens,
        .reason = reason,
        .ttft_s = replica->rate.samples >= RATE_SAMPLES_MIN ? work->ttft_s : 0,
        .listed = node_router_models_listed(r, c->replica),
    };
    r->decisions[reason]++;
    return ERR_OK;
}

/* Finding nobody for another attempt is no news: the answer of the last one goes to the client. */
static int unroutable(struct node_router *r, const uint64_t *excluded, int err)
{
    if (err == ERR_AGAIN || err == ERR_EXISTS)
        return err; /* it waits */
    r->unroutable += node_router_is_first_attempt(excluded);
    return err;
}

int node_router_choose(struct node_router *r, const struct node_request *request,
                       const uint64_t *excluded, uint64_t now_ms, struct node_decision *out)
{
    struct node_size size;
    int err = node_router_evaluate(r, request, excluded, r->policy->wants_costs, now_ms, &size);
    if (err != ERR_OK)
        return unroutable(r, excluded, err);
    struct node_policy_input input = node_router_policy_input(r, request);
    unsigned index = r->policy->choose(&input);
    CHECK(index < r->candidate_count);
    const struct node_candidate *c = &r->candidates[index];
    struct node_work work = work_of(r, c, request, &size, now_ms);
    work.rendered = request->rendered;
    enum node_reason reason = request->replica_wanted >= 0
                                  ? NODE_REASON_MAKER
                                  : node_reason_of(r->candidates, r->candidate_count, index);
    err = decide(r, index, &work, request, reason, now_ms, out);
    if (err != ERR_OK)
        return err;
    if (r->policy->wants_costs) {
        if (r->deepest.id != 0 && node_router_is_first_attempt(excluded))
            node_followers_note(&r->followers, r->deepest.id, now_ms);
        node_router_placed(r, c->cost.uncached_s, now_ms);
        node_router_due_placed(&r->replicas[c->replica], size.prompt_tokens, now_ms);
    }
    node_router_decision_keep(r, request, &size, index, r->policy->wants_costs, now_ms, out);
    if (request->chain && request->chain->length > 0)
        node_router_record(r, request->chain, &size,
                           &node_bookings_get(r->bookings, out->booking)->work);
    return ERR_OK;
}

int node_router_choose_by_load(struct node_router *r, const struct node_request *request,
                               const uint64_t *excluded, uint64_t now_ms, struct node_decision *out)
{
    struct node_request bare = *request;
    bare.chain = NULL;
    bare.body_bytes = 0;
    struct node_size size;
    struct node_need need = node_router_need(r, request);
    need.least = 0; /* a batch may have several prompts */
    int err = evaluate(r, &bare, &need, excluded, false, now_ms, &size);
    if (err != ERR_OK)
        return unroutable(r, excluded, err);
    struct node_policy_input input = node_router_policy_input(r, &bare);
    unsigned index = node_policy_least_requests(&input);
    /* Nobody knows how much work it is: it counts as a request and nothing else. */
    struct node_work work = {
        .replica = r->candidates[index].replica, .model = size.model, .answer_whole = true};
    enum node_reason reason = request->replica_wanted >= 0 ? NODE_REASON_MAKER : NODE_REASON_LOAD;
    err = decide(r, index, &work, request, reason, now_ms, out);
    if (err == ERR_OK)
        node_router_decision_keep(r, request, &size, index, false, now_ms, out);
    return err;
}

void node_router_tick(struct node_router *r, uint64_t now_ms)
{
    node_router_clock(r, now_ms);
    node_router_apart_follow(r);
    node_router_presence_update(r);
    node_router_slots_leave(r);
    node_router_ranks_tick(r, now_ms);
    node_router_shares_find(r);
    struct crdt_index_stats stats;
    crdt_index_stats(r->index, &stats);
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
        replica->belief.stale = true;
    }
    node_router_adapters_tick(r, now_ms);
    node_router_renderings_tick(r, now_ms);
    node_router_models_believe(r);
    node_router_fleet_believe(r, now_ms);
}
