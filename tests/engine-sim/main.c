#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/engine-sim/job.h"

/* Steps that would come sooner after each other are taken together: at a high speed-up nobody can
 * tell them apart, and each wake-up costs a write per stream. */
enum { TICK_NS = 200000 };

uint64_t sim_now_ns(const struct sim_engine *e)
{
    return (uint64_t)((double)(uv_hrtime() - e->t0_ns) * e->options.speed_up);
}

uint64_t sim_engine_id(struct sim_engine *e)
{
    e->id_state += 0x9e3779b97f4a7c15u;
    return hash_mix(e->id_state);
}

/* libuv's timers count in milliseconds; at a speed-up of 50 that would be 50 ms of the model. */
static void clock_set(const struct sim_engine *e)
{
    struct itimerspec when = {.it_value = {0, 0}};
    uint64_t next_ns = sim_model_next_event_ns(e->model);
    if (next_ns != SIM_NEVER) {
        uint64_t at_ns = e->t0_ns + (uint64_t)((double)next_ns / e->options.speed_up) + 1000;
        uint64_t soonest_ns = uv_hrtime() + TICK_NS;
        if (at_ns < soonest_ns)
            at_ns = soonest_ns;
        when.it_value.tv_sec = (time_t)(at_ns / 1000000000u);
        when.it_value.tv_nsec = (long)(at_ns % 1000000000u);
    }
    CHECK(timerfd_settime(e->clock_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

void sim_engine_pump(struct sim_engine *e)
{
    struct sim_request *r;
    if (e->pumping)
        return;
    e->pumping = true;
    sim_model_advance(e->model, sim_now_ns(e));
    while ((r = sim_model_changed(e->model)) != NULL)
        sim_job_progress((struct sim_job *)r);
    e->pumping = false;
    clock_set(e);
}

static void on_clock(uv_poll_t *clock, int status, int events)
{
    struct sim_engine *e = clock->data;
    uint64_t count;
    (void)status;
    (void)events;
    if (read(e->clock_fd, &count, sizeof count) == sizeof count)
        sim_engine_pump(e);
}

static void on_request(void *context, struct sim_conn *conn, struct slice body)
{
    sim_route(context, conn, body);
}

static void on_gone(void *context, struct sim_conn *conn)
{
    (void)context;
    if (conn->job != NULL)
        sim_job_abort(conn->job);
}

/* After SIGTERM. A draining vLLM goes on accepting connections until its requests are done; one
 * that does not drain answers /health for a moment, then refuses, and lets its requests hang. */
static void on_dying(uv_timer_t *timer)
{
    struct sim_engine *e = timer->data;
    bool drain = e->options.on_term == SIM_TERM_DRAIN;
    if (!drain && e->server.bound)
        sim_server_refuse(&e->server);
    if (drain ? e->jobs == NULL : e->server.conn_count == 0)
        uv_stop(e->loop);
}

/* The first one does as --on-term says, the second one ends it at once. */
static void on_signal(uv_signal_t *signal, int number)
{
    struct sim_engine *e = signal->data;
    if (number == SIGINT || e->terminating || e->options.on_term == SIM_TERM_EXIT) {
        uv_stop(e->loop);
        return;
    }
    e->terminating = true;
    sim_server_close_idle(&e->server);
    if (e->options.on_term == SIM_TERM_HANG)
        for (struct sim_job *job = e->jobs; job != NULL; job = job->next)
            job->silent = true;
    (void)uv_timer_start(&e->start_timer, on_dying, 50, 20);
}

static void announce(struct sim_engine *e)
{
    int err = sim_server_listen(&e->server);
    if (err != 0) {
        (void)fprintf(stderr, "engine-sim: --listen %s: %s\n", e->server.address, uv_strerror(err));
        exit(1);
    }
    printf("listening on http://%s\n", e->server.address);
    (void)fflush(stdout);
}

static void on_start(uv_timer_t *timer)
{
    announce(timer->data);
}

static void timer_init(struct sim_engine *e, uv_timer_t *timer)
{
    CHECK(uv_timer_init(e->loop, timer) == 0);
    timer->data = e;
    uv_unref((uv_handle_t *)timer);
}

static void engine_init(struct sim_engine *e)
{
    struct timespec now;
    const struct sim_options *o = &e->options;
    const struct sim_model_config config = {
        .prefill_tokens_per_s = o->prefill_rate,
        .decode_base_ns = o->decode_base_ms * 1e6,
        .decode_context_token_ns = o->decode_ns_per_context_token,
        .prefill_chunk = (uint32_t)o->prefill_chunk,
        .running_max = (uint32_t)o->running_max,
        .queued_max = (uint32_t)o->queued_max,
        .block_tokens = (uint32_t)o->block_tokens,
        .cache_blocks = (uint32_t)(o->cache_tokens / o->block_tokens),
    };
    (void)clock_gettime(CLOCK_REALTIME, &now);
    e->loop = uv_default_loop();
    e->model = sim_model_create(&config);
    e->t0_ns = uv_hrtime();
    e->id_state = hash_mix(e->t0_ns ^ ((uint64_t)getpid() << 40) ^ o->seed);
    e->start_time_s = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    e->clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    CHECK(e->clock_fd >= 0 && uv_poll_init(e->loop, &e->clock, e->clock_fd) == 0);
    e->clock.data = e;
    (void)uv_poll_start(&e->clock, UV_READABLE, on_clock);
    timer_init(e, &e->fail_timer);
    timer_init(e, &e->start_timer);
    e->server.loop = e->loop;
    e->server.context = e;
    e->server.on_request = on_request;
    e->server.on_gone = on_gone;
}

static void engine_free(struct sim_engine *e)
{
    while (e->jobs != NULL)
        sim_job_abort(e->jobs);
    sim_store_clear(e);
    sim_model_destroy(e->model);
    buf_free(&e->last_head);
    buf_free(&e->last_body);
    while (e->server.conns != NULL)
        sim_conn_close(e->server.conns);
    if (e->server.bound)
        sim_server_refuse(&e->server);
    (void)uv_run(e->loop, UV_RUN_NOWAIT);
    (void)close(e->clock_fd);
}

int main(int argc, char **argv)
{
    static struct sim_engine engine;
    static uv_signal_t term;
    static uv_signal_t interrupt;
    struct sim_engine *e = &engine;
    int stop = sim_options_parse(&e->options, argc, argv);
    if (stop != 0)
        return stop > 0 ? 0 : 2;
    (void)signal(SIGPIPE, SIG_IGN);
    engine_init(e);
    int err = sim_server_bind(&e->server, e->options.host, (unsigned)e->options.port);
    if (err != 0) {
        (void)fprintf(stderr, "engine-sim: --listen %s:%lu: %s\n", e->options.host, e->options.port,
                      uv_strerror(err));
        return 1;
    }
    CHECK(uv_signal_init(e->loop, &term) == 0 && uv_signal_init(e->loop, &interrupt) == 0);
    term.data = interrupt.data = e;
    (void)uv_signal_start(&term, on_signal, SIGTERM);
    (void)uv_signal_start(&interrupt, on_signal, SIGINT);
    if (e->options.start_delay_s > 0)
        (void)uv_timer_start(&e->start_timer, on_start, (uint64_t)(e->options.start_delay_s * 1000),
                             0);
    else
        announce(e);
    (void)uv_run(e->loop, UV_RUN_DEFAULT);
    engine_free(e);
    return 0;
}
