/* The names of engines' metrics: vLLM's and SGLang's, in all releases since 2025. */
#include "node/replica/scrape_internal.h"

#define VLLM(text)   .name = SLICE("vllm:" text)
#define SGLANG(text) .name = SLICE("sglang:" text)
#define TOLD(field)  offsetof(struct node_scrape_figures, told.field)
#define FOUND(field) offsetof(struct node_scrape_figures, field)

const struct node_scrape_row node_scrape_rows[NODE_SCRAPE_ROWS] = {
    /* vLLM V1, 0.9 to 0.33: module vllm.v1.metrics.loggers, `record` of PrometheusStatLogger, which
     * runs for each batch of outputs from the core. The statistics of an iteration come with
     * outputs only, the scheduler's statistics with each step: a prompt's chunk moves only the
     * usage, which is not rounded. request_success_total says no more than the tokens: it moves
     * with the last token of an answer. Prompts count with the first token, look-ups when a request
     * is scheduled first. inter_token_latency came with 0.10.2, names without gpu_ with 0.9.2; the
     * replaced names went with 0.12. */
    {VLLM("generation_tokens_total"), TOLD(generation_tokens), COUNTER, STEP},
    {VLLM("iteration_tokens_total_count"), FOUND(nothing), ADD, STEP},
    {VLLM("inter_token_latency_seconds_count"), TOLD(steps), RATIO, STEP},
    {VLLM("time_per_output_token_seconds_count"), TOLD(steps), RATIO, STEP},
    {VLLM("kv_cache_usage_perc"), TOLD(cache_usage), MEAN, STEP | GAUGE},
    {VLLM("gpu_cache_usage_perc"), TOLD(cache_usage), MEAN, STEP | GAUGE},
    {VLLM("prompt_tokens_total"), TOLD(prompt_tokens), COUNTER, 0},
    {VLLM("prefix_cache_queries_total"), TOLD(prefix_queries), COUNTER, 0},
    {VLLM("gpu_prefix_cache_queries_total"), TOLD(prefix_queries), COUNTER, 0},
    {VLLM("num_preemptions_total"), TOLD(preemptions), ADD, 0},
    /* SGLang 0.4 to 0.5.23. The server counts tokens when a request ends, and the gaps between the
     * scheduler's pieces (module srt.managers.tokenizer_manager): before any parser sees the
     * pieces, every 50 tokens, also for answers that are not streamed. The scheduler counts batches
     * of prompts as they are computed. Decode steps count each time or, in earlier builds, every 40
     * (--decode-log-interval), when the scheduler sets the gauges (module
     * srt.observability.metrics_collector, earlier srt.metrics.collector). token_usage is rounded
     * to two digits. cache_config_info was there early in 2026. */
    {SGLANG("realtime_tokens_total"), FOUND(decoded), ADD, STEP, SLICE("mode"), SLICE("decode")},
    {SGLANG("realtime_tokens_total"), FOUND(computed), ADD, STEP, SLICE("mode"),
     SLICE("prefill_compute")},
    {SGLANG("inter_token_latency_seconds_count"), TOLD(steps), RATIO, STEP},
    {SGLANG("gen_throughput"), FOUND(nothing), ADD, STEP | GAUGE},
    {SGLANG("num_used_tokens"), FOUND(nothing), ADD, STEP | GAUGE},
    {SGLANG("token_usage"), TOLD(cache_usage), MEAN, GAUGE},
    {SGLANG("generation_tokens_total"), TOLD(generation_tokens), COUNTER, 0},
    {SGLANG("prompt_tokens_total"), TOLD(prompt_tokens), COUNTER, 0},
    /* Work seen by another router (node/replica/scraped.h). */
    {.name = SLICE(""), FOUND(nothing), ADD, STEP},

    /* No signs of work: requests present, sizes, sums of histograms. */
    {VLLM("num_requests_running"), TOLD(running), ADD},
    {VLLM("num_requests_waiting"), TOLD(waiting), ADD},
    {VLLM("prefix_cache_hits_total"), TOLD(prefix_hits), ADD},
    {VLLM("gpu_prefix_cache_hits_total"), TOLD(prefix_hits), ADD},
    {VLLM("external_prefix_cache_hits_total"), TOLD(tier_hits), ADD},
    {VLLM("request_prefill_time_seconds_sum"), TOLD(prefill_s), ADD},
    {VLLM("request_prefill_kv_computed_tokens_sum"), TOLD(prefill_tokens), ADD},
    {VLLM("request_prompt_tokens_sum"), FOUND(prompts), ADD},
    {VLLM("inter_token_latency_seconds_sum"), TOLD(steps_s), RATIO},
    {VLLM("time_per_output_token_seconds_sum"), TOLD(steps_s), RATIO},
    {VLLM("kv_block_idle_before_evict_seconds_count"), TOLD(evicted), ADD},
    {VLLM("kv_block_idle_before_evict_seconds_sum"), TOLD(evicted_idle_s), ADD},
    {VLLM("engine_sleep_state"), FOUND(awake), MEAN, 0, SLICE("sleep_state"), SLICE("awake")},
    {VLLM("cache_config_info"), FOUND(configs), ADD},
    {VLLM("cache_config_info"), TOLD(block_tokens), MOST, 0, SLICE("block_size")},
    {VLLM("cache_config_info"), FOUND(blocks), MOST, 0, SLICE("num_gpu_blocks")},
    {VLLM("cache_config_info"), FOUND(rank_tokens), MOST, 0, SLICE("kv_cache_size_tokens")},
    {VLLM("lora_requests_info"), TOLD(adapter_slots), MOST, 0, SLICE("max_lora")},
    {SGLANG("num_running_reqs"), TOLD(running), ADD},
    {SGLANG("num_queue_reqs"), TOLD(waiting), ADD},
    {SGLANG("cached_tokens_total"), TOLD(prefix_hits), ADD},
    {SGLANG("realtime_tokens_total"), FOUND(reused), ADD, 0, SLICE("mode"), SLICE("prefill_cache")},
    {SGLANG("inter_token_latency_seconds_sum"), TOLD(steps_s), RATIO},
    {SGLANG("max_total_num_tokens"), TOLD(cache_tokens), ADD},
    {SGLANG("cache_config_info"), TOLD(block_tokens), MOST, 0, SLICE("page_size")},
    {SGLANG("cache_config_info"), FOUND(pages), ADD, 0, SLICE("num_pages")},
    {SGLANG("page_size"), TOLD(block_tokens), MOST},
    {SGLANG("lora_pool_slots_total"), TOLD(adapter_slots), MOST},
    {.name = SLICE("process_start_time_seconds"), TOLD(start_time_s), MOST},
};
