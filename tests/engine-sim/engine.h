/* One simulated engine: the server, the schedulers of its ranks (ranks.h), and the requests inside.
 * Pure: a carrier (http.h) brings bytes and clocks, and calls sim_engine_run() when it is due. The
 * daemon engine-sim is one on sockets, the simulation (tests/sim) has several in one process.
 *
 *   engine.c    life, time
 *   routes.c    which path is answered by whom
 *   job_begin.c one request for output, from its body to the scheduler of a rank
 *   job_check.c what is wrong with it
 *   job.c       from there to its last token
 *   form_*.c    how each API words an answer, whole or streamed, and errors
 *   store.c     answers of /v1/responses that can be asked for again
 *   metrics.c   what /metrics says
 *   publish.c   how coarse that is
 *   framing.c   how the bytes of answers are framed
 *   early.c     a status before the body is read, 1xx heads
 *   reject.c    what a replica refuses that is set up otherwise than its peers
 *   control.c   failures on demand
 *   steer.c     sleep, and resets of its cache
 *   set.c       what changes while it runs: its lists, its key, its context length
 *   kv_*.c      what it publishes of its caches (kv_publisher.h), what it says of that
 *   death.c     how an engine dies: told to, killed, poisoned
 */
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
    SIM_FAIL_DRAINING, /* the 500 of a vLLM that shuts down */
    SIM_FAIL_FULL,     /* the queue is, in the engine's own words */
    SIM_FAIL_STUCK,    /* nothing is computed; everything else answers */
    SIM_FAIL_SLEEP,    /* the same, and the metrics say so */
    SIM_FAIL_CRAWL,    /* all is computed `factor` times slower */
    SIM_FAIL_ERROR,    /* an error event, or 500 */
    SIM_FAIL_END,      /* a well-formed end without the API's last event */
    SIM_FAIL_GARBAGE,  /* bytes that are no HTTP */
    SIM_FAIL_DIE,      /* the engine's inner process is killed, now (death.c) */
    SIM_FAIL_ABORT,    /* what is under way ends now, with the finish reason "abort" */
    SIM_FAIL_POISON,   /* by a request with `text` in its body */
    SIM_FAIL_SILENT,   /* a stream holds back its text for delay_ms */
    SIM_FAIL_PAUSE,    /* all of it, as by SIGSTOP */
    SIM_FAIL_FORGET,   /* its counters begin again at 0, now */
    SIM_FAIL_CONTEXT,  /* its context length is `tokens` */
    SIM_FAIL_401,
    SIM_FAIL_403,
    SIM_FAIL_404,
    SIM_FAIL_422,
    SIM_FAIL_NO_TEMPLATE,
    SIM_FAIL_NO_TOOL_PARSER,
    SIM_FAIL_EARLY,   /* `status` before the body is read, then the end of the connection */
    SIM_FAIL_INTERIM, /* 1xx heads without an end */
};

/* What /health says beside that. */
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
    uint64_t count; /* requests that it still hits */
    int rank;       /* of STUCK: it alone, or SIM_RANK_ANY: all */
    uint64_t delay_ms;
    double factor;
    uint64_t tokens;
    unsigned status; /* of EARLY */
    bool discards;   /* SLEEP: its weights are gone, too */
    bool health;     /* probes fail too */
    enum sim_health probes;
    uint64_t health_delay_ms;
    char poison[64];
};

/* Of one rank. */
struct sim_tally {
    uint64_t requests;    /* for output, that it took */
    uint64_t finished[2]; /* by stop, by length */
    uint64_t aborted;
    double ttft_s_sum;
    uint64_t ttft_count;
    double e2e_s_sum;
    uint64_t e2e_count;
};

/* What the metrics say of one rank. Real engines publish it with each step. */
struct sim_seen {
    uint32_t running;
    uint32_t waiting;
    uint64_t blocks_used;
    struct sim_counters counters;
    uint64_t ended_prompt_tokens; /* when the last answer ended */
    uint64_t ended_generation_tokens;
    double tokens_per_s;
};

/* What publish.c keeps of one rank. */
struct sim_published {
    struct sim_seen stood;   /* when it stood still */
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
    struct sim_publisher *kv; /* NULL: it publishes nothing of its caches */
    uint64_t t0_ns;
    uint64_t base_ns; /* the model's time when its rate last changed, at base_at_ns */
    uint64_t base_at_ns;
    double rate; /* of the model's time; 0: it stands */
    struct sim_published published[SIM_RANKS_MAX];
    double start_time_s; /* Unix */
    bool pumping;
    uint64_t id_state;
    struct sim_job *jobs;
    unsigned jobs_delayed;
    struct sim_stored *stored; /* newest first */
    unsigned stored_count;
    uint64_t requests; /* for output, whatever became of them */
    struct sim_tally tally[SIM_RANKS_MAX];
    struct sim_fail fail;
    uint64_t fail_until_ns; /* of the clock; UINT64_MAX: as long as it is wanted */
    bool terminating;
    uint64_t over_since_ns; /* nothing was under way, after SIGTERM */
    bool dead;              /* its inner process is (death.c), and */
    uint64_t exit_ns;       /* then the server ends */
    uint64_t pause_ns;      /* its carrier is to stop it for so long, now; then 0 again */
    uint64_t pause_due_ns;  /* the next pause of its own (UINT64_MAX: none), */
    uint64_t reset_due_ns;  /* and when its counters begin again */
    struct sim_set *set;    /* what was set while it ran; NULL: nothing */
    struct buf last_head;   /* of the last request for output, under --control */
    struct buf last_body;
    int last_rank; /* that took it, or SIM_RANK_ANY: none did */
};

/* --- putting text together (text_out.c); these never fail ------------------------------------ */

void sim_put(struct buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string with its quotes; without them; null if it has no address. */
void sim_put_json(struct buf *out, struct slice text);
void sim_put_json_inside(struct buf *out, struct slice text);

/* --- life (engine.c) ------------------------------------------------------------------------- */

/* Its options and the carrier of its server are set; `chance`: another one gives other ids. */
void sim_engine_init(struct sim_engine *e, uint64_t chance);
/* Aborts all requests and closes all connections. */
void sim_engine_free(struct sim_engine *e);
/* As if the process had died and come back: all connections are reset but one, and the cache is
 * empty. */
void sim_engine_anew(struct sim_engine *e, const struct sim_conn *but);

/* --- time ------------------------------------------------------------------------------------ */

/* The carrier's clock, and the model's. */
uint64_t sim_clock_ns(const struct sim_engine *e);
uint64_t sim_now_ns(const struct sim_engine *e);
/* When sim_engine_run() is to be called (of the clock; UINT64_MAX: when bytes come). */
uint64_t sim_engine_due_ns(const struct sim_engine *e);
void sim_engine_run(struct sim_engine *e);
/* Lets the model catch up with the clock, and passes on what it made. */
void sim_engine_pump(struct sim_engine *e);
uint64_t sim_engine_id(struct sim_engine *e);
/* The model goes on at this rate: 1 as always, 0.1 ten times slower, 0 not at all. */
void sim_engine_rate(struct sim_engine *e, double rate);

/* --- answers --------------------------------------------------------------------------------- */

void sim_answer_json(struct sim_conn *c, unsigned status, const struct buf *body);
/* The engine's error body. `type` NULL: what fits the status. `param` NULL: null. */
void sim_answer_error(struct sim_engine *e, struct sim_conn *c, unsigned status, const char *type,
                      const char *param, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

void sim_route(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* What its server does as soon as a head is there (http.h). */
bool sim_route_early(struct sim_engine *e, struct sim_conn *c);
/* The LoRA adapter that a request for this model wants; empty: none. */
struct slice sim_engine_adapter(const struct sim_engine *e, struct slice model);
/* Whether the model is served; answers 404 if not. */
bool sim_model_served(struct sim_engine *e, struct sim_conn *c, struct slice model);

/* What it does to a prompt before it looks it up. */
void sim_engine_rewrite(const struct sim_engine *e, struct sim_ask *a);
/* Its context length now. */
uint64_t sim_model_len(const struct sim_engine *e);

void sim_metrics_write(const struct sim_engine *e, struct buf *out);
/* As of the last step: an engine that stands still shows nothing of what came since. */
struct sim_seen sim_engine_seen(const struct sim_engine *e, unsigned rank);
/* It is about to stand still; time has passed; an answer of the rank ended; the counters begin
 * again at 0. */
void sim_published_stand(struct sim_engine *e);
void sim_published_step(struct sim_engine *e);
void sim_published_ended(struct sim_engine *e, unsigned rank);
void sim_published_forget(struct sim_engine *e);

/* --- KV events (kv_routes.c) ---------------------------------------------------------------- */

/* As the options say. */
void sim_kv_init(struct sim_engine *e);
/* Publishes what is due; `idle`: without waiting for a step. */
void sim_kv_step(struct sim_engine *e, bool idle);
/* vLLM: where its ranks publish. */
void sim_kv_sources(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* SGLang: the same, of /server_info. */
void sim_put_kv_events(const struct sim_engine *e, struct buf *out);
void sim_control_kv(struct sim_engine *e, struct sim_conn *c, struct slice body);

/* --- control --------------------------------------------------------------------------------- */

void sim_control_fail(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_set(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* Its lists from now on, names cut by commas; NULL: that one stays. */
void sim_engine_serve(struct sim_engine *e, const char *models, const char *adapters);
void sim_set_free(struct sim_engine *e);
void sim_control_restart(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_stats(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_control_last(struct sim_engine *e, struct sim_conn *c, struct slice body);
/* Whether a failure hits this request; counts it. */
struct sim_fail sim_fail_take(struct sim_engine *e);
/* A failure begins, for so long (0: until another one comes), in the place of the last; or ends. */
void sim_fail_begin(struct sim_engine *e, const struct sim_fail *fail, uint64_t for_ms);
void sim_fail_end(struct sim_engine *e);

/* --- steering (steer.c) ---------------------------------------------------------------------- */

void sim_reset_prefix_cache(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_flush_cache(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_sleep(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_wake_up(struct sim_engine *e, struct sim_conn *c, struct slice body);
void sim_is_sleeping(struct sim_engine *e, struct sim_conn *c, struct slice body);

/* --- death ----------------------------------------------------------------------------------- */

/* SIGTERM: it drains, or hangs, as its options say. */
void sim_engine_terminate(struct sim_engine *e);
/* Asked every few milliseconds from then on, and when it is dead: whether the process ends. */
bool sim_engine_over(struct sim_engine *e);
/* The engine's inner process is gone: vLLM says so and exits, SGLang is silent for 5.4 s. */
void sim_engine_die(struct sim_engine *e);
/* Ends all that is under way with the finish reason "abort", as vLLM does before it exits because
 * one of its ranks has died. */
void sim_engine_abort(struct sim_engine *e);
/* Whether /health says so. */
bool sim_engine_unwell(const struct sim_engine *e);
/* Whether the request kills the engine. */
bool sim_engine_poisoned(struct sim_engine *e, struct slice body, bool wrong_tokens);

#endif
