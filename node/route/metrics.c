/* Metrics of the router. Labels are names of configured replicas, of models that engines list
 * (node/replica/answered.h has their limit; never names that only clients used) and words of this
 * file, so the number of series is bounded. One table row per metric. */
#include "base/check.h"
#include "base/prometheus.h"
#include "node/replica/learned.h"
#include "node/route/router_internal.h"

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

/* For what is known of a whole process. */
static const struct node_replica *process(const struct context *c, const struct node_replica *k)
{
    return &c->r->replicas[k->server];
}

static struct crdt_load others(const struct context *c, const struct node_replica *k)
{
    struct crdt_load sum;
    crdt_reports_load_sum(crdt_state_reports(c->r->crdt), (unsigned)(k - c->r->replicas), &sum);
    return sum;
}

#define REPLICA_METRICS(X)                                                                         \
    X(up, PROMETHEUS_GAUGE, "1 if the replica gets new requests.",                                 \
      node_replica_usable(process(c, k), NODE_HEALTH_UP) && !k->draining)                          \
    X(backing_off, PROMETHEUS_GAUGE,                                                               \
      "1 if it is avoided where others will do, because its answers failed or were rejections "    \
      "that others do not share.",                                                                 \
      node_router_replica_backing_off(c->r, k->server, c->now_ms))                                 \
    X(backing_off_elsewhere, PROMETHEUS_GAUGE,                                                     \
      "1 if another router reports that its answers failed, and none has succeeded since.",        \
      process(c, k)->breaker.heard != NODE_BREAKER_CLOSED)                                         \
    X(leaving, PROMETHEUS_GAUGE, "1 if its health check says no, since it said yes last.",         \
      process(c, k)->signs.leaving)                                                                \
    X(stalled, PROMETHEUS_GAUGE, "1 if it stands still with requests, and is avoided.",            \
      process(c, k)->signs.stall != NODE_STALL_NONE || k->signs.stall != NODE_STALL_NONE)          \
    X(rejecting, PROMETHEUS_GAUGE,                                                                 \
      "1 if it is avoided for requests that it rejected and another replica accepted, or lists "   \
      "a model that it answers 404 for.",                                                          \
      node_router_reject_is_avoided(c->r, k->server) ||                                            \
          node_router_denies_listed(c->r, k->server))                                              \
    X(rejecting_used, PROMETHEUS_GAUGE,                                                            \
      "1 if it rejects so and is used: at most half of a model's replicas are avoided for that.",  \
      node_reject_holds(&process(c, k)->reject) && !node_router_reject_within(c->r, k->server))    \
    X(stalls_total, PROMETHEUS_COUNTER, "Times that the watchdog found it standing still.",        \
      (double)k->signs.stalls_total)                                                               \
    X(probes_refused, PROMETHEUS_GAUGE,                                                            \
      "1 if it refuses the router's own questions with 401 or 403: replica-api-key-file.",         \
      process(c, k)->probes_refused != 0)                                                          \
    X(requests, PROMETHEUS_GAUGE, "Requests in flight.", k->load.requests)                         \
    X(prefill_tokens, PROMETHEUS_GAUGE, "Uncached prompt tokens booked and not computed yet.",     \
      (double)k->load.prefill_tokens)                                                              \
    X(context_tokens, PROMETHEUS_GAUGE, "Tokens of context of the requests in flight.",            \
      (double)k->load.context_tokens)                                                              \
    X(requests_of_others, PROMETHEUS_GAUGE, "Requests in flight there, of all other routers.",     \
      (double)others(c, k).requests)                                                               \
    X(prefill_tokens_of_others, PROMETHEUS_GAUGE,                                                  \
      "Uncached prompt tokens not computed yet, of all other routers.",                            \
      (double)others(c, k).prefill_tokens)                                                         \
    X(queue_seconds, PROMETHEUS_GAUGE, "Estimated time until the booked prefill is computed.",     \
      node_load_queue_s(c->r->bookings, &k->load, k->tokens_per_s, c->now_ms))                     \
    X(cache_tokens, PROMETHEUS_GAUGE, "Size of the cache as told by the engine or configured.",    \
      node_replica_cache_tokens(k, (double)c->r->config.cache_tokens))                             \
    X(context_length, PROMETHEUS_GAUGE,                                                            \
      "Longest prompt with its answer that it takes; 0 if nobody knows.",                          \
      node_router_context(c->r, (unsigned)(k - c->r->replicas)))                                   \
    X(cache_size_factor, PROMETHEUS_GAUGE, "Learned correction of the cache size.",                \
      k->belief.factor)                                                                            \
    X(engine_running, PROMETHEUS_GAUGE,                                                            \
      "Requests running, as the engine tells; -1 if it does not.", k->scrape.running)              \
    X(engine_waiting, PROMETHEUS_GAUGE,                                                            \
      "Requests waiting, as the engine tells; -1 if it does not.", k->scrape.waiting)              \
    X(engine_cache_usage, PROMETHEUS_GAUGE,                                                        \
      "Share of the KV cache in use, as the engine tells; -1 if it does not.",                     \
      k->scrape.cache_usage)                                                                       \
    X(scrape_age_seconds, PROMETHEUS_GAUGE, "Time since its metrics were read; -1 if never.",      \
      scrape_age_s(c, k))                                                                          \
    X(probe_failures_total, PROMETHEUS_COUNTER, "Health checks that failed.",                      \
      (double)k->probe_failures_total)                                                             \
    X(chosen_total, PROMETHEUS_COUNTER, "Requests sent to the replica.", (double)k->chosen)        \
    X(restarts_total, PROMETHEUS_COUNTER, "Restarts of the engine that were noticed.",             \
      (double)k->restarts)                                                                         \
    X(usage_impossible_total, PROMETHEUS_COUNTER,                                                  \
      "Answers whose usage cannot be true, such as more cached than prompt tokens.",               \
      (double)k->usage_impossible)                                                                 \
    X(prompt_tokens_total, PROMETHEUS_COUNTER, "Estimated prompt tokens sent to the replica.",     \
      (double)k->prompt_tokens)

#define REPLICA_VALUE(name, type, help, value)                                                     \
    static double value_##name(const struct context *c, const struct node_replica *k)              \
    {                                                                                              \
        (void)c;                                                                                   \
        return (value);                                                                            \
    }
REPLICA_METRICS(REPLICA_VALUE)

static const struct {
    const char *name;
    enum prometheus_type type;
    const char *help;
    double (*value)(const struct context *c, const struct node_replica *k);
} replica_metrics[] = {
#define REPLICA_ROW(name, type, help, value) {"replica_" #name, type, help, value_##name},
    REPLICA_METRICS(REPLICA_ROW)};

static void put_learned(const struct node_router *r, struct prometheus *p)
{
    for (unsigned i = 0; i < node_learned_rows_count; i++) {
        const struct node_learned_row *row = &node_learned_rows[i];
        if (row->metric == NULL)
            continue;
        prometheus_family(p, row->metric, PROMETHEUS_GAUGE, row->help);
        for (unsigned n = 0; n < r->replica_count; n++) {
            if (r->replicas[n].absent)
                continue;
            prometheus_label(p, "replica", node_replica_name(&r->replicas[n]));
            prometheus_value(p, row->value(&r->replicas[n]));
        }
    }
}

static void put_replicas(const struct context *c, struct prometheus *p)
{
    for (unsigned i = 0; i < ARRAY_LEN(replica_metrics); i++) {
        prometheus_family(p, replica_metrics[i].name, replica_metrics[i].type,
                          replica_metrics[i].help);
        for (unsigned n = 0; n < c->r->replica_count; n++) {
            const struct node_replica *k = &c->r->replicas[n];
            if (k->absent)
                continue;
            prometheus_label(p, "replica", node_replica_name(k));
            prometheus_value(p, replica_metrics[i].value(c, k));
        }
    }
}

/* --- several series per replica ------------------------------------------------------------- */

struct labelled {
    struct {
        const char *name, *value;
    } labels[2];
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
VALUE(outcome_in_doubt, (double)k->outcomes[NODE_OUTCOME_IN_DOUBT])
VALUE(error_connect, (double)k->failed[NODE_ERROR_CONNECT])
VALUE(error_timeout, (double)k->failed[NODE_ERROR_TIMEOUT])
VALUE(error_broken, (double)k->failed[NODE_ERROR_BROKEN])
VALUE(error_malformed, (double)k->failed[NODE_ERROR_MALFORMED])
VALUE(error_status_5xx, (double)k->failed[NODE_ERROR_STATUS])
VALUE(error_error_event, (double)k->failed[NODE_ERROR_EVENT])
VALUE(error_aborted, (double)k->failed[NODE_ERROR_ABORTED])
VALUE(error_no_terminal, (double)k->failed[NODE_ERROR_NO_TERMINAL])
VALUE(outcome_slow, (double)k->outcomes[NODE_OUTCOME_SLOW])
VALUE(outcome_stalled, (double)k->outcomes[NODE_OUTCOME_STALLED])
VALUE(outcome_not_sent, (double)k->outcomes[NODE_OUTCOME_NOT_SENT])
VALUE(outcome_rejected, (double)k->outcomes[NODE_OUTCOME_REJECTED])
VALUE(rejections_contradicted, (double)k->reject.contradicted)
VALUE(rejections_confirmed, (double)k->reject.confirmed)

static const struct {
    const char *name;
    enum prometheus_type type;
    const char *help;
    struct labelled rows[NODE_OUTCOMES];
} labelled_metrics[] = {
    {"replica_health",
     PROMETHEUS_GAUGE,
     "1 for the state that it is in.",
     {{{{"state", "unknown"}}, health_unknown},
      {{{"state", "up"}}, health_up},
      {{{"state", "down"}}, health_down},
      {{{"state", "draining"}}, health_draining},
      {{{"state", "router"}}, health_router}}},
    {"prediction_cached_tokens_total",
     PROMETHEUS_COUNTER,
     "Cached prompt tokens, predicted and told by the engine, in answers and in scraped counters.",
     {{{{"source", "usage"}, {"kind", "predicted"}}, usage_predicted},
      {{{"source", "usage"}, {"kind", "actual"}}, usage_actual},
      {{{"source", "scrape"}, {"kind", "predicted"}}, scrape_predicted},
      {{{"source", "scrape"}, {"kind", "actual"}}, scrape_actual}}},
    {"prediction_cached_tokens_off_total",
     PROMETHEUS_COUNTER,
     "Sum of the absolute errors of predicted cached tokens.",
     {{{{"source", "usage"}}, usage_off}, {{{"source", "scrape"}}, scrape_off}}},
    {"prediction_ttft_seconds_total",
     PROMETHEUS_COUNTER,
     "Time to first token of streams, predicted and measured.",
     {{{{"kind", "predicted"}}, ttft_predicted}, {{{"kind", "actual"}}, ttft_actual}}},
    {"prediction_ttft_off_seconds_total",
     PROMETHEUS_COUNTER,
     "Sum of the absolute errors of the predicted time to first token.",
     {{{{NULL}}, ttft_off}}},
    {"prediction_ttft_count_total",
     PROMETHEUS_COUNTER,
     "Streams whose time to first token was compared.",
     {{{{NULL}}, ttft_count}}},
    {"replica_answers_total",
     PROMETHEUS_COUNTER,
     "Requests that ended, by outcome.",
     {{{{"outcome", "ok"}}, outcome_ok},
      {{{"outcome", "client_gone"}}, outcome_gone},
      {{{"outcome", "engine_busy"}}, outcome_busy},
      {{{"outcome", "engine_error"}}, outcome_error},
      {{{"outcome", "connect_failed"}}, outcome_connect},
      {{{"outcome", "broken"}}, outcome_broken},
      {{{"outcome", "in_doubt"}}, outcome_in_doubt},
      {{{"outcome", "slow"}}, outcome_slow},
      {{{"outcome", "stalled"}}, outcome_stalled},
      {{{"outcome", "not_sent"}}, outcome_not_sent},
      {{{"outcome", "rejected"}}, outcome_rejected}}},
    {"replica_rejections_total",
     PROMETHEUS_COUNTER,
     "Answers of 4xx that were tried at another replica, which accepted the same or rejected it.",
     {{{{"peer", "accepted"}}, rejections_contradicted},
      {{{"peer", "rejected"}}, rejections_confirmed}}},
    {"upstream_errors_total",
     PROMETHEUS_COUNTER,
     "What went wrong at the replica, one attempt each, also where another replica answered.",
     {{{{"kind", "connect"}}, error_connect},
      {{{"kind", "timeout"}}, error_timeout},
      {{{"kind", "broken"}}, error_broken},
      {{{"kind", "malformed"}}, error_malformed},
      {{{"kind", "status_5xx"}}, error_status_5xx},
      {{{"kind", "error_event"}}, error_error_event},
      {{{"kind", "aborted"}}, error_aborted},
      {{{"kind", "no_terminal"}}, error_no_terminal}}},
};

static void put_labelled(const struct context *c, struct prometheus *p)
{
    for (unsigned i = 0; i < ARRAY_LEN(labelled_metrics); i++) {
        prometheus_family(p, labelled_metrics[i].name, labelled_metrics[i].type,
                          labelled_metrics[i].help);
        for (unsigned n = 0; n < c->r->replica_count; n++) {
            const struct node_replica *k = &c->r->replicas[n];
            bool of_process = i == 0; /* its health */
            const struct labelled *row = labelled_metrics[i].rows;
            const struct labelled *end = row + ARRAY_LEN(labelled_metrics[i].rows);
            for (; !k->absent && row < end && row->value != NULL; row++) {
                prometheus_label(p, "replica", node_replica_name(k));
                for (unsigned j = 0; j < ARRAY_LEN(row->labels) && row->labels[j].name; j++)
                    prometheus_label(p, row->labels[j].name, slice_of_cstr(row->labels[j].value));
                prometheus_value(p, row->value(of_process ? process(c, k) : k));
            }
        }
    }
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
    {"answered_prompt_tokens_total",
     "Prompt tokens as told by engines, of answers that told their cached ones too.",
     answered_prompt},
    {"answered_cached_tokens_total",
     "Those of grapevine_answered_prompt_tokens_total that came from the replica's cache.",
     answered_cached},
};

static void put_answered(const struct node_router *r, struct prometheus *p)
{
    for (unsigned i = 0; i < ARRAY_LEN(answered_metrics); i++) {
        prometheus_family(p, answered_metrics[i].name, PROMETHEUS_COUNTER,
                          answered_metrics[i].help);
        struct node_answered_row row;
        for (unsigned at = 0; node_answered_next(r->answered, &at, &row);) {
            const struct node_replica *k = &r->replicas[row.replica];
            if (k->absent)
                continue;
            prometheus_label(p, "replica", node_replica_name(k));
            if (row.model.len > 0)
                prometheus_label(p, "model", row.model);
            prometheus_value(p, (double)answered_metrics[i].value(&row));
        }
    }
}

static void put_decisions(const struct node_router *r, struct prometheus *p)
{
    prometheus_family(p, "decisions_total", PROMETHEUS_COUNTER,
                      "Choices of a replica, by why it was chosen.");
    for (unsigned i = 0; i < NODE_REASONS; i++) {
        prometheus_label(p, "reason", slice_of_cstr(node_reason_text((enum node_reason)i)));
        prometheus_value(p, (double)r->decisions[i]);
    }
}

static void put_renderings(const struct node_router *r, struct prometheus *p)
{
    struct node_renderings_stats s = node_renderings_stats(r->renderings);
    const struct prometheus_figure figures[] = {
        {"client_kinds", PROMETHEUS_GAUGE, "Kinds of clients whose prompts are read apart.",
         (double)s.kinds},
        {"client_kinds_watched", PROMETHEUS_GAUGE,
         "Those of which it is being learned how engines render their prompts.", (double)s.watched},
        {"client_kinds_displaced_total", PROMETHEUS_COUNTER,
         "Kinds that gave way to new ones: what was learned of them is lost.", (double)s.displaced},
        {"renderings_learned_total", PROMETHEUS_COUNTER,
         "Changes of how a kind's prompts are read, by the cached tokens that answers report.",
         (double)s.learned},
        {"renderings_adopted_total", PROMETHEUS_COUNTER, "The same, as another router told.",
         (double)s.adopted},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
}

/* --- the whole node ------------------------------------------------------------------------- */

static void put_index(const struct node_router *r, struct prometheus *p)
{
    struct crdt_index_stats s;
    crdt_index_stats(r->index, &s);
    const struct crdt_registry_stats *names = crdt_registry_stats(crdt_state_registry(r->crdt));
    unsigned unnamed = 0;
    for (unsigned i = 0; i < r->replica_count; i++)
        unnamed += node_router_replica_unnamed(r, i);
    const struct prometheus_figure figures[] = {
        {"replica_names", PROMETHEUS_GAUGE, "Replicas that are known, those that went lately too.",
         names->names},
        {"replica_names_max", PROMETHEUS_GAUGE, "Beyond it a replica waits: replicas-max.",
         names->names_max},
        {"replica_names_waiting", PROMETHEUS_GAUGE, "Replicas that wait for room.", names->waiting},
        {"replicas_unnamed", PROMETHEUS_GAUGE,
         "Replicas in use that no living router names: they go when their names are forgotten.",
         unnamed},
        {"replica_names_forgotten_total", PROMETHEUS_COUNTER,
         "Replicas that no router had named for long enough.", (double)names->forgotten},
        {"replica_names_refused_total", PROMETHEUS_COUNTER,
         "Names of replicas, told by members of the cluster, that are no HOST:PORT.",
         (double)names->no_names},
        {"bookings", PROMETHEUS_GAUGE, "Requests in flight.",
         node_bookings_open_count(r->bookings)},
        {"last_resorts_total", PROMETHEUS_COUNTER,
         "Requests sent to a replica that is down, because all that serve the model are.",
         (double)r->last_resorts},
        {"rejected_clients", PROMETHEUS_GAUGE,
         "Clients whose rejected requests (4xx) are remembered.", r->clients.count},
        {"unroutable_total", PROMETHEUS_COUNTER,
         "Requests that found no replica at their first attempt.", (double)r->unroutable},
        {"index_entries", PROMETHEUS_GAUGE, "Observations in the prefix index.", (double)s.entries},
        {"index_bytes", PROMETHEUS_GAUGE, "Memory that the index has allocated.", (double)s.bytes},
        {"index_bytes_used", PROMETHEUS_GAUGE, "Memory of it that is in use.",
         (double)s.bytes_used},
        {"index_bytes_max", PROMETHEUS_GAUGE, "Memory that the index may use.",
         (double)s.bytes_max},
        {"index_inserted_total", PROMETHEUS_COUNTER, "Observations made.", (double)s.inserted},
        {"index_refreshed_total", PROMETHEUS_COUNTER, "Observations made again, later.",
         (double)s.refreshed},
        {"index_expired_total", PROMETHEUS_COUNTER, "Observations that grew too old.",
         (double)s.expired},
        {"index_evicted_total", PROMETHEUS_COUNTER,
         "Observations dropped early because the memory was full.", (double)s.evicted},
        {"index_refused_total", PROMETHEUS_COUNTER, "Observations without room.",
         (double)s.refused},
        {"index_forgotten_total", PROMETHEUS_COUNTER,
         "Observations of replicas that lost their cache.", (double)s.forgotten},
        {"index_stale_total", PROMETHEUS_COUNTER, "Observations that came too late to count.",
         (double)s.stale},
        {"index_future_total", PROMETHEUS_COUNTER, "Observations refused as of the future.",
         (double)s.future},
        {"index_promoted", PROMETHEUS_GAUGE,
         "Checkpoints held by so many replicas that they have a set.", (double)s.promoted},
        {"index_generation", PROMETHEUS_GAUGE, "The present time slice.", crdt_index_now(r->index)},
        {"index_floor", PROMETHEUS_GAUGE, "The oldest time slice that the index keeps.",
         crdt_index_floor(r->index)},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
}

/* By model there would be as many series as engines list models: the range says what is odd. */
static void put_models(const struct node_router *r, struct prometheus *p)
{
    struct node_models_range range = node_models_range(r->models);
    const struct {
        const char *name, *help;
        double min, max;
    } rows[] = {
        {"model_bytes_per_token", "Learned bytes of text per token, over the models.",
         range.bytes_per_token_min, range.bytes_per_token_max},
        {"model_image_tokens", "Learned tokens of an image of unknown size, over the models.",
         range.image_tokens_min, range.image_tokens_max},
        {"model_output_tokens", "Expected tokens of an answer, over the models.",
         range.output_tokens_min, range.output_tokens_max},
    };
    for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
        prometheus_family(p, rows[i].name, PROMETHEUS_GAUGE, rows[i].help);
        prometheus_label(p, "bound", SLICE("min"));
        prometheus_value(p, rows[i].min);
        prometheus_label(p, "bound", SLICE("max"));
        prometheus_value(p, rows[i].max);
    }
}

void node_router_metrics(const struct node_router *r, uint64_t now_ms, struct prometheus *p)
{
    struct context c = {.r = r, .now_ms = now_ms};
    put_replicas(&c, p);
    put_learned(r, p);
    put_labelled(&c, p);
    put_answered(r, p);
    put_models(r, p);
    put_decisions(r, p);
    put_index(r, p);
    put_renderings(r, p);
}
