/* The data path's part of GET /metrics. */
#include "base/check.h"
#include "node/proxy/engine/feeds.h"
#include "node/proxy/engine/publishers.h"
#include "node/proxy/engine/shortage.h"
#include "node/proxy/proxy_internal.h"
#include "node/route/poison.h"

static void write_clients(const struct proxy *proxy, struct prometheus *p)
{
    const struct proxy_stats *s = &proxy->stats;
    const struct prometheus_figure figures[] = {
        {"connections_accepted_total", "Connections accepted, all ports.",
         (double)s->connections_accepted},
        {"connections_open", "Connections open now.", (double)s->connections_open},
        {"connections_refused_total",
         "Connections over connections-max, or a limit of the admin and probe ports.",
         (double)s->connections_refused},
        {"client_connections_refused_total", "Connections over connections-per-client-max.",
         (double)s->client_connections_refused},
        {"connections_evicted_total", "Idle or slow connections closed for new ones, all ports.",
         (double)s->connections_evicted},
        {"proxy_headers_refused_total", "Connections closed for a missing or invalid PROXY header.",
         (double)s->proxy_headers_refused},
        {"accept_pauses_total", "Times that a port stopped accepting for lack of files or memory.",
         (double)s->accept_pauses},
        {"accept_failures_total", "Connections that could not be accepted.",
         (double)s->accept_failures},
        {"requests_total", "Requests begun on the client port.", (double)s->requests},
        {"requests_open", "Requests in progress.", (double)s->requests_open},
        {"client_gone_total", "Requests that the client left before the answer's end.",
         (double)s->client_gone},
        {"requests_client_errors_total", "Requests that ended by the client's own error.",
         (double)s->results[NODE_RESULT_CLIENT_ERROR]},
        {"requests_hidden_total", "Requests answered successfully after a failed attempt.",
         (double)s->hidden},
        {"client_timeouts_total", "Clients that sent or read too slowly.",
         (double)s->client_timeouts},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
}

static void write_attempts(const struct proxy *proxy, struct prometheus *p)
{
    const struct proxy_stats *s = &proxy->stats;
    const struct prometheus_figure figures[] = {
        {"retry_budget", "Retries available now (retry-budget).", proxy->admission.budget.level},
        {"retry_budget_exhausted_total", "Retries not made because retry-budget was used up.",
         (double)s->retry_budget_exhausted},
        {"poison_suspects_total",
         "Times that a replica died while a request there had no answer token yet.",
         (double)s->suspects},
        {"poison_remembered", "Requests refused as poison.",
         (double)node_poison_count(proxy->config.router)},
        {"upstream_connects_total", "Connections opened to replicas.",
         (double)s->upstream_connects},
        {"upstream_reused_total", "Requests sent on a kept-alive connection.",
         (double)s->upstream_reused},
        {"upstream_stale_total", "Requests repeated because the idle connection closed.",
         (double)s->upstream_stale},
        {"upstream_connect_failures_total", "Connections to replicas that failed.",
         (double)s->upstream_connect_failures},
        {"upstream_timeouts_total", "Timeouts of replicas.", (double)s->upstream_timeouts},
        {"upstream_full_total", "Times that upstream-connections-max was reached.",
         (double)s->upstream_full},
        {"upstream_broken_total", "Answers that broke off or were malformed.",
         (double)s->upstream_broken},
        {"request_body_bytes_total", "Bytes of request bodies read.", (double)s->bytes_in},
        {"response_bytes_total", "Bytes written to clients.", (double)s->bytes_out},
        {"requests_in_flight", "Requests booked at a replica.",
         (double)node_router_booked(proxy->config.router)},
        {"queue_length", "Requests waiting for room at a replica.",
         (double)proxy->admission.queue.lines[QUEUE_ROOM].length},
        {"not_understood_total", "Prompt bodies that are no JSON request, routed by load.",
         (double)s->not_understood},
        {"backpressure_total",
         "Times that reading an answer stopped because the client was too slow.",
         (double)s->backpressure},
        {"answer_decode_waits_total", "Pauses in decoding an engine's answer.",
         (double)s->unpack_waits},
        {"stored_responses_evicted_total",
         "Entries of stored responses dropped to make room for newer ones.",
         (double)node_affinity_evicted(proxy->config.affinity)},
        {"body_bytes_held", "Memory for bodies in transit.", (double)proxy->segments.bytes},
        {"body_memory_refused_total", "Allocations over buffered-bytes-max.",
         (double)proxy->segments.refused},
        {"probes_too_large_total", "Metrics or model lists over the size limit.",
         (double)s->probes_too_large},
        {"probes_vetoed_total",
         "Unanswered health checks that did not count, because other bytes came.",
         (double)s->probes_vetoed},
        {"engine_control_total", "Control requests, one per replica.", (double)s->controls},
        {"engine_cache_resets_total", "Replicas that confirmed a cache reset.",
         (double)s->cache_resets},
        {"watchdog_moved_total",
         "Requests moved from stalled, sleeping, or down and silent replicas.",
         (double)s->watchdog_moved},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
}

static const char *reason_name(unsigned refusal)
{
    return refusal_rows[refusal].word;
}

static const char *retry_name(unsigned reason)
{
    return verdict_reason_name((enum verdict_reason)reason);
}

static const char *class_name(unsigned class)
{
    static const char *const names[] = {"", "1xx", "2xx", "3xx", "4xx", "5xx"};
    return names[class];
}

static const char *result_name(unsigned result)
{
    return node_result_text((enum node_result)result);
}

static const char *end_name(unsigned end)
{
    return client_end_name((enum client_end)end);
}

static const char *coding_name(unsigned coding)
{
    return http_coding_name((enum http_coding)coding);
}

/* Writes a counter for each value of an enumeration, labelled with the value's name. */
static void write_labelled(const struct proxy *proxy, struct prometheus *p)
{
    const struct proxy_stats *s = &proxy->stats;
    const struct {
        const char *name, *help, *label;
        const char *(*word)(unsigned number);
        const uint64_t *values;
        size_t count;
        unsigned first;
    } families[] = {
        {"requests_invalid_total",
         "Clients' mistakes and probes: 404, 405, 426, malformed, wrong keys.", "reason",
         reason_name, s->requests_refused, REFUSALS_OF_CLIENTS, 1},
        {"requests_refused_total", "Requests that the router answered with its own error.",
         "reason", reason_name, s->requests_refused, REFUSALS, REFUSALS_OF_CLIENTS},
        {"requests_failed_total", "Failed requests: status_5xx, queue_full, cut.", "reason",
         result_name, s->results, NODE_RESULTS, NODE_RESULT_STATUS_5XX},
        {"request_bodies_decoded_total", "Compressed request bodies decoded.", "coding",
         coding_name, s->decoded, HTTP_CODING_OTHER, HTTP_CODING_GZIP},
        {"answers_decoded_total", "Compressed answers decoded.", "coding", coding_name, s->unpacked,
         HTTP_CODING_OTHER, HTTP_CODING_GZIP},
        {"responses_total", "Answers by status class.", "class", class_name, s->responses,
         ARRAY_LEN(s->responses), 1},
        {"answers_cut_total", "Answers that began and did not complete.", "reason", end_name,
         s->answers_cut, CLIENT_ENDS, 1},
        {"retries_total", "Requests sent again.", "reason", retry_name, s->retries, RETRY_REASONS,
         0},
    };
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        prometheus_family(p, families[i].name, families[i].help);
        for (unsigned n = families[i].first; n < families[i].count; n++) {
            prometheus_label(p, families[i].label, slice_of_cstr(families[i].word(n)));
            prometheus_value(p, (double)families[i].values[n]);
        }
    }
}

/* Writes a series for each model of each alias. */
static void write_aliases(const struct proxy *proxy, struct prometheus *p)
{
    static const struct {
        const char *name, *help;
        size_t offset;
    } families[] = {
        {"alias_requests_total", "Requests for a model alias, by serving model.",
         offsetof(struct node_alias_target, requests)},
        {"alias_fallbacks_total", "Fallbacks of a model alias.",
         offsetof(struct node_alias_target, fallbacks)},
    };
    for (size_t i = 0; i < ARRAY_LEN(families) && proxy->aliases.count > 0; i++) {
        prometheus_family(p, families[i].name, families[i].help);
        for (unsigned a = 0; a < proxy->aliases.count; a++) {
            const struct node_alias *alias = &proxy->aliases.at[a];
            for (unsigned t = 0; t < alias->count; t++) {
                const char *target = (const char *)&alias->targets[t];
                prometheus_label(p, "alias", alias->name);
                prometheus_label(p, "model", alias->targets[t].model);
                prometheus_value(
                    p, (double)*(const uint64_t *)(const void *)(target + families[i].offset));
            }
        }
    }
}

static void write_shortages(const struct proxy *proxy, struct prometheus *p)
{
    prometheus_family(
        p, "local_shortages_total",
        "Connections to replicas not opened for lack of local ports, files or memory.");
    for (unsigned i = 0; i < NET_SHORTAGES; i++) {
        prometheus_label(p, "of", slice_of_cstr(net_shortage_name((enum net_shortage)i)));
        prometheus_value(p, (double)proxy->engines.shortages[i].met);
    }
    prometheus_family(p, "local_shortage", "1 during a local shortage, and 10 s after.");
    for (unsigned i = 0; i < NET_SHORTAGES; i++) {
        prometheus_label(p, "of", slice_of_cstr(net_shortage_name((enum net_shortage)i)));
        prometheus_value(p, shortage_lasts(proxy, (enum net_shortage)i));
    }
}

void proxy_metrics(const struct proxy *proxy, struct prometheus *p)
{
    access_metrics(proxy->config.access, p);
    write_clients(proxy, p);
    write_attempts(proxy, p);
    write_labelled(proxy, p);
    write_aliases(proxy, p);
    write_shortages(proxy, p);
    feeds_metrics(proxy, p);
    publishers_metrics(proxy, p);
    proxy_timing_metrics(&proxy->timing, p);
    prometheus_histograms(p, "queue_wait_seconds",
                          "Time in the queue of requests that were then served.");
    prometheus_histogram(p, NULL, slice_of("", 0),
                         &proxy->admission.queue.lines[QUEUE_ROOM].waited);
}
