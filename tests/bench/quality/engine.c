#include "tests/bench/quality/engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/bench/quality/play.h"

/* --- its publications ------------------------------------------------------------------------ */

static void ids_write(struct engine_feed *f, const struct sim_chain *chain, size_t from, size_t to)
{
    size_t tokens = to * chain->block_tokens;
    if (tokens > f->id_cap) {
        f->id_cap = 2 * tokens;
        f->ids = realloc(f->ids, f->id_cap * sizeof *f->ids);
        CHECK(f->ids != NULL);
    }
    for (size_t i = from * chain->block_tokens; i < tokens; i++)
        f->ids[i] = (uint32_t)hash_mix(chain->blocks[i / chain->block_tokens] + i) % SIM_VOCABULARY;
}

static void on_stored(void *context, const struct sim_chain *chain, size_t from, size_t to)
{
    struct engine_feed *f = context;
    struct sim_chain whole = *chain;
    if (!f->is_read)
        return;
    ids_write(f, chain, from, to);
    whole.keeps_ids = true;
    whole.ids = f->ids;
    const struct sim_model_watch *watch = sim_kv_events_watch(f->events);
    watch->stored(watch->context, &whole, from, to);
}

static void on_removed(void *context, uint64_t name)
{
    struct engine_feed *f = context;
    const struct sim_model_watch *watch = sim_kv_events_watch(f->events);
    watch->removed(watch->context, name);
}

static void on_cleared(void *context)
{
    struct engine_feed *f = context;
    const struct sim_model_watch *watch = sim_kv_events_watch(f->events);
    watch->cleared(watch->context);
}

void engine_is_read(struct engine *e)
{
    e->feed.is_read = true;
    sim_kv_events_mute(e->feed.events, false);
}

bool engine_publishes(struct engine *e, double unix_s, struct buf *payload)
{
    return e->feed.events != NULL && sim_kv_events_take(e->feed.events, unix_s, payload);
}

void engine_feed_open(struct engine_feed *f, const char *form)
{
    *f = (struct engine_feed){.events = sim_kv_events_create(form, 0, false),
                              .watch = {on_stored, on_removed, on_cleared, f}};
    CHECK(f->events != NULL);
}

void engine_feed_close(struct engine_feed *f)
{
    sim_kv_events_destroy(f->events);
    free(f->ids);
}

/* --- life ------------------------------------------------------------------------------------ */

void engine_open(struct engine *e, const struct engine_spec *spec)
{
    *e = (struct engine){
        .spec = spec, .model = sim_model_create(&spec->model), .next_ns = SIM_NEVER};
    if (spec->publishes == NULL)
        return;
    engine_feed_open(&e->feed, spec->publishes);
    sim_kv_events_mute(e->feed.events, true);
    if (spec->groups > 1)
        sim_kv_events_groups(e->feed.events, spec->groups);
    sim_model_watch(e->model, &e->feed.watch, true);
}

void engine_close(struct engine *e)
{
    sim_model_destroy(e->model);
    engine_feed_close(&e->feed);
    e->model = NULL;
}

/* --- its reports ----------------------------------------------------------------------------- */

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
    if (e->spec->groups > 1) /* as vLLM: the blocks of all groups */
        out->cache_tokens *= e->spec->groups;
    out->prefix_queries = (double)c->prefix_queries - e->swallowed_queries;
    out->prefix_hits = (double)(c->prefix_hits + c->tier_hits) - e->swallowed_hits;
    if (e->spec->model.tier_blocks > 0)
        out->tier_hits = (double)c->tier_hits;
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
