#include <sys/resource.h>

#include "base/check.h"
#include "base/prometheus.h"
#include "base/version.h"
#include "node/admin/attention.h"
#include "node/io/client_keys.h"
#include "node/io/gossip.h"
#include "node/io/log_sink.h"
#include "node/io/reload.h"
#include "node/io/shell.h"
#include "node/io/state_dir.h"
#include "node/io/tls.h"

static void write_process(const struct shell *shell, struct prometheus *p)
{
    struct rusage usage;
    double cpu = 0;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        cpu = (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
              1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    size_t rss = 0;
    (void)uv_resident_set_memory(&rss);
    const struct prometheus_figure figures[] = {
        {"uptime_seconds", "Time since the process started.",
         (double)(shell_now_ms(shell) - shell->started_ms) / 1000},
        {"process_cpu_seconds_total", "CPU time, user and system.", cpu},
        {"process_resident_memory_bytes", "Resident memory.", (double)rss},
        {"log_lines_suppressed_total", "Log lines left out by the rate limit.",
         (double)shell->log->suppressed_total},
        {"log_lines_dropped_total", "Log lines dropped.", (double)io_log_dropped(shell->log)},
        {"draining", "1 from SIGTERM until the process ends.", shell->draining},
        {"config_refused", "1 if the settings file is invalid.", reload_refused(shell->reload)},
        {"config_waits", "Changed settings that wait for a restart.",
         reload_waiting(shell->reload)},
    };
    prometheus_figures(p, figures, ARRAY_LEN(figures));
    prometheus_family(p, "build_info", "Version of this router.");
    prometheus_label(p, "version", slice_of_cstr(version_text));
    prometheus_value(p, 1);
}

void metrics_files_write(void *context, struct json_writer *w)
{
    const struct shell *shell = context;
    json_put_bool(w, "config_refused", reload_refused(shell->reload));
    json_put_bool(w, "client_keys_refused", client_keys_refused(shell->client_keys));
    json_put_bool(w, "tls_files_refused", tls_files_refused(shell->tls) > 0);
    json_put_u64(w, "config_waits", reload_waiting(shell->reload));
}

static void add_refused(struct admin_attention_list *list, bool refused, struct slice about)
{
    if (refused)
        admin_attention_add(list, ATTENTION_FILES_REFUSED,
                            &(struct admin_attention_facts){.about = about});
}

void metrics_attention(void *context, struct admin_attention_list *list)
{
    const struct shell *shell = context;
    tls_attention(shell->tls, list);
    add_refused(list, reload_refused(shell->reload), SLICE("settings"));
    add_refused(list, client_keys_refused(shell->client_keys), SLICE("clients' keys"));
    add_refused(list, tls_files_refused(shell->tls) > 0, SLICE("TLS files"));
}

int metrics_write(void *context, struct buf *out)
{
    const struct shell *shell = context;
    struct prometheus p = prometheus_of(out, "grapevine_");
    write_process(shell, &p);
    proxy_metrics(shell->proxy, &p);
    node_router_metrics(shell->router, shell_now_ms(shell), &p);
    discover_metrics(shell->node->discover, shell_now_ms(shell), &p);
    io_gossip_metrics(shell, &p);
    tls_metrics(shell->tls, &p);
    trace_metrics(shell->node->trace, &p);
    state_dir_metrics(shell->state, shell_now_ms(shell), &p);
    return prometheus_finish(&p);
}
