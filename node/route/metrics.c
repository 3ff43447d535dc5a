/* Prometheus text (exposition format 0.0.4). Labels are names of configured replicas, of models
 * that engines list (node/replica/answered.h has their limit; never names that only clients used)
 * and words of this file, so the number of series is bounded. One table row per metric. */
#include <inttypes.h>

#include "base/check.h"
#include "base/err.h"
#include "node/route/router_internal.h"

/* A name is `[...]host:port` or whatever the operator wrote: escaped as label values must be. */
static int put_label_value(struct buf *out, struct slice text)
{
    int err = ERR_OK;
    for (size_t i = 0; i < text.len && err == ERR_OK; i++) {
        switch (text.at[i]) {
        case '"':
            err = buf_append_cstr(out, "\\\"");
            break;
        case '\\':
            err = buf_append_cstr(out, "\\\\");
            break;
        case '\n':
            err = buf_append_cstr(out, "\\n");
            break;
        default:
            err = buf_append_char(out, text.at[i]);
        }
    }
    return err;
}

static int put_head(struct buf *out, const char *name, const char *type, const char *help)
{
    return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int put_series(struct buf *out, const char *name, const struct node_replica *k,
                      const char *more, double value)
{
    int err = buf_printf(out, "%s{replica=\"", name);
    if (err == ERR_OK)
        err = put_label_value(out, node_replica_name(k));
    if (err == ERR_OK)
        err = buf_printf(out, "\"%s} %.15g\n", more, value);
    return err;
}

/* --- one series per replica ----------------------------------------------------------------- */

struct context {
    const struct node_router *r;
    uint64_t now_ms;
};

static double scrape_age_s(const struct context *c, const struct node_replica *k)
{
    if (k->scraped_ms == 0)
        return -1;
    return c->now_ms > k->scraped_ms ? (double)(c->now_ms - k->scraped_ms) / 1000 : 0;
}

static struct crdt_load others(const struct context *c, const struct node_replica *k)
{
    struct crdt_load sum;
    crdt_reports_load_sum(crdt_state_reports(c->r->crdt), (unsigned)(k - c->r->replicas), &sum);
    return sum;
}

#define REPLICA_METRICS(X)                                                                         \
    X(up, "gauge", "1 if the replica gets new requests.", node_replica_usable(k, NODE_HEALTH_UP))  \
    X(backing_off, "gauge",                                                                        \
      "1 if it is avoided where others will do, because answers failed and none has begun since.", \
      node_replica_backing_off(k, c->now_ms))                                                      \
    X(probes_refused, "gauge",                                                                     \
      "1 if it refuses the router's own questions with 401 or 403: replica-api-key-file.",         \
      k->probes_refused != 0)                                                                      \
    X(requests, "gauge", "Requests in flight.", k->load.requests)                                  \
    X(prefill_tokens, "gauge", "Uncached prompt tokens booked and not computed yet.",              \
      (double)k->load.prefill_tokens)                                                              \
    X(context_tokens, "gauge", "Tokens of context of the requests in flight.",                     \
      (double)k->load.context_tokens)                                                              \
    X(requests_of_others, "gauge", "Requests in flight there, of all other routers.",              \
      (double)others(c, k).requests)                                                               \
    X(prefill_tokens_of_others, "gauge",                                                           \
      "Uncached prompt tokens not computed yet, of all other routers.",                            \
      (double)others(c, k).prefill_tokens)                                                         \
    X(queue_seconds, "gauge", "Estimated time until the booked prefill is computed.",              \
      node_load_queue_s(c->r->bookings, &k->load, k->tokens_per_s, c->now_ms))                     \
    X(prefill_tokens_per_second, "gauge",                                                          \
      "Believed prefill rate: its own, or the fleet's where that is as good.", k->tokens_per_s)    \
    X(bytes_per_token, "gauge", "Learned bytes of a prompt per token, of all prompts sent there.", \
      node_ratio_value(&k->bytes_per_token))                                                       \
    X(decode_step_seconds, "gauge", "Learned time of a decode step without context.",              \
      k->step_base_s)                                                                              \
    X(decode_step_context_seconds, "gauge",                                                        \
      "Learned time that a token of running context adds to a decode step.", k->step_context_s)    \
    X(cache_tokens, "gauge", "Size of the cache as told by the engine or configured.",             \
      node_replica_cache_tokens(k, (double)c->r->config.cache_tokens))                             \
    X(cache_size_factor, "gauge", "Learned correction of the cache size.", k->belief.factor)       \
    X(engine_running, "gauge", "Requests running, as the engine tells; -1 if it does not.",        \
      k->scrape.running)                                                                           \
    X(engine_waiting, "gauge", "Requests waiting, as the engine tells; -1 if it does not.",        \
      k->scrape.waiting)                                                                           \
    X(engine_cache_usage, "gauge",                                                                 \
      "Share of the KV cache in use, as the engine tells; -1 if it does not.",                     \
      k->scrape.cache_usage)                                                                       \
    X(scrape_age_seconds, "gauge", "Time since its metrics were read; -1 if never.",               \
      scrape_age_s(c, k))                                                                          \
    X(probe_failures_total, "counter", "Health checks that failed.",                               \
      (double)k->probe_failures_total)                                                             \
    X(chosen_total, "counter", "Requests sent to the replica.", (double)k->chosen)                 \
    X(restarts_total, "counter", "Restarts of the engine that were noticed.", (double)k->restarts) \
    X(prompt_tokens_total, "counter", "Estimated prompt tokens sent to the replica.",              \
      (double)k->prompt_tokens)

#define REPLICA_VALUE(name, type, help, value)                                                     \
    static double value_##name(const struct context *c, const struct node_replica *k)              \
    {                                                                                              \
        (void)c;                                                                                   \
        return (value);                                                                            \
    }
REPLICA_METRICS(REPLICA_VALUE)

static const struct {
    const char *name, *type, *help;
    double (*value)(const struct context *c, const struct node_replica *k);
} replica_metrics[] = {
#define REPLICA_ROW(name, type, help, value) {"grapevine_replica_" #name, type, help, value_##name},
    REPLICA_METRICS(REPLICA_ROW)};

static int put_replicas(const struct context *c, struct buf *out)
{
    int err = ERR_OK;
    for (unsigned i = 0; i < ARRAY_LEN(replica_metrics) && err == ERR_OK; i++) {
        const char *name = replica_metrics[i].name;
        err = put_head(out, name, replica_metrics[i].type, replica_metrics[i].help);
        for (unsigned k = 0; k < c->r->replica_count && err == ERR_OK; k++) {
            if (!c->r->replicas[k].absent)
                err = put_series(out, name, &c->r->replicas[k], "",
                                 replica_metrics[i].value(c, &c->r->replicas[k]));
        }
    }
    return err;
}

/* --- series with a second label ------------------------------------------------------------- */

struct labelled {
    const char *more;
    double (*value)(const struct node_replica *k);
};

#define VALUE(name, value)                                                                         \
    static double name(const struct node_replica *k)                                               \
    {                                                                                              \
        return (value);                                                                            \
    }
VALUE(usage_predicted, (double)k->by_usage.predicted)
VALUE(usage_actual, (double)k->by_usage.actual)
VALUE(usage_off, (double)k->by_usage.off)
VALUE(scrape_predicted, (double)k->by_scrape.predicted)
VALUE(scrape_actual, (double)k->by_scrape.actual)
VALUE(scrape_off, (double)k->by_scrape.off)
VALUE(ttft_predicted, k->ttft_predicted_s)
VALUE(ttft_actual, k->ttft_actual_s)
VALUE(ttft_off, k->ttft_off_s)
VALUE(ttft_count, (double)k->ttft_count)
VALUE(health_unknown, node_replica_health(k) == NODE_HEALTH_UNKNOWN)
VALUE(health_up, node_replica_health(k) == NODE_HEALTH_UP)
VALUE(health_down, node_replica_health(k) == NODE_HEALTH_DOWN)
VALUE(health_draining, node_replica_health(k) == NODE_HEALTH_DRAINING)
VALUE(health_router, node_replica_health(k) == NODE_HEALTH_ROUTER)
VALUE(outcome_ok, (double)k->outcomes[NODE_OUTCOME_OK])
VALUE(outcome_gone, (double)k->outcomes[NODE_OUTCOME_CLIENT_GONE])
VALUE(outcome_busy, (double)k->outcomes[NODE_OUTCOME_ENGINE_BUSY])
VALUE(outcome_error, (double)k->outcomes[NODE_OUTCOME_ENGINE_ERROR])
VALUE(outcome_connect, (double)k->outcomes[NODE_OUTCOME_CONNECT_FAILED])
VALUE(outcome_broken, (double)k->outcomes[NODE_OUTCOME_BROKEN])

static const struct {
    const char *name, *type, *help;
    struct labelled rows[6];
} labelled_metrics[] = {
    {"grapevine_replica_health",
     "gauge",
     "1 for the state that it is in.",
     {{",state=\"unknown\"", health_unknown},
      {",state=\"up\"", health_up},
      {",state=\"down\"", health_down},
      {",state=\"draining\"", health_draining},
      {",state=\"router\"", health_router}}},
    {"grapevine_prediction_cached_tokens_total",
     "counter",
     "Cached prompt tokens, predicted and told by the engine, in answers and in scraped counters.",
     {{",source=\"usage\",kind=\"predicted\"", usage_predicted},
      {",source=\"usage\",kind=\"actual\"", usage_actual},
      {",source=\"scrape\",kind=\"predicted\"", scrape_predicted},
      {",source=\"scrape\",kind=\"actual\"", scrape_actual}}},
    {"grapevine_prediction_cached_tokens_off_total",
     "counter",
     "Sum of the absolute errors of predicted cached tokens.",
     {{",source=\"usage\"", usage_off}, {",source=\"scrape\"", scrape_off}}},
    {"grapevine_prediction_ttft_seconds_total",
     "counter",
     "Time to first token of streams, predicted and measured.",
     {{",kind=\"predicted\"", ttft_predicted}, {",kind=\"actual\"", ttft_actual}}},
    {"grapevine_prediction_ttft_off_seconds_total",
     "counter",
     "Sum of the absolute errors of the predicted time to first token.",
     {{"", ttft_off}}},
    {"grapevine_prediction_ttft_count_total",
     "counter",
     "Streams whose time to first token was compared.",
     {{"", ttft_count}}},
    {"grapevine_replica_answers_total",
     "counter",
     "Requests that ended, by outcome.",
     {{",outcome=\"ok\"", outcome_ok},
      {",outcome=\"client_gone\"", outcome_gone},
      {",outcome=\"engine_busy\"", outcome_busy},
      {",outcome=\"engine_error\"", outcome_error},
      {",outcome=\"connect_failed\"", outcome_connect},
      {",outcome=\"broken\"", outcome_broken}}},
};

static int put_labelled(const struct context *c, struct buf *out)
{
    int err = ERR_OK;
    for (unsigned i = 0; i < ARRAY_LEN(labelled_metrics) && err == ERR_OK; i++) {
        const char *name = labelled_metrics[i].name;
        err = put_head(out, name, labelled_metrics[i].type, labelled_metrics[i].help);
        for (unsigned k = 0; k < c->r->replica_count && err == ERR_OK; k++) {
            if (c->r->replicas[k].absent)
                continue;
            for (unsigned j = 0; j < ARRAY_LEN(labelled_metrics[i].rows) && err == ERR_OK; j++) {
                const struct labelled *row = &labelled_metrics[i].rows[j];
                if (row->value)
                    err = put_series(out, name, &c->r->replicas[k], row->more,
                                     row->value(&c->r->replicas[k]));
            }
        }
    }
    return err;
}

/* --- series with a model -------------------------------------------------------------------- */

static uint64_t answered_prompt(const struct node_answered_row *row)
{
    return row->prompt_tokens;
}

static uint64_t answered_cached(const struct node_answered_row *row)
{
    return row->cached_tokens;
}

static const struct {
    const char *name, *help;
    uint64_t (*value)(const struct node_answered_row *row);
} answered_metrics[] = {
    {"grapevine_answered_prompt_tokens_total",
     "Prompt tokens as told by engines, of answers that told their cached ones too.",
     answered_prompt},
    {"grapevine_answered_cached_tokens_total",
     "Those of grapevine_answered_prompt_tokens_total that came from the replica's cache.",
     answered_cached},
};

static int put_answered(const struct node_router *r, struct buf *out)
{
    int err = ERR_OK;
    for (unsigned i = 0; i < ARRAY_LEN(answered_metrics) && err == ERR_OK; i++) {
        const char *name = answered_metrics[i].name;
        err = put_head(out, name, "counter", answered_metrics[i].help);
        struct node_answered_row row;
        for (unsigned at = 0; err == ERR_OK && node_answered_next(r->answered, &at, &row);) {
            const struct node_replica *k = &r->replicas[row.replica];
            if (k->absent)
                continue;
            err = buf_printf(out, "%s{replica=\"", name);
            if (err == ERR_OK)
                err = put_label_value(out, node_replica_name(k));
            if (err == ERR_OK && row.model.len > 0) {
                err = buf_append_cstr(out, "\",model=\"");
                if (err == ERR_OK)
                    err = put_label_value(out, row.model);
            }
            if (err == ERR_OK)
                err = buf_printf(out, "\"} %" PRIu64 "\n", answered_metrics[i].value(&row));
        }
    }
    return err;
}

/* --- the whole node ------------------------------------------------------------------------- */

static int put_number(struct buf *out, const char *name, const char *type, const char *help,
                      uint64_t value)
{
    int err = put_head(out, name, type, help);
    return err == ERR_OK ? buf_printf(out, "%s %" PRIu64 "\n", name, value) : err;
}

static int put_index(const struct node_router *r, struct buf *out)
{
    struct crdt_index_stats s;
    crdt_index_stats(r->index, &s);
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } rows[] = {
        {"grapevine_replica_names", "gauge",
         "Replicas ever known, those that went too: their places are not used again.",
         r->replica_count},
        {"grapevine_replica_names_max", "gauge", "Beyond it a replica is refused.",
         NODE_REPLICAS_MAX},
        {"grapevine_bookings", "gauge", "Requests in flight.",
         node_bookings_open_count(r->bookings)},
        {"grapevine_unroutable_total", "counter",
         "Requests that found no replica at their first attempt.", r->unroutable},
        {"grapevine_index_entries", "gauge", "Observations in the prefix index.", s.entries},
        {"grapevine_index_bytes", "gauge", "Memory that the index has allocated.", s.bytes},
        {"grapevine_index_bytes_used", "gauge", "Memory of it that is in use.", s.bytes_used},
        {"grapevine_index_bytes_max", "gauge", "Memory that the index may use.", s.bytes_max},
        {"grapevine_index_inserted_total", "counter", "Observations made.", s.inserted},
        {"grapevine_index_refreshed_total", "counter", "Observations made again, later.",
         s.refreshed},
        {"grapevine_index_expired_total", "counter", "Observations that grew too old.", s.expired},
        {"grapevine_index_evicted_total", "counter",
         "Observations dropped early because the memory was full.", s.evicted},
        {"grapevine_index_refused_total", "counter", "Observations without room.", s.refused},
        {"grapevine_index_forgotten_total", "counter",
         "Observations of replicas that lost their cache.", s.forgotten},
        {"grapevine_index_stale_total", "counter", "Observations that came too late to count.",
         s.stale},
        {"grapevine_index_future_total", "counter", "Observations refused as of the future.",
         s.future},
        {"grapevine_index_promoted", "gauge",
         "Checkpoints held by so many replicas that they have a set.", s.promoted},
        {"grapevine_index_generation", "gauge", "The present time slice.",
         crdt_index_now(r->index)},
        {"grapevine_index_floor", "gauge", "The oldest time slice that the index keeps.",
         crdt_index_floor(r->index)},
    };
    int err = ERR_OK;
    for (unsigned i = 0; i < ARRAY_LEN(rows) && err == ERR_OK; i++)
        err = put_number(out, rows[i].name, rows[i].type, rows[i].help, rows[i].value);
    return err;
}

/* By model there would be as many series as engines list models: the range says what is odd. */
static int put_models(const struct node_router *r, struct buf *out)
{
    struct node_models_range range = node_models_range(r->models);
    const struct {
        const char *name, *help;
        double min, max;
    } rows[] = {
        {"grapevine_model_bytes_per_token", "Learned bytes of text per token, over the models.",
         range.bytes_per_token_min, range.bytes_per_token_max},
        {"grapevine_model_output_tokens", "Expected tokens of an answer, over the models.",
         range.output_tokens_min, range.output_tokens_max},
    };
    int err = ERR_OK;
    for (unsigned i = 0; i < ARRAY_LEN(rows) && err == ERR_OK; i++) {
        err = put_head(out, rows[i].name, "gauge", rows[i].help);
        if (err == ERR_OK)
            err = buf_printf(out, "%s{bound=\"min\"} %.15g\n%s{bound=\"max\"} %.15g\n",
                             rows[i].name, rows[i].min, rows[i].name, rows[i].max);
    }
    return err;
}

int node_router_metrics(const struct node_router *r, uint64_t now_ms, struct buf *out)
{
    struct context c = {.r = r, .now_ms = now_ms};
    size_t start = out->len;
    int err = put_replicas(&c, out);
    if (err == ERR_OK)
        err = put_labelled(&c, out);
    if (err == ERR_OK)
        err = put_answered(r, out);
    if (err == ERR_OK)
        err = put_models(r, out);
    if (err == ERR_OK)
        err = put_index(r, out);
    if (err != ERR_OK)
        out->len = start;
    return err;
}
