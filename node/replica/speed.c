#include "node/replica/speed.h"

#include <math.h>
#include <stdbool.h>

#include "base/check.h"
#include "base/number.h"
#include "node/replica/ablation.h"

/* Samples of the pace that count, and how many the first of them are. */
static const double pace_horizon = 200;
static const uint64_t pace_first = 8;
static const double context_typical = 100000; /* tokens */
/* By how much of itself a token of context makes a step longer. A token's keys and values are 70 KB
 * to 300 KB to be read, the weights that a step reads 8 GB to 140 GB: what is far from that is the
 * noise of contexts that are all alike, and the replica with the least would get everything. */
static const double step_growth_believed = 1.5e-6, step_growth_min = 0.4e-6;
static const double step_growth_max = 12e-6;
/* A step takes so long at any engine: what is measured or said beyond that is something else. */
static const double step_min_s = 1e-4, step_max_s = 2;
static const double step_trust = 4; /* how far from the line one sample is believed */
/* The clock has milliseconds, and a short prompt is mostly overhead: small prefills are timed
 * together. */
static const double rate_s_min = 0.010, rate_tokens_min = 512;
/* How far from what was expected one whole answer is believed. */
static const double whole_trust = 8;
/* Of the metrics: what an interval must have seen to teach. */
static const double told_tokens_min = 512, told_steps_min = 64, told_prefill_share_max = 0.5;

void node_replica_speed_begin(struct node_replica *k, const struct node_replica_config *config)
{
    k->rate = k->pace = (struct node_speed){0};
    k->pace_line = (struct node_line){0};
    k->whole = (struct node_whole){0};
    k->short_tokens = k->short_s = 0;
    k->streamed_ms = k->told_ms = 0;
    k->tokens_per_s = k->tried_tokens_per_s = config->prefill_tokens_per_s;
    k->step_base_s = k->tried_step_base_s = config->decode_step_ms / 1000;
    k->step_context_s = step_growth_believed * k->step_base_s;
    k->step_growth = step_growth_believed;
}

static bool is_speed(double x)
{
    return x > 0 && isfinite(x);
}

void node_replica_speed_check(const struct node_replica *k)
{
    CHECK(is_speed(k->tokens_per_s) && is_speed(k->tried_tokens_per_s));
    CHECK(is_speed(k->tried_step_base_s));
    CHECK(is_speed(k->step_base_s) && is_speed(k->step_context_s));
}

/* Of own steps and of those that were heard. The line may be so steep that it begins below 0. */
static double growth_of(double context_s, double base_s)
{
    if (LEFT_OUT(GROWTH))
        return step_growth_believed;
    if (!(base_s > 0))
        return step_growth_max;
    return number_min(number_max(context_s / base_s, step_growth_min), step_growth_max);
}

static void pace_line_begin(struct node_replica *k)
{
    double base_s = 1 / k->pace.value;
    k->pace_line = node_line_of(base_s, k->step_growth * base_s, context_typical, pace_horizon);
    node_line_weigh(&k->pace_line, number_min(pace_first + (double)k->pace.samples, pace_horizon));
}

void node_replica_rate_hear(struct node_replica *k, double tokens_per_s, uint64_t samples,
                            uint64_t now_ms)
{
    node_speed_hear(&k->rate, tokens_per_s, samples, now_ms);
}

void node_replica_pace_hear(struct node_replica *k, double step_base_s, double step_context_s,
                            uint64_t samples, uint64_t now_ms)
{
    node_speed_hear(&k->pace, 1 / step_base_s, samples, now_ms);
    k->step_growth = growth_of(step_context_s, step_base_s);
    pace_line_begin(k);
}

bool node_replica_rate_add(struct node_replica *k, double tokens, double seconds, uint64_t now_ms)
{
    k->streamed_ms = now_ms;
    if (seconds < rate_s_min || tokens < rate_tokens_min) {
        tokens = k->short_tokens += tokens;
        seconds = k->short_s += seconds;
        if (seconds < rate_s_min || tokens < rate_tokens_min)
            return false;
        k->short_tokens = k->short_s = 0;
    }
    node_speed_add(&k->rate, tokens / seconds, now_ms);
    return true;
}

/* The first samples tell how long a step takes, whatever was believed before; then the line through
 * all of them tells how much of that is the context's. */
bool node_replica_pace_add(struct node_replica *k, double context_tokens, double step_s,
                           uint64_t now_ms)
{
    double grown = 1 + k->step_growth * context_tokens;
    if (step_s < step_min_s || step_s > step_max_s)
        return false;
    if (k->pace.samples < pace_first) {
        node_speed_add(&k->pace, grown / step_s, now_ms);
        pace_line_begin(k);
        return true;
    }
    if (k->pace_line.w == 0)
        pace_line_begin(k);
    double expected_s = grown / k->pace.value;
    /* The line fades as its samples do. */
    double fresh = (node_speed_fresh(&k->pace, now_ms) + 1.0) / NODE_SPEED_RECENT_MAX;
    node_line_weigh(&k->pace_line, number_min(k->pace_line.w, fresh * pace_horizon));
    node_line_add(&k->pace_line, context_tokens,
                  number_min(number_max(step_s, expected_s / step_trust), expected_s * step_trust));
    double base_s, context_s;
    node_line_fit(&k->pace_line, &base_s, &context_s);
    k->step_growth = growth_of(context_s, base_s);
    /* So steep, through the middle of the samples. */
    base_s = k->pace_line.y / (k->pace_line.w + k->step_growth * k->pace_line.x);
    node_speed_set(&k->pace, 1 / base_s, now_ms);
    return true;
}

/* Whether such evidence came lately. */
static bool lately(uint64_t at_ms, uint64_t now_ms)
{
    return at_ms != 0 && now_ms < at_ms + NODE_SPEED_HALF_MS;
}

bool node_replica_whole_add(struct node_replica *k, double seconds, double prefill_tokens,
                            double completion_tokens, double context_tokens, uint64_t now_ms)
{
    double growth = k->step_context_s / k->step_base_s;
    double steps = completion_tokens * (1 + growth * context_tokens);
    double expected_s = prefill_tokens / k->tokens_per_s + steps * k->step_base_s;
    if (lately(k->streamed_ms, now_ms) || lately(k->told_ms, now_ms) || seconds < rate_s_min ||
        !(expected_s > 0))
        return false;
    if (k->whole.base.prefill_s == 0) /* no other answer was explained yet */
        k->whole.base = (struct node_whole_base){1 / k->tokens_per_s, k->step_base_s};
    double took_s = number_max(seconds, expected_s / whole_trust);
    node_whole_add(&k->whole, prefill_tokens / took_s, steps / took_s);
    struct node_whole_base own = node_whole_explain(&k->whole);
    node_speed_add(&k->rate, 1 / own.prefill_s, now_ms);
    node_speed_add(&k->pace, 1 / own.decode_s, now_ms);
    k->pace_line = (struct node_line){0}; /* begins anew where the pace is then */
    return true;
}

/* How much a counter rose; -1: not known. */
static double risen(double before, double now)
{
    return before >= 0 && now >= before ? now - before : -1;
}

/* Prompts that are computed together are timed each for itself: all of them took no longer than the
 * interval. */
void node_replica_speed_scraped(struct node_replica *k, const struct node_scrape *before,
                                const struct node_scrape *now, double seconds, uint64_t now_ms)
{
    double prefill_s = risen(before->prefill_s, now->prefill_s);
    double tokens = risen(before->prefill_tokens, now->prefill_tokens);
    double steps = risen(before->steps, now->steps), steps_s = risen(before->steps_s, now->steps_s);
    if (LEFT_OUT(RATE_SCRAPED) || !(seconds > 0) || lately(k->streamed_ms, now_ms))
        return;
    prefill_s = number_min(prefill_s, seconds);
    if (prefill_s >= rate_s_min && tokens >= told_tokens_min) {
        node_speed_add(&k->rate, tokens / prefill_s, now_ms);
        k->told_ms = now_ms;
    }
    double prefill_share = number_max(prefill_s, 0) / seconds;
    if (steps < told_steps_min || !(steps_s > 0) || prefill_share > told_prefill_share_max)
        return;
    double context = now->cache_usage > 0 && now->cache_tokens > 0
                         ? now->cache_usage * now->cache_tokens
                         : (double)(k->load.decoding_tokens + k->load.remote.decoding_tokens);
    if (node_replica_pace_add(k, context, steps_s / steps * (1 - prefill_share), now_ms))
        k->told_ms = now_ms;
}
