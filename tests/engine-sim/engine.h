/* One simulated engine: the server, the model of its time and cache, and the requests inside.
 *
 *   routes.c    which path is answered by whom
 *   job.c       one request for output, from its body to its last token
 *   form_*.c    how each API words an answer, whole or streamed
 *   store.c     answers of /v1/responses that can be asked for again
 *   metrics.c   what /metrics says
 *   control.c   failures on demand
 */
#ifndef TESTS_ENGINE_SIM_ENGINE_H
#define TESTS_ENGINE_SIM_ENGINE_H

#include <uv.h>

#include "base/buf.h"
#include "tests/engine-sim/ask.h"
#include "tests/engine-sim/http.h"
#include "tests/engine-sim/model.h"
#include "tests/engine-sim/options.h"

#define SIM_JSON        "application/json"
#define SIM_TEXT        "text/plain; charset=utf-8"
#define SIM_SSE         "text/event-stream; charset=utf-8"
#define SIM_FINGERPRINT "vllm-0.32.0-39c297dc"

enum sim_fail_mode {
    SIM_FAIL_NONE,
    SIM_FAIL_REFUSE,
    SIM_FAIL_HANG,
    SIM_FAIL_RESET,
    SIM_FAIL_500,
    SIM_FAIL_503,
    SIM_FAIL_SLOW,
};

struct sim_fail {
    enum sim_fail_mode mode;
    uint64_t after_chunks;
    uint64_t count; /* requests that it still hits */
    uint64_t delay_ms;
    bool health;
};

struct sim_tally {
    uint64_t requests;    /* for output */
    uint64_t finished[2]; /* by stop, by length */
    uint64_t aborted;
    double ttft_s_sum;
    uint64_t ttft_count;
    double e2e_s_sum;
    uint64_t e2e_count;
};

struct sim_job;
struct sim_stored;

struct sim_engine {
    struct sim_options options;
    uv_loop_t *loop;
    struct sim_server server;
    struct sim_model *model;
    uint64_t t0_ns;
    double start_time_s; /* Unix */
    uv_poll_t clock;
    int clock_fd;
    bool pumping;
    uint64_t id_state;
    struct sim_job *jobs;
    struct sim_stored *stored; /* newest first */
    unsigned stored_count;
    struct sim_tally tally;
    struct sim_fail fail;
    uv_timer_t fail_timer;
    uv_timer_t start_timer;
    bool terminating;
    struct buf last_head; /* of the last request for output, under --control */
    struct buf last_body;
};

/* --- putting text together (text_out.c); these never fail ------------------------------------ */

void sim_put(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes; without them; null if it has no address. */
void sim_put_json(struct buf *out, struct slice text);
void sim_put_json_inside(struct buf *out, struct slice text);

/* --- time ------------------------------------------------------------------------------------ */

uint64_t sim_now_ns(const struct sim_engine *e);
/* Lets the model catch up with the clock, passes on what it made, sets the clock for the next. */
void sim_engine_pump(struct sim_engine *e);
uint64_t sim_engine_id(struct sim_engine *e);

/* --- answers --------------------------------------------------------------------------------- */

void sim_answer_json(struct sim_conn *c, unsigned status, const struct buf *body);
/* The engine's error body. `type` NULL: what fits the status. `param` NULL: null. */
void sim_answer_error(struct sim_engine *e, struct sim_conn *c, unsigned status, const char *type,
                      const char *param, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

void sim_route(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* Whether the model is served; answers 404 if not. */
bool sim_model_served(struct sim_engine *e, struct sim_conn *c, struct slice model);

void sim_metrics_write(const struct sim_engine *e, struct buf *out);

/* --- control --------------------------------------------------------------------------------- */

void sim_control_fail(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_restart(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_stats(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_last(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* Whether a failure hits this request; counts it. */
struct sim_fail sim_fail_take(struct sim_engine *e);

#endif
