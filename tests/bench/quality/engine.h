/* One engine of the bench: the engine simulator's scheduler and cache, and what it says of itself.
 */
#ifndef TESTS_BENCH_QUALITY_ENGINE_H
#define TESTS_BENCH_QUALITY_ENGINE_H

#include "node/replica/scrape.h"
#include "node/replica/terms.h"
#include "tests/engine-sim/kv_events.h"
#include "tests/engine-sim/model.h"

enum engine_cached { /* `cached_tokens` in usage */
                     ENGINE_CACHED_ALWAYS,
                     ENGINE_CACHED_ABOVE_ZERO,
                     ENGINE_CACHED_NEVER,
};

enum engine_metrics {
    ENGINE_METRICS_ALL,
    ENGINE_METRICS_SOME, /* no sizes, no counters of the prefix cache */
    ENGINE_METRICS_NONE,
};

struct engine_spec {
    struct sim_model_config model;
    enum engine_cached cached;
    enum engine_metrics metrics;
    uint32_t dropped_tokens; /* prompt.h: by the template */
    double swallows;         /* chance that what a request added to the counters is lost */
    /* It publishes KV events of that form (tests/engine-sim/kv_events.h), and requests that compute
     * the same at once store it each. NULL: it does not. */
    const char *publishes;
    unsigned groups; /* of layers, of a hybrid model; 0 or 1: it is none */
};

/* What it publishes. A block's tokens are drawn from its name, so equal beginnings have equal ones.
 */
struct engine_feed {
    struct sim_kv_events *events; /* NULL: nothing */
    struct sim_model_watch watch;
    bool is_read;
    uint32_t *ids; /* of the prompt at hand */
    size_t id_cap;
};

struct engine {
    const struct engine_spec *spec;
    struct sim_model *model;
    bool leaves;            /* it gets nothing new */
    uint64_t next_ns;       /* of its model's next event */
    struct flight *flights; /* all that are there */
    unsigned in_flight;
    double in_flight_context;
    double swallowed_queries, swallowed_hits;
    double prefill_s, prefill_tokens, steps, steps_s; /* of requests that ended */
    char adapters[4096];                              /* that run, as the metrics say it */
    struct engine_feed feed;
};

/* They stay where they are. */
void engine_feed_open(struct engine_feed *f, const char *form);
void engine_feed_close(struct engine_feed *f);
void engine_open(struct engine *e, const struct engine_spec *spec);
void engine_close(struct engine *e);
/* Somebody reads what it publishes from now on. */
void engine_is_read(struct engine *e);
/* Appends a message of what happened since the last one. False: nothing did, or nobody reads. */
bool engine_publishes(struct engine *e, double unix_s, struct buf *payload);

struct node_usage engine_usage(const struct engine *e, const struct sim_request *r);
/* False: it has no metrics. */
bool engine_scrape(struct engine *e, struct node_scrape *out);

/* Tokens of the request that the engine must still compute, as it is now. */
double engine_tokens_left(const struct engine *e, const struct sim_request *r, uint64_t now_ns);

#endif
