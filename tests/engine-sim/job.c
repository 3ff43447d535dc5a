#include "tests/engine-sim/job.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"

void sim_job_free(struct sim_job *job)
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
        e->tally[job->request.rank].aborted++;
    if (job->submitted)
        sim_published_ended(e, job->request.rank);
    if (job->submitted)
        sim_ranks_abort(&e->ranks, &job->request, sim_now_ns(e));
    if (job->store && job->submitted)
        sim_store_put(job, "cancelled");
    sim_job_free(job);
    sim_engine_pump(e);
}

enum { SGLANG_NOTICES_MS = 2800 };

void sim_job_delay(struct sim_job *job, uint64_t delay_ms)
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
    sim_job_delay(job, (uint64_t)(SGLANG_NOTICES_MS / o->speed_up));
}

const char *sim_job_finish_reason(const struct sim_job *job)
{
    if (job->aborted)
        return "abort";
    if (job->tool[0] != '\0')
        return "tool_calls";
    return job->length_ends_it ? "length" : "stop";
}

uint64_t sim_job_cached_tokens(const struct sim_job *job)
{
    uint64_t cached = job->request.cached_tokens, prompt = job->request.prompt_tokens;
    uint64_t rounded = (cached + 99) / 100 * 100;
    switch (job->engine->options.usage_cached) {
    case SIM_CACHED_ZERO:
        return 0;
    case SIM_CACHED_ALL:
        return prompt;
    case SIM_CACHED_ROUNDED:
        return rounded < prompt ? rounded : prompt;
    default:
        return cached;
    }
}

uint64_t sim_job_completion_tokens(const struct sim_job *job)
{
    return job->emitted;
}

void sim_put_token_ids(const struct sim_job *job, uint64_t from, uint64_t to, struct buf *out)
{
    if (!job->token_ids) {
        sim_put(out, "null");
        return;
    }
    for (uint64_t i = from; i < to; i++)
        sim_put(out, "%s%u", i == from ? "[" : ",", job->request.chain.ids[i]);
    sim_put(out, from < to ? "]" : "[]");
}

/* --- progress -------------------------------------------------------------------------------- */

static double seconds_since(const struct sim_job *job)
{
    const struct sim_engine *e = job->engine;
    return (double)(sim_now_ns(e) - job->submitted_ns) / 1e9 / e->options.speed_up;
}

/* Appends the model's new tokens to the text. */
static void take_tokens(struct sim_job *job)
{
    struct sim_tally *tally = &job->engine->tally[job->request.rank];
    if (job->emitted == 0 && job->request.generated > 0) {
        tally->ttft_s_sum += seconds_since(job);
        tally->ttft_count++;
        if (job->conn != NULL)
            sim_http_first(job->conn, job->request.prompt_tokens, job->request.cached_tokens);
    }
    for (; job->emitted < job->request.generated; job->emitted++)
        CHECK(buf_append_slice(&job->text,
                               sim_output_token(job->request.output_seed, job->emitted)) == 0);
}

/* True if a stream holds back text now, like a parser of a tool call or of reasoning before the
 * end. */
static bool holds_back(struct sim_job *job)
{
    uint64_t now_ns = sim_clock_ns(job->engine);
    if (job->hold_ns == 0 || job->chunks < job->hold_after)
        return false;
    if (job->hold_until_ns == 0)
        job->hold_until_ns = job->hold_ns == UINT64_MAX ? UINT64_MAX : now_ns + job->hold_ns;
    if (now_ns < job->hold_until_ns && job->request.state != SIM_DONE && !job->aborted)
        return true;
    job->hold_ns = 0;
    return false;
}

static void stream_begin(struct sim_job *job, struct buf *out)
{
    sim_http_stream_begin(job->conn, SIM_SSE);
    job->begun = true;
    job->words->begin(job, out);
}

void sim_job_write(struct sim_job *job, struct slice events)
{
    if (events.len == 0)
        return;
    job->wrote_ns = sim_clock_ns(job->engine);
    sim_frame_write(job->engine, job->conn, events);
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
    if (conn != NULL)
        sim_http_failed(conn);
    if (conn != NULL && begun) {
        sim_frame_write(e, conn, buf_slice(&out));
        sim_http_stream_end(conn);
    } else if (conn != NULL) {
        sim_answer_error(e, conn, status, NULL, NULL, "%s", text);
    }
    buf_free(&out);
}

/* Applies a failure on demand at this point. Returns true if the job must not go on; the job may be
 * gone. */
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
        sim_http_failed(conn);
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

/* With several ranks vLLM reports the last rank's load, whichever served the request. */
static void orca_header(const struct sim_job *job, char *out, size_t size)
{
    const struct sim_ranks *ranks = &job->engine->ranks;
    const struct sim_model *last = ranks->models[ranks->count - 1];
    const struct sim_cache *cache = sim_model_cache(last);
    double usage = (double)sim_cache_used(cache) / sim_cache_blocks(cache);
    double waiting = sim_model_waiting(last);
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
    bool aborted = job->aborted;
    struct sim_tally *tally = &e->tally[job->request.rank];
    (*(aborted ? &tally->aborted : &tally->finished[job->length_ends_it]))++;
    sim_published_ended(e, job->request.rank);
    tally->e2e_s_sum += seconds_since(job);
    tally->e2e_count++;
    if (job->store)
        sim_store_put(job, sim_response_status(job));
    orca_header(job, orca, sizeof orca);
    sim_job_free(job);
    if (conn == NULL)
        return;
    if (aborted)
        sim_http_failed(conn);
    if (stream)
        sim_http_stream_end(conn);
    else
        sim_http_answer(conn, 200, SIM_JSON, buf_slice(out), orca);
}

void sim_job_progress(struct sim_job *job)
{
    struct buf out = {.at = NULL};
    bool done = job->request.state == SIM_DONE;
    take_tokens(job);
    if ((!job->stream && !done) || fail_now(job))
        return;
    if (job->stream) {
        if (!job->begun)
            stream_begin(job, &out);
        if (!holds_back(job)) {
            job->words->piece(job, slice_skip(buf_slice(&job->text), job->told), &out);
            job->told = job->text.len;
            job->told_tokens = job->emitted;
            job->chunks++;
        }
        if (done)
            job->words->end(job, &out);
        sim_job_write(job, buf_slice(&out));
    } else {
        job->words->whole(job, &out);
    }
    if (done)
        job_finish(job, &out);
    buf_free(&out);
}

/* --- into the scheduler ---------------------------------------------------------------------- */

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
    sim_job_free(job);
    if (conn != NULL && in_stream) {
        sim_http_refused(conn);
        sim_http_stream_begin(conn, SIM_SSE);
        sim_frame_write(e, conn, buf_slice(&out));
        sim_http_stream_end(conn);
    } else if (conn != NULL) {
        sim_answer_full(e, conn, form);
    }
    buf_free(&out);
}

bool sim_job_submit(struct sim_job *job)
{
    struct sim_engine *e = job->engine;
    job->submitted_ns = sim_now_ns(e);
    if (job->fail.mode == SIM_FAIL_FULL ||
        sim_ranks_submit(&e->ranks, &job->request, job->rank, job->submitted_ns) != 0) {
        job_refuse(job);
        return false;
    }
    job->submitted = true;
    e->tally[job->request.rank].requests++;
    e->last_rank = (int)job->request.rank;
    /* SGLang sends nothing before the first token, except in the native API. */
    if (job->stream && (!e->options.sglang || job->form == &sim_form_generate)) {
        struct buf out = {.at = NULL};
        stream_begin(job, &out);
        sim_job_write(job, buf_slice(&out));
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
        (void)sim_job_submit(job);
}
