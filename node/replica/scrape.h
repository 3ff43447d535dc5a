/* The contents of a replica's /metrics, by the names of vLLM and SGLang in all releases since
 * 2025.
 *
 * Prometheus text exposition format 0.0.4. A missing name is not an error: its field stays at -1
 * (or NaN-free default), because engines rename and drop metrics between releases. Series of
 * several ranks or engines of one replica are added (sizes, counts) or averaged (usage). */
#ifndef NODE_REPLICA_SCRAPE_H
#define NODE_REPLICA_SCRAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "node/replica/limits.h"
#include "node/replica/work.h"

struct node_scrape {
    double running;           /* requests being computed; -1: unknown, as for all below */
    double waiting;           /* requests in the engine's queue */
    double cache_usage;       /* 0..1 of the KV cache in use by running requests */
    double cache_tokens;      /* size of the KV cache in tokens */
    double block_tokens;      /* tokens per block or page */
    double prefix_queries;    /* counter, tokens looked up in the prefix cache */
    double prefix_hits;       /* counter, tokens found there, */
    double tier_hits;         /* of these, hits in a tier behind the engine's own memory (vLLM) */
    double prompt_tokens;     /* counter */
    double generation_tokens; /* counter */
    double prefill_s;         /* sum, of the time in which each prompt was computed */
    double prefill_tokens;    /* sum, of their tokens that no cache had */
    double steps;             /* sum, of times between two tokens of an answer; */
    double steps_s;           /* duration of these */
    double preemptions;       /* counter, requests that gave their memory back to others */
    double evicted;           /* counter, blocks of the cache that gave way (a sample of them), */
    double evicted_idle_s;    /* sum of the times since their last use */
    double start_time_s;      /* process_start_time_seconds, Unix */
    double adapter_slots;     /* adapters at a time; as for others, or 0, if unknown */
    struct slice adapters;    /* running ones, separated by commas; borrowed from the text */
    double sleeping;          /* 1 = the engine sleeps (vllm:engine_sleep_state), 0 = awake */
    double series;            /* number of series in the sums of the counters: of all names and
                               * ranks */
    struct node_work_reading work; /* signs that move while the engine computes */
    unsigned ranks;                /* data-parallel ranks that have labels; 1 may mean no ranks */
    bool vllm;                     /* names of vLLM were seen */
    bool sglang;
};

/* Every field unknown: what to start from. */
extern const struct node_scrape node_scrape_unknown;

/* Sizes and nothing else: server information, which is asked for beside the metrics. */
bool node_scrape_sizes_only(const struct node_scrape *s);

/* Start times nearer than this, in seconds, are the same one: they are computed from a clock that
 * may be adjusted. */
enum { NODE_START_GRAIN_S = 2 };
/* True if both may belong to one process. True if a start time is missing. */
bool node_scrape_same_life(const struct node_scrape *a, const struct node_scrape *b);

/* Reads a whole exposition. ERR_SYNTAX if a line is no valid exposition (`out` is then
 * unchanged), ERR_NOT_FOUND if the text has no known name. Lines with other names are not parsed:
 * they are most of the text. At most 64 engines or data-parallel ranks count.
 *
 * Unless `ranks` is NULL, `ranks[n]` gets the same for the one rank that the header value n pins
 * (node/replica/rank.h). That holds for all n below out->ranks, in the order of the labels. Figures
 * that the process reports only for all ranks together are unknown for each rank, unless they are
 * equal for all. */
MUST_USE int node_scrape_parse(struct slice text, struct node_scrape *out,
                               struct node_scrape ranks[NODE_RANKS_MAX]);

#endif
