#include "tests/bench/quality/engine.h"

#include <math.h>
#include <stdio.h>

#include "tests/bench/quality/play.h"

void engine_open(struct engine *e, const struct engine_spec *spec)
{
    *e = (struct engine){
        .spec = spec, .model = sim_model_create(&spec->model), .next_ns = SIM_NEVER};
}

void engine_close(struct engine *e)
{
    sim_model_destroy(e->model);
    e->model = NULL;
}

struct node_usage engine_usage(const struct engine *e, const struct sim_request *r)
{
    int64_t cached = (int64_t)r->cached_tokens;
    bool told = e->spec->cached == ENGINE_CACHED_ALWAYS ||
                (e->spec->cached == ENGINE_CACHED_ABOVE_ZERO && cached > 0);
    return (struct node_usage){.prompt_tokens = (int64_t)r->prompt_tokens,
                               .cached_tokens = told ? cached : -1,
                               .completion_tokens = r->generated};
}

static struct slice adapters_running(struct engine *e)
{
    size_t len = 0;
    for (const struct flight *f = e->flights; f; f = f->next) {
        bool runs = f->sim.state == SIM_PREFILL || f->sim.state == SIM_DECODE;
        if (runs && f->sim.adapter > 0 && len + 32 < sizeof e->adapters)
            len += (size_t)snprintf(e->adapters + len, sizeof e->adapters - len, "%sadapter-%u",
                                    len ? "," : "", (unsigned)f->sim.adapter);
    }
    return slice_of(e->adapters, len);
}

bool engine_scrape(struct engine *e, struct node_scrape *out)
{
    const struct sim_counters *c = sim_model_counters(e->model);
    const struct sim_cache *cache = sim_model_cache(e->model);
    *out = node_scrape_unknown;
    if (e->spec->metrics == ENGINE_METRICS_NONE)
        return false;
    out->vllm = true;
    out->running = sim_model_running(e->model);
    out->waiting = sim_model_waiting(e->model);
    out->start_time_s = 1;
    out->prompt_tokens = (double)c->prompt_tokens;
    out->generation_tokens = (double)c->generation_tokens;
    out->cache_usage = (double)sim_cache_used(cache) / sim_cache_blocks(cache);
    if (e->spec->metrics == ENGINE_METRICS_SOME)
        return true;
    out->block_tokens = e->spec->model.block_tokens;
    out->cache_tokens = (double)sim_cache_blocks(cache) * e->spec->model.block_tokens;
    out->prefix_queries = (double)c->prefix_queries - e->swallowed_queries;
    out->prefix_hits = (double)(c->prefix_hits + c->tier_hits) - e->swallowed_hits;
    out->prefill_s = e->prefill_s;
    out->prefill_tokens = e->prefill_tokens;
    out->steps = e->steps;
    out->steps_s = e->steps_s;
    out->preemptions = (double)c->preemptions;
    if (e->spec->model.adapters_max > 0) {
        out->adapter_slots = e->spec->model.adapters_max;
        out->adapters = adapters_running(e);
    }
    return true;
}

double engine_tokens_left(const struct engine *e, const struct sim_request *r, uint64_t now_ns)
{
    double cached = (double)r->cached_tokens;
    if (r->state == SIM_WAITING) {
        cached = (double)sim_model_reusable(e->model, &r->chain) * e->spec->model.block_tokens;
        return (double)r->chain.tokens - (1 - e->spec->model.again) * cached;
    }
    if (r->state != SIM_PREFILL)
        return 0;
    double spent_s = now_ns > r->prefill_from_ns ? (double)(now_ns - r->prefill_from_ns) / 1e9 : 0;
    double computed = (double)r->chain.tokens - (1 - e->spec->model.again) * cached;
    return fmax(computed - spent_s * e->spec->model.prefill_tokens_per_s, 0);
}
