/* The daemon engine-sim: an engine on sockets. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/hash.h"
#include "tests/engine-sim/engine.h"
#include "tests/engine-sim/kv_sockets.h"
#include "tests/engine-sim/tcp.h"

/* Steps closer together than this share a wake-up: at a high speed-up the difference is not
 * visible, and each wake-up costs a write per stream. */
enum { TICK_NS = 200000 };

struct daemon {
    struct sim_engine engine;
    struct sim_tcp tcp;
    struct sim_kv_sockets *kv; /* NULL: publishes no KV events */
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_poll_t clock;
    int clock_fd;
    uint64_t due_ns; /* the clock's setting */
    uv_timer_t timer;
    uv_signal_t term;
    uv_signal_t interrupt;
    int journal_fd;
};

/* libuv's timers count in milliseconds; at a speed-up of 50 that would be 50 ms of the model. */
static void clock_set(struct daemon *d)
{
    struct itimerspec when = {.it_value = {0, 0}};
    uint64_t at_ns = sim_engine_due_ns(&d->engine);
    if (at_ns == d->due_ns)
        return;
    d->due_ns = at_ns;
    if (at_ns != UINT64_MAX) {
        uint64_t soonest_ns = uv_hrtime() + TICK_NS;
        if (at_ns < soonest_ns)
            at_ns = soonest_ns;
        when.it_value.tv_sec = (time_t)(at_ns / 1000000000u);
        when.it_value.tv_nsec = (long)(at_ns % 1000000000u);
    }
    CHECK(timerfd_settime(d->clock_fd, TFD_TIMER_ABSTIME, &when, NULL) == 0);
}

static void on_clock(uv_poll_t *clock, int status, int events)
{
    struct daemon *d = clock->data;
    uint64_t count;
    (void)status;
    (void)events;
    if (read(d->clock_fd, &count, sizeof count) != sizeof count)
        return;
    d->due_ns = 0;
    sim_engine_run(&d->engine);
}

static void on_dying(uv_timer_t *timer)
{
    struct daemon *d = timer->data;
    if (sim_engine_over(&d->engine))
        uv_stop(d->loop);
}

/* Like SIGSTOP: the kernel accepts connections and bytes, nothing is answered or computed. Unlike
 * with SIGSTOP, a signal ends the pause. */
static void pause_take(struct sim_engine *e)
{
    double rate = e->rate;
    struct timespec left = {(time_t)(e->pause_ns / 1000000000u), (long)(e->pause_ns % 1000000000u)};
    if (e->pause_ns == 0)
        return;
    e->pause_ns = 0;
    sim_engine_rate(e, 0);
    (void)nanosleep(&left, NULL);
    sim_engine_rate(e, rate);
}

/* Once per iteration of the loop, before it sleeps. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct daemon *d = prepare->data;
    pause_take(&d->engine);
    bool dead = d->engine.dead;
    clock_set(d);
    if ((dead || d->engine.terminating) && !uv_is_active((uv_handle_t *)&d->timer))
        (void)uv_timer_start(&d->timer, on_dying, dead ? 1 : 50, dead ? 5 : 20);
}

/* The first signal follows --on-term, the second ends the process at once. */
static void on_signal(uv_signal_t *signal, int number)
{
    struct daemon *d = signal->data;
    struct sim_engine *e = &d->engine;
    if (number == SIGINT || e->terminating || e->options.on_term == SIM_TERM_EXIT) {
        uv_stop(d->loop);
        return;
    }
    sim_engine_terminate(e);
}

static void announce(struct daemon *d)
{
    int err = sim_tcp_listen(&d->tcp);
    if (err != 0) {
        (void)fprintf(stderr, "engine-sim: --listen %s:%u: %s\n", d->tcp.host, d->tcp.port,
                      uv_strerror(err));
        exit(1);
    }
    printf("listening on http://%s:%u\n", d->tcp.host, d->tcp.port);
    if (d->kv != NULL) {
        const struct sim_kv_config *kv = sim_publisher_config(d->engine.kv);
        if (kv->connect != NULL)
            printf("KV events to %s", kv->connect);
        else
            printf("KV events at tcp://%s:%u", d->tcp.host, kv->port);
        if (kv->answers_again)
            printf(", and again at tcp://%s:%u", d->tcp.host, kv->again);
        printf("\n");
    }
    (void)fflush(stdout);
}

static void on_start(uv_timer_t *timer)
{
    announce(timer->data);
}

/* A write() per line: written lines stay in the file, however the process ends. */
static void on_line(void *context, struct slice line)
{
    struct daemon *d = context;
    if (write(d->journal_fd, line.at, line.len) != (ssize_t)line.len) {
        perror("engine-sim: --journal");
        exit(1);
    }
}

/* Numbers continue over restarts: a line has at least a byte, so a file has fewer lines than bytes.
 */
static void journal_open(struct daemon *d)
{
    const char *path = d->engine.options.journal;
    struct sim_journal *j = &d->engine.server.journal;
    if (path == NULL)
        return;
    d->journal_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    off_t size = d->journal_fd < 0 ? -1 : lseek(d->journal_fd, 0, SEEK_END);
    if (size < 0) {
        (void)fprintf(stderr, "engine-sim: --journal ");
        perror(path);
        exit(1);
    }
    *j = (struct sim_journal){.write = on_line,
                              .context = d,
                              .last = (uint64_t)size,
                              .fingerprint = !d->engine.options.sglang};
    sim_journal_event(j, uv_hrtime(), "begin");
}

static void daemon_init(struct daemon *d)
{
    d->loop = uv_default_loop();
    sim_tcp_init(&d->tcp, d->loop, &d->engine.server);
    sim_engine_init(&d->engine,
                    hash_mix(uv_hrtime() ^ ((uint64_t)getpid() << 40) ^ d->engine.options.seed));
    d->clock_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    CHECK(d->clock_fd >= 0 && uv_poll_init(d->loop, &d->clock, d->clock_fd) == 0);
    CHECK(uv_prepare_init(d->loop, &d->prepare) == 0 && uv_timer_init(d->loop, &d->timer) == 0);
    CHECK(uv_signal_init(d->loop, &d->term) == 0 && uv_signal_init(d->loop, &d->interrupt) == 0);
    d->clock.data = d->prepare.data = d->timer.data = d->term.data = d->interrupt.data = d;
    uv_unref((uv_handle_t *)&d->timer);
    (void)uv_poll_start(&d->clock, UV_READABLE, on_clock);
    (void)uv_prepare_start(&d->prepare, on_prepare);
    (void)uv_signal_start(&d->term, on_signal, SIGTERM);
    (void)uv_signal_start(&d->interrupt, on_signal, SIGINT);
}

int main(int argc, char **argv)
{
    static struct daemon daemon;
    struct daemon *d = &daemon;
    struct sim_options *o = &d->engine.options;
    int stop = sim_options_parse(o, argc, argv);
    if (stop != 0)
        return stop > 0 ? 0 : 2;
    (void)signal(SIGPIPE, SIG_IGN);
    daemon_init(d);
    journal_open(d);
    int err = sim_tcp_bind(&d->tcp, o->host, (unsigned)o->port);
    if (err != 0) {
        (void)fprintf(stderr, "engine-sim: --listen %s:%lu: %s\n", o->host, o->port,
                      uv_strerror(err));
        return 1;
    }
    err = d->engine.kv == NULL ? 0 : sim_kv_sockets_open(&d->kv, d->loop, d->engine.kv, o->host);
    if (err != 0) {
        (void)fprintf(stderr, "engine-sim: --kv-events-port: %s\n", strerror(err));
        return 1;
    }
    if (o->start_delay_s > 0)
        (void)uv_timer_start(&d->timer, on_start, (uint64_t)(o->start_delay_s * 1000), 0);
    else
        announce(d);
    (void)uv_run(d->loop, UV_RUN_DEFAULT);
    int status = d->engine.dead ? 1 : 0;
    (void)uv_prepare_stop(&d->prepare); /* the engine is gone */
    (void)uv_poll_stop(&d->clock);
    (void)uv_timer_stop(&d->timer);
    sim_kv_sockets_close(d->kv);
    sim_engine_free(&d->engine);
    (void)uv_run(d->loop, UV_RUN_NOWAIT);
    (void)close(d->clock_fd);
    return status;
}
