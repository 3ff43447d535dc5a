/* Metrics of the router. The number of series is bounded: labels are names of configured replicas,
 * names of models that engines list (limited by node/replica/answered.h), and words of this file. A
 * model's name that only clients used is no label. Each metric has one table row. */
#include "base/check.h"
#include "base/prometheus.h"
#include "node/replica/learned.h"
#include "node/route/router_internal.h"
#include "node/route/shade.h"

/* --- series of each replica ----------------------------------------------------------------- */

struct context {
    const struct node_router *r;
    uint64_t now_ms;
    const struct node_learned_row *learned;
};

/* Sources of the actual cached tokens: the usage of answers without KV-cache events, of answers
 * with events, and scrapes. */
static const char *const sources[] = {"usage", "events", "scrape"};
static const char *const kinds[] = {"predicted", "actual"};

static struct node_prediction_sums compared(const struct node_replica *k, unsigned source)
{
    const struct node_prediction_sums all = k->cache.by_usage, events = k->cache.by_events;
    if (source > 0)
        return source == 1 ? events : k->cache.by_scrape;
    return (struct node_prediction_sums){all.predicted - events.predicted,
                                         all.actual - events.actual, all.off - events.off};
}

static double scrape_age_s(const struct context *c, const struct node_replica *k)
{
    if (k->scraped_ms == 0)
        return -1;
    return c->now_ms > k->scraped_ms ? (double)(c->now_ms - k->scraped_ms) / 1000 : 0;
}

/* The row of the replica's process, for figures that belong to the whole process. */
static const struct node_replica *process(const struct context *c, const struct node_replica *k)
{
    return &c->r->replicas[k->rank.server];
}

static struct crdt_load others(const struct context *c, const struct node_replica *k)
{
    struct crdt_load sum;
    crdt_reports_load_sum(crdt_state_reports(c->r->crdt), (unsigned)(k - c->r->replicas), &sum);
    return sum;
}

#define LABEL(name, text) prometheus_label(p, name, slice_of_cstr(text))

/* X: a series of replica `k` with slot `s`. XS: several series of the replica, with labels. */
#define FAMILIES(X, XS)                                                                            \
    X(up, "1 if the replica gets new requests.",                                                   \
      node_replica_usable(process(c, k), NODE_HEALTH_UP) && !k->draining)                          \
    X(backing_off, "1 if the replica is in a back-off.",                                           \
      node_router_replica_backing_off(c->r, k->rank.server, c->now_ms))                            \
    X(backing_off_elsewhere, "1 if another router reports failures of the replica.",               \
      process(c, k)->breaker.heard != NODE_BREAKER_CLOSED)                                         \
    X(leaving, "1 if the replica's health check says no.", process(c, k)->signs.leaving)           \
    X(stalled, "1 if the replica is stalled.",                                                     \
      process(c, k)->signs.stall != NODE_STALL_NONE || k->signs.stall != NODE_STALL_NONE)          \
    X(rejecting, "1 if the replica is avoided because it rejects requests.",                       \
      node_router_reject_is_avoided(c->r, k->rank.server) ||                                       \
          node_models_denials(c->r->models, k->rank.server).held > 0)                              \
    X(rejecting_used, "1 if the replica rejects but is used.",                                     \
      node_reject_kinds(&process(c, k)->reject) != 0 &&                                            \
          !node_router_reject_within(c->r, k->rank.server))                                        \
    X(stalls_total, "Stalls that the watchdog found.", k->signs.stalls_total)                      \
    X(probes_refused, "1 if the replica answers the router's questions with 401 or 403.",          \
      process(c, k)->server.probes_refused != 0)                                                   \
    X(requests, "This router's requests in flight at the replica.", k->load.requests)              \
    X(prefill_tokens, "Uncached prompt tokens not computed yet.", k->load.prefill_tokens)          \
    X(context_tokens, "Context tokens of the requests in flight.", k->load.context_tokens)         \
    X(requests_of_others, "Other routers' requests in flight at the replica.",                     \
      others(c, k).requests)                                                                       \
    X(prefill_tokens_of_others, "Uncached prompt tokens not computed yet, of all other routers.",  \
      others(c, k).prefill_tokens)                                                                 \
    X(queue_seconds, "Estimated time of the booked prefill.",                                      \
      node_load_queue_s(c->r->bookings, &k->load, k->believed.tokens_per_s, c->now_ms))            \
    X(cache_tokens, "Cache size, reported or configured.",                                         \
      node_replica_cache_tokens(k, (double)c->r->config.cache_tokens))                             \
    X(context_length, "Context length in tokens; 0 if unknown.",                                   \
      node_router_context(c->r, (unsigned)(k - c->r->replicas)))                                   \
    X(cache_size_factor, "Learned correction of the cache size.", k->belief.factor)                \
    X(events_live, "1 if the cache is known from KV-cache events.",                                \
      node_router_has_events(c->r, (unsigned)(k - c->r->replicas)))                                \
    X(engine_running, "Requests running, by the engine; -1: unknown.", k->scrape.running)          \
    X(engine_waiting, "Requests waiting, by the engine; -1: unknown.", k->scrape.waiting)          \
    X(engine_cache_usage, "Share of the KV cache in use, by the engine; -1: unknown.",             \
      k->scrape.cache_usage)                                                                       \
    X(scrape_age_seconds, "Time since the replica's metrics were read; -1 if never.",              \
      scrape_age_s(c, k))                                                                          \
    X(probe_failures_total, "Failed health checks.", k->trouble.probe_failures_total)              \
    X(chosen_total, "Requests sent to the replica.", s->chosen)                                    \
    X(restarts_total, "Engine restarts noticed.", k->restarts)                                     \
    X(usage_impossible_total, "Answers with impossible usage.", k->cache.usage_impossible)         \
    X(prompt_tokens_total, "Estimated prompt tokens sent to the replica.", s->prompt_tokens)       \
    XS(replica_health, NODE_HEALTHS, LABEL("state", node_health_text((enum node_health)i)),        \
       "1 for the replica's current state.",                                                       \
       node_replica_health(process(c, k)) == (enum node_health)i)                                  \
    XS(prediction_cached_tokens_total, 6,                                                          \
       (LABEL("source", sources[i / 2]), LABEL("kind", kinds[i % 2])),                             \
       "Cached prompt tokens, predicted and actual (reported).",                                   \
       i % 2 == 0 ? compared(k, i / 2).predicted : compared(k, i / 2).actual)                      \
    XS(prediction_cached_tokens_off_total, 3, LABEL("source", sources[i]),                         \
       "Absolute errors of predicted cached tokens.", compared(k, i).off)                          \
    XS(prediction_ttft_seconds_total, 2, LABEL("kind", kinds[i]),                                  \
       "TTFT of streams, predicted and actual.", i == 0 ? s->ttft_predicted_s : s->ttft_actual_s)  \
    XS(prediction_ttft_off_seconds_total, 1, (void)p, "Absolute errors of predicted TTFT.",        \
       s->ttft_off_s)                                                                              \
    XS(prediction_ttft_count_total, 1, (void)p, "Streams with a compared TTFT.", s->ttft_count)    \
    XS(replica_answers_total, NODE_OUTCOMES,                                                       \
       LABEL("outcome", node_outcome_text((enum node_outcome)i)),                                  \
       "Requests that ended, by outcome.", s->outcomes[i])                                         \
    XS(replica_rejections_total, 2, LABEL("peer", i == 0 ? "accepted" : "rejected"),               \
       "Requests tried at another replica after a 4xx, which accepted or rejected them.",          \
       i == 0 ? k->reject.contradicted : k->reject.confirmed)                                      \
    XS(upstream_errors_total, NODE_ERRORS, LABEL("kind", node_error_text((enum node_error)i)),     \
       "Failed attempts at a replica.", s->failed[i])

#define VALUE(name, value)                                                                         \
    static double value_##name(const struct context *c, const struct node_replica *k, unsigned i)  \
    {                                                                                              \
        const struct node_slot *s = node_router_slot(c->r, k);                                     \
        (void)s;                                                                                   \
        (void)i;                                                                                   \
        return (double)(value);                                                                    \
    }
#define X_VALUE(name, help, value) VALUE(name, value)
#define XS_VALUE(name, count, labels, help, value)                                                 \
    static void label_##name(struct prometheus *p, unsigned i)                                     \
    {                                                                                              \
        (void)i;                                                                                   \
        labels;                                                                                    \
    }                                                                                              \
    VALUE(name, value)
FAMILIES(X_VALUE, XS_VALUE)

struct family {
    const char *name, *help;
    unsigned count; /* series of each replica */
    void (*label)(struct prometheus *p, unsigned i);
    double (*value)(const struct context *c, const struct node_replica *k, unsigned i);
};

static const struct family replica_families[] = {
#define X_ROW(name, help, value)                 {"replica_" #name, help, 1, NULL, value_##name},
#define XS_ROW(name, count, labels, help, value) {#name, help, count, label_##name, value_##name},
    FAMILIES(X_ROW, XS_ROW)};

static void put_families(const struct context *c, const struct family *rows, unsigned count,
                         struct prometheus *p)
{
    for (const struct family *f = rows; f < rows + count; f++) {
        prometheus_family(p, f->name, f->help);
        for (unsigned n = 0; n < c->r->replica_count; n++) {
            const struct node_replica *k = &c->r->replicas[n];
            for (unsigned i = 0; !k->absent && i < f->count; i++) {
                prometheus_label(p, "replica", node_replica_name(k));
                if (f->label)
                    f->label(p, i);
                prometheus_value(p, f->value(c, k, i));
            }
        }
    }
}

static double learned(const struct context *c, const struct node_replica *k, unsigned i)
{
    (void)i;
    return c->learned->value(k);
}

static void put_learned(struct context c, struct prometheus *p)
{
    for (unsigned i = 0; i < node_learned_rows_count; i++) {
        c.learned = &node_learned_rows[i];
        struct family f = {c.learned->metric, c.learned->help, 1, NULL, learned};
        put_families(&c, &f, f.name != NULL, p);
    }
}

/* --- series with a model -------------------------------------------------------------------- */

static void put_answered(const struct node_router *r, struct prometheus *p)
{
    static const struct {
        const char *name, *help;
    } families[] = {
        {"answered_prompt_tokens_total", "Prompt tokens of answers that report cached tokens."},
        {"answered_cached_tokens_total", "Cached prompt tokens that engines report."},
    };
    for (unsigned i = 0; i < ARRAY_LEN(families); i++) {
        struct node_answered_row row;
        prometheus_family(p, families[i].name, families[i].help);
        for (unsigned at = 0; node_answered_next(r->answered, &at, &row);) {
            const struct node_replica *k = &r->replicas[row.replica];
            if (k->absent)
                continue;
            prometheus_label(p, "replica", node_replica_name(k));
            if (row.model.len > 0)
                prometheus_label(p, "model", row.model);
            prometheus_value(p, (double)(i == 0 ? row.prompt_tokens : row.cached_tokens));
        }
    }
}

static void put_decisions(const struct node_router *r, struct prometheus *p)
{
    prometheus_family(p, "decisions_total", "Choices of a replica, by reason.");
    for (unsigned i = 0; i < NODE_REASONS; i++) {
        LABEL("reason", node_reason_text((enum node_reason)i));
        prometheus_value(p, (double)r->decisions[i]);
    }
}

/* --- the whole node ------------------------------------------------------------------------- */

static void put_figures(const struct node_router *r, struct prometheus *p)
{
    struct crdt_index_stats s;
    crdt_index_stats(r->index, &s);
    const struct crdt_registry_stats *names = crdt_registry_stats(crdt_state_registry(r->crdt));
    struct node_renderings_stats clients = node_renderings_stats(r->renderings);
    unsigned unnamed = 0;
    for (unsigned i = 0; i < r->replica_count; i++)
        unnamed += node_router_replica_unnamed(r, i);
    const struct prometheus_figure figures[] = {
        {"replica_names", "Replicas known, recently removed ones included.", names->names},
        {"replica_names_max", "Limit of replica names (replicas-max).", names->names_max},
        {"replica_names_waiting", "Replicas that wait for room (replicas-max).", names->waiting},
        {"replicas_unnamed", "Replicas in use that no living router names.", unnamed},
        {"replica_names_forgotten_total", "Replicas forgotten because no router named them.",
         (double)names->forgotten},
        {"replica_names_refused_total", "Invalid names of replicas from other members.",
         (double)names->no_names},
        {"bookings", "Requests in flight.", node_bookings_open_count(r->bookings)},
        {"last_resorts_total", "Requests sent to a replica that is down.", (double)r->last_resorts},
        {"rejected_clients", "Clients whose rejected requests (4xx) are remembered.",
         r->clients.count},
        {"unroutable_total", "Requests that found no replica at first.", (double)r->unroutable},
        {"index_entries", "Observations in the prefix index.", (double)s.entries},
        {"index_bytes", "Memory allocated for the prefix index.", (double)s.bytes},
        {"index_bytes_used", "Memory that the prefix index uses.", (double)s.bytes_used},
        {"index_split_bytes", "Memory for counters of shadow mode, not counted against the limit.",
         (double)s.split_bytes},
        {"index_bytes_max", "Memory limit of the prefix index.", (double)s.bytes_max},
        {"index_inserted_total", "Observations added.", (double)s.inserted},
        {"index_refreshed_total", "Observations refreshed.", (double)s.refreshed},
        {"index_expired_total", "Observations that grew too old.", (double)s.expired},
        {"index_evicted_total", "Observations dropped early: memory full.", (double)s.evicted},
        {"index_refused_total", "Observations refused: prefix index full.", (double)s.refused},
        {"index_forgotten_total", "Observations dropped: their replica lost its cache.",
         (double)s.forgotten},
        {"index_stale_total", "Observations that came too late.", (double)s.stale},
        {"index_future_total", "Observations refused: from the future.", (double)s.future},
        {"index_promoted", "Checkpoints that many replicas hold.", (double)s.promoted},
        {"index_generation", "Current time slice.", crdt_index_now(r->index)},
        {"index_floor", "Oldest time slice that the index keeps.", crdt_index_floor(r->index)},
        {"client_kinds", "Kinds of clients with prompts read separately.", (double)clients.kinds},
        {"client_kinds_watched", "Kinds of clients with renderings being learned.",
         (double)clients.watched},
        {"client_kinds_displaced_total", "Kinds of clients dropped for new ones.",
         (double)clients.displaced},
        {"renderings_learned_total", "Changed readings of prompts, from cached tokens.",
         (double)clients.learned},
        {"renderings_adopted_total", "Changed readings of prompts, from another router.",
         (double)clients.adopted},
        {"events_tidings_passed_over_total", "Invalid reports about KV-cache events.",
         (double)r->events.passed_over},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
}

/* Engines may list any number of models, so only the range over the models is exported, which shows
 * outliers. */
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
        prometheus_family(p, rows[i].name, rows[i].help);
        prometheus_label(p, "bound", SLICE("min"));
        prometheus_value(p, rows[i].min);
        prometheus_label(p, "bound", SLICE("max"));
        prometheus_value(p, rows[i].max);
    }
}

void node_router_metrics(const struct node_router *r, uint64_t now_ms, struct prometheus *p)
{
    struct context c = {.r = r, .now_ms = now_ms};
    put_families(&c, replica_families, ARRAY_LEN(replica_families), p);
    put_learned(c, p);
    put_answered(r, p);
    put_models(r, p);
    put_decisions(r, p);
    node_router_shadow_metrics(r, p);
    put_figures(r, p);
}
