/* The names of /metrics that a scrape reads (scrape.c). */
#ifndef NODE_REPLICA_SCRAPE_INTERNAL_H
#define NODE_REPLICA_SCRAPE_INTERNAL_H

#include "base/slice.h"

enum name {
    VLLM_RUNNING,
    VLLM_WAITING,
    VLLM_USAGE,
    VLLM_USAGE_OLD,
    VLLM_QUERIES,
    VLLM_QUERIES_OLD,
    VLLM_HITS,
    VLLM_HITS_OLD,
    VLLM_TIER_HITS,
    VLLM_PROMPT,
    VLLM_GENERATION,
    VLLM_PREFILL_S,
    VLLM_PREFILL_TOKENS,
    VLLM_PREFILL_PROMPTS,
    VLLM_STEPS,
    VLLM_STEPS_OLD,
    VLLM_STEPS_S,
    VLLM_STEPS_S_OLD,
    VLLM_PREEMPTIONS,
    VLLM_EVICTED,
    VLLM_EVICTED_IDLE_S,
    VLLM_SLEEP,
    VLLM_CONFIG,
    VLLM_LORA,
    SGLANG_RUNNING,
    SGLANG_WAITING,
    SGLANG_USAGE,
    SGLANG_CACHE,
    SGLANG_PAGE,
    SGLANG_CACHED,
    SGLANG_PROMPT,
    SGLANG_GENERATION,
    SGLANG_STEPS,
    SGLANG_STEPS_S,
    SGLANG_LORA,
    SGLANG_CONFIG,
    SGLANG_PREFILLED,
    SGLANG_REUSED,  /* the same name, with another label `mode` */
    SGLANG_DECODED, /* and with a third one */
    START_TIME,
    NAMES,
};

#define VLLM   "vllm:"
#define SGLANG "sglang:"
#define TEXT(text)                                                                                 \
    {                                                                                              \
        .at = (text), .len = sizeof(text) - 1                                                      \
    }

static const struct slice names[NAMES] = {
    [VLLM_RUNNING] = TEXT(VLLM "num_requests_running"),
    [VLLM_WAITING] = TEXT(VLLM "num_requests_waiting"),
    [VLLM_USAGE] = TEXT(VLLM "kv_cache_usage_perc"),
    [VLLM_USAGE_OLD] = TEXT(VLLM "gpu_cache_usage_perc"),
    [VLLM_QUERIES] = TEXT(VLLM "prefix_cache_queries_total"),
    [VLLM_QUERIES_OLD] = TEXT(VLLM "gpu_prefix_cache_queries_total"),
    [VLLM_HITS] = TEXT(VLLM "prefix_cache_hits_total"),
    [VLLM_HITS_OLD] = TEXT(VLLM "gpu_prefix_cache_hits_total"),
    [VLLM_TIER_HITS] = TEXT(VLLM "external_prefix_cache_hits_total"),
    [VLLM_PROMPT] = TEXT(VLLM "prompt_tokens_total"),
    [VLLM_GENERATION] = TEXT(VLLM "generation_tokens_total"),
    [VLLM_PREFILL_S] = TEXT(VLLM "request_prefill_time_seconds_sum"),
    [VLLM_PREFILL_TOKENS] = TEXT(VLLM "request_prefill_kv_computed_tokens_sum"),
    [VLLM_PREFILL_PROMPTS] = TEXT(VLLM "request_prompt_tokens_sum"),
    [VLLM_STEPS] = TEXT(VLLM "inter_token_latency_seconds_count"),
    [VLLM_STEPS_OLD] = TEXT(VLLM "time_per_output_token_seconds_count"),
    [VLLM_STEPS_S] = TEXT(VLLM "inter_token_latency_seconds_sum"),
    [VLLM_STEPS_S_OLD] = TEXT(VLLM "time_per_output_token_seconds_sum"),
    [VLLM_PREEMPTIONS] = TEXT(VLLM "num_preemptions_total"),
    [VLLM_EVICTED] = TEXT(VLLM "kv_block_idle_before_evict_seconds_count"),
    [VLLM_EVICTED_IDLE_S] = TEXT(VLLM "kv_block_idle_before_evict_seconds_sum"),
    [VLLM_SLEEP] = TEXT(VLLM "engine_sleep_state"),
    [VLLM_CONFIG] = TEXT(VLLM "cache_config_info"),
    [VLLM_LORA] = TEXT(VLLM "lora_requests_info"),
    [SGLANG_RUNNING] = TEXT(SGLANG "num_running_reqs"),
    [SGLANG_WAITING] = TEXT(SGLANG "num_queue_reqs"),
    [SGLANG_USAGE] = TEXT(SGLANG "token_usage"),
    [SGLANG_CACHE] = TEXT(SGLANG "max_total_num_tokens"),
    [SGLANG_PAGE] = TEXT(SGLANG "page_size"),
    [SGLANG_CACHED] = TEXT(SGLANG "cached_tokens_total"),
    [SGLANG_PROMPT] = TEXT(SGLANG "prompt_tokens_total"),
    [SGLANG_GENERATION] = TEXT(SGLANG "generation_tokens_total"),
    [SGLANG_STEPS] = TEXT(SGLANG "inter_token_latency_seconds_count"),
    [SGLANG_STEPS_S] = TEXT(SGLANG "inter_token_latency_seconds_sum"),
    [SGLANG_LORA] = TEXT(SGLANG "lora_pool_slots_total"),
    [SGLANG_CONFIG] = TEXT(SGLANG "cache_config_info"),
    [SGLANG_PREFILLED] = TEXT(SGLANG "realtime_tokens_total"),
    [START_TIME] = TEXT("process_start_time_seconds"),
};

#endif
