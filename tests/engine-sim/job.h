/* One request for output: read (job_begin.c), checked (job_check.c), submitted to the model of a
 * rank, and answered piece by piece as tokens come (job.c). */
#ifndef TESTS_ENGINE_SIM_JOB_H
#define TESTS_ENGINE_SIM_JOB_H

#include "tests/engine-sim/engine.h"

enum { SIM_ID_BYTES = 128 };

struct sim_job;

/* An API's form of answers. Each function appends to `out`, which is sent at once. */
struct sim_form {
    const char *name;
    const char *id_prefix;
    const struct sim_form *sglang;                       /* SGLang's form if it differs, or NULL */
    bool output_bounded_at_16;                           /* for /v1/completions */
    void (*begin)(struct sim_job *job, struct buf *out); /* before any token */
    void (*piece)(struct sim_job *job, struct slice text, struct buf *out);
    void (*end)(struct sim_job *job, struct buf *out);   /* after the last piece */
    void (*whole)(struct sim_job *job, struct buf *out); /* instead of all these */
};

extern const struct sim_form sim_form_chat;
extern const struct sim_form sim_form_completions;
extern const struct sim_form sim_form_messages;
extern const struct sim_form sim_form_responses;
extern const struct sim_form sim_form_generate; /* SGLang's own */
extern const struct sim_form sim_sglang_chat;
extern const struct sim_form sim_sglang_completions;

/* A tool call: one event's part of the call, the whole call. */
void sim_put_tool_delta(const struct sim_job *job, struct slice text, struct buf *out);
void sim_put_tool_calls(const struct sim_job *job, struct buf *out);

struct sim_job {
    struct sim_request request; /* first */
    struct sim_engine *engine;
    struct sim_conn *conn; /* NULL: in the background */
    const struct sim_form *form;
    const struct sim_form *words; /* the same, or SGLang's */
    struct sim_job *prev;
    struct sim_job *next;
    char id[SIM_ID_BYTES];
    char model[256];
    char tool[128]; /* to call; empty: plain text */
    char previous[SIM_ID_BYTES];
    uint64_t number; /* makes ids of parts */
    int64_t created_s;
    int64_t max_tokens; /* -1: not given */
    int rank;           /* pinned rank, or SIM_RANK_ANY */
    uint64_t submitted_ns;
    uint64_t chunks;
    uint32_t emitted; /* tokens */
    unsigned events;  /* of a Responses stream */
    bool stream;
    bool include_usage;
    bool token_ids; /* the answer has them */
    bool store;
    bool length_ends_it; /* finish reason `length` */
    bool submitted;
    bool aborted; /* by the engine: finish reason `abort` */
    bool begun;   /* the stream: its head has left */
    bool silent;  /* a failure keeps it from sending anything more */
    struct sim_fail fail;
    bool delayed;   /* a failure keeps it from the model until then; or it was abandoned, ... */
    bool abandoned; /* ... which is noticed then */
    uint64_t delayed_until_ns;
    char orca;            /* T or J: a header reports the load */
    struct buf text;      /* the output so far, */
    size_t told;          /* bytes of it that the stream has, */
    uint32_t told_tokens; /* and tokens */
    uint64_t hold_ns;    /* holds back its text for so long (UINT64_MAX: to the end); 0: no more, */
    uint64_t hold_after; /* after so many pieces, */
    uint64_t hold_until_ns;
    uint64_t wrote_ns; /* when the stream last had bytes */
};

void sim_job_begin(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   struct slice body);
/* Checks of a request. Each answers an error and returns false if it finds one. */
bool sim_ask_check(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   const struct sim_ask *a);
bool sim_length_check(struct sim_engine *e, struct sim_conn *c, const struct sim_job *job);
/* Sets job->rank too. */
bool sim_rank_check(struct sim_job *job, const struct sim_ask *a);

/* False: there was no room. Afterwards the job may be over, and gone. */
bool sim_job_submit(struct sim_job *job);
/* Events into its stream, framed as the options say. */
void sim_job_write(struct sim_job *job, struct slice events);
/* Keeps the job from the model for so long. */
void sim_job_delay(struct sim_job *job, uint64_t delay_ms);
/* The model must not have the job. */
void sim_job_free(struct sim_job *job);
/* The model made progress. */
void sim_job_progress(struct sim_job *job);
/* The client is gone. */
void sim_job_abort(struct sim_job *job);
/* The client is gone. SGLang notices that 2.8 s later where the answer is not streamed. */
void sim_job_abandon(struct sim_job *job);

/* 1xx heads: those that the options ask for, and those that a failure sends (early.c). */
void sim_interim_heads(const struct sim_engine *e, struct sim_conn *c);
uint64_t sim_interim_due_ns(const struct sim_engine *e);
void sim_interim_run(struct sim_engine *e, uint64_t now_ns);

/* A job after its delay; NULL: none. The job continues. */
struct sim_job *sim_job_delayed(const struct sim_engine *e, uint64_t now_ns);
void sim_job_go_on(struct sim_job *job);

/* Ends the job with an error: an event if the stream has begun, else a status. The job is gone. */
void sim_job_fail(struct sim_job *job, unsigned status, const char *text);

/* Errors (form_error.c): as the last events of a stream; for a full queue; for a value that SGLang
 * rejects. */
void sim_put_error_event(const struct sim_job *job, unsigned status, const char *text,
                         struct buf *out);
void sim_put_full_events(struct sim_job *job, struct buf *out);
void sim_answer_refused(struct sim_conn *c, const struct sim_job *job, const char *text);
void sim_answer_too_long(struct sim_conn *c, const struct sim_job *job, uint64_t tokens,
                         uint64_t most);
void sim_answer_full(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form);

/* --- how answers are framed (framing.c) ------------------------------------------------------- */

/* `how`: a set of enum sim_framing. */
void sim_frame(unsigned how, struct slice events, struct buf *out);
void sim_frame_begin(const struct sim_engine *e, struct sim_conn *c);
void sim_frame_write(const struct sim_engine *e, struct sim_conn *c, struct slice events);
uint64_t sim_ping_due_ns(const struct sim_engine *e);
void sim_ping_run(struct sim_engine *e, uint64_t now_ns);

/* --- a replica set up otherwise (reject.c) ---------------------------------------------------- */

enum sim_reject sim_reject_of(const struct sim_engine *e, enum sim_fail_mode mode);
/* True if the engine rejects the request, which is then answered. */
bool sim_rejected(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                  const struct sim_ask *a, enum sim_reject reject);

/* Helpers of the forms. */
/* `from` to `to` of the ids of its prompt and its answer; null if they are not asked for. */
void sim_put_token_ids(const struct sim_job *job, uint64_t from, uint64_t to, struct buf *out);
const char *sim_job_finish_reason(const struct sim_job *job);
uint64_t sim_job_completion_tokens(const struct sim_job *job);
/* Cached tokens of its prompt, as its usage reports them: --usage-cached. */
uint64_t sim_job_cached_tokens(const struct sim_job *job);

/* --- stored responses (store.c) ----------------------------------------------------------------
 */

enum { SIM_STORED_MAX = 1000 };

/* Stores the job's answer under its id (queued or in progress until complete). */
void sim_store_put(struct sim_job *job, const char *status);
/* Adds a stored answer's tokens to the chain. ERR_NOT_FOUND. */
int sim_store_chain(struct sim_engine *e, struct slice id, struct sim_chain *chain);
void sim_store_answer(struct sim_engine *e, struct sim_conn *c, struct slice id);
void sim_store_cancel(struct sim_engine *e, struct sim_conn *c, struct slice id);
void sim_store_clear(struct sim_engine *e);

/* The object of the Responses API. */
void sim_response_write(const struct sim_job *job, const char *status, struct buf *out);
/* The status of its end. */
const char *sim_response_status(const struct sim_job *job);

#endif
