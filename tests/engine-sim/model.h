/* The timing model of a replica. Pure: time comes in as simulated ns.
 *
 *   waiting (FIFO) --> prefill (1 at a time) --> decode (all together) --> done
 *
 * - Prefill takes the uncached tokens over the prefill rate. The cache is searched when the prefill
 *   begins; other requests find the prompt's full blocks when the prefill ends. The first output
 *   token comes at the end.
 * - A decode step gives each decoding request a token. It takes base + per_context_token * (tokens
 *   in all decoding contexts), plus the time of a prefill chunk while a prefill goes on.
 * - At most `running_max` requests are in prefill and decode; a request without enough free blocks
 *   for the prompt waits at the head of the queue. If decode runs out of blocks, the request
 *   admitted last is preempted: the blocks are freed, and the request is computed again.
 * - An adapter without a slot (adapters.h) is loaded before the request's prefill. A request
 *   without a slot lets later requests go first.
 *
 * - A tier (host memory, a disk) keeps each computed block too, by a separate least recently used
 *   rule. Blocks evicted from the cache may still be in the tier. Blocks found there are loaded at
 *   `tier_tokens_per_s` before the rest is computed, and count as cached.
 * - With `any_place` each cached block of the prompt is reused, not only leading blocks. There is
 *   no tier then.
 *
 * The owner drives the model: submit, abort, advance(now) at or after sim_model_next_event_ns();
 * then the owner takes the requests with progress from changed(). The owner allocates requests; the
 * model keeps a pointer from submit until the request is done or aborted. */
#ifndef TESTS_ENGINE_SIM_MODEL_H
#define TESTS_ENGINE_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/engine-sim/adapters.h"
#include "tests/engine-sim/cache.h"
#include "tests/engine-sim/text.h"

#define SIM_NEVER UINT64_MAX

struct sim_model_config {
    double prefill_tokens_per_s;
    double decode_base_ns;
    double decode_context_token_ns;
    uint32_t prefill_chunk; /* tokens; 0: prefill does not slow decoding */
    uint32_t running_max;
    uint32_t queued_max; /* waiting and running requests together; 0 = no limit */
    uint32_t block_tokens;
    uint32_t cache_blocks;
    enum sim_evict evict; /* rule for the cache; the tier is LRU */
    uint32_t tier_blocks; /* 0: no tier */
    double tier_tokens_per_s;
    /* Blocks are named by content only, and reused at any place (CacheBlend, EPIC); `again` is the
     * share of reused tokens computed again. False: a prefix cache. */
    bool any_place;
    double again;
    uint32_t adapters_max; /* slots, at most SIM_ADAPTERS_MAX; 0: adapters cost nothing */
    uint64_t adapter_load_ns;
};

enum sim_state { SIM_NEW, SIM_WAITING, SIM_PREFILL, SIM_DECODE, SIM_DONE };

struct sim_request {
    /* Set by the owner before submit. The chain holds the prompt and grows by the output. */
    struct sim_chain chain;
    uint64_t output_seed;
    uint32_t output_tokens; /* tokens to make, > 0 */
    uint64_t adapter;       /* 0: the base model */

    unsigned rank; /* the rank of the request: set by ranks.h */

    /* Set by the model. */
    enum sim_state state;
    uint64_t prompt_tokens;
    uint64_t cached_tokens;  /* prompt tokens found cached at the first look-up */
    uint64_t tier_tokens;    /* cached tokens loaded from the tier */
    uint64_t created_tokens; /* prompt tokens in newly stored blocks */
    uint32_t generated;

    /* Private to the model. */
    bool looked_up;
    bool is_changed;
    bool holds_adapter;
    uint64_t prefill_from_ns;
    uint64_t first_step;
    size_t hits;
    uint32_t *blocks;
    size_t block_count;
    size_t block_cap;
    struct sim_request *prev;
    struct sim_request *next;
    struct sim_request *changed_next;
};

enum { SIM_STEP_BUCKETS = 14 };

/* Upper bounds of the histogram of tokens a step, as vLLM's: 1, 8, 16, ... 16384, without end. */
uint64_t sim_step_bucket(unsigned i);

struct sim_counters {
    uint64_t prefix_queries;
    uint64_t prefix_hits;
    uint64_t tier_queries; /* tokens looked up in the tier after a miss in the cache */
    uint64_t tier_hits;
    uint64_t prompt_tokens;
    uint64_t generation_tokens;
    uint64_t preemptions;
    uint64_t aborted;
    uint64_t rejected;
    uint64_t adapter_loads;
    uint64_t steps; /* ended prefills, and steps of decoding */
    uint64_t step_tokens;
    uint64_t step_buckets[SIM_STEP_BUCKETS]; /* number of steps, by tokens of the step; not
                                              * cumulative */
};

/* Receives the cache's stores and removals, as an engine publishes them. */
struct sim_model_watch {
    /* Blocks `from` to `to` of the chain, which keeps token ids. */
    void (*stored)(void *context, const struct sim_chain *chain, size_t from, size_t to);
    void (*removed)(void *context, uint64_t name);
    void (*cleared)(void *context);
    void *context;
};

struct sim_model;

struct sim_model *sim_model_create(const struct sim_model_config *config);
/* All requests must be done or aborted. */
void sim_model_destroy(struct sim_model *m);
void sim_model_check(const struct sim_model *m);

/* ERR_FULL: the queue limit; ERR_LIMIT: prompt and output can never fit the cache. */
int sim_model_submit(struct sim_model *m, struct sim_request *r, uint64_t now_ns);
/* In any state but NEW; no effect on a done request. */
void sim_model_abort(struct sim_model *m, struct sim_request *r, uint64_t now_ns);
void sim_model_advance(struct sim_model *m, uint64_t now_ns);
uint64_t sim_model_next_event_ns(const struct sim_model *m);

/* A request with more output, or ended, since the last call with this request; NULL: none. */
struct sim_request *sim_model_changed(struct sim_model *m);

uint32_t sim_model_running(const struct sim_model *m);
uint32_t sim_model_waiting(const struct sim_model *m);
const struct sim_cache *sim_model_cache(const struct sim_model *m);
/* Number of a prompt's reusable blocks now: leading blocks, or at any place. */
size_t sim_model_reusable(const struct sim_model *m, const struct sim_chain *prompt);
/* Tokens evicted by a prompt now if it reuses `hits` blocks, each weighted by the chance of a later
 * use (cache.h). */
double sim_model_displaced(struct sim_model *m, const struct sim_chain *prompt, size_t hits,
                           double horizon_ns);
const struct sim_adapters *sim_model_adapters(const struct sim_model *m);
/* The adapters of the waiting requests, one per call: `*at` is NULL at first; 0: no more. */
uint64_t sim_model_adapter_waiting(const struct sim_model *m, const struct sim_request **at);
const struct sim_counters *sim_model_counters(const struct sim_model *m);
/* `watch` is borrowed. With `copies`, requests computing the same blocks at once store them
 * separately (cache.h). */
void sim_model_watch(struct sim_model *m, const struct sim_model_watch *watch, bool copies);
/* Prompts find no blocks computed so far; with `tier`, none in the tier either. */
void sim_model_forget(struct sim_model *m, bool tier);
/* As after a restart: names forgotten, counters zero. Running requests must be gone. */
void sim_model_reset(struct sim_model *m);

#endif
