/* The clients' requests: conversations, from a trace or from a generator with a fixed seed.
 *
 * A conversation begins when a client is free (closed loop) or at a given time (open loop). The
 * next request is sent after the previous answer and the user's pause. */
#ifndef TESTS_BENCH_QUALITY_WORKLOAD_H
#define TESTS_BENCH_QUALITY_WORKLOAD_H

#include "tests/bench/quality/prompt.h"

struct ask {
    double think_s; /* pause before the ask */
    struct prompt prompt;
    uint32_t output_tokens; /* > 0 */
    uint32_t adapter;       /* 0: the base model */
    float fetch_s;          /* time in which the engine fetches images first */
    bool whole;             /* not streamed */
    bool refused;           /* the engine refuses the ask */
    uint8_t bypasses;       /* goes to this engine, from 1, and no router sees the ask */
    float patience_s;       /* the client leaves after this time; 0: never */
};

struct talk {
    double start_s; /* open loop */
    char session[32];
    unsigned count;
    struct ask *asks;
};

struct workload {
    bool open;
    unsigned count;
    struct talk *talks;
    void *units; /* memory that prompts borrow */
    void (*units_free)(void *units);
};

void workload_free(struct workload *w);
/* Puts talks in another order (closed loop), which the seed determines. */
void workload_shuffle(struct workload *w, uint64_t seed);
/* Removes longer prompts. */
void workload_clip(struct workload *w, uint64_t tokens_max);
unsigned workload_asks(const struct workload *w);
/* The highest number of an adapter; 0: none. */
uint32_t workload_adapter_count(const struct workload *w);
/* Loads of adapters if all slots of the fleet were a single set, least recently used, and talks had
 * one request each: the optimum without knowledge of the future. */
uint64_t workload_loads_at_best(const struct workload *w, unsigned slots);
double workload_output_mean(const struct workload *w);
/* Distinct tokens of text: the cache that would have room for everything. */
double workload_distinct_tokens(const struct workload *w);

/* --- traces: `folder` is where tests/bench/traces.sh unpacked them; false: it is not there --- */

/* Half 1 is for tuning, 2 for reports, 0: all. `talks_max` 0: no limit. */
bool workload_coding(struct workload *out, const char *folder, unsigned half, unsigned talks_max);
/* Twenty runs of an agent, with the texts of the prompts. */
bool workload_miniswe(struct workload *out, const char *folder);
/* Mooncake's hour of a chat service, arrivals spread evenly over the 3 s they are rounded to. */
bool workload_conversation(struct workload *out, const char *folder);
/* Azure's arrivals of a chat service: lengths only, so prompts share nothing. */
bool workload_azure(struct workload *out, const char *folder);

/* --- generators: equal seeds make equal workloads --- */

enum { CREST_UNITS = 12000 / 32 };

typedef void workload_generate(struct workload *out, uint64_t seed, unsigned asks);
workload_generate workload_rag;       /* a few of 200 shared documents, in any order */
workload_generate workload_adapters;  /* 200 adapters of skewed popularity */
workload_generate workload_bursts;    /* 48 requests with a prefix in common, all at once */
workload_generate workload_images;    /* chats with images: fetched first, many tokens, few bytes */
workload_generate workload_batch;     /* hundreds of prompts at once, in addition to chats */
workload_generate workload_reasoning; /* short prompts, answers of thousands of tokens */
workload_generate workload_tenants;   /* the same system prompt under the salts of 20 tenants */
workload_generate workload_distinct;  /* prompts share nothing */
workload_generate workload_little;    /* 1 prompt in 10 shares something */
workload_generate workload_popular;   /* a long prefix of most prompts, a new prefix each minute */
/* A prefix of few prompts, then of nearly all, then of few again; the prefix's units are below
 * CREST_UNITS. */
workload_generate workload_crest;
workload_generate workload_short; /* chats of short texts */
workload_generate workload_turns; /* agents: 24 turns each, 30 new tokens a turn (closed loop) */

struct workload_kind {
    const char *name;
    workload_generate *generate;
};
extern const struct workload_kind workload_kinds[]; /* ends with a NULL name */

#endif
