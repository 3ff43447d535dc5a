#include "tests/engine-sim/job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/hash.h"

static void job_free(struct sim_job *job)
{
    struct sim_engine *e = job->engine;
    *(job->prev == NULL ? &e->jobs : &job->prev->next) = job->next;
    if (job->next != NULL)
        job->next->prev = job->prev;
    if (job->conn != NULL)
        job->conn->job = NULL;
    e->jobs_delayed -= job->delayed;
    sim_chain_free(&job->request.chain);
    free(job->request.blocks);
    buf_free(&job->text);
    free(job);
}

void sim_job_abort(struct sim_job *job)
{
    struct sim_engine *e = job->engine;
    if (job->submitted && job->request.state != SIM_DONE)
        e->tally.aborted++;
    if (job->submitted)
        sim_model_abort(e->model, &job->request, sim_now_ns(e));
    if (job->store && job->submitted)
        sim_store_put(job, "cancelled");
    job_free(job);
    sim_engine_pump(e);
}

enum { SGLANG_NOTICES_MS = 2800 };

static void job_delay(struct sim_job *job, uint64_t delay_ms)
{
    job->engine->jobs_delayed += !job->delayed;
    job->delayed = true;
    job->delayed_until_ns = sim_clock_ns(job->engine) + delay_ms * 1000000;
}

void sim_job_abandon(struct sim_job *job)
{
    const struct sim_options *o = &job->engine->options;
    if (!o->sglang || job->stream || !job->submitted) {
        sim_job_abort(job);
        return;
    }
    job->conn = NULL;
    job->abandoned = true;
    job_delay(job, (uint64_t)(SGLANG_NOTICES_MS / o->speed_up));
}

const char *sim_job_finish_reason(const struct sim_job *job)
{
    if (job->tool[0] != '\0')
        return "tool_calls";
    return job->length_ends_it ? "length" : "stop";
}

uint64_t sim_job_completion_tokens(const struct sim_job *job)
{
    return job->emitted;
}

/* --- progress -------------------------------------------------------------------------------- */

static double seconds_since(const struct sim_job *job)
{
    const struct sim_engine *e = job->engine;
    return (double)(sim_now_ns(e) - job->submitted_ns) / 1e9 / e->options.speed_up;
}

/* Takes the tokens that the model made into the text; returns the new part. */
static struct slice take_tokens(struct sim_job *job)
{
    size_t from = job->text.len;
    struct sim_tally *tally = &job->engine->tally;
    if (job->emitted == 0 && job->request.generated > 0) {
        tally->ttft_s_sum += seconds_since(job);
        tally->ttft_count++;
    }
    for (; job->emitted < job->request.generated; job->emitted++)
        CHECK(buf_append_slice(&job->text,
                               sim_output_token(job->request.output_seed, job->emitted)) == 0);
    return slice_skip(buf_slice(&job->text), from);
}

static void stream_begin(struct sim_job *job, struct buf *out)
{
    sim_http_stream_begin(job->conn, SIM_SSE);
    job->begun = true;
    job->words->begin(job, out);
}

void sim_job_fail(struct sim_job *job, unsigned status, const char *text)
{
    struct sim_engine *e = job->engine;
    struct sim_conn *conn = job->conn;
    struct buf out = {.at = NULL};
    bool begun = job->begun;
    if (begun)
        sim_put_error_event(job, status, text, &out);
    sim_job_abort(job);
    if (conn != NULL && begun) {
        sim_http_stream_write(conn, buf_slice(&out));
        sim_http_stream_end(conn);
    } else if (conn != NULL) {
        sim_answer_error(e, conn, status, NULL, NULL, "%s", text);
    }
    buf_free(&out);
}

/* A failure on demand that hits now. Returns whether the job must not go on; it may be gone. */
static bool fail_now(struct sim_job *job)
{
    struct sim_conn *conn = job->conn;
    bool begun = job->begun;
    bool due = !job->stream || job->chunks >= job->fail.after_chunks;
    if (!due || conn == NULL)
        return job->silent;
    switch (job->fail.mode) {
    case SIM_FAIL_HANG:
        job->silent = true;
        return true;
    case SIM_FAIL_ERROR:
        sim_job_fail(job, 500, "Injected failure");
        return true;
    case SIM_FAIL_RESET:
        sim_job_abort(job);
        sim_conn_reset(conn);
        return true;
    case SIM_FAIL_END:
        sim_job_abort(job);
        if (begun)
            sim_http_stream_end(conn);
        else
            sim_conn_close(conn);
        return true;
    case SIM_FAIL_GARBAGE:
        sim_job_abort(job);
        sim_http_garbage(conn);
        return true;
    default:
        return job->silent;
    }
}

static void orca_header(const struct sim_job *job, char *out, size_t size)
{
    const struct sim_engine *e = job->engine;
    const struct sim_cache *cache = sim_model_cache(e->model);
    double usage = (double)sim_cache_used(cache) / sim_cache_blocks(cache);
    double waiting = sim_model_waiting(e->model);
    out[0] = '\0';
    if (job->orca == 'T')
        (void)snprintf(out, size,
                       "endpoint-load-metrics: TEXT named_metrics.kv_cache_usage_perc=%g, "
                       "named_metrics.num_requests_waiting=%.1f\r\n",
                       usage, waiting);
    if (job->orca == 'J')
        (void)snprintf(out, size,
                       "endpoint-load-metrics: JSON {\"named_metrics\": {\"num_requests_waiting\": "
                       "%.1f, \"kv_cache_usage_perc\": %g}}\r\n",
                       waiting, usage);
}

static void job_finish(struct sim_job *job, struct buf *out)
{
    char orca[256];
    struct sim_engine *e = job->engine;
    struct sim_conn *conn = job->conn;
    bool stream = job->stream;
    e->tally.finished[job->length_ends_it]++;
    e->tally.e2e_s_sum += seconds_since(job);
    e->tally.e2e_count++;
    if (job->store)
        sim_store_put(job, job->length_ends_it ? "incomplete" : "completed");
    orca_header(job, orca, sizeof orca);
    job_free(job);
    if (conn == NULL)
        return;
    if (stream)
        sim_http_stream_end(conn);
    else
        sim_http_answer(conn, 200, SIM_JSON, buf_slice(out), orca);
}

void sim_job_progress(struct sim_job *job)
{
    struct buf out = {.at = NULL};
    bool done = job->request.state == SIM_DONE;
    struct slice text = take_tokens(job);
    if ((!job->stream && !done) || fail_now(job))
        return;
    if (job->stream) {
        if (!job->begun)
            stream_begin(job, &out);
        job->words->piece(job, text, &out);
        job->chunks++;
        if (done)
            job->words->end(job, &out);
        sim_http_stream_write(job->conn, buf_slice(&out));
    } else {
        job->words->whole(job, &out);
    }
    if (done)
        job_finish(job, &out);
    buf_free(&out);
}

/* --- beginning ------------------------------------------------------------------------------- */

/* There is no room. The job is gone afterwards. */
static void job_refuse(struct sim_job *job)
{
    struct sim_engine *e = job->engine;
    struct sim_conn *conn = job->conn;
    const struct sim_form *form = job->form;
    struct buf out = {.at = NULL};
    bool in_stream = job->stream && e->options.sglang;
    if (in_stream)
        sim_put_full_events(job, &out);
    job_free(job);
    if (conn != NULL && in_stream) {
        sim_http_stream_begin(conn, SIM_SSE);
        sim_http_stream_write(conn, buf_slice(&out));
        sim_http_stream_end(conn);
    } else if (conn != NULL) {
        sim_answer_full(e, conn, form);
    }
    buf_free(&out);
}

/* Returns false if there was no room. Afterwards the job may be over, and gone. */
static bool job_submit(struct sim_job *job)
{
    struct sim_engine *e = job->engine;
    job->submitted_ns = sim_now_ns(e);
    if (job->fail.mode == SIM_FAIL_FULL ||
        sim_model_submit(e->model, &job->request, job->submitted_ns) != 0) {
        job_refuse(job);
        return false;
    }
    job->submitted = true;
    /* SGLang sends nothing before the first token, but for its own API. */
    if (job->stream && (!e->options.sglang || job->form == &sim_form_generate)) {
        struct buf out = {.at = NULL};
        stream_begin(job, &out);
        sim_http_stream_write(job->conn, buf_slice(&out));
        buf_free(&out);
    } else if (job->conn == NULL) {
        sim_store_put(job, "queued");
    }
    sim_engine_pump(e);
    return true;
}

struct sim_job *sim_job_delayed(const struct sim_engine *e, uint64_t now_ns)
{
    struct sim_job *job = e->jobs_delayed > 0 ? e->jobs : NULL;
    while (job != NULL && (!job->delayed || job->delayed_until_ns > now_ns))
        job = job->next;
    return job;
}

void sim_job_go_on(struct sim_job *job)
{
    job->delayed = false;
    job->engine->jobs_delayed--;
    if (job->abandoned)
        sim_job_abort(job);
    else
        (void)job_submit(job);
}

/* Checks what vLLM checks, in its order. Answers and returns false if something is wrong. */
static bool ask_check(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                      const struct sim_ask *a)
{
    const char *missing = NULL;
    if ((form == &sim_form_chat || form == &sim_form_messages) && !a->has_messages)
        missing = "messages";
    else if (form == &sim_form_messages && a->max_tokens < 0)
        missing = "max_tokens";
    else if (form == &sim_form_responses && !a->has_prompt)
        missing = "input";
    else if ((form == &sim_form_completions || form == &sim_form_generate) && !a->has_prompt)
        missing = "prompt";
    if (missing != NULL && e->options.sglang && form == &sim_form_messages) {
        sim_answer_error(e, c, 400, "invalid_request_error", NULL, "%s: Field required", missing);
        return false;
    }
    if (missing != NULL) {
        char param[64];
        (void)snprintf(param, sizeof param, "body.%s", missing);
        sim_answer_error(e, c, 400, "Bad Request", param,
                         "1 validation error:\n  {'type': 'missing', 'loc': ('body', '%s'), "
                         "'msg': 'Field required'}",
                         missing);
        return false;
    }
    if (!sim_model_served(e, c, a->model))
        return false;
    if (e->options.sglang) /* it takes an empty salt and no tokens, and dies of wrong ones */
        return true;
    if (a->empty_salt || a->max_tokens == 0 || a->wrong_tokens) {
        sim_answer_error(e, c, 400, NULL, NULL, "%s",
                         a->empty_salt        ? "cache_salt must be a non-empty string"
                         : a->max_tokens == 0 ? "max_tokens must be at least 1, got 0."
                                              : "Token id is out of vocabulary");
        return false;
    }
    return true;
}

static bool length_check_sglang(struct sim_engine *e, struct sim_conn *c, const struct sim_job *job)
{
    uint64_t most = e->options.model_len_max;
    uint64_t prompt = job->request.chain.tokens;
    if (job->max_tokens > (int64_t)most)
        sim_answer_error(e, c, 400, NULL, NULL,
                         "max_completion_tokens is too large: %ld.This model supports at most %lu "
                         "completion tokens.",
                         job->max_tokens, most);
    else if (prompt >= most)
        sim_answer_too_long(c, job, prompt, most);
    else if (prompt == 0)
        sim_answer_error(e, c, 400, NULL, NULL, "The input is empty.");
    else
        return true;
    return false;
}

static bool length_check(struct sim_engine *e, struct sim_conn *c, const struct sim_job *job)
{
    uint64_t most = e->options.model_len_max;
    uint64_t prompt = job->request.chain.tokens;
    uint64_t wanted = job->max_tokens < 0 ? 1 : (uint64_t)job->max_tokens;
    if (e->options.sglang)
        return length_check_sglang(e, c, job);
    if (wanted > most)
        sim_answer_error(e, c, 400, NULL, "max_tokens",
                         "max_tokens=%lu cannot be greater than max_model_len=%lu.", wanted, most);
    else if (prompt + wanted > most)
        sim_answer_error(
            e, c, 400, NULL, "input_tokens",
            "This model's maximum context length is %lu tokens. However, your prompt "
            "contains at least %lu input tokens, and %lu output tokens were requested.",
            most, prompt, wanted);
    else if (prompt == 0)
        sim_answer_error(e, c, 400, NULL, NULL, "The decoder prompt cannot be empty");
    else
        return true;
    return false;
}

/* How long the answer will be: drawn around the mean from the prompt's hash, so that the same
 * prompt gets the same answer everywhere, and bounded by what was asked for. */
static void output_decide(struct sim_job *job, const struct sim_ask *a)
{
    const struct sim_options *o = &job->engine->options;
    uint64_t seed = hash_mix(job->request.chain.hash ^ hash_mix(o->seed) ^ hash_mix(a->seed + 1));
    double unit = (double)(hash_mix(seed + 1) >> 11) / 9007199254740992.0;
    uint64_t length = (uint64_t)((double)o->output_tokens * (0.5 + unit));
    uint64_t bound = o->model_len_max - job->request.chain.tokens;
    if (job->max_tokens >= 0 && (uint64_t)job->max_tokens < bound)
        bound = (uint64_t)job->max_tokens;
    if ((int64_t)length < a->min_tokens)
        length = (uint64_t)a->min_tokens;
    if (length == 0)
        length = 1;
    if (bound == 0) /* SGLang: an answer without text; here it has a token */
        bound = 1;
    job->length_ends_it = a->ignore_eos || length >= bound;
    job->request.output_seed = seed;
    job->request.output_tokens = (uint32_t)(job->length_ends_it ? bound : length);
}

/* vLLM: the client's id behind a prefix, or a random one. SGLang: the body's `rid`, or a random
 * one. */
static void id_make(struct sim_job *job, const struct sim_ask *a)
{
    char random[40];
    bool sglang = job->engine->options.sglang;
    struct slice given =
        sglang ? a->request_id : http_head_find(&job->conn->head, SLICE("x-request-id"));
    const char *prefix = sglang && job->form != &sim_form_responses ? "" : job->form->id_prefix;
    if (given.len == 0)
        given = a->request_id;
    job->number = sim_engine_id(job->engine);
    if (sglang)
        (void)snprintf(random, sizeof random, "%016lx%016lx", job->number, hash_mix(job->number));
    else
        (void)snprintf(random, sizeof random, "%016lx", job->number);
    if (given.len == 0 || job->form == &sim_form_responses)
        given = slice_of_cstr(random);
    size_t n = strlen(prefix);
    (void)slice_to_cstr(slice_of_cstr(prefix), job->id, sizeof job->id);
    (void)slice_to_cstr(given, job->id + n, sizeof job->id - n);
}

/* Of its name; 0: the base model. */
static uint64_t adapter_of(const struct sim_job *job)
{
    struct slice name = sim_engine_adapter(job->engine, slice_of_cstr(job->model));
    uint64_t id = 0;
    for (size_t i = 0; i < name.len; i++)
        id = hash_mix(id * 31 + (unsigned char)name.at[i]);
    return name.len > 0 && id == 0 ? 1 : id;
}

static struct sim_job *job_create(struct sim_engine *e, struct sim_conn *c,
                                  const struct sim_form *form, const struct sim_ask *a)
{
    struct sim_job *job = calloc(1, sizeof *job);
    CHECK(job != NULL);
    struct slice orca = http_head_find(&c->head, SLICE("endpoint-load-metrics-format"));
    *job = (struct sim_job){
        .engine = e,
        .conn = c,
        .form = form,
        .words = e->options.sglang && form->sglang != NULL ? form->sglang : form,
        .next = e->jobs,
        .created_s =
            (int64_t)e->start_time_s + (int64_t)((sim_clock_ns(e) - e->t0_ns) / 1000000000u),
        .max_tokens = a->max_tokens < 0 && form->output_bounded_at_16 ? 16 : a->max_tokens,
        .stream = a->stream,
        .include_usage = a->include_usage,
        .store = form == &sim_form_responses && a->store,
        .orca = orca.len == 0 ? '\0' : orca.at[0],
    };
    if (e->jobs != NULL)
        e->jobs->prev = job;
    e->jobs = job;
    c->job = job;
    id_make(job, a);
    const char *unnamed = e->options.sglang ? "default" : e->options.models[0];
    (void)slice_to_cstr(a->model.len > 0 ? a->model : slice_of_cstr(unnamed), job->model,
                        sizeof job->model);
    (void)slice_to_cstr(a->previous_response, job->previous, sizeof job->previous);
    job->request.adapter = adapter_of(job);
    if (a->has_tools && a->tool_choice == SIM_TOOL_REQUIRED)
        (void)slice_to_cstr(a->tool_name, job->tool, sizeof job->tool);
    return job;
}

/* What separates prompts of equal text: the salt and the model or adapter. */
static uint64_t namespace_of(const struct sim_job *job, const struct sim_ask *a)
{
    const struct sim_options *o = &job->engine->options;
    uint64_t name = 0;
    const char *model = o->models[0]; /* which SGLang takes any other name for */
    struct slice adapter = sim_engine_adapter(job->engine, slice_of_cstr(job->model));
    for (unsigned i = 0; i < o->model_count; i++)
        if (strcmp(job->model, o->models[i]) == 0)
            model = o->models[i];
    struct slice parts[] = {slice_of_cstr(model), SLICE("\n"), a->cache_salt, SLICE("\n"), adapter};
    size_t count = adapter.len > 0 ? ARRAY_LEN(parts) : 3;
    for (size_t p = 0; p < count; p++)
        for (size_t i = 0; i < parts[p].len; i++)
            name = hash_mix(name * 31 + (unsigned char)parts[p].at[i]);
    return name;
}

static bool chain_make(struct sim_job *job, const struct sim_ask *a)
{
    struct sim_chain *chain = &job->request.chain;
    struct slice previous = a->previous_response;
    if (previous.len == 0) {
        sim_chain_init(chain, (uint32_t)job->engine->options.block_tokens, namespace_of(job, a));
    } else if (sim_store_chain(job->engine, previous, chain) != 0) {
        sim_answer_error(job->engine, job->conn, 404, "NotFoundError", "response_id",
                         "Response with id '%.*s' not found.", SLICE_ARG(previous));
        return false;
    }
    sim_ask_render(a, chain, previous.len > 0);
    return true;
}

#define SHUTTING_DOWN "cannot schedule new futures after shutdown"

/* The status that a failure on demand answers with at once, or 0. */
static unsigned fail_status(enum sim_fail_mode mode)
{
    switch (mode) {
    case SIM_FAIL_429:
        return 429;
    case SIM_FAIL_500:
    case SIM_FAIL_DRAINING:
        return 500;
    case SIM_FAIL_503:
        return 503;
    default:
        return 0;
    }
}

static void ask_serve(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                      const struct sim_ask *a)
{
    struct sim_fail fail = sim_fail_take(e);
    if (fail_status(fail.mode) != 0) {
        sim_answer_error(e, c, fail_status(fail.mode), NULL, NULL, "%s",
                         fail.mode == SIM_FAIL_DRAINING ? SHUTTING_DOWN : "Injected failure");
        return;
    }
    if (!ask_check(e, c, form, a))
        return;
    struct sim_job *job = job_create(e, c, form, a);
    job->fail = fail;
    if (!chain_make(job, a) || !length_check(e, c, job)) {
        job->conn = NULL; /* it was answered */
        job_free(job);
        return;
    }
    output_decide(job, a);
    if (fail.mode == SIM_FAIL_HANG && fail.after_chunks == 0) {
        job->silent = true;
        return;
    }
    if (form == &sim_form_responses && a->background) {
        struct buf out = {.at = NULL};
        job->conn = NULL;
        job->stream = false;
        job->store = true;
        c->job = NULL;
        sim_response_write(job, "queued", &out);
        if (job_submit(job))
            sim_answer_json(c, 200, &out);
        else
            sim_answer_full(e, c, form);
        buf_free(&out);
        return;
    }
    if (fail.mode == SIM_FAIL_SLOW) {
        job_delay(job, fail.delay_ms);
        return;
    }
    (void)job_submit(job);
}

static bool is_json_type(struct slice type)
{
    type = slice_trim(slice_cut(&type, ';'));
    return slice_equal_nocase(type, SLICE("application/json"));
}

void sim_job_begin(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form,
                   struct slice body)
{
    struct sim_ask a;
    e->tally.requests++;
    if (e->options.control) {
        buf_clear(&e->last_head);
        buf_clear(&e->last_body);
        CHECK(buf_append(&e->last_head, c->head.at, c->head.bytes) == 0);
        CHECK(buf_append_slice(&e->last_body, body) == 0);
    }
    if (e->dead && !e->options.sglang) {
        sim_answer_error(e, c, 500, NULL, NULL, "%s", SIM_CORE_DEAD);
        return;
    }
    if (e->terminating && !e->options.sglang) {
        sim_answer_error(e, c, 500, NULL, NULL, SHUTTING_DOWN);
        return;
    }
    if (!is_json_type(http_head_find(&c->head, SLICE("content-type")))) {
        sim_answer_error(e, c, 400, "Bad Request", NULL,
                         "Unsupported Media Type: Only 'application/json' is allowed");
        return;
    }
    struct slice rank = http_head_find(&c->head, SLICE("x-data-parallel-rank"));
    uint64_t number = 0;
    if (slice_to_u64(rank, &number) == 0 && number > 0) {
        sim_answer_error(e, c, 400, NULL, NULL, "data_parallel_rank %lu is out of range [0, 1).",
                         number);
        return;
    }
    if (sim_ask_parse(&a, body) == 0) {
        bool poisoned = sim_engine_poisoned(e, body, a.wrong_tokens);
        ask_serve(e, c, form, &a);
        if (poisoned)
            sim_engine_die(e);
    } else {
        char param[64];
        (void)snprintf(param, sizeof param, "body.%zu", a.error_at);
        sim_answer_error(e, c, 400, "Bad Request", param,
                         "1 validation error:\n  {'type': 'json_invalid', 'loc': ('body', %zu), "
                         "'msg': 'JSON decode error', 'input': {}}",
                         a.error_at);
    }
    sim_ask_free(&a);
}
