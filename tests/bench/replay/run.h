/* A run: settings, the client, the measurements, and the condition to stop.
 *
 * A run has two drivers: load.c replays a trace, fixed.c repeats bodies of equal size. Both call
 * run_begin() before each request and run_end() after the request, and run the loop until all is
 * done. */
#ifndef TESTS_BENCH_REPLAY_RUN_H
#define TESTS_BENCH_REPLAY_RUN_H

#include "base/prng.h"
#include "tests/bench/replay/client.h"
#include "tests/bench/replay/stats.h"
#include "tests/bench/replay/trace.h"

enum { RUN_PIDS = 32 };

struct settings {
    const char *targets[CLIENT_TARGETS];
    size_t target_count;
    const char *trace, *model, *label, *json;
    struct trace_options trace_options;
    size_t sessions, requests_max, connections, fixed_bytes;
    double duration_max_s, speed_up, timeout_s, ramp_s;
    bool stream, session_header, quiet;
    int pids[RUN_PIDS];
    size_t pid_count;
};

struct run {
    const struct settings *settings;
    uv_loop_t loop;
    struct client client;
    struct stats stats;
    struct prng random;
    uv_timer_t tick;
    uint64_t start_ns, last_line_ns;
    double cpu_start_us;
    size_t started, in_flight, expected; /* expected: requests of the whole run, 0 if unknown */
    bool stopping;
    char why[160]; /* reason of an early stop */
};

/* Prints a message on stderr and returns an error if a target is invalid. */
int run_init(struct run *r, const struct settings *settings);

/* Starts the clock. */
void run_start(struct run *r);

/* Counts another request and returns true if the request may start. After false nothing else starts
 * either. */
bool run_begin(struct run *r, struct exchange *ex);

/* Records a finished exchange. */
void run_end(struct run *r, struct exchange *ex);

/* No more requests; `why` may be NULL. The run ends when the requests under way have ended. */
void run_stop(struct run *r, const char *why);

/* Call when nothing is under way or will be: stops the clock and the timer. */
void run_finish(struct run *r);

/* Each returns 0, or an error after a message on stderr. */
int load_run(struct run *r);
int fixed_run(struct run *r);

#endif
