/* The answers of /v1/responses. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tests/engine-sim/job.h"

static bool calls_tool(const struct sim_job *job)
{
    return job->tool[0] != '\0';
}

static void put_text(const struct sim_job *job, struct buf *out)
{
    if (calls_tool(job)) {
        sim_put(out, "\"{\\\"text\\\": \\\"");
        sim_put_json_inside(out, buf_slice(&job->text));
        sim_put(out, "\\\"}\"");
    } else {
        sim_put_json(out, slice_of(job->text.at == NULL ? "" : job->text.at, job->text.len));
    }
}

static void put_part(const struct sim_job *job, bool done, struct buf *out)
{
    sim_put(out, "{\"annotations\":[],\"text\":");
    if (done)
        put_text(job, out);
    else
        sim_put(out, "\"\"");
    sim_put(out, ",\"type\":\"output_text\",\"logprobs\":null}");
}

static void put_item(const struct sim_job *job, bool done, struct buf *out)
{
    const char *status = done ? "completed" : "in_progress";
    if (calls_tool(job)) {
        sim_put(out, "{\"id\":\"fc_%016lx\",\"call_id\":\"call_%016lx\",\"name\":", job->number,
                job->number);
        sim_put_json(out, slice_of_cstr(job->tool));
        sim_put(out, ",\"type\":\"function_call\",\"status\":\"%s\",\"arguments\":", status);
        if (done)
            put_text(job, out);
        else
            sim_put(out, "\"\"");
        sim_put(out, "}");
        return;
    }
    sim_put(out, "{\"id\":\"msg_%016lx\",\"content\":[", job->number);
    if (done)
        put_part(job, true, out);
    sim_put(out, "],\"role\":\"assistant\",\"status\":\"%s\",\"type\":\"message\"}", status);
}

static void put_usage(const struct sim_job *job, struct buf *out)
{
    const struct sim_request *r = &job->request;
    uint64_t completion = sim_job_completion_tokens(job);
    sim_put(out,
            "{\"input_tokens\":%lu,\"input_tokens_details\":{\"cached_tokens\":%lu%s},"
            "\"output_tokens\":%lu,\"output_tokens_details\":{\"reasoning_tokens\":0},"
            "\"total_tokens\":%lu}",
            r->prompt_tokens, job->engine->options.details ? sim_job_cached_tokens(job) : 0,
            job->engine->options.sglang ? ",\"cache_write_tokens\":0" : "", completion,
            r->prompt_tokens + completion);
}

void sim_response_write(const struct sim_job *job, const char *status, struct buf *out)
{
    bool done = job->request.state == SIM_DONE;
    sim_put(out, "{\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out,
            ",\"created_at\":%ld,\"error\":%s,\"incomplete_details\":%s,"
            "\"instructions\":null,\"metadata\":null,\"model\":",
            (long)job->created_s,
            strcmp(status, "failed") == 0 ? "{\"code\":\"server_error\",\"message\":\"Aborted\"}"
                                          : "null",
            done && job->length_ends_it ? "{\"reason\":\"max_output_tokens\"}" : "null");
    sim_put_json(out, slice_of_cstr(job->model));
    sim_put(out, ",\"object\":\"response\",\"output\":[");
    if (done && job->text.len > 0)
        put_item(job, true, out);
    sim_put(out,
            "],\"parallel_tool_calls\":true,\"temperature\":1.0,\"tool_choice\":\"auto\","
            "\"tools\":[],\"top_p\":1.0,\"background\":%s,\"max_output_tokens\":",
            job->conn == NULL ? "true" : "false");
    sim_put(out, job->max_tokens < 0 ? "null" : "%ld", (long)job->max_tokens);
    sim_put(out, ",\"previous_response_id\":");
    sim_put_json(out, job->previous[0] == '\0' ? slice_of(NULL, 0) : slice_of_cstr(job->previous));
    sim_put(out,
            ",\"service_tier\":\"auto\",\"status\":\"%s\",\"text\":null,"
            "\"truncation\":\"disabled\",\"usage\":",
            status);
    if (done)
        put_usage(job, out);
    else
        sim_put(out, "null");
    sim_put(out, ",\"user\":null}");
}

/* Opens an event; the caller adds fields and closes the event with put_event_end(). */
static void put_event(struct sim_job *job, const char *type, struct buf *out)
{
    sim_put(out, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%u", type, type,
            job->events++);
}

static void put_event_end(struct buf *out)
{
    sim_put(out, "}\n\n");
}

static void put_response_event(struct sim_job *job, const char *type, const char *status,
                               struct buf *out)
{
    put_event(job, type, out);
    sim_put(out, ",\"response\":");
    sim_response_write(job, status, out);
    put_event_end(out);
}

static void put_item_event(struct sim_job *job, const char *type, bool done, struct buf *out)
{
    put_event(job, type, out);
    sim_put(out, ",\"output_index\":0,\"item\":");
    put_item(job, done, out);
    put_event_end(out);
}

static void put_part_event(struct sim_job *job, const char *type, bool done, struct buf *out)
{
    put_event(job, type, out);
    sim_put(out, ",\"output_index\":0,\"content_index\":0,\"item_id\":\"msg_%016lx\",\"part\":",
            job->number);
    put_part(job, done, out);
    put_event_end(out);
}

static void responses_begin(struct sim_job *job, struct buf *out)
{
    put_response_event(job, "response.created", "in_progress", out);
    put_response_event(job, "response.in_progress", "in_progress", out);
}

static void responses_piece(struct sim_job *job, struct slice text, struct buf *out)
{
    if (job->chunks == 0) {
        put_item_event(job, "response.output_item.added", false, out);
        if (!calls_tool(job))
            put_part_event(job, "response.content_part.added", false, out);
    }
    if (calls_tool(job)) {
        put_event(job, "response.function_call_arguments.delta", out);
        sim_put(out, ",\"output_index\":0,\"item_id\":\"fc_%016lx\",\"delta\":\"%s", job->number,
                job->chunks == 0 ? "{\\\"text\\\": \\\"" : "");
        sim_put_json_inside(out, text);
        sim_put(out, "%s\"", job->request.state == SIM_DONE ? "\\\"}" : "");
    } else {
        put_event(job, "response.output_text.delta", out);
        sim_put(out,
                ",\"output_index\":0,\"content_index\":0,\"item_id\":\"msg_%016lx\","
                "\"logprobs\":[],\"delta\":",
                job->number);
        sim_put_json(out, text);
    }
    put_event_end(out);
}

/* SGLang calls an aborted answer `failed`, vLLM `completed`. */
const char *sim_response_status(const struct sim_job *job)
{
    if (job->aborted)
        return job->engine->options.sglang ? "failed" : "completed";
    return job->length_ends_it ? "incomplete" : "completed";
}

static void responses_end(struct sim_job *job, struct buf *out)
{
    if (calls_tool(job)) {
        put_event(job, "response.function_call_arguments.done", out);
        sim_put(out, ",\"output_index\":0,\"item_id\":\"fc_%016lx\",\"name\":", job->number);
        sim_put_json(out, slice_of_cstr(job->tool));
        sim_put(out, ",\"arguments\":");
    } else {
        put_event(job, "response.output_text.done", out);
        sim_put(out,
                ",\"output_index\":0,\"content_index\":0,\"item_id\":\"msg_%016lx\","
                "\"logprobs\":[],\"text\":",
                job->number);
    }
    put_text(job, out);
    put_event_end(out);
    if (!calls_tool(job))
        put_part_event(job, "response.content_part.done", true, out);
    put_item_event(job, "response.output_item.done", true, out);
    /* vLLM calls the event `completed` even if the status is `incomplete`. */
    char type[32] = "response.completed";
    if (job->engine->options.sglang)
        (void)snprintf(type, sizeof type, "response.%s", sim_response_status(job));
    put_response_event(job, type, sim_response_status(job), out);
}

static void responses_whole(struct sim_job *job, struct buf *out)
{
    sim_response_write(job, sim_response_status(job), out);
}

const struct sim_form sim_form_responses = {
    .name = "responses",
    .id_prefix = "resp_",
    .begin = responses_begin,
    .piece = responses_piece,
    .end = responses_end,
    .whole = responses_whole,
};
