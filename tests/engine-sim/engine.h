/* A simulated engine: the server, the schedulers of ranks (ranks.h), and the requests inside. Pure:
 * a carrier (http.h) brings bytes and clocks, and calls sim_engine_run() when due. The daemon
 * engine-sim is an engine on sockets; the simulation (tests/sim) has several in a process.
 *
 *   engine.c    life, time
 *   routes.c    the handler of each path
 *   job_begin.c a request for output, from the body to a rank's scheduler
 *   job_check.c errors of a request for output
 *   job.c       a request from the scheduler to the last token
 *   form_*.c    each API's form of an answer, whole or streamed, and of errors
 *   store.c     stored answers of /v1/responses
 *   metrics.c   the contents of /metrics
 *   publish.c   resolution of the metrics
 *   framing.c   framing of answers' bytes
 *   early.c     a status before the body is read, 1xx heads
 *   reject.c    rejections by a replica with another setup than its peers
 *   control.c   failures on demand
 *   steer.c     sleep, and resets of the cache
 *   set.c       settings at run time: lists, key, context length
 *   kv_*.c      published KV events (kv_publisher.h), and faults in them
 *   death.c     death by signal, by control, by a poisonous request */
#ifndef TESTS_ENGINE_SIM_ENGINE_H
#define TESTS_ENGINE_SIM_ENGINE_H

#include "base/buf.h"
#include "tests/engine-sim/ask.h"
#include "tests/engine-sim/http.h"
#include "tests/engine-sim/kv_publisher.h"
#include "tests/engine-sim/options.h"
#include "tests/engine-sim/ranks.h"

#define SIM_JSON        "application/json"
#define SIM_TEXT        "text/plain; charset=utf-8"
#define SIM_SSE         "text/event-stream; charset=utf-8"
#define SIM_CORE_DEAD   "EngineCore encountered an issue. See stack trace (above) for the root cause."
#define SIM_FINGERPRINT "vllm-0.32.0-39c297dc"

enum sim_fail_mode {
    SIM_FAIL_NONE,
    SIM_FAIL_REFUSE,
    SIM_FAIL_HANG,
    SIM_FAIL_RESET,
    SIM_FAIL_500,
    SIM_FAIL_503,
    SIM_FAIL_SLOW,
    SIM_FAIL_429,
    SIM_FAIL_DRAINING, /* the 500 of a vLLM during shutdown */
    SIM_FAIL_FULL,     /* the queue is full, in the engine's words */
    SIM_FAIL_STUCK,    /* computes nothing; paths without computation answer */
    SIM_FAIL_SLEEP,    /* computes nothing, and the metrics say so */
    SIM_FAIL_CRAWL,    /* all is computed `factor` times slower */
    SIM_FAIL_ERROR,    /* an error event, or 500 */
    SIM_FAIL_END,      /* a well-formed end without the API's last event */
    SIM_FAIL_GARBAGE,  /* bytes that are not HTTP */
    SIM_FAIL_DIE,      /* the engine's inner process is killed, now (death.c) */
    SIM_FAIL_ABORT,    /* ends all requests in flight now, with the finish reason "abort" */
    SIM_FAIL_POISON,   /* dies of a request with `poison` in the body */
    SIM_FAIL_SILENT,   /* a stream holds back text for delay_ms */
    SIM_FAIL_PAUSE,    /* pauses the whole process, as by SIGSTOP */
    SIM_FAIL_FORGET,   /* sets the counters to 0 now */
    SIM_FAIL_CONTEXT,  /* sets the context length to `tokens` */
    SIM_FAIL_401,
    SIM_FAIL_403,
    SIM_FAIL_404,
    SIM_FAIL_422,
    SIM_FAIL_NO_TEMPLATE,
    SIM_FAIL_NO_TOOL_PARSER,
    SIM_FAIL_EARLY,   /* `status` before the body is read, then the end of the connection */
    SIM_FAIL_INTERIM, /* 1xx heads without an end */
};

/* The status of /health during a failure. */
enum sim_health {
    SIM_HEALTH_AS_FAIL,
    SIM_HEALTH_OK,
    SIM_HEALTH_503,
    SIM_HEALTH_SLOW,
    SIM_HEALTH_HANG
};

struct sim_fail {
    enum sim_fail_mode mode;
    uint64_t after_chunks;
    uint64_t count; /* requests still to fail */
    int rank;       /* for STUCK: the rank; SIM_RANK_ANY: all */
    uint64_t delay_ms;
    double factor;
    uint64_t tokens;
    unsigned status; /* for EARLY */
    bool discards;   /* SLEEP: the weights are discarded, too */
    bool health;     /* probes fail too */
    enum sim_health probes;
    uint64_t health_delay_ms;
    char poison[64];
};

/* Per rank. */
struct sim_tally {
    uint64_t requests;    /* requests for output sent to the rank */
    uint64_t finished[2]; /* answers ended by stop, by length */
    uint64_t aborted;
    double ttft_s_sum;
    uint64_t ttft_count;
    double e2e_s_sum;
    uint64_t e2e_count;
};

/* A rank's figures for the metrics. Real engines publish them with each step. */
struct sim_seen {
    uint32_t running;
    uint32_t waiting;
    uint64_t blocks_used;
    struct sim_counters counters;
    uint64_t ended_prompt_tokens; /* prompt tokens when the last answer ended */
    uint64_t ended_generation_tokens;
    double tokens_per_s;
};

/* State of publish.c, per rank. */
struct sim_published {
    struct sim_seen stood;   /* when the rank came to a standstill */
    struct sim_seen stepped; /* at the last step that publishes */
    struct sim_counters ended;
    struct sim_counters forgotten;
    uint64_t window_ns, window_steps, window_tokens;
    double tokens_per_s;
};

struct sim_job;
struct sim_stored;

struct sim_engine {
    struct sim_options options;
    struct sim_server server;
    struct sim_ranks ranks;
    struct sim_publisher *kv; /* NULL: publishes no KV events */
    uint64_t t0_ns;
    uint64_t base_ns; /* the model's time at the last change of `rate`, at base_at_ns */
    uint64_t base_at_ns;
    double rate; /* rate of the model's time; 0: standstill */
    struct sim_published published[SIM_RANKS_MAX];
    double start_time_s; /* Unix time */
    bool pumping;
    uint64_t id_state;
    struct sim_job *jobs;
    unsigned jobs_delayed;
    struct sim_stored *stored; /* newest first */
    unsigned stored_count;
    uint64_t requests; /* requests for output, whatever the result */
    struct sim_tally tally[SIM_RANKS_MAX];
    struct sim_fail fail;
    uint64_t fail_until_ns; /* by the carrier's clock; UINT64_MAX: no limit */
    bool terminating;
    uint64_t over_since_ns; /* since when no request was in flight, after SIGTERM */
    bool dead;              /* the inner process is dead (death.c) */
    uint64_t exit_ns;       /* time when the server ends, if `dead` */
    uint64_t pause_ns;      /* the carrier must stop the process now, for this time, and set 0 */
    uint64_t pause_due_ns;  /* time of the next pause by option; UINT64_MAX: none */
    uint64_t reset_due_ns;  /* time of the next reset of the counters */
    struct sim_set *set;    /* settings made at run time; NULL: none */
    struct buf last_head;   /* head of the last request for output, with --control */
    struct buf last_body;
    int last_rank; /* the last request's rank, or SIM_RANK_ANY: none */
};

/* --- writing text (text_out.c); these never fail --------------------------------------------- */

void sim_put(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a JSON string: in quotes; without quotes; in quotes, or null for a slice at NULL. */
void sim_put_json(struct buf *out, struct slice text);
void sim_put_json_inside(struct buf *out, struct slice text);

/* --- life (engine.c) ------------------------------------------------------------------------- */

/* The caller has set the options and the server's carrier. Ids depend on `chance`. */
void sim_engine_init(struct sim_engine *e, uint64_t chance);
/* Aborts all requests and closes all connections. */
void sim_engine_free(struct sim_engine *e);
/* As if the process had restarted: resets all connections except `but`, and empties the cache. */
void sim_engine_anew(struct sim_engine *e, const struct sim_conn *but);

/* --- time ------------------------------------------------------------------------------------ */

/* The carrier's clock, and the model's. */
uint64_t sim_clock_ns(const struct sim_engine *e);
uint64_t sim_now_ns(const struct sim_engine *e);
/* When to call sim_engine_run(), by the carrier's clock; UINT64_MAX: when bytes come. */
uint64_t sim_engine_due_ns(const struct sim_engine *e);
void sim_engine_run(struct sim_engine *e);
/* Advances the model to the clock, and sends the output. */
void sim_engine_pump(struct sim_engine *e);
uint64_t sim_engine_id(struct sim_engine *e);
/* Sets the rate of the model's time: 1 normal, 0.1 ten times slower, 0 standstill. */
void sim_engine_rate(struct sim_engine *e, double rate);

/* --- answers --------------------------------------------------------------------------------- */

void sim_answer_json(struct sim_conn *c, unsigned status, const struct buf *body);
/* The engine's error body. `type` NULL: the status's usual type. `param` NULL: null. */
void sim_answer_error(struct sim_engine *e, struct sim_conn *c, unsigned status, const char *type,
                      const char *param, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

void sim_route(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* The server's action as soon as a head is complete (http.h). */
bool sim_route_early(struct sim_engine *e, struct sim_conn *c);
/* The LoRA adapter for requests for this model; empty: none. */
struct slice sim_engine_adapter(const struct sim_engine *e, struct slice model);
/* True if the model is served; otherwise answers 404. */
bool sim_model_served(struct sim_engine *e, struct sim_conn *c, struct slice model);

/* Applies the engine's changes to a prompt before the look-up. */
void sim_engine_rewrite(const struct sim_engine *e, struct sim_ask *a);
/* The present context length. */
uint64_t sim_model_len(const struct sim_engine *e);

void sim_metrics_write(const struct sim_engine *e, struct buf *out);
/* Figures as of the last step: an engine at a standstill shows no later figures. */
struct sim_seen sim_engine_seen(const struct sim_engine *e, unsigned rank);
/* Events: a standstill begins; time has passed; an answer of the rank ended; the counters begin
 * again at 0. */
void sim_published_stand(struct sim_engine *e);
void sim_published_step(struct sim_engine *e);
void sim_published_ended(struct sim_engine *e, unsigned rank);
void sim_published_forget(struct sim_engine *e);

/* --- KV events (kv_routes.c) ---------------------------------------------------------------- */

/* Creates the publisher, by the options. */
void sim_kv_init(struct sim_engine *e);
/* Publishes the events due; `idle`: without waiting for a step. */
void sim_kv_step(struct sim_engine *e, bool idle);
/* vLLM: answers with the addresses where ranks publish. */
void sim_kv_sources(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* SGLang: appends these addresses, for /server_info. */
void sim_put_kv_events(const struct sim_engine *e, struct buf *out);
void sim_control_kv(struct sim_engine *e, struct sim_conn *c, struct slice body);

/* --- control --------------------------------------------------------------------------------- */

void sim_control_fail(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_set(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* Sets the lists from now on: names separated by commas; NULL: unchanged. */
void sim_engine_serve(struct sim_engine *e, const char *models, const char *adapters);
void sim_set_free(struct sim_engine *e);
void sim_control_restart(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_stats(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_last(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* The failure to apply to this request, if any; counts the request. */
struct sim_fail sim_fail_take(struct sim_engine *e);
/* Begins a failure in place of the last, for this time (0: until the next); or ends the failure. */
void sim_fail_begin(struct sim_engine *e, const struct sim_fail *fail, uint64_t for_ms);
void sim_fail_end(struct sim_engine *e);

/* --- steering (steer.c) ---------------------------------------------------------------------- */

void sim_reset_prefix_cache(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_flush_cache(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_sleep(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_wake_up(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_is_sleeping(struct sim_engine *e, struct sim_conn *c, struct slice body);

/* --- death ----------------------------------------------------------------------------------- */

/* SIGTERM: drains or hangs, by the options. */
void sim_engine_terminate(struct sim_engine *e);
/* True if the process ends. Called every few milliseconds after SIGTERM, and while the engine is
 * dead. */
bool sim_engine_over(struct sim_engine *e);
/* The engine's inner process dies: vLLM says so and exits, SGLang is silent for 5.4 s. */
void sim_engine_die(struct sim_engine *e);
/* Ends all requests in flight with the finish reason "abort", as vLLM does before the exit after a
 * rank's death. */
void sim_engine_abort(struct sim_engine *e);
/* True if /health reports trouble. */
bool sim_engine_unwell(const struct sim_engine *e);
/* True if the request kills the engine. */
bool sim_engine_poisoned(struct sim_engine *e, struct slice body, bool wrong_tokens);

#endif
