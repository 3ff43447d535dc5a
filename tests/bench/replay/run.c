#include "tests/bench/replay/run.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/bench/replay/proc.h"

enum { TICK_MS = 500, LINE_S = 10, HOPELESS = 100 };

int run_init(struct run *r, const struct settings *settings)
{
    r->settings = settings;
    CHECK(uv_loop_init(&r->loop) == 0);
    CHECK(uv_timer_init(&r->loop, &r->tick) == 0);
    client_init(&r->client, &r->loop);
    r->client.timeout_s = settings->timeout_s;
    prng_seed(&r->random, settings->trace_options.seed ^ 0x5eed);
    r->stats.label = settings->label;
    r->stats.speed_up = settings->speed_up;
    r->stats.router = settings->pid_count > 0;
    for (size_t i = 0; i < settings->target_count; i++) {
        int err = client_add_target(&r->client, settings->targets[i]);
        if (err != 0)
            return err;
    }
    return 0;
}

static double cpu_us(const struct settings *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->pid_count; i++)
        sum += proc_cpu_us(s->pids[i]);
    return sum;
}

static void memory_look(struct run *r)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->settings->pid_count; i++)
        sum += proc_rss_bytes(r->settings->pids[i]);
    if (sum > r->stats.router_rss_bytes_max)
        r->stats.router_rss_bytes_max = sum;
}

/* Rewrites a line on a terminal; elsewhere prints a line every ten seconds. */
static void progress(struct run *r)
{
    uint64_t now = uv_hrtime();
    bool terminal = isatty(STDERR_FILENO) != 0;
    if (r->settings->quiet || (!terminal && (double)(now - r->last_line_ns) / 1e9 < LINE_S))
        return;
    r->last_line_ns = now;
    char of[32] = "";
    if (r->expected > 0)
        (void)snprintf(of, sizeof of, "/%zu", r->expected);
    const struct stats *s = &r->stats;
    (void)fprintf(stderr,
                  "%s  %s: %" PRIu64
                  "%s requests, %zu under way, %.1f %% cached, first token %.2f s, "
                  "%" PRIu64 " failed, %.0f s%s",
                  terminal ? "\r\033[K" : "", s->label, s->ok + s->failed, of, r->in_flight,
                  100 * stats_cached_share(s), samples_mean(&s->ttft) * s->speed_up, s->failed,
                  (double)(now - r->start_ns) / 1e9, terminal ? "" : "\n");
    (void)fflush(stderr);
}

static void on_tick(uv_timer_t *timer)
{
    struct run *r = timer->data;
    client_sweep(&r->client);
    memory_look(r);
    progress(r);
    double trace_s = (double)(uv_hrtime() - r->start_ns) / 1e9 * r->settings->speed_up;
    if (r->settings->duration_max_s > 0 && trace_s >= r->settings->duration_max_s)
        run_stop(r, NULL);
}

void run_start(struct run *r)
{
    r->tick.data = r;
    CHECK(uv_timer_start(&r->tick, on_tick, TICK_MS, TICK_MS) == 0);
    r->cpu_start_us = cpu_us(r->settings);
    r->start_ns = r->last_line_ns = uv_hrtime();
}

bool run_begin(struct run *r, struct exchange *ex)
{
    if (r->stopping || (r->settings->requests_max > 0 && r->started >= r->settings->requests_max)) {
        r->stopping = true;
        return false;
    }
    r->started++;
    r->in_flight++;
    for (unsigned i = 0; i < ex->body_count; i++)
        r->stats.body_bytes += ex->body[i].len;
    return true;
}

void run_end(struct run *r, struct exchange *ex)
{
    struct stats *s = &r->stats;
    r->in_flight--;
    if (ex->failure[0] != '\0') {
        s->failed++;
        tally_add(&s->errors, ex->failure, 0);
        if (s->ok == 0 && s->failed >= HOPELESS)
            run_stop(r, "stopped: the first hundred requests failed, all of them");
        return;
    }
    const struct answer *a = &ex->answer;
    double total_s = (double)(ex->end_ns - ex->start_ns) / 1e9;
    s->ok++;
    s->without_usage += !a->usage;
    s->prompt_tokens += a->prompt_tokens;
    s->cached_tokens += a->cached_tokens;
    s->completion_tokens += a->completion_tokens;
    samples_add(&s->total, total_s);
    if (a->stream && ex->first_ns != 0) {
        samples_add(&s->ttft, (double)(ex->first_ns - ex->start_ns) / 1e9);
        if (a->completion_tokens > 1)
            samples_add(&s->per_token, (double)(ex->end_ns - ex->first_ns) / 1e9 /
                                           (double)(a->completion_tokens - 1));
    }
    tally_add(&s->replicas, ex->replica, a->prompt_tokens);
}

void run_stop(struct run *r, const char *why)
{
    r->stopping = true;
    if (why != NULL && r->why[0] == '\0')
        (void)snprintf(r->why, sizeof r->why, "%s", why);
}

void run_finish(struct run *r)
{
    r->stats.elapsed_s = (double)(uv_hrtime() - r->start_ns) / 1e9;
    r->stats.router_cpu_us = cpu_us(r->settings) - r->cpu_start_us;
    memory_look(r);
    (void)uv_timer_stop(&r->tick);
    uv_close((uv_handle_t *)&r->tick, NULL);
    client_close(&r->client);
    if (!r->settings->quiet && isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K");
}
