/* The contents of a replica's /metrics, under the names of vLLM and SGLang in all releases since
 * 2025.
 *
 * Prometheus text exposition format 0.0.4. A missing name is no error, because engines rename and
 * drop metrics between releases: the field stays as in node_scrape_unknown. Series of several ranks
 * or engines of a replica are added (sizes, counts) or averaged (usage). */
#ifndef NODE_REPLICA_SCRAPE_H
#define NODE_REPLICA_SCRAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"
#include "node/replica/limits.h"
#include "node/replica/work.h"

struct node_scrape {
    double running;           /* requests being computed; -1: unknown, like all numbers below */
    double waiting;           /* requests in the engine's queue */
    double cache_usage;       /* share of the KV cache in use by running requests, 0..1 */
    double cache_tokens;      /* size of the KV cache in tokens */
    double block_tokens;      /* tokens per block or page */
    double prefix_queries;    /* counter, tokens looked up in the prefix cache */
    double prefix_hits;       /* counter, tokens found in the prefix cache */
    double tier_hits;         /* part of prefix_hits found in a tier beyond the engine's own memory
                               * (vLLM) */
    double prompt_tokens;     /* counter */
    double generation_tokens; /* counter */
    double prefill_s;         /* sum of the prompts' prefill times */
    double prefill_tokens;    /* sum of the prompts' uncached tokens */
    double steps;             /* number of intervals between two tokens of an answer */
    double steps_s;           /* sum of these intervals */
    double preemptions;       /* counter, requests whose memory was taken for others */
    double evicted;           /* counter, evicted blocks of the cache (a sample of them) */
    double evicted_idle_s;    /* sum of the evicted blocks' times since the last use */
    double start_time_s;      /* process_start_time_seconds, Unix */
    double adapter_slots;     /* adapters held at a time; -1 or 0: unknown */
    struct slice adapters;    /* running adapters, separated by commas; borrowed from the text */
    double sleeping;          /* 1 = the engine sleeps (vllm:engine_sleep_state), 0 = awake */
    double series;            /* number of series, of all names and ranks, whose values the counters
                               * add up */
    struct node_work_reading work; /* signs of work, moving while the engine computes */
    unsigned ranks;                /* data-parallel ranks with labels; 1 may mean no ranks */
    bool vllm;                     /* metrics with vLLM's names were seen */
    bool sglang;
};

/* A scrape with every field unknown. */
extern const struct node_scrape node_scrape_unknown;

/* True if the scrape has sizes and nothing else, because it is from /server_info. */
bool node_scrape_sizes_only(const struct node_scrape *s);

/* Start times with a smaller difference, in seconds, are equal: engines compute them from a clock
 * which may be adjusted. */
enum { NODE_START_GRAIN_S = 2 };
/* True if both scrapes may belong to the same process, by their start times; also if one has no
 * start time. */
bool node_scrape_same_life(const struct node_scrape *a, const struct node_scrape *b);

/* Reads a whole exposition. ERR_SYNTAX if a line is invalid (`out` is then unchanged),
 * ERR_NOT_FOUND if the text has no known name. Lines with other names, most of the text, are not
 * parsed. At most 64 engines or data-parallel ranks count.
 *
 * Unless `ranks` is NULL, `ranks[n]` gets the figures of the rank pinned by the header value n
 * (node/replica/rank.h). The values n below out->ranks are in the order of the labels. A figure
 * reported only for all ranks together is unknown for each rank, unless it is equal for all. */
MUST_USE int node_scrape_parse(struct slice text, struct node_scrape *out,
                               struct node_scrape ranks[NODE_RANKS_MAX]);

#endif
