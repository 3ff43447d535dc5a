/* The answers of /v1/messages: Anthropic's API as vLLM serves it. */
#include "tests/engine-sim/job.h"

/* The API has no word for "abort": vLLM then sends no stop reason, SGLang "end_turn". */
static bool has_stop_reason(const struct sim_job *job)
{
    return !job->aborted || job->engine->options.sglang;
}

static void put_stop_reason(const struct sim_job *job, struct buf *out)
{
    const char *why = job->length_ends_it ? "max_tokens" : "end_turn";
    if (job->aborted)
        why = "end_turn";
    else if (job->tool[0] != '\0')
        why = "tool_use";
    sim_put(out, "\"stop_reason\":");
    sim_put_json(out, has_stop_reason(job) ? slice_of_cstr(why) : slice_of(NULL, 0));
}

/* Input tokens exclude cached and newly stored tokens. SGLang does not report stored tokens, and
 * counts them as input. */
static void put_usage(const struct sim_job *job, struct buf *out)
{
    const struct sim_request *r = &job->request;
    uint64_t completion = sim_job_completion_tokens(job);
    bool sglang = job->engine->options.sglang;
    uint64_t created = sglang ? 0 : r->created_tokens;
    if (!job->engine->options.details) {
        sim_put(out, "{\"input_tokens\":%lu,\"output_tokens\":%lu}", r->prompt_tokens, completion);
        return;
    }
    sim_put(out, "{\"input_tokens\":%lu,\"output_tokens\":%lu",
            r->prompt_tokens - sim_job_cached_tokens(job) - created, completion);
    if (!sglang)
        sim_put(out, ",\"cache_creation_input_tokens\":%lu", created);
    sim_put(out, ",\"cache_read_input_tokens\":%lu}", sim_job_cached_tokens(job));
}

static void put_head(const struct sim_job *job, struct buf *out)
{
    sim_put(out, "{\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out, ",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    sim_put_json(out, slice_of_cstr(job->model));
}

static void put_tool_head(const struct sim_job *job, struct buf *out)
{
    sim_put(out, "{\"type\":\"tool_use\",\"id\":\"toolu_%016lx\",\"name\":", job->number);
    sim_put_json(out, slice_of_cstr(job->tool));
}

static void messages_begin(struct sim_job *job, struct buf *out)
{
    sim_put(out, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":");
    put_head(job, out);
    sim_put(out, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":");
    if (job->engine->options.sglang) /* known by then: the answer begins with the first token */
        put_usage(job, out);
    else
        sim_put(out, "{\"input_tokens\":0,\"output_tokens\":0}");
    sim_put(out, "}}\n\n");
}

static void messages_piece(struct sim_job *job, struct slice text, struct buf *out)
{
    bool tool = job->tool[0] != '\0';
    if (job->chunks == 0) {
        sim_put(out, "event: content_block_start\ndata: {\"type\":\"content_block_start\","
                     "\"index\":0,\"content_block\":");
        if (tool) {
            put_tool_head(job, out);
            sim_put(out, ",\"input\":{}}}\n\n");
        } else {
            sim_put(out, "{\"type\":\"text\",\"text\":\"\"}}\n\n");
        }
    }
    sim_put(out, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
                 "\"delta\":");
    if (tool) {
        sim_put(out, "{\"type\":\"input_json_delta\",\"partial_json\":\"%s",
                job->chunks == 0 ? "{\\\"text\\\": \\\"" : "");
        sim_put_json_inside(out, text);
        sim_put(out, "%s\"}}\n\n", job->request.state == SIM_DONE ? "\\\"}" : "");
    } else {
        sim_put(out, "{\"type\":\"text_delta\",\"text\":");
        sim_put_json(out, text);
        sim_put(out, "}}\n\n");
    }
}

static void messages_end(struct sim_job *job, struct buf *out)
{
    sim_put(out,
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
            "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{");
    put_stop_reason(job, out);
    sim_put(out, ",\"stop_sequence\":null},\"usage\":");
    if (job->engine->options.sglang)
        sim_put(out, "{\"output_tokens\":%lu}", sim_job_completion_tokens(job));
    else
        put_usage(job, out);
    sim_put(out, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void messages_whole(struct sim_job *job, struct buf *out)
{
    put_head(job, out);
    sim_put(out, ",\"content\":[");
    if (job->tool[0] != '\0') {
        put_tool_head(job, out);
        sim_put(out, ",\"input\":{\"text\":");
        sim_put_json(out, buf_slice(&job->text));
        sim_put(out, "}}");
    } else {
        sim_put(out, "{\"type\":\"text\",\"text\":");
        sim_put_json(out, buf_slice(&job->text));
        sim_put(out, "}");
    }
    sim_put(out, "],");
    if (has_stop_reason(job)) {
        put_stop_reason(job, out);
        sim_put(out, ",\"stop_sequence\":null,");
    }
    sim_put(out, "\"usage\":");
    put_usage(job, out);
    sim_put(out, "}");
}

const struct sim_form sim_form_messages = {
    .name = "messages",
    .id_prefix = "chatcmpl-",
    .begin = messages_begin,
    .piece = messages_piece,
    .end = messages_end,
    .whole = messages_whole,
};
