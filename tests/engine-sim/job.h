/* One request for output: read (job_begin.c), checked (job_check.c), submitted to the model of a
 * rank, worded piece by piece as tokens come (job.c). */
#ifndef TESTS_ENGINE_SIM_JOB_H
#define TESTS_ENGINE_SIM_JOB_H

#include "tests/engine-sim/engine.h"

enum { SIM_ID_BYTES = 128 };

struct sim_job;

/* How an API words things. Each function appends to `out`, which is sent at once. */
struct sim_form {
    const char *name;
    const char *id_prefix;
    const struct sim_form *sglang;                       /* its words where they differ, or NULL */
    bool output_bounded_at_16;                           /* of /v1/completions */
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

/* A tool call: one event's part of it, all of it. */
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
    char tool[128]; /* to be called; empty: plain text */
    char previous[SIM_ID_BYTES];
    uint64_t number; /* makes ids of parts */
    int64_t created_s;
    int64_t max_tokens; /* -1: not given */
    int rank;           /* that it is pinned to, or SIM_RANK_ANY */
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
    bool silent;  /* a failure keeps it from saying anything more */
    struct sim_fail fail;
    bool delayed;   /* a failure keeps it from the model until then; or it was abandoned, ... */
    bool abandoned; /* ... which is noticed then */
    uint64_t delayed_until_ns;
    char orca;            /* T or J: a header reports the load */
    struct buf text;      /* the output so far, */
    size_t told;          /* and how much of it the stream has, */
    uint32_t told_tokens; /* and how many tokens */
    uint64_t hold_ns; /* it holds back its text for so long (UINT64_MAX: to the end); 0: no more, */
    uint64_t hold_after; /* after so many pieces, */
    uint64_t hold_until_ns;
    uint64_t wrote_ns; /* when the stream last had bytes */
};

void sim_job_begin(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   struct slice body);
/* What is wrong with it. Each one answers and returns false if something is. */
bool sim_ask_check(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   const struct sim_ask *a);
bool sim_length_check(struct sim_engine *e, struct sim_conn *c, const struct sim_job *job);
/* Sets job->rank too. */
bool sim_rank_check(struct sim_job *job, const struct sim_ask *a);

/* False: there was no room. Afterwards the job may be over, and gone. */
bool sim_job_submit(struct sim_job *job);
/* Events into its stream, framed as the options say. */
void sim_job_write(struct sim_job *job, struct slice events);
/* Keeps it from the model for so long. */
void sim_job_delay(struct sim_job *job, uint64_t delay_ms);
/* Nothing is under way for it. */
void sim_job_free(struct sim_job *job);
/* The model made progress. */
void sim_job_progress(struct sim_job *job);
/* Nobody wants it any more. */
void sim_job_abort(struct sim_job *job);
/* The client is gone. SGLang notices that 2.8 s later where the answer is not streamed. */
void sim_job_abandon(struct sim_job *job);

/* 1xx heads: those that the options ask for, and those that a failure sends (early.c). */
void sim_interim_heads(const struct sim_engine *e, struct sim_conn *c);
uint64_t sim_interim_due_ns(const struct sim_engine *e);
void sim_interim_run(struct sim_engine *e, uint64_t now_ns);

/* One whose delay is over; NULL: none. It goes on. */
struct sim_job *sim_job_delayed(const struct sim_engine *e, uint64_t now_ns);
void sim_job_go_on(struct sim_job *job);

/* Ends it with an error: an event where the stream has begun, a status before. The job is gone. */
void sim_job_fail(struct sim_job *job, unsigned status, const char *text);

/* How errors are worded (form_error.c): as the last events of a stream; where the queue is full;
 * where SGLang finds a value wrong. */
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
/* Whether it refuses the request; then it is answered. */
bool sim_rejected(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                  const struct sim_ask *a, enum sim_reject reject);

/* What words share. */
/* `from` to `to` of the ids of its prompt and its answer; null if they are not asked for. */
void sim_put_token_ids(const struct sim_job *job, uint64_t from, uint64_t to, struct buf *out);
const char *sim_job_finish_reason(const struct sim_job *job);
uint64_t sim_job_completion_tokens(const struct sim_job *job);
/* Of its prompt, from the cache, as its usage says: --usage-cached. */
uint64_t sim_job_cached_tokens(const struct sim_job *job);

/* --- stored responses (store.c) ----------------------------------------------------------------
 */

enum { SIM_STORED_MAX = 1000 };

/* Keeps the job's answer (queued or in progress while it has none), to be found by its id. */
void sim_store_put(struct sim_job *job, const char *status);
/* Adds what a former answer held to the chain. ERR_NOT_FOUND. */
int sim_store_chain(struct sim_engine *e, struct slice id, struct sim_chain *chain);
void sim_store_answer(struct sim_engine *e, struct sim_conn *c, struct slice id);
void sim_store_cancel(struct sim_engine *e, struct sim_conn *c, struct slice id);
void sim_store_clear(struct sim_engine *e);

/* The object of the Responses API. */
void sim_response_write(const struct sim_job *job, const char *status, struct buf *out);
/* How it ended. */
const char *sim_response_status(const struct sim_job *job);

#endif
