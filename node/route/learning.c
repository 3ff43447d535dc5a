/* Figures learned from answers: prefill rate, decode pace, bytes per token, length of answers, and
 * the actual cached part of a prompt. */
#include <math.h>

#include "base/check.h"
#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/replica/speed.h"
#include "node/route/router_internal.h"
#include "node/route/shade.h"

/* Learns the prefill rate from the time until the first byte. Returns true if the answer
 * counted. */
static bool learn_rate(struct node_router *r, struct node_replica *replica,
                       const struct node_booking_entry *e, const struct node_usage *usage,
                       uint64_t now_ms)
{
    if (e->rate_taught || e->prefill_s < 0 || e->work.tier_tokens > 0 || e->work.adapter_loads)
        return false;
    double tokens = e->work.prefill_tokens;
    bool told = usage->prompt_tokens > 0 && usage->cached_tokens >= 0;
    if (told)
        tokens = (double)(usage->prompt_tokens - usage->cached_tokens);
    else if (tokens < RULE(TIMED_TOKENS) && tokens < e->work.cached_tokens)
        return false;
    if (tokens <= 0 || e->prefill_beside > RULE(CLEARLY) * tokens)
        return false;
    r->fleet_stale |=
        node_replica_rate_add(replica, tokens + e->prefill_beside, e->prefill_s, now_ms);
    return true;
}

/* The number of computed tokens comes with the end of an answer, which may take long. So for a
 * replica with few samples the first byte counts, if an error in the believed cached part is small.
 * Prompts of a few milliseconds do not count, because their answers are short too. */
static void learn_rate_early(struct node_router *r, struct node_replica *replica,
                             struct node_booking_entry *e, uint64_t now_ms)
{
    static const struct node_usage untold = {.prompt_tokens = -1, .cached_tokens = -1};
    if (LEFT_OUT(RATE_EARLY) || e->prefill_s < RULE(TIMED_S) || e->work.prompt_tokens == 0 ||
        e->work.prefill_tokens <= RULE(CLEARLY) * e->work.cached_tokens ||
        node_speed_fresh(&replica->shown.rate, now_ms) > RULE(FEW))
        return;
    /* While the rendering of a client's prompts is being learned, a prompt faster than believed may
     * have been cached unnoticed. The end of the answer shows if that was so. */
    bool is_watched = e->work.rendered.stamp != 0;
    if (is_watched &&
        e->work.prefill_tokens + e->prefill_beside > e->prefill_s * replica->believed.tokens_per_s)
        return;
    e->rate_taught = learn_rate(r, replica, e, &untold, now_ms);
}

/* Learns the cost of loading from a tier: the prompt's time beyond the uncached tokens, in tokens
 * that could be computed in that time. */
static void learn_restore(struct node_router *r, const struct node_replica *replica,
                          const struct node_booking_entry *e, const struct node_usage *usage)
{
    double tier = e->work.tier_tokens;
    if (tier < RULE(TIMED_TOKENS) || e->prefill_s < 0 || e->prefill_beside > 0 ||
        usage->prompt_tokens < 0 || usage->cached_tokens < 0)
        return;
    double uncached = (double)(usage->prompt_tokens - usage->cached_tokens);
    if (uncached > tier) /* the tier had less than believed, or too much was uncached */
        return;
    double took = e->prefill_s * replica->believed.tokens_per_s - uncached;
    node_ratio_add(&r->restore, number_min(number_max(took, 0), tier), tier);
}

/* Learns the time of loading an adapter: the prompt's time beyond the work on the tokens. */
static void learn_load(struct node_router *r, const struct node_replica *replica,
                       const struct node_booking_entry *e, const struct node_usage *usage)
{
    if (e->work.adapter == 0 || e->prefill_s < 0 || e->work.tier_tokens > 0)
        return;
    double tokens = (double)e->work.prompt_tokens - e->work.cached_tokens;
    if (usage->prompt_tokens > 0 && usage->cached_tokens >= 0)
        tokens = (double)(usage->prompt_tokens - usage->cached_tokens);
    double work_s = (tokens + e->prefill_beside) / replica->believed.tokens_per_s;
    node_adapters_took(r->adapters, e->work.replica, e->work.adapter_loads, e->prefill_s - work_s);
}

/* Learns how many requests the replica runs at once. An answer without a stream, among many
 * requests, shows no speed. But if the request did not wait, all requests there were running.
 * Returns true if more ran than ever before. */
static bool learn_room(struct node_replica *replica, const struct node_booking_entry *e,
                       const struct node_usage *usage, uint64_t now_ms)
{
    const struct node_work *work = &e->work;
    if (!work->answer_whole || work->beside <= RULE(FEW) || usage->completion_tokens <= 0 ||
        work->tier_tokens > 0 || work->adapter_loads)
        return false;
    struct node_room_amount left = node_load_booked(&replica->load);
    struct node_room_amount there = {(work->beside + left.requests) / 2 + 1,
                                     (work->context_beside + left.tokens) / 2 +
                                         work->context_tokens};
    double step_s = node_believed_step_s(&replica->believed, there.tokens);
    double takes_s =
        work->line_tokens / work->tokens_per_s + (double)usage->completion_tokens * step_s;
    double took_s = (double)(now_ms - e->chosen_ms) / 1000;
    return !node_room_waited(took_s, takes_s, step_s) && node_room_ran(&replica->room, there);
}

/* Lowest believable rate of other prompts' prefill during a stream. Once, at a replica believed
 * five times too fast, a queue of prompts passed for steps of 0.7 s; the steps took 0.075 s. */
static double rate_least(const struct node_replica *replica)
{
    bool shown = replica->shown.rate.samples > RULE(FEW);
    return shown ? number_min(replica->believed.tokens_per_s, replica->shown.rate.value)
                 : replica->believed.tokens_per_s / RULE(TRUST);
}

static void learn_pace(struct node_router *r, struct node_replica *replica,
                       const struct node_booking_entry *e, const struct node_usage *usage,
                       uint64_t now_ms)
{
    if (LEFT_OUT(PACE) || e->work.answer_whole || !e->first_byte_seen ||
        usage->completion_tokens < RULE(TIMED_STEPS) || now_ms <= e->first_byte_ms)
        return;
    double duration_s = (double)(now_ms - e->first_byte_ms) / 1000;
    double prefilled = replica->load.prefilled_tokens - e->prefilled_at_first_byte;
    if (prefilled / rate_least(replica) > duration_s / RULE(CLEARLY))
        return;
    double step_s = (duration_s - prefilled / replica->believed.tokens_per_s) /
                    (double)(usage->completion_tokens - 1);
    double context = (replica->load.decoding_area - e->area_at_first_byte) / duration_s;
    r->fleet_stale |= node_replica_pace_add(replica, context, step_s, now_ms);
}

/* Learns from the duration of an answer without a stream. The booking predicted the tokens to
 * compute for the queue and the prompt. The prompt's cached part may differ, so the reported part
 * replaces the predicted part. */
static void learn_whole(struct node_router *r, struct node_replica *replica,
                        const struct node_booking_entry *e, const struct node_usage *usage,
                        uint64_t now_ms)
{
    if (LEFT_OUT(WHOLE) || !e->work.answer_whole || usage->completion_tokens <= 0 ||
        e->work.tokens_per_s <= 0 || e->work.tier_tokens > 0 || e->work.adapter_loads)
        return;
    double tokens = e->work.line_tokens;
    if (e->work.beside > RULE(FEW) || tokens > RULE(SLIGHTLY) * e->work.prefill_tokens)
        return;
    if (usage->prompt_tokens > 0 && usage->cached_tokens >= 0)
        tokens += (double)(usage->prompt_tokens - usage->cached_tokens) - e->work.prefill_tokens;
    const struct node_load *l = &replica->load;
    double context = (double)(l->decoding_tokens + l->remote.decoding_tokens);
    r->fleet_stale |= node_replica_whole_add(
        replica, (double)(now_ms - e->chosen_ms) / 1000, number_max(tokens, 0),
        (double)usage->completion_tokens, context + (double)e->work.context_tokens, now_ms);
}

void node_router_fleet_believe(struct node_router *r, uint64_t now_ms)
{
    r->fleet_stale = false;
    r->fleet_ms = now_ms;
    node_fleet_believe(r->replicas, r->replica_count, &r->config.prior, r->votes, now_ms);
}

/* The model's figures are for text and media; token ids have four bytes each by definition. The
 * replica's figure is for all contents of the cache. A prompt that continues a stored response
 * teaches nothing, because the engine counts the whole conversation. */
static void learn_bytes(struct node_replica *replica, struct node_model *model,
                        const struct node_work *work, const struct node_usage *usage)
{
    double bytes = (double)work->prompt_bytes;
    if (bytes <= 0 || work->continues)
        return;
    if (usage->prompt_tokens >= RULE(TIMED_STEPS)) {
        double tokens = (double)usage->prompt_tokens;
        node_replica_bytes_add(replica, bytes, tokens, true);
        if (!work->token_ids)
            node_model_bytes_add(model, work->prompt_bytes, &work->content, tokens,
                                 usage->media_tokens);
    } else if (usage->prompt_tokens < 0) {
        node_replica_bytes_add(replica, bytes, work->prompt_tokens, false);
    }
}

/* The replica with the most samples of bytes per token among those that serve the model. */
static const struct node_replica *tells_bytes(const struct node_router *r,
                                              const struct node_model *row)
{
    const struct node_replica *best = NULL;
    for (unsigned k = 0; k < r->replica_count; k++) {
        const struct node_replica *replica = &r->replicas[k];
        bool serves =
            row->name_len == 0 || node_replica_set_has(&row->serving, replica->rank.server);
        if (serves && !replica->absent &&
            (best == NULL || replica->cache.bytes_samples > best->cache.bytes_samples))
            best = replica;
    }
    return best;
}

void node_router_models_believe(struct node_router *r)
{
    for (unsigned number = 0; number <= node_models_last(r->models); number++) {
        struct node_model *row = node_models_row_at(r->models, number);
        if (row->bytes_samples >= NODE_LEARNED_FEW)
            continue;
        const struct node_replica *replica = tells_bytes(r, row);
        if (replica != NULL && replica->cache.bytes_samples > row->bytes_samples)
            node_model_bytes_believe(row, node_ratio_value(&replica->cache.bytes_per_token));
    }
}

/* True if the recorded parts are surely cached, by belief: no part is deep in the cache. */
static bool is_sure(const struct node_replica *replica, const struct node_reach *reach)
{
    for (unsigned i = 0; i < reach->count; i++) {
        if ((double)reach->parts[i].to >= replica->belief.factor / RULE(CLEARLY))
            return false;
    }
    return reach->count > 0;
}

/* Learns from the reported cached tokens. Compares shares of the prompt, so that bytes per token do
 * not matter. A hit may fall short by an engine's block or a sixteenth of the prompt, because
 * neither side is more exact. */
static void learn_cached(struct node_router *r, struct node_replica *replica,
                         const struct node_work *work, const struct node_usage *usage)
{
    double prompt = (double)usage->prompt_tokens, cached = (double)usage->cached_tokens;
    double scale = prompt / work->prompt_tokens;
    double block = node_replica_block_tokens(replica);
    float expected[NODE_SIZES] = {0};
    node_reach_sum(&work->reach, scale, expected);
    double whole = (double)expected[NODE_SIZES - 1];
    double grain = number_max(block, prompt / RULE(GRAIN));
    bool hit = cached >= whole - grain && cached > 0;
    const struct node_rendered_answer answer = {
        .prompt_tokens = prompt,
        .cached_tokens = cached,
        .predicted_tokens =
            node_replica_whole_tokens(replica, prompt, work->matched_tokens * scale),
        .sure = is_sure(replica, &work->reach),
        .block_tokens = block,
    };
    node_router_rendering_learn(r, work, &answer);
    if (whole <= grain)
        memset(expected, 0, sizeof expected); /* what is expected may be less than an engine's
                                               * block */
    uint64_t predicted = (uint64_t)llround(work->cached_tokens * scale);
    node_replica_cached_reported(replica, (uint64_t)usage->prompt_tokens, predicted,
                                 (uint64_t)usage->cached_tokens, hit ? whole : cached, expected);
    if (node_router_has_events(r, work->replica))
        node_prediction_add(&replica->cache.by_events, predicted, (uint64_t)usage->cached_tokens);
}

/* Learns from an answer; `complete`: the answer was not cut short. */
static void learn(struct node_router *r, const struct node_booking_entry *e,
                  const struct node_usage *usage, bool complete, uint64_t now_ms)
{
    struct node_replica *replica = &r->replicas[e->work.replica];
    struct node_model *model = node_models_row_at(r->models, e->work.model);
    if (e->work.prompt_tokens == 0)
        return; /* booked by load: nothing was predicted */
    replica->room.ended += complete;
    (void)learn_rate(r, replica, e, usage, now_ms);
    learn_restore(r, replica, e, usage);
    learn_load(r, replica, e, usage);
    if (complete)
        r->fleet_stale |= learn_room(replica, e, usage, now_ms);
    learn_pace(r, replica, e, usage, now_ms);
    if (complete)
        learn_whole(r, replica, e, usage, now_ms);
    if (complete && usage->completion_tokens >= 0)
        node_ratio_add(&model->output_tokens, (double)usage->completion_tokens, 1);
    learn_bytes(replica, model, &e->work, usage);
    if (usage->prompt_tokens > 0 && !e->work.continues)
        node_router_measured(r, &e->work, usage, complete);
    if (usage->cached_tokens >= 0 && usage->prompt_tokens > 0 && !e->work.continues)
        learn_cached(r, replica, &e->work, usage);
}

void node_router_first_byte(struct node_router *r, struct node_booking b, uint64_t now_ms)
{
    struct node_booking_entry *e = node_bookings_get(r->bookings, b);
    struct node_replica *replica = &r->replicas[e->work.replica];
    node_router_load_take(r, e->work.replica, now_ms);
    if (!node_bookings_first_byte(r->bookings, &replica->load, b, now_ms))
        return;
    node_router_touch(r, e->work.replica);
    node_router_shadow_began(r, &e->work, now_ms);
    learn_rate_early(r, replica, e, now_ms);
    if (!e->work.answer_whole && e->work.prompt_tokens > 0)
        r->fleet_stale |= node_room_ran(&replica->room, e->ran_at_first_byte);
    struct node_replica *process = node_router_process_at(r, e->work.replica);
    node_replica_answering(process, e->chosen_ms, now_ms);
    if (process != replica)
        node_signs_answering(&replica->signs, now_ms);
    node_replica_began(replica, &e->work, 1);
}

void node_router_used(struct node_router *r, struct node_booking b, const struct chain *chain,
                      uint64_t now_ms)
{
    const struct node_booking_entry *e = node_bookings_get(r->bookings, b);
    unsigned replica = e->work.replica;
    node_router_clock(r, now_ms);
    node_router_shadow_used(r, e, chain);
    if (!e->first_byte_seen || e->work.prompt_tokens == 0 || chain->length == 0 ||
        node_router_ring(r, replica).newest == e->work.generation)
        return;
    DISCARD(crdt_state_observe(r->crdt, chain, replica));
    node_belief_moved(&r->replicas[replica].belief);
}

/* Counts the prompt tokens and cached tokens of an answer. Uses the model's name only if an engine
 * listed it. Some engines answer for any name that a client invents, and a row is never freed. */
static void count_answered(struct node_router *r, const struct node_work *work,
                           const struct node_usage *usage)
{
    if (usage->prompt_tokens <= 0 || usage->cached_tokens < 0)
        return;
    const struct node_model *model = node_models_row_at(r->models, work->model);
    struct slice name = model->listed ? slice_of(model->name, model->name_len) : SLICE("");
    node_answered_add(r->answered, work->replica, name, (uint64_t)usage->prompt_tokens,
                      (uint64_t)usage->cached_tokens);
}

static void compare_ttft(struct node_slot *slot, const struct node_booking_entry *e)
{
    if (!e->first_byte_seen || e->work.answer_whole || e->work.prompt_tokens == 0)
        return;
    double actual_s = (double)(e->first_byte_ms - e->chosen_ms) / 1000;
    slot->ttft_predicted_s += e->work.ttft_s;
    slot->ttft_actual_s += actual_s;
    slot->ttft_off_s += fabs(actual_s - e->work.ttft_s);
    slot->ttft_count++;
}

void node_router_finish(struct node_router *r, struct node_booking b, enum node_outcome outcome,
                        const struct node_usage *reported, uint64_t now_ms)
{
    struct node_replica *replica = &r->replicas[node_bookings_get(r->bookings, b)->work.replica];
    node_router_load_take(r, (unsigned)(replica - r->replicas), now_ms);
    bool in_line = node_bookings_get(r->bookings, b)->prefilling;
    const struct node_booking_entry *e =
        node_bookings_close(r->bookings, &replica->load, b, now_ms);
    if (e->work.adapter != 0)
        node_adapters_release(r->adapters, e->work.replica, e->work.adapter);
    struct node_replica *process = node_router_process_at(r, e->work.replica);
    r->slots[e->work.replica].outcomes[outcome]++;
    node_replica_ended(process, process != replica, outcome, now_ms);
    bool broke = outcome == NODE_OUTCOME_CONNECT_FAILED || outcome == NODE_OUTCOME_BROKEN;
    if (broke || outcome == NODE_OUTCOME_OK)
        node_replica_tally(process, broke, r->replicas, r->replica_count, now_ms);
    node_router_touch(r, e->work.replica);
    node_router_touch(r, replica->rank.server);
    struct node_usage usage = {.completion_tokens = -1};
    bool sane = true;
    if (reported)
        usage = node_replica_usage(replica, reported, e->work.answer_whole, &sane);
    bool computed = !in_line && (reported || outcome == NODE_OUTCOME_CLIENT_GONE);
    node_router_recorded_end(r, &e->work, computed);
    node_router_shadow_ended(r, e, reported ? &usage : NULL, computed, now_ms);
    if (reported) {
        count_answered(r, &e->work, &usage);
        compare_ttft(&r->slots[e->work.replica], e);
        if (!sane) /* impossible usage: counted as answered, but teaches nothing */
            usage.cached_tokens = -1;
        node_router_events_answered(r, e, &usage, outcome == NODE_OUTCOME_OK, now_ms);
    } else if (e->first_byte_seen) { /* this prompt will not show in the engine's counters */
        node_replica_began(replica, &e->work, -1);
    }
    if (reported && (outcome == NODE_OUTCOME_OK || outcome == NODE_OUTCOME_CLIENT_GONE))
        learn(r, e, &usage, outcome == NODE_OUTCOME_OK, now_ms);
}

void node_router_blame(struct node_router *r, unsigned replica, uint32_t life,
                       enum node_outcome outcome, uint64_t now_ms)
{
    struct node_replica *k = node_router_process_at(r, replica);
    if (k->life != life)
        return;
    node_router_slot(r, k)->outcomes[outcome]++;
    node_replica_answered(k, outcome, now_ms);
    node_replica_tally(k, true, r->replicas, r->replica_count, now_ms);
    node_router_touch(r, (unsigned)(k - r->replicas));
}

void node_router_error(struct node_router *r, unsigned replica, enum node_error error)
{
    CHECK(replica < r->replica_count && error < NODE_ERRORS);
    r->slots[replica].failed[error]++;
}

uint32_t node_router_booked(const struct node_router *r)
{
    return node_bookings_open_count(r->bookings);
}
