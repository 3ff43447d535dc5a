/* Perfect knowledge: rules that look into the engines. Nobody can know that much; what a router
 * loses against it is what it does not know. */
#include <math.h>

#include "node/route/cost.h"
#include "tests/bench/quality/chooser.h"

/* The defaults of node/settings/table.c. */
static const double displaced_weight = 6, decode_weight = 0.25, horizon_s = 120, near_tie = 0.02;

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
    return sim_cache_match(sim_model_cache(e->model), f->sim.chain.blocks,
                           f->sim.chain.block_count);
}

static double in_flight_mean(const struct play *p)
{
    double sum = 0;
    for (unsigned k = 0; k < p->engine_count; k++)
        sum += p->engines[k].in_flight;
    return sum / p->engine_count;
}

static double rule(const struct play *p, const struct engine *e, const struct flight *f)
{
    const struct sim_model_config *m = &e->spec->model;
    size_t held = hits(e, f);
    struct node_cost_input in = {
        .queue_s = queue_s(e, p->now_ns),
        .prompt_tokens = (double)f->sim.chain.tokens,
        .cached_tokens = (double)held * m->block_tokens,
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
    return node_cost_of(&in).total_s;
}

/* Seconds until its first token. */
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

static unsigned choose_queue(struct play *p, struct flight *f)
{
    return least(p, f, queue_and_uncached);
}

const struct chooser chooser_perfect = {.name = "perfect",
                                        .is_bound = true,
                                        .choose = choose_rule,
                                        .first = nothing,
                                        .done = nothing_done};
const struct chooser chooser_perfect_queue = {.name = "perfect queue",
                                              .is_bound = true,
                                              .choose = choose_queue,
                                              .first = nothing,
                                              .done = nothing_done};
