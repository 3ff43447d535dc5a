/* The answers of SGLang 0.5.23, if they differ from vLLM's in the other form_*.c. */
#include "tests/engine-sim/job.h"

/* --- chat and completions -------------------------------------------------------------------- */

static void put_usage(const struct sim_job *job, struct buf *out)
{
    const struct sim_request *r = &job->request;
    uint64_t completion = sim_job_completion_tokens(job);
    sim_put(out,
            "{\"prompt_tokens\":%lu,\"total_tokens\":%lu,\"completion_tokens\":%lu,"
            "\"prompt_tokens_details\":",
            r->prompt_tokens, r->prompt_tokens + completion, completion);
    if (job->engine->options.details)
        sim_put(out, "{\"cached_tokens\":%lu}", sim_job_cached_tokens(job));
    else
        sim_put(out, "null");
    sim_put(out, ",\"reasoning_tokens\":0,\"completion_tokens_details\":null}");
}

static void put_head(const struct sim_job *job, const char *object, struct buf *out)
{
    sim_put(out, "{\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out, ",\"object\":\"%s\",\"created\":%ld,\"model\":", object, (long)job->created_s);
    sim_put_json(out, slice_of_cstr(job->model));
}

static void put_chat_delta(const struct sim_job *job, struct buf *out)
{
    sim_put(out, "data: ");
    put_head(job, "chat.completion.chunk", out);
    sim_put(out, ",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":null");
}

/* Comes with the first token, not before. */
static void chat_begin(struct sim_job *job, struct buf *out)
{
    put_chat_delta(job, out);
    sim_put(out, ",\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,"
                 "\"finish_reason\":null,\"matched_stop\":null}]}\n\n");
}

static void chat_piece(struct sim_job *job, struct slice text, struct buf *out)
{
    put_chat_delta(job, out);
    sim_put(out, ",");
    if (job->tool[0] != '\0') {
        sim_put_tool_delta(job, text, out);
    } else {
        sim_put(out, "\"content\":");
        sim_put_json(out, text);
    }
    sim_put(out, "},\"logprobs\":null,\"finish_reason\":null,\"matched_stop\":null}]}\n\n");
}

static void put_end(const struct sim_job *job, const char *object, struct buf *out)
{
    if (job->include_usage) {
        sim_put(out, "data: ");
        put_head(job, object, out);
        sim_put(out, ",\"choices\":[],\"usage\":");
        put_usage(job, out);
        sim_put(out, "}\n\n");
    }
    sim_put(out, "data: [DONE]\n\n");
}

static void chat_end(struct sim_job *job, struct buf *out)
{
    put_chat_delta(job, out);
    sim_put(out, "},\"logprobs\":null,\"finish_reason\":\"%s\",\"matched_stop\":null}]}\n\n",
            sim_job_finish_reason(job));
    put_end(job, "chat.completion.chunk", out);
}

static void put_whole_end(const struct sim_job *job, struct buf *out)
{
    sim_put(out, ",\"logprobs\":null,\"finish_reason\":\"%s\",\"matched_stop\":null}],\"usage\":",
            sim_job_finish_reason(job));
    put_usage(job, out);
    sim_put(out,
            ",\"metadata\":{\"weight_version\":\"default\",\"weight_versions\":[{\"version\":"
            "\"default\",\"start\":0,\"end\":%lu}]}}",
            sim_job_completion_tokens(job));
}

static void chat_whole(struct sim_job *job, struct buf *out)
{
    put_head(job, "chat.completion", out);
    sim_put(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if (job->tool[0] != '\0')
        sim_put_tool_calls(job, out);
    else
        sim_put_json(out, slice_of(job->text.at == NULL ? "" : job->text.at, job->text.len));
    sim_put(out, ",\"reasoning_content\":null}");
    put_whole_end(job, out);
}

static void completions_begin(struct sim_job *job, struct buf *out)
{
    (void)job;
    (void)out;
}

static void completions_piece(struct sim_job *job, struct slice text, struct buf *out)
{
    bool last = job->request.state == SIM_DONE;
    const char *quote = last ? "\"" : "";
    sim_put(out, "data: ");
    put_head(job, "text_completion", out);
    sim_put(out, ",\"choices\":[{\"index\":0,\"text\":");
    sim_put_json(out, text);
    sim_put(out,
            ",\"logprobs\":null,\"finish_reason\":%s%s%s,\"matched_stop\":null}],"
            "\"usage\":null}\n\n",
            quote, last ? sim_job_finish_reason(job) : "null", quote);
}

static void completions_end(struct sim_job *job, struct buf *out)
{
    put_end(job, "text_completion", out);
}

static void completions_whole(struct sim_job *job, struct buf *out)
{
    put_head(job, "text_completion", out);
    sim_put(out, ",\"choices\":[{\"index\":0,\"text\":");
    sim_put_json(out, slice_of(job->text.at == NULL ? "" : job->text.at, job->text.len));
    put_whole_end(job, out);
}

const struct sim_form sim_sglang_chat = {
    .name = "chat",
    .begin = chat_begin,
    .piece = chat_piece,
    .end = chat_end,
    .whole = chat_whole,
};

const struct sim_form sim_sglang_completions = {
    .name = "completions",
    .begin = completions_begin,
    .piece = completions_piece,
    .end = completions_end,
    .whole = completions_whole,
};
