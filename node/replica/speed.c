#include "node/replica/speed.h"

#include <math.h>

#include "base/number.h"
#include "node/replica/ablation.h"
#include "node/replica/constants.h"
#include "node/replica/replica.h"

void node_replica_speed_begin(struct node_replica *k, const struct node_replica_config *config)
{
    k->shown = (struct node_shown){.short_s = 0};
    k->believed.tokens_per_s = k->believed.idle_tokens_per_s = config->prefill_tokens_per_s;
    k->believed.step_base_s = k->believed.idle_step_base_s = config->decode_step_ms / 1000;
}

bool node_replica_rate_add(struct node_replica *k, double tokens, double seconds, uint64_t now_ms)
{
    struct node_shown *s = &k->shown;
    s->streamed_ms = now_ms;
    if (seconds < RULE(TIMED_S) || tokens < RULE(TIMED_TOKENS)) {
        tokens = s->short_tokens += tokens;
        seconds = s->short_s += seconds;
        if (seconds < RULE(TIMED_S) || tokens < RULE(TIMED_TOKENS))
            return false;
        s->short_tokens = s->short_s = 0;
    }
    node_speed_add(&s->rate, tokens / seconds, now_ms);
    return true;
}

static bool step_add(struct node_shown *s, double context_tokens, double step_s, uint64_t now_ms)
{
    if (!(step_s >= RULE(STEP_MIN_S)))
        return false;
    node_speed_add(&s->pace, (1 + RULE(STEP_GROWTH) * context_tokens) / step_s, now_ms);
    return true;
}

bool node_replica_pace_add(struct node_replica *k, double context_tokens, double step_s,
                           uint64_t now_ms)
{
    bool is_step = step_add(&k->shown, context_tokens, step_s, now_ms);
    if (is_step)
        k->shown.streamed_ms = now_ms;
    return is_step;
}

/* True if the evidence of `at_ms` came lately. */
static bool lately(uint64_t at_ms, uint64_t now_ms)
{
    return at_ms != 0 && (double)now_ms < (double)at_ms + RULE(HALF_LIFE_MS);
}

bool node_replica_whole_add(struct node_replica *k, double seconds, double prefill_tokens,
                            double completion_tokens, double context_tokens, uint64_t now_ms)
{
    struct node_shown *s = &k->shown;
    const struct node_believed *b = &k->believed;
    double steps = completion_tokens * (1 + RULE(STEP_GROWTH) * context_tokens);
    double expected_s = prefill_tokens / b->tokens_per_s + steps * b->step_base_s;
    if (lately(s->streamed_ms, now_ms) || lately(s->told_ms, now_ms) || seconds < RULE(TIMED_S) ||
        !(expected_s > 0))
        return false;
    if (s->whole.base.prefill_s == 0) /* no other answer was explained yet */
        s->whole.base = (struct node_whole_base){1 / b->tokens_per_s, b->step_base_s};
    double took_s = number_max(seconds, expected_s / RULE(TRUST));
    node_whole_add(&s->whole, prefill_tokens / took_s, steps / took_s);
    struct node_whole_base own = node_whole_explain(&s->whole);
    node_speed_add(&s->rate, 1 / own.prefill_s, now_ms);
    node_speed_add(&s->pace, 1 / own.decode_s, now_ms);
    return true;
}

/* The rise of a counter; -1: not known. */
static double risen(double before, double now)
{
    return before >= 0 && now >= before ? now - before : -1;
}

/* The engine times each prompt separately, even if it computes several together. All of them
 * together took no longer than the interval. */
void node_replica_speed_scraped(struct node_replica *k, const struct node_scrape *before,
                                const struct node_scrape *now, double seconds, uint64_t now_ms)
{
    struct node_shown *s = &k->shown;
    double prefill_s = risen(before->prefill_s, now->prefill_s);
    double tokens = risen(before->prefill_tokens, now->prefill_tokens);
    double steps = risen(before->steps, now->steps), steps_s = risen(before->steps_s, now->steps_s);
    if (LEFT_OUT(RATE_SCRAPED) || !(seconds > 0) || lately(s->streamed_ms, now_ms))
        return;
    prefill_s = number_min(prefill_s, seconds);
    if (prefill_s >= RULE(TIMED_S) && tokens >= RULE(TIMED_TOKENS)) {
        node_speed_add(&s->rate, tokens / prefill_s, now_ms);
        s->told_ms = now_ms;
    }
    double prefill_share = number_max(prefill_s, 0) / seconds;
    if (steps < RULE(TIMED_STEPS) || !(steps_s > 0) || prefill_share > 1 / RULE(CLEARLY))
        return;
    double context = now->cache_usage > 0 && now->cache_tokens > 0
                         ? now->cache_usage * now->cache_tokens
                         : (double)(k->load.decoding_tokens + k->load.remote.decoding_tokens);
    if (step_add(s, context, steps_s / steps * (1 - prefill_share), now_ms))
        s->told_ms = now_ms;
}
