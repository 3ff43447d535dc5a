/* A request for output: read (job_begin.c), checked (job_check.c), submitted to the model of a
 * rank, and answered piece by piece as tokens come (job.c). */
#ifndef TESTS_ENGINE_SIM_JOB_H
#define TESTS_ENGINE_SIM_JOB_H

#include "tests/engine-sim/engine.h"

enum { SIM_ID_BYTES = 128 };

struct sim_job;

/* An API's form of answers. Each function appends to `out`, and the caller sends the text at
 * once. */
struct sim_form {
    const char *name;
    const char *id_prefix;
    const struct sim_form *sglang;                       /* SGLang's form if it differs, or NULL */
    bool output_bounded_at_16;                           /* default limit of 16 output tokens, for
                                                          * /v1/completions */
    void (*begin)(struct sim_job *job, struct buf *out); /* before any token */
    void (*piece)(struct sim_job *job, struct slice text, struct buf *out);
    void (*end)(struct sim_job *job, struct buf *out);   /* after the last piece */
    void (*whole)(struct sim_job *job, struct buf *out); /* for an answer without a stream */
};

extern const struct sim_form sim_form_chat;
extern const struct sim_form sim_form_completions;
extern const struct sim_form sim_form_messages;
extern const struct sim_form sim_form_responses;
extern const struct sim_form sim_form_generate; /* SGLang's native API */
extern const struct sim_form sim_sglang_chat;
extern const struct sim_form sim_sglang_completions;

/* A tool call: an event's part of the call, the whole call. */
void sim_put_tool_delta(const struct sim_job *job, struct slice text, struct buf *out);
void sim_put_tool_calls(const struct sim_job *job, struct buf *out);

struct sim_job {
    struct sim_request request; /* first */
    struct sim_engine *engine;
    struct sim_conn *conn; /* NULL: in the background */
    const struct sim_form *form;
    const struct sim_form *words; /* words of `form`, or of form->sglang */
    struct sim_job *prev;
    struct sim_job *next;
    char id[SIM_ID_BYTES];
    char model[256];
    char tool[128]; /* tool to call; empty: the answer is plain text */
    char previous[SIM_ID_BYTES];
    uint64_t number; /* makes ids of parts */
    int64_t created_s;
    int64_t max_tokens; /* -1: not given */
    int rank;           /* pinned rank, or SIM_RANK_ANY */
    uint64_t submitted_ns;
    uint64_t chunks;
    uint32_t emitted; /* tokens in the answer so far */
    unsigned events;  /* events in a Responses stream so far */
    bool stream;
    bool include_usage;
    bool token_ids; /* the answer contains token ids */
    bool store;
    bool length_ends_it; /* finish reason `length` */
    bool submitted;
    bool aborted; /* by the engine, with the finish reason `abort` */
    bool begun;   /* the stream's head was sent */
    bool silent;  /* sends nothing more, by a failure */
    struct sim_fail fail;
    bool delayed;   /* waits until delayed_until_ns, by a failure or because abandoned */
    bool abandoned; /* the client is gone, which the engine notices after the delay */
    uint64_t delayed_until_ns;
    char orca;            /* T or J: a header reports the load */
    struct buf text;      /* the output so far */
    size_t told;          /* bytes of `text` in the stream */
    uint32_t told_tokens; /* tokens in the stream */
    uint64_t hold_ns;     /* time to hold back text (UINT64_MAX: to the end); 0: no longer */
    uint64_t hold_after;  /* number of pieces before `hold_ns` begins */
    uint64_t hold_until_ns;
    uint64_t wrote_ns; /* when the stream last had bytes */
};

void sim_job_begin(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   struct slice body);
/* Checks of a request. Each returns false, after answering, for an error. */
bool sim_ask_check(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   const struct sim_ask *a);
bool sim_length_check(struct sim_engine *e, struct sim_conn *c, const struct sim_job *job);
/* Also sets job->rank. */
bool sim_rank_check(struct sim_job *job, const struct sim_ask *a);

/* False: the queue was full. Afterwards the job may be over, and gone. */
bool sim_job_submit(struct sim_job *job);
/* Writes events into the job's stream, in the framing of the options. */
void sim_job_write(struct sim_job *job, struct slice events);
/* Gives the job to the model after this delay. */
void sim_job_delay(struct sim_job *job, uint64_t delay_ms);
/* The job must not be in the model. */
void sim_job_free(struct sim_job *job);
/* The model made progress. */
void sim_job_progress(struct sim_job *job);
/* The client is gone. */
void sim_job_abort(struct sim_job *job);
/* The client is gone. If the answer is not a stream, SGLang notices this 2.8 s later. */
void sim_job_abandon(struct sim_job *job);

/* Sends 1xx heads, by the options or by a failure (early.c). */
void sim_interim_heads(const struct sim_engine *e, struct sim_conn *c);
uint64_t sim_interim_due_ns(const struct sim_engine *e);
void sim_interim_run(struct sim_engine *e, uint64_t now_ns);

/* A job with an elapsed delay; NULL: none. sim_job_go_on() continues the job. */
struct sim_job *sim_job_delayed(const struct sim_engine *e, uint64_t now_ns);
void sim_job_go_on(struct sim_job *job);

/* Ends the job with an error: by an event if the stream has begun, by a status if not. The job is
 * gone. */
void sim_job_fail(struct sim_job *job, unsigned status, const char *text);

/* Errors (form_error.c): as the last events of a stream; for a full queue; for a value rejected by
 * SGLang. */
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

/* --- a replica with another setup (reject.c) -------------------------------------------------- */

enum sim_reject sim_reject_of(const struct sim_engine *e, enum sim_fail_mode mode);
/* True if the engine rejects the request, which is then answered. */
bool sim_rejected(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                  const struct sim_ask *a, enum sim_reject reject);

/* Helpers of the forms. */
/* Appends the ids `from` to `to` of prompt and answer; null if the client did not ask for ids. */
void sim_put_token_ids(const struct sim_job *job, uint64_t from, uint64_t to, struct buf *out);
const char *sim_job_finish_reason(const struct sim_job *job);
uint64_t sim_job_completion_tokens(const struct sim_job *job);
/* The prompt's cached tokens, as in the answer's usage: --usage-cached. */
uint64_t sim_job_cached_tokens(const struct sim_job *job);

/* --- stored responses (store.c) --------------------------------------------------------------- */

enum { SIM_STORED_MAX = 1000 };

/* Stores the job's answer under the job's id (queued or in progress until complete). */
void sim_store_put(struct sim_job *job, const char *status);
/* Adds a stored answer's tokens to the chain. ERR_NOT_FOUND. */
int sim_store_chain(struct sim_engine *e, struct slice id, struct sim_chain *chain);
void sim_store_answer(struct sim_engine *e, struct sim_conn *c, struct slice id);
void sim_store_cancel(struct sim_engine *e, struct sim_conn *c, struct slice id);
void sim_store_clear(struct sim_engine *e);

/* The object of the Responses API. */
void sim_response_write(const struct sim_job *job, const char *status, struct buf *out);
/* The status at the end of the answer. */
const char *sim_response_status(const struct sim_job *job);

#endif
