#include <math.h>

#include "base/check.h"
#include "tests/engine-sim/engine.h"
#include "tests/engine-sim/job.h"

struct writer {
    const struct sim_engine *engine;
    struct buf *out;
};

/* One metric with one series. `labels` come before model_name, as they do alphabetically. */
static void put_metric(const struct writer *w, const char *name, const char *type,
                       const char *labels, double value)
{
    sim_put(w->out, "# HELP %s %s of the engine simulator.\n# TYPE %s %s\n%s{%smodel_name=", name,
            name, name, type, name, labels);
    sim_put_json(w->out, slice_of_cstr(w->engine->options.models[0]));
    sim_put(w->out, "} %.17g\n", value);
}

static void put_series(const struct writer *w, const char *name, const char *before,
                       const char *after, double value)
{
    sim_put(w->out, "%s{%smodel_name=", name, before);
    sim_put_json(w->out, slice_of_cstr(w->engine->options.models[0]));
    sim_put(w->out, "%s} %.17g\n", after, value);
}

#define ENGINE "engine=\"0\","

/* Names of the adapters whose requests run, or wait, cut by commas. */
static void put_adapters(const struct writer *w, bool running)
{
    bool first = true;
    for (const struct sim_job *job = w->engine->jobs; job != NULL; job = job->next) {
        enum sim_state state = job->request.state;
        bool runs = state == SIM_PREFILL || state == SIM_DECODE, again = false;
        if (job->request.adapter == 0 || (running ? !runs : state != SIM_WAITING))
            continue;
        for (const struct sim_job *other = w->engine->jobs; other != job; other = other->next)
            again = again || (other->request.adapter == job->request.adapter &&
                              (other->request.state == SIM_WAITING) == !running);
        if (!again)
            sim_put(w->out, "%s%s", first ? "" : ",", job->model);
        first = first && again;
    }
}

static void put_lora_info(const struct writer *w)
{
    const struct sim_engine *e = w->engine;
    sim_put(w->out,
            "# HELP vllm:lora_requests_info Running stats on lora requests.\n"
            "# TYPE vllm:lora_requests_info gauge\n"
            "vllm:lora_requests_info{max_lora=\"%lu\",running_lora_adapters=\"",
            e->options.max_loras);
    put_adapters(w, true);
    sim_put(w->out, "\",waiting_lora_adapters=\"");
    put_adapters(w, false);
    sim_put(w->out, "\"} %.3f\n", e->start_time_s + (double)(sim_clock_ns(e) - e->t0_ns) / 1e9);
}

static void vllm_write(const struct writer *w)
{
    const struct sim_engine *e = w->engine;
    const struct sim_cache *cache = sim_model_cache(e->model);
    const struct sim_seen seen = sim_engine_seen(e);
    const struct sim_counters *n = &seen.counters;
    uint64_t blocks = sim_cache_blocks(cache) + 1; /* the engine never hands out the first one */
    uint64_t block = e->options.block_tokens;
    bool asleep = e->fail.mode == SIM_FAIL_SLEEP;

    put_metric(w, "vllm:num_requests_running", "gauge", ENGINE, seen.running);
    put_metric(w, "vllm:num_requests_waiting", "gauge", ENGINE, seen.waiting);
    sim_put(w->out, "# TYPE vllm:engine_sleep_state gauge\n");
    put_series(w, "vllm:engine_sleep_state", ENGINE, ",sleep_state=\"awake\"", !asleep);
    put_series(w, "vllm:engine_sleep_state", ENGINE, ",sleep_state=\"weights_offloaded\"", asleep);
    put_series(w, "vllm:engine_sleep_state", ENGINE, ",sleep_state=\"discard_all\"", 0);
    put_metric(w, "vllm:kv_cache_usage_perc", "gauge", ENGINE,
               (double)seen.blocks_used / (double)(blocks - 1));
    put_metric(w, "vllm:prefix_cache_queries_total", "counter", ENGINE, (double)n->prefix_queries);
    put_metric(w, "vllm:prefix_cache_hits_total", "counter", ENGINE, (double)n->prefix_hits);
    if (e->options.tier_tokens > 0) {
        put_metric(w, "vllm:external_prefix_cache_queries_total", "counter", ENGINE,
                   (double)n->tier_queries);
        put_metric(w, "vllm:external_prefix_cache_hits_total", "counter", ENGINE,
                   (double)n->tier_hits);
    }
    if (e->options.max_loras > 0)
        put_lora_info(w);
    put_metric(w, "vllm:num_preemptions_total", "counter", ENGINE, (double)n->preemptions);
    put_metric(w, "vllm:prompt_tokens_total", "counter", ENGINE, (double)n->prompt_tokens);
    put_metric(w, "vllm:generation_tokens_total", "counter", ENGINE, (double)n->generation_tokens);
    sim_put(w->out, "# TYPE vllm:request_success_total counter\n");
    put_series(w, "vllm:request_success_total", ENGINE "finished_reason=\"stop\",", "",
               (double)e->tally.finished[0]);
    put_series(w, "vllm:request_success_total", ENGINE "finished_reason=\"length\",", "",
               (double)e->tally.finished[1]);
    put_series(w, "vllm:request_success_total", ENGINE "finished_reason=\"abort\",", "", 0);
    put_series(w, "vllm:admission_rejections_total", "", ",reason=\"max_num_queued_reqs\"",
               (double)n->rejected);
    put_series(w, "vllm:time_to_first_token_seconds_sum", ENGINE, "", e->tally.ttft_s_sum);
    put_series(w, "vllm:time_to_first_token_seconds_count", ENGINE, "",
               (double)e->tally.ttft_count);
    put_series(w, "vllm:e2e_request_latency_seconds_sum", ENGINE, "", e->tally.e2e_s_sum);
    put_series(w, "vllm:e2e_request_latency_seconds_count", ENGINE, "", (double)e->tally.e2e_count);
    sim_put(w->out,
            "# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n"
            "# TYPE vllm:cache_config_info gauge\n"
            "vllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"%lu\","
            "cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\","
            "kv_cache_size_tokens=\"%lu\",num_gpu_blocks=\"%lu\",num_gpu_blocks_override=\"None\","
            "prefix_caching_hash_algo=\"sha256\"} 1.0\n",
            block, blocks * block, blocks);
}

#define RANK     "engine_type=\"unified\","
#define WHOLE    "engine_type=\"unified\",is_streaming=\"false\","
#define STREAMED "engine_type=\"unified\",is_streaming=\"true\","
#define AFTER    ",pp_rank=\"0\",tp_rank=\"0\""

static void sglang_write(const struct writer *w)
{
    const struct sim_engine *e = w->engine;
    const struct sim_cache *cache = sim_model_cache(e->model);
    const struct sim_seen seen = sim_engine_seen(e);
    const struct sim_counters *n = &seen.counters;
    double blocks = sim_cache_blocks(cache);
    double block = (double)e->options.block_tokens;

    put_series(w, "sglang:num_running_reqs", RANK, AFTER, seen.running);
    put_series(w, "sglang:num_queue_reqs", RANK, AFTER, seen.waiting);
    put_series(w, "sglang:token_usage", RANK, AFTER, (double)seen.blocks_used / blocks);
    put_series(w, "sglang:num_used_tokens", RANK, AFTER, (double)seen.blocks_used * block);
    put_series(w, "sglang:max_total_num_tokens", RANK, AFTER, blocks * block);
    put_series(w, "sglang:page_size", RANK, AFTER, block);
    put_series(w, "sglang:num_pages", RANK, AFTER, blocks);
    /* Split by is_streaming, to be summed. The simulator does not know the parts: a third is whole.
     */
    const struct {
        const char *name;
        double count;
    } split[] = {{"sglang:prompt_tokens_total", (double)n->prefix_queries},
                 {"sglang:generation_tokens_total", (double)n->generation_tokens},
                 {"sglang:num_requests_total", (double)e->tally.requests}};
    for (size_t i = 0; i < ARRAY_LEN(split); i++) {
        double whole = floor(split[i].count / 3);
        put_series(w, split[i].name, STREAMED, "", split[i].count - whole);
        put_series(w, split[i].name, WHOLE, "", whole);
    }
    if (n->prefix_hits > 0) /* missing until it first counts */
        put_series(w, "sglang:cached_tokens_total", "cache_source=\"device\"," RANK, "",
                   (double)n->prefix_hits);
    if (n->tier_hits > 0)
        put_series(w, "sglang:cached_tokens_total", "cache_source=\"host\"," RANK, "",
                   (double)n->tier_hits);
    if (e->options.max_loras > 0)
        put_series(w, "sglang:lora_pool_slots_total", RANK, AFTER, (double)e->options.max_loras);
    if (e->tally.aborted > 0)
        put_series(w, "sglang:num_aborted_requests_total", RANK, "", (double)e->tally.aborted);
}

void sim_metrics_write(const struct sim_engine *e, struct buf *out)
{
    const struct writer w = {e, out};
    sim_put(out,
            "# HELP process_start_time_seconds Start time of the process since unix epoch in "
            "seconds.\n# TYPE process_start_time_seconds gauge\n"
            "process_start_time_seconds %.2f\n",
            e->start_time_s);
    if (e->options.sglang)
        sglang_write(&w);
    else
        vllm_write(&w);
}
