/* Command line of the engine simulator. */
#ifndef TESTS_ENGINE_SIM_OPTIONS_H
#define TESTS_ENGINE_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_MODELS_MAX = 16, SIM_NO_PORT = 65536 };

enum sim_term { SIM_TERM_EXIT, SIM_TERM_HANG, SIM_TERM_DRAIN };

/* A replica's rejections of requests accepted by the peers. */
enum sim_reject {
    SIM_REJECT_NONE,
    SIM_REJECT_401,
    SIM_REJECT_403,
    SIM_REJECT_404,
    SIM_REJECT_422,
    SIM_REJECT_NO_TEMPLATE,
    SIM_REJECT_NO_TOOL_PARSER,
};

/* Counters that rise only at the end of an answer. */
enum sim_at_end { SIM_AT_END_NONE, SIM_AT_END_REQUESTS, SIM_AT_END_ALL };

/* The cached tokens in usage. */
enum sim_cached { SIM_CACHED_TRULY, SIM_CACHED_ZERO, SIM_CACHED_ALL, SIM_CACHED_ROUNDED };

enum sim_pause_of { SIM_PAUSE_PROCESS, SIM_PAUSE_STEPS };

/* Framings of an answer's bytes: a set. */
enum sim_framing {
    SIM_FRAMING_COMMENTS = 1 << 0,
    SIM_FRAMING_CRLF = 1 << 1,
    SIM_FRAMING_NO_SPACE = 1 << 2,
    SIM_FRAMING_GIANT = 1 << 3,
    SIM_FRAMING_BYTES = 1 << 4,
    SIM_FRAMING_GZIP = 1 << 5,
    SIM_FRAMING_GZIP_ALWAYS = 1 << 6,
    SIM_FRAMING_IDENTITY = 1 << 7,
};

/* Changes to a prompt before the look-up: a set. */
enum sim_prompt_change {
    SIM_PROMPT_SYSTEM_FIRST = 1 << 0,
    SIM_PROMPT_SORT_TOOLS = 1 << 1,
    SIM_PROMPT_TRIM_REASONING = 1 << 2,
};

struct sim_options {
    char host[64];
    uint64_t port;
    const char *models[SIM_MODELS_MAX];
    unsigned model_count;
    bool sglang;
    bool details;          /* usage.prompt_tokens_details */
    unsigned usage_cached; /* enum sim_cached */
    bool metrics;          /* /metrics is served */
    bool control;
    enum sim_term on_term;
    const char *api_key;          /* NULL: none */
    const char *journal;          /* NULL: none */
    const char *poison;           /* NULL: none */
    uint64_t data_parallel;       /* ranks, at most SIM_RANKS_MAX */
    uint64_t data_parallel_start; /* number of the first rank in vLLM's metrics */
    uint64_t cache_tokens;        /* for each rank, like the rates and limits */
    uint64_t block_tokens;
    uint64_t tier_tokens;
    const char *adapters; /* listed LoRA adapters, separated by commas */
    bool adapters_any;    /* any other name is an adapter too, as with a resolver of vLLM */
    uint64_t max_loras;   /* slots of adapters; 0: accepts no adapters */
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
    double silence_s; /* by the clock, like all later times */
    uint64_t silence_after;
    double silence_share;
    double ping_s; /* 0: none */
    double tokenizer_ms, tokenizer_slow_ms;
    uint64_t metrics_digits;
    uint64_t metrics_steps;
    unsigned metrics_at_end;     /* enum sim_at_end */
    const char *metrics_missing; /* names separated by commas */
    double metrics_reset_s;      /* 0: never */
    double pause_every_s;        /* 0: never */
    double pause_s;
    unsigned pause_of;       /* enum sim_pause_of */
    unsigned reject;         /* enum sim_reject */
    const char *prompt_drop; /* NULL: nothing */
    const char *prompt_lead; /* NULL: nothing */
    unsigned prompt_changes; /* enum sim_prompt_change */
    unsigned framing;        /* enum sim_framing */
    const char *host_name;   /* NULL: any */
    uint64_t idle_close_ms;
    unsigned idle_end; /* enum sim_idle_end */
    uint64_t interim;
    const char *kv_events; /* form (release) of published KV events; NULL: none */
    const char *kv_topic;
    const char *kv_connect; /* tcp://HOST:PORT to connect to; NULL: subscribers connect */
    bool kv_bytes;
    uint64_t kv_port;   /* rank 0's port; each rank adds the rank's number, as in vLLM. 0: the
                         * kernel picks */
    uint64_t kv_replay; /* port for replays, as kv_port; SIM_NO_PORT: none */
    uint64_t kv_kept;   /* messages kept for replay */
};

/* 0: go on; 1: --help was answered; -1: a line on stderr says the error. */
int sim_options_parse(struct sim_options *o, int argc, char **argv);

#endif
