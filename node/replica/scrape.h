/* What a replica's /metrics says, by the names of vLLM and SGLang in all releases since 2025.
 *
 * Prometheus text exposition format 0.0.4. A missing name is not an error: its field stays at -1
 * (or NaN-free default), because engines rename and drop metrics between releases. Series of
 * several ranks or engines of one replica are added (sizes, counts) or averaged (usage).
 */
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
    double tier_hits;         /* and of these, in a tier behind the engine's own memory (vLLM) */
    double prompt_tokens;     /* counter */
    double generation_tokens; /* counter */
    double prefill_s;         /* sum, of the time in which each prompt was computed */
    double prefill_tokens;    /* sum, of their tokens that no cache had */
    double steps;             /* sum, of times between two tokens of an answer; */
    double steps_s;           /* how long these were */
    double preemptions;       /* counter, requests that gave their memory back to others */
    double evicted;           /* counter, blocks of the cache that gave way (a sample of them), */
    double evicted_idle_s;    /* and for how long they had not been used then, sum */
    double start_time_s;      /* process_start_time_seconds, Unix */
    double adapter_slots;     /* adapters at a time; as others, or 0, where it is unknown */
    struct slice adapters;    /* that run, with commas between; borrowed from the text */
    double sleeping;          /* 1 = the engine sleeps (vllm:engine_sleep_state), 0 = awake */
    double series;            /* that the counters are sums of: of all names and ranks */
    struct node_work_reading work; /* what moves while it computes */
    unsigned ranks;                /* data-parallel ranks that have labels; one alone may be none */
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
/* Whether both may be of one process; where a start time is not reported they are. */
bool node_scrape_same_life(const struct node_scrape *a, const struct node_scrape *b);

/* Reads a whole exposition. ERR_SYNTAX if a line is no valid exposition (fields read so far are
 * kept out: `out` is then unchanged), ERR_NOT_FOUND if no known name is in it. Lines of other names
 * are not looked into: they are most of the text. At most 64 engines or data-parallel ranks count.
 *
 * Unless `ranks` is NULL, `ranks[n]` gets the same of the rank alone that the header value n pins
 * (node/replica/rank.h), in the order of their labels, for all n below out->ranks. What the process
 * tells of all ranks together is unknown of each, but for what is the same for all. */
MUST_USE int node_scrape_parse(struct slice text, struct node_scrape *out,
                               struct node_scrape ranks[NODE_RANKS_MAX]);

#endif
