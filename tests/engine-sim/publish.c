/* The resolution of the metrics: the shown part of the counts. */
#include <string.h>

#include "tests/engine-sim/engine.h"

enum { THROUGHPUT_STEPS = 40 }; /* SGLang's --decode-log-interval */

static struct sim_seen live(const struct sim_engine *e, unsigned rank)
{
    const struct sim_model *m = e->ranks.models[rank];
    return (struct sim_seen){.running = sim_model_running(m),
                             .waiting = sim_model_waiting(m),
                             .blocks_used = sim_cache_used(sim_model_cache(m)),
                             .counters = *sim_model_counters(m)};
}

static struct sim_seen uncut(const struct sim_engine *e, unsigned rank)
{
    const struct sim_published *p = &e->published[rank];
    if (e->rate <= 0 || e->ranks.stopped_ns[rank] != 0)
        return p->stood;
    return e->options.metrics_steps > 1 ? p->stepped : live(e, rank);
}

static void minus(uint64_t *value, uint64_t less)
{
    *value -= less < *value ? less : *value;
}

static void counters_minus(struct sim_counters *n, const struct sim_counters *less)
{
    minus(&n->prefix_queries, less->prefix_queries);
    minus(&n->prefix_hits, less->prefix_hits);
    minus(&n->tier_queries, less->tier_queries);
    minus(&n->tier_hits, less->tier_hits);
    minus(&n->prompt_tokens, less->prompt_tokens);
    minus(&n->generation_tokens, less->generation_tokens);
    minus(&n->preemptions, less->preemptions);
    minus(&n->steps, less->steps);
    minus(&n->step_tokens, less->step_tokens);
    for (unsigned i = 0; i < SIM_STEP_BUCKETS; i++)
        minus(&n->step_buckets[i], less->step_buckets[i]);
}

struct sim_seen sim_engine_seen(const struct sim_engine *e, unsigned rank)
{
    const struct sim_published *p = &e->published[rank];
    struct sim_seen seen = uncut(e, rank);
    if (e->options.metrics_at_end == SIM_AT_END_ALL)
        seen.counters = p->ended;
    seen.ended_prompt_tokens = p->ended.prompt_tokens;
    seen.ended_generation_tokens = p->ended.generation_tokens;
    minus(&seen.ended_prompt_tokens, p->forgotten.prompt_tokens);
    minus(&seen.ended_generation_tokens, p->forgotten.generation_tokens);
    counters_minus(&seen.counters, &p->forgotten);
    seen.tokens_per_s = seen.running > 0 ? p->tokens_per_s : 0;
    return seen;
}

void sim_published_stand(struct sim_engine *e)
{
    for (unsigned i = 0; i < e->ranks.count; i++)
        e->published[i].stood = uncut(e, i);
}

void sim_published_ended(struct sim_engine *e, unsigned rank)
{
    e->published[rank].ended = *sim_model_counters(e->ranks.models[rank]);
}

void sim_published_forget(struct sim_engine *e)
{
    for (unsigned i = 0; i < e->ranks.count; i++)
        e->published[i].forgotten = *sim_model_counters(e->ranks.models[i]);
}

static void throughput(struct sim_published *p, const struct sim_counters *n, uint64_t now_ns)
{
    if (n->steps < p->window_steps + THROUGHPUT_STEPS || now_ns <= p->window_ns)
        return;
    p->tokens_per_s =
        (double)(n->generation_tokens - p->window_tokens) * 1e9 / (double)(now_ns - p->window_ns);
    p->window_steps = n->steps;
    p->window_tokens = n->generation_tokens;
    p->window_ns = now_ns;
}

void sim_published_step(struct sim_engine *e)
{
    uint64_t every = e->options.metrics_steps;
    for (unsigned i = 0; i < e->ranks.count; i++) {
        struct sim_published *p = &e->published[i];
        const struct sim_counters *n = sim_model_counters(e->ranks.models[i]);
        throughput(p, n, sim_clock_ns(e));
        if (every <= 1)
            continue;
        struct sim_seen now = live(e, i);
        bool prefilled = n->prompt_tokens != p->stepped.counters.prompt_tokens;
        bool due = n->steps / every != p->stepped.counters.steps / every;
        if (prefilled || due || now.running + now.waiting == 0)
            p->stepped = now;
    }
}
