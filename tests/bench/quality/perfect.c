/* Perfect knowledge: the rule of the router, which looks into the engines instead of learning. It
 * sees true caches, queues, speeds, slots, memory and adapters. A router's distance from this bound
 * is the price of ignorance. */
#include <math.h>

#include "node/route/cost.h"
#include "tests/bench/quality/chooser.h"

/* The defaults of node/settings/table.c. */
static const double displaced_weight = 6, decode_weight = 0.5, horizon_s = 120, near_tie = 0.02;

static void nothing(struct play *p, struct flight *f)
{
    (void)p;
    (void)f;
}

static void nothing_done(struct play *p, struct flight *f, enum flight_end how)
{
    (void)p;
    (void)f;
    (void)how;
}

static double queue_s(const struct engine *e, uint64_t now_ns)
{
    double tokens = 0;
    for (const struct flight *f = e->flights; f; f = f->next)
        tokens += engine_tokens_left(e, &f->sim, now_ns);
    return tokens / e->spec->model.prefill_tokens_per_s;
}

static size_t hits(const struct engine *e, const struct flight *f)
{
    return sim_model_reusable(e->model, &f->sim.chain);
}

static double in_flight_mean(const struct play *p)
{
    double sum = 0;
    for (unsigned k = 0; k < p->engine_count; k++)
        sum += p->engines[k].in_flight;
    return sum / p->engine_count;
}

static double step_s(const struct engine *e, double context_tokens)
{
    const struct sim_model_config *m = &e->spec->model;
    return (m->decode_base_ns + m->decode_context_token_ns * context_tokens) / 1e9;
}

static double context_mean(const struct play *p)
{
    double sum = 0;
    for (unsigned k = 0; k < p->engine_count; k++)
        sum += p->engines[k].in_flight_context;
    return sum / p->engine_count;
}

/* How much longer a step takes than at the fastest engine, at the engine's average load. */
static double step_more_s(const struct play *p, const struct engine *e)
{
    double context = context_mean(p), fastest = INFINITY;
    for (unsigned k = 0; k < p->engine_count; k++)
        fastest = fmin(fastest, step_s(&p->engines[k], context));
    return step_s(e, context) - fastest;
}

/* Seconds until the request has a slot and memory there. */
static double room_s(const struct play *p, const struct engine *e, double new_blocks)
{
    const struct sim_model_config *m = &e->spec->model;
    double residence_s = p->output_mean * step_s(e, e->in_flight_context), slots_s = 0;
    if (e->in_flight >= m->running_max)
        slots_s = (e->in_flight - m->running_max + 1.0) / m->running_max * residence_s;
    double used = sim_cache_used(sim_model_cache(e->model));
    double lacking = used + new_blocks - m->cache_blocks;
    double memory_s = lacking > 0 && used > 0 ? fmin(lacking / used, 1) * residence_s : 0;
    return fmax(slots_s, memory_s);
}

static struct node_cost_input input(const struct play *p, const struct engine *e,
                                    const struct flight *f)
{
    const struct sim_model_config *m = &e->spec->model;
    size_t held = hits(e, f);
    return (struct node_cost_input){
        .queue_s = queue_s(e, p->now_ns),
        .prompt_tokens = (double)f->sim.chain.tokens,
        .cached_tokens = (double)held * m->block_tokens,
        .restored_tokens = m->again * (double)held * m->block_tokens,
        .output_tokens = p->output_mean,
        .displaced_tokens = sim_model_displaced(e->model, &f->sim.chain, held, horizon_s * 1e9),
        .requests = e->in_flight,
        .requests_typical = in_flight_mean(p),
        .context_tokens = e->in_flight_context,
        .tokens_per_s = m->prefill_tokens_per_s,
        .step_context_s = m->decode_context_token_ns / 1e9,
        .displaced_weight = displaced_weight,
        .decode_weight = decode_weight,
        .weight = 1,
    };
}

static double rule(const struct play *p, const struct engine *e, const struct flight *f)
{
    const struct sim_model_config *m = &e->spec->model;
    struct node_cost_input in = input(p, e, f);
    double new_tokens = in.prompt_tokens - in.cached_tokens;
    in.queue_s = fmax(in.queue_s, room_s(p, e, new_tokens / m->block_tokens));
    in.step_more_s = step_more_s(p, e);
    if (f->sim.adapter != 0 && m->adapters_max > 0 &&
        !sim_adapters_has(sim_model_adapters(e->model), f->sim.adapter))
        in.load_s = (double)m->adapter_load_ns / 1e9;
    return node_cost_of(&in).total_s;
}

/* The rule that finds loads, unchanged from the start: the bench keeps the loads of earlier
 * versions. */
static double rule_of_loads(const struct play *p, const struct engine *e, const struct flight *f)
{
    struct node_cost_input in = input(p, e, f);
    in.decode_weight = 0.25;
    return node_cost_of(&in).total_s;
}

/* Seconds until the request's first token. */
static double queue_and_uncached(const struct play *p, const struct engine *e,
                                 const struct flight *f)
{
    double uncached =
        (double)f->sim.chain.tokens - (double)hits(e, f) * e->spec->model.block_tokens;
    return queue_s(e, p->now_ns) + uncached / e->spec->model.prefill_tokens_per_s;
}

static unsigned least(struct play *p, struct flight *f,
                      double (*cost)(const struct play *, const struct engine *,
                                     const struct flight *))
{
    double costs[ENGINES_MAX] = {0}, lowest = INFINITY;
    for (unsigned k = 0; k < p->engine_count; k++) {
        costs[k] = p->engines[k].leaves ? INFINITY : cost(p, &p->engines[k], f);
        lowest = fmin(lowest, costs[k]);
    }
    unsigned chosen = 0;
    uint64_t equals = 0;
    for (unsigned k = 0; k < p->engine_count; k++) {
        if (costs[k] <= lowest + fmax(0.001, lowest * near_tie) &&
            prng_below(&p->prng, ++equals) == 0)
            chosen = k;
    }
    return chosen;
}

static unsigned choose_rule(struct play *p, struct flight *f)
{
    return least(p, f, rule);
}

static unsigned choose_for_load(struct play *p, struct flight *f)
{
    return least(p, f, rule_of_loads);
}

static unsigned choose_queue(struct play *p, struct flight *f)
{
    return least(p, f, queue_and_uncached);
}

const struct chooser chooser_perfect = {.name = "perfect",
                                        .is_bound = true,
                                        .choose = choose_rule,
                                        .first = nothing,
                                        .done = nothing_done};
const struct chooser chooser_load = {.name = "load",
                                     .is_bound = true,
                                     .choose = choose_for_load,
                                     .first = nothing,
                                     .done = nothing_done};
const struct chooser chooser_perfect_queue = {.name = "perfect queue",
                                              .is_bound = true,
                                              .choose = choose_queue,
                                              .first = nothing,
                                              .done = nothing_done};
