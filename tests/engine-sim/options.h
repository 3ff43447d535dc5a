/* Command line of the engine simulator. */
#ifndef TESTS_ENGINE_SIM_OPTIONS_H
#define TESTS_ENGINE_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_MODELS_MAX = 16 };

enum sim_term { SIM_TERM_EXIT, SIM_TERM_HANG, SIM_TERM_DRAIN };

struct sim_options {
    char host[64];
    uint64_t port;
    const char *models[SIM_MODELS_MAX];
    unsigned model_count;
    bool sglang;
    bool details; /* usage.prompt_tokens_details */
    bool metrics; /* /metrics is served */
    bool control;
    enum sim_term on_term;
    const char *api_key;          /* NULL: none */
    const char *journal;          /* NULL: none */
    const char *poison;           /* NULL: none */
    uint64_t data_parallel;       /* ranks, at most SIM_RANKS_MAX */
    uint64_t data_parallel_start; /* what the metrics of vLLM call the first one */
    uint64_t cache_tokens;        /* of each rank, like the rates and limits */
    uint64_t block_tokens;
    uint64_t tier_tokens;
    const char *adapters; /* LoRA adapters that it lists, cut by commas */
    bool adapters_any;    /* any other name is one too, as with a resolver of vLLM */
    uint64_t max_loras;   /* slots; 0: it takes no adapters */
    double lora_load_s;
    double tier_rate;
    uint64_t model_len_max;
    uint64_t prefill_chunk;
    uint64_t running_max;
    uint64_t queued_max;
    uint64_t output_tokens;
    uint64_t seed;
    double prefill_rate;
    double decode_base_ms;
    double decode_ns_per_context_token;
    double speed_up;
    double start_delay_s;
    double deed_ms;
};

/* 0: go on; 1: --help was answered; -1: one line on stderr said what is wrong. */
int sim_options_parse(struct sim_options *o, int argc, char **argv);

#endif
