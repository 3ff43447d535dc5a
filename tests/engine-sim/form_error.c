/* Each API's form of errors: inside a stream, and for a full queue. */
#include <stdio.h>

#include "tests/engine-sim/job.h"

#define FULL_SGLANG "The request queue is full."
#define FULL_VLLM                                                                                  \
    "The engine is currently busy and cannot accept new requests. Please try again later or on a " \
    "different instance."

static void put_anthropic(const char *type, const char *text, struct buf *out)
{
    sim_put(out, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":",
            type);
    sim_put_json(out, slice_of_cstr(text));
    sim_put(out, "}}\n\n");
}

static void put_failed_response(const struct sim_job *job, const char *text, struct buf *out)
{
    sim_put(out,
            "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":%u,"
            "\"response\":{\"id\":",
            job->events);
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out, ",\"object\":\"response\",\"status\":\"failed\",\"error\":{\"code\":"
                 "\"server_error\",\"message\":");
    sim_put_json(out, slice_of_cstr(text));
    sim_put(out, "}}}\n\n");
}

/* SGLang's native API: an aborted answer. */
static void put_abort(const struct sim_job *job, unsigned status, const char *text, struct buf *out)
{
    sim_put(out, "data: {\"text\":\"\",\"output_ids\":[],\"meta_info\":{\"id\":");
    sim_put_json(out, slice_of_cstr(job->id));
    sim_put(out, ",\"finish_reason\":{\"type\":\"abort\",\"status_code\":%u,\"message\":", status);
    sim_put_json(out, slice_of_cstr(text));
    sim_put(out, "},\"prompt_tokens\":0,\"completion_tokens\":0,\"cached_tokens\":0}}\n\n"
                 "data: [DONE]\n\n");
}

void sim_put_error_event(const struct sim_job *job, unsigned status, const char *text,
                         struct buf *out)
{
    if (job->form == &sim_form_messages) {
        put_anthropic("InternalServerError", text, out);
        return;
    }
    if (job->form == &sim_form_responses) {
        put_failed_response(job, text, out);
        return;
    }
    if (job->form == &sim_form_generate) {
        put_abort(job, status, text, out);
        return;
    }
    sim_put(out, "data: {\"error\": {\"message\": ");
    sim_put_json(out, slice_of_cstr(text));
    sim_put(out, ", \"type\": \"InternalServerError\", \"param\": null, \"code\": %u}}\n\n",
            status);
    sim_put(out, "data: [DONE]\n\n");
}

/* Only SGLang reports a full queue in a stream. */
void sim_put_full_events(struct sim_job *job, struct buf *out)
{
    if (job->form == &sim_form_messages) {
        job->words->begin(job, out);
        put_anthropic("overloaded_error", FULL_SGLANG, out);
        sim_put(out, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
        return;
    }
    if (job->form == &sim_form_responses) {
        job->words->begin(job, out);
        put_failed_response(job, FULL_SGLANG, out);
        return;
    }
    if (job->form == &sim_form_generate) {
        put_abort(job, 503, FULL_SGLANG, out);
        return;
    }
    sim_put(out, "data: {\"error\": {\"object\": \"error\", \"message\": \"" FULL_SGLANG
                 "\", \"type\": \"SERVICE_UNAVAILABLE\", \"param\": null, \"code\": 503}}\n\n");
    if (job->include_usage) {
        sim_put(out, "data: {\"id\":");
        sim_put_json(out, slice_of_cstr(job->id));
        sim_put(out, ",\"object\":\"%s\",\"created\":%ld,\"model\":",
                job->form == &sim_form_chat ? "chat.completion.chunk" : "text_completion",
                (long)job->created_s);
        sim_put_json(out, slice_of_cstr(job->model));
        sim_put(out, ",\"choices\":[],\"usage\":{\"prompt_tokens\":0,\"total_tokens\":0,"
                     "\"completion_tokens\":0,\"prompt_tokens_details\":null}}\n\n");
    }
    sim_put(out, "data: [DONE]\n\n");
}

void sim_answer_refused(struct sim_conn *c, const struct sim_job *job, const char *text)
{
    struct buf out = {.at = NULL};
    if (job->form != &sim_form_generate) {
        sim_answer_error(job->engine, c, 400, NULL, NULL, "%s", text);
    } else if (!job->stream) {
        sim_put(&out, "{\"error\":{\"message\":\"%s\"}}", text);
        sim_answer_json(c, 400, &out);
    } else {
        sim_put(&out,
                "data: {\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\","
                "\"code\":400,\"retryable\":false}}\n\ndata: [DONE]\n\n",
                text);
        sim_http_stream_begin(c, SIM_SSE);
        sim_http_stream_write(c, buf_slice(&out));
        sim_http_stream_end(c);
    }
    buf_free(&out);
}

void sim_answer_too_long(struct sim_conn *c, const struct sim_job *job, uint64_t tokens,
                         uint64_t most)
{
    char text[160];
    (void)snprintf(text, sizeof text,
                   "The input (%lu tokens) is longer than the model's context length (%lu tokens).",
                   tokens, most);
    sim_answer_refused(c, job, text);
}

void sim_answer_full(struct sim_engine *e, struct sim_conn *c, const struct sim_form *form)
{
    if (!e->options.sglang)
        sim_answer_error(e, c, 503, "Service Unavailable", NULL, "%s", FULL_VLLM);
    else if (form == &sim_form_messages)
        sim_answer_error(e, c, 503, "overloaded_error", NULL, "Internal server error");
    else if (form == &sim_form_responses)
        sim_http_answer(
            c, 400, SIM_JSON,
            SLICE("{\"error\":{\"message\":\"503: " FULL_SGLANG
                  "\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":400}}"),
            NULL);
    else
        sim_answer_error(e, c, 503, "503", NULL, FULL_SGLANG);
}
