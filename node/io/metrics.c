#include <sys/resource.h>

#include "base/version.h"
#include "node/io/gossip.h"
#include "node/io/log_sink.h"
#include "node/io/shell.h"

/* One family without labels. */
static int write_one(struct buf *out, const char *name, const char *type, const char *help,
                     double value)
{
    return buf_printf(out, "# HELP grapevine_%s %s\n# TYPE grapevine_%s %s\ngrapevine_%s %.17g\n",
                      name, help, name, type, name, value);
}

struct family {
    const char *name;
    const char *type;
    const char *help;
    double value;
};

static int write_families(struct buf *out, const struct family *f, size_t count)
{
    int err = 0;
    for (size_t i = 0; i < count && err == 0; i++)
        err = write_one(out, f[i].name, f[i].type, f[i].help, f[i].value);
    return err;
}

static int write_data_path(const struct shell *shell, struct buf *out)
{
    const struct proxy_stats *s = proxy_stats(shell->proxy);
    uint64_t held_bytes, refused;
    proxy_body_memory(shell->proxy, &held_bytes, &refused);
    const struct family families[] = {
        {"connections_accepted_total", "counter", "Connections accepted, both ports.",
         (double)s->connections_accepted},
        {"connections_open", "gauge", "Connections open now.", (double)s->connections_open},
        {"connections_refused_total", "counter", "Connections beyond connections-max.",
         (double)s->connections_refused},
        {"accept_failures_total", "counter", "Connections that could not be accepted.",
         (double)s->accept_failures},
        {"requests_total", "counter", "Requests begun on the client port.", (double)s->requests},
        {"requests_open", "gauge", "Requests under way.", (double)s->requests_open},
        {"client_gone_total", "counter", "Requests whose client disconnected first.",
         (double)s->client_gone},
        {"client_timeouts_total", "counter", "Clients that sent or read too slowly.",
         (double)s->client_timeouts},
        {"retries_total", "counter", "Requests sent again, to another replica.",
         (double)s->retries},
        {"upstream_connects_total", "counter", "Connections opened to replicas.",
         (double)s->upstream_connects},
        {"upstream_reused_total", "counter", "Requests sent on a kept-alive connection.",
         (double)s->upstream_reused},
        {"upstream_connect_failures_total", "counter", "Connections that could not be opened.",
         (double)s->upstream_connect_failures},
        {"upstream_timeouts_total", "counter", "Replicas that did not connect or answer in time.",
         (double)s->upstream_timeouts},
        {"upstream_full_total", "counter", "Times that upstream-connections-max was in the way.",
         (double)s->upstream_full},
        {"upstream_broken_total", "counter", "Answers that broke off or were malformed.",
         (double)s->upstream_broken},
        {"request_body_bytes_total", "counter", "Bytes of request bodies read.",
         (double)s->bytes_in},
        {"response_bytes_total", "counter", "Bytes written to clients.", (double)s->bytes_out},
        {"not_understood_total", "counter", "Prompt bodies routed by load, being no JSON request.",
         (double)s->not_understood},
        {"backpressure_total", "counter", "Times an engine was held back for a slow client.",
         (double)s->backpressure},
        {"stored_responses_evicted_total", "counter",
         "Stored responses whose maker was forgotten for newer ones.",
         (double)node_affinity_evicted(shell->affinity)},
        {"body_bytes_held", "gauge", "Memory that holds bodies on their way.", (double)held_bytes},
        {"body_memory_refused_total", "counter", "Allocations beyond buffered-bytes-max.",
         (double)refused},
        {"log_lines_suppressed_total", "counter", "Log lines left out by the rate limit.",
         (double)shell->log->suppressed_total},
        {"log_lines_dropped_total", "counter", "Log lines that nobody read in time.",
         (double)io_log_dropped(shell->log)},
        {"probes_too_large_total", "counter", "Metrics or lists of models beyond what is read.",
         (double)s->probes_too_large},
    };
    return write_families(out, families, sizeof families / sizeof families[0]);
}

static int write_labelled(const struct shell *shell, struct buf *out)
{
    static const char *const reasons[] = {[PROXY_REFUSED_MALFORMED] = "malformed",
                                          [PROXY_REFUSED_BODY_LIMIT] = "body_limit",
                                          [PROXY_REFUSED_PATH] = "path",
                                          [PROXY_REFUSED_MODEL] = "model",
                                          [PROXY_REFUSED_API_KEY] = "api_key",
                                          [PROXY_REFUSED_NO_REPLICA] = "no_replica",
                                          [PROXY_REFUSED_MEMORY] = "memory",
                                          [PROXY_REFUSED_TIMEOUT] = "timeout",
                                          [PROXY_REFUSED_BAD_GATEWAY] = "bad_gateway",
                                          [PROXY_REFUSED_LOOP] = "loop",
                                          [PROXY_REFUSED_INTERNAL] = "internal"};
    int err = buf_append_cstr(out, "# HELP grapevine_requests_refused_total Requests that the "
                                   "router answered with an error of its own.\n"
                                   "# TYPE grapevine_requests_refused_total counter\n");
    for (size_t i = PROXY_REFUSED_NONE + 1; i < PROXY_REFUSALS && err == 0; i++)
        err = buf_printf(out, "grapevine_requests_refused_total{reason=\"%s\"} %llu\n", reasons[i],
                         (unsigned long long)proxy_stats(shell->proxy)->requests_refused[i]);
    if (err == 0)
        err = buf_append_cstr(out, "# HELP grapevine_responses_total Answers by status class.\n"
                                   "# TYPE grapevine_responses_total counter\n");
    for (unsigned i = 1; i <= 5 && err == 0; i++)
        err = buf_printf(out, "grapevine_responses_total{class=\"%uxx\"} %llu\n", i,
                         (unsigned long long)proxy_stats(shell->proxy)->responses[i]);
    if (err == 0)
        err = buf_append_cstr(out, "# HELP grapevine_answers_cut_total Answers that began and did "
                                   "not reach their end.\n"
                                   "# TYPE grapevine_answers_cut_total counter\n");
    for (unsigned i = CLIENT_END_DONE + 1; i < CLIENT_ENDS && err == 0; i++)
        err = buf_printf(out, "grapevine_answers_cut_total{reason=\"%s\"} %llu\n",
                         client_end_name((enum client_end)i),
                         (unsigned long long)proxy_stats(shell->proxy)->answers_cut[i]);
    return err;
}

static int write_process(const struct shell *shell, struct buf *out)
{
    struct rusage usage;
    double cpu = 0;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
              1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    size_t rss = 0;
    (void)uv_resident_set_memory(&rss);
    const struct family families[] = {
        {"uptime_seconds", "gauge", "Since the process started.",
         (double)(shell_now_ms(shell) - shell->started_ms) / 1000},
        {"process_cpu_seconds_total", "counter", "CPU time, user and system.", cpu},
        {"process_resident_memory_bytes", "gauge", "Resident memory.", (double)rss},
        {"draining", "gauge", "1 from SIGTERM on: not ready, and ends when what is open is done.",
         shell->draining},
    };
    int err = write_families(out, families, sizeof families / sizeof families[0]);
    if (err == 0)
        err = buf_printf(out,
                         "# HELP grapevine_build_info Version.\n# TYPE grapevine_build_info gauge\n"
                         "grapevine_build_info{version=\"%s\"} 1\n",
                         GRAPEVINE_VERSION);
    return err;
}

int metrics_write(void *context, struct buf *out)
{
    const struct shell *shell = context;
    int err = write_process(shell, out);
    if (err == 0)
        err = write_data_path(shell, out);
    if (err == 0)
        err = write_labelled(shell, out);
    if (err == 0)
        err = node_router_metrics(shell->router, shell_now_ms(shell), out);
    if (err == 0)
        err = io_gossip_metrics(shell, out);
    return err;
}
