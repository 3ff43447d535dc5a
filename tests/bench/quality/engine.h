/* An engine of the bench: the engine simulator's scheduler and cache, and the metrics. */
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
    uint32_t dropped_tokens; /* by the template (prompt.h) */
    double swallows;         /* chance that a request's part of the counters is lost */
    /* Form of the published KV events (tests/engine-sim/kv_events.h). Simultaneous requests that
     * compute the same block each store it. NULL: publishes none. */
    const char *publishes;
    unsigned groups; /* of layers of a hybrid model; 0 or 1: no hybrid */
};

/* The engine's publisher. A block's tokens are drawn from the block's name, so equal beginnings
 * have equal tokens. */
struct engine_feed {
    struct sim_kv_events *events; /* NULL: nothing */
    struct sim_model_watch watch;
    bool is_read;
    uint32_t *ids; /* of the present prompt */
    size_t id_cap;
};

struct engine {
    const struct engine_spec *spec;
    struct sim_model *model;
    bool leaves;            /* gets no new requests */
    uint64_t next_ns;       /* of the model's next event */
    struct flight *flights; /* all present requests */
    unsigned in_flight;
    double in_flight_context;
    double swallowed_queries, swallowed_hits;
    double prefill_s, prefill_tokens, steps, steps_s; /* of ended requests */
    char adapters[4096];                              /* running adapters, as in the metrics */
    struct engine_feed feed;
};

/* A feed must not move in memory. */
void engine_feed_open(struct engine_feed *f, const char *form);
void engine_feed_close(struct engine_feed *f);
void engine_open(struct engine *e, const struct engine_spec *spec);
void engine_close(struct engine *e);
/* The engine's messages are read from now on. */
void engine_is_read(struct engine *e);
/* Appends a message of all events since the last message. False: no events, or no reader. */
bool engine_publishes(struct engine *e, double unix_s, struct buf *payload);

struct node_usage engine_usage(const struct engine *e, const struct sim_request *r);
/* False: the engine has no metrics. */
bool engine_scrape(struct engine *e, struct node_scrape *out);

/* Tokens of the request that the engine must still compute, at present. */
double engine_tokens_left(const struct engine *e, const struct sim_request *r, uint64_t now_ns);

#endif
