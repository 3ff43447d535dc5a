/* The answers of /v1/chat/completions and /v1/completions, as recorded from vLLM 0.32. */
#include <stdio.h>

#include "tests/engine-sim/job.h"

static void put_usage(const struct sim_job *job, bool in_stream, const char *created,
                      struct buf *out)
{
    const struct sim_request *r = &job->request;
    uint64_t completion = sim_job_completion_tokens(job);
    sim_put(out, "{\"prompt_tokens\":%lu,\"total_tokens\":%lu,\"completion_tokens\":%lu",
            r->prompt_tokens, r->prompt_tokens + completion, completion);
    if (job->engine->options.details)
        sim_put(
            out, ",\"prompt_tokens_details\":{\"cached_tokens\":%lu,\"created_cache_tokens\":%s%s}",
            sim_job_cached_tokens(job), created, in_stream ? "" : ",\"multimodal_tokens\":null");
    else if (!in_stream)
        sim_put(out, ",\"prompt_tokens_details\":null");
    sim_put(out, in_stream ? "}" : ",\"completion_tokens_details\":null}");
}

static const char *created_tokens(const struct sim_job *job, char text[32])
{
    (void)snprintf(text, 32, "%lu", job->request.created_tokens);
    return text;
}

static void put_chunk_head(const struct sim_job *job, const char *object, struct buf *out)
{
    sim_put(out, "data: {\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out, ",\"object\":\"%s\",\"created\":%ld,\"model\":", object, (long)job->created_s);
    sim_put_json(out, slice_of_cstr(job->model));
}

static void put_finish(const struct sim_job *job, struct buf *out)
{
    bool last = job->request.state == SIM_DONE;
    if (last)
        sim_put(out, ",\"logprobs\":null,\"finish_reason\":\"%s\",\"stop_reason\":null",
                sim_job_finish_reason(job));
    else
        sim_put(out, ",\"logprobs\":null,\"finish_reason\":null");
}

/* The last chunk has the fingerprint: the usage chunk, if usage was requested. */
static void put_chunk_end(const struct sim_job *job, struct buf *out)
{
    bool last = job->request.state == SIM_DONE && !job->include_usage;
    sim_put(out, last ? "}],\"system_fingerprint\":\"" SIM_FINGERPRINT "\"}\n\n" : "}]}\n\n");
}

static void put_usage_chunk(const struct sim_job *job, const char *object, const char *created,
                            struct buf *out)
{
    if (job->include_usage) {
        put_chunk_head(job, object, out);
        sim_put(out, ",\"choices\":[],\"usage\":");
        put_usage(job, true, created, out);
        sim_put(out, ",\"system_fingerprint\":\"" SIM_FINGERPRINT "\"}\n\n");
    }
    sim_put(out, "data: [DONE]\n\n");
}

static void put_prompt_ids(const struct sim_job *job, struct buf *out)
{
    sim_put_token_ids(job, 0, job->request.prompt_tokens, out);
}

/* The answer's token ids, from token `from` on. */
static void put_output_ids(const struct sim_job *job, uint32_t from, struct buf *out)
{
    uint64_t prompt = job->request.prompt_tokens;
    sim_put_token_ids(job, prompt + from, prompt + job->emitted, out);
}

/* --- chat ------------------------------------------------------------------------------------ */

#define CHAT_CHUNK "chat.completion.chunk"

static void put_tool_id(const struct sim_job *job, struct buf *out)
{
    sim_put(out, "\"chatcmpl-tool-%016lx\"", job->number);
}

static void chat_begin(struct sim_job *job, struct buf *out)
{
    put_chunk_head(job, CHAT_CHUNK, out);
    sim_put(out, ",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},"
                 "\"logprobs\":null,\"finish_reason\":null}],\"prompt_token_ids\":");
    put_prompt_ids(job, out);
    sim_put(out, ",\"prompt_text\":null}\n\n");
}

void sim_put_tool_delta(const struct sim_job *job, struct slice text, struct buf *out)
{
    sim_put(out, "\"tool_calls\":[{");
    if (job->chunks == 0) {
        sim_put(out, "\"id\":");
        put_tool_id(job, out);
        sim_put(out, ",\"type\":\"function\",");
    }
    sim_put(out, "\"index\":0,\"function\":{");
    if (job->chunks == 0) {
        sim_put(out, "\"name\":");
        sim_put_json(out, slice_of_cstr(job->tool));
        sim_put(out, ",");
    }
    sim_put(out, "\"arguments\":\"%s", job->chunks == 0 ? "{\\\"text\\\": \\\"" : "");
    sim_put_json_inside(out, text);
    sim_put(out, "%s\"}}]", job->request.state == SIM_DONE ? "\\\"}" : "");
}

void sim_put_tool_calls(const struct sim_job *job, struct buf *out)
{
    sim_put(out, "null,\"tool_calls\":[{\"id\":");
    put_tool_id(job, out);
    sim_put(out, ",\"type\":\"function\",\"function\":{\"name\":");
    sim_put_json(out, slice_of_cstr(job->tool));
    sim_put(out, ",\"arguments\":\"{\\\"text\\\": \\\"");
    sim_put_json_inside(out, buf_slice(&job->text));
    sim_put(out, "\\\"}\"}}]");
}

static void chat_piece(struct sim_job *job, struct slice text, struct buf *out)
{
    put_chunk_head(job, CHAT_CHUNK, out);
    sim_put(out, ",\"choices\":[{\"index\":0,\"delta\":{");
    if (job->tool[0] != '\0') {
        sim_put_tool_delta(job, text, out);
    } else {
        sim_put(out, "\"content\":");
        sim_put_json(out, text);
    }
    sim_put(out, "}");
    put_finish(job, out);
    sim_put(out, ",\"token_ids\":");
    put_output_ids(job, job->told_tokens, out);
    put_chunk_end(job, out);
}

static void chat_end(struct sim_job *job, struct buf *out)
{
    char created[32];
    put_usage_chunk(job, CHAT_CHUNK, created_tokens(job, created), out);
}

static void put_whole_tail(const struct sim_job *job, const char *created, struct buf *out)
{
    sim_put(out, "\"service_tier\":null,\"system_fingerprint\":\"" SIM_FINGERPRINT "\",\"usage\":");
    put_usage(job, false, created, out);
}

static void chat_whole(struct sim_job *job, struct buf *out)
{
    char created[32];
    sim_put(out, "{\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out,
            ",\"object\":\"chat.completion\",\"created\":%ld,\"model\":", (long)job->created_s);
    sim_put_json(out, slice_of_cstr(job->model));
    sim_put(out, ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
    if (job->tool[0] != '\0')
        sim_put_tool_calls(job, out);
    else
        sim_put_json(out, slice_of(job->text.at == NULL ? "" : job->text.at, job->text.len));
    sim_put(out,
            ",\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,"
            "\"reasoning\":null},\"logprobs\":null,\"finish_reason\":\"%s\",\"stop_reason\":null,"
            "\"token_ids\":",
            sim_job_finish_reason(job));
    put_output_ids(job, 0, out);
    sim_put(out, ",\"routed_experts\":null}],");
    put_whole_tail(job, created_tokens(job, created), out);
    sim_put(out, ",\"prompt_logprobs\":null,\"prompt_token_ids\":");
    put_prompt_ids(job, out);
    sim_put(out, ",\"prompt_text\":null,\"kv_transfer_params\":null,\"ec_transfer_params\":null,"
                 "\"metrics\":null}");
}

const struct sim_form sim_form_chat = {
    .name = "chat",
    .sglang = &sim_sglang_chat,
    .id_prefix = "chatcmpl-",
    .begin = chat_begin,
    .piece = chat_piece,
    .end = chat_end,
    .whole = chat_whole,
};

/* --- completions ----------------------------------------------------------------------------- */

static void completions_begin(struct sim_job *job, struct buf *out)
{
    (void)job;
    (void)out; /* no chunk before the first token */
}

static void completions_piece(struct sim_job *job, struct slice text, struct buf *out)
{
    put_chunk_head(job, "text_completion", out);
    sim_put(out, ",\"choices\":[{\"index\":0,\"text\":");
    sim_put_json(out, text);
    put_finish(job, out);
    sim_put(out, job->request.state == SIM_DONE ? ",\"prompt_token_ids\":"
                                                : ",\"stop_reason\":null,\"prompt_token_ids\":");
    if (job->chunks == 0)
        put_prompt_ids(job, out);
    else
        sim_put(out, "null");
    sim_put(out, ",\"token_ids\":");
    put_output_ids(job, job->told_tokens, out);
    put_chunk_end(job, out);
}

static void completions_end(struct sim_job *job, struct buf *out)
{
    put_usage_chunk(job, "text_completion", "null", out);
}

static void completions_whole(struct sim_job *job, struct buf *out)
{
    sim_put(out, "{\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out,
            ",\"object\":\"text_completion\",\"created\":%ld,\"model\":", (long)job->created_s);
    sim_put_json(out, slice_of_cstr(job->model));
    sim_put(out, ",\"choices\":[{\"index\":0,\"text\":");
    sim_put_json(out, slice_of(job->text.at == NULL ? "" : job->text.at, job->text.len));
    sim_put(out,
            ",\"logprobs\":null,\"finish_reason\":\"%s\",\"stop_reason\":null,"
            "\"token_ids\":",
            sim_job_finish_reason(job));
    put_output_ids(job, 0, out);
    sim_put(out, ",\"prompt_logprobs\":null,\"prompt_token_ids\":");
    put_prompt_ids(job, out);
    sim_put(out, "}],");
    put_whole_tail(job, "null", out);
    sim_put(out, ",\"kv_transfer_params\":null}");
}

const struct sim_form sim_form_completions = {
    .name = "completions",
    .sglang = &sim_sglang_completions,
    .id_prefix = "cmpl-",
    .output_bounded_at_16 = true,
    .begin = completions_begin,
    .piece = completions_piece,
    .end = completions_end,
    .whole = completions_whole,
};
