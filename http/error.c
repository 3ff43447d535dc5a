#include "http/error.h"

#include "base/check.h"
#include "base/json_write.h"

/* The error classes of OpenAI's libraries, used by vLLM for most errors. Statuses without a class
 * there get a name of the same form. */
static const char *error_type(unsigned status)
{
    switch (status) {
    case 401:
        return "AuthenticationError";
    case 403:
        return "PermissionDeniedError";
    case 404:
        return "NotFoundError";
    case 405:
        return "MethodNotAllowedError";
    case 408:
        return "RequestTimeoutError";
    case 409:
        return "ConflictError";
    case 413:
        return "RequestEntityTooLargeError";
    case 422:
        return "UnprocessableEntityError";
    case 429:
        return "RateLimitError";
    case 501:
        return "NotImplementedError";
    case 502:
        return "BadGatewayError";
    case 503:
        return "ServiceUnavailableError";
    case 504:
        return "GatewayTimeoutError";
    case 508:
        return "LoopDetectedError";
    default: /* 400, 414, 431, ...; 500; 505 is the client's error, too */
        return status < 500 || status == 505 ? "BadRequestError" : "InternalServerError";
    }
}

/* The error types of Anthropic's reference. */
static const char *anthropic_type(unsigned status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 404:
        return "not_found_error";
    case 413:
        return "request_too_large";
    case 429:
        return "rate_limit_error";
    case 503:
    case 529:
        return "overloaded_error";
    case 504:
        return "timeout_error";
    default:
        return status < 500 ? "invalid_request_error" : "api_error";
    }
}

static void key_text(struct json_writer *w, const char *key, struct slice text)
{
    json_key(w, key);
    if (text.len > 0)
        json_slice(w, text);
    else
        json_nil(w);
}

static struct slice type_of(const struct http_error *e)
{
    if (e->type.len == 0 && e->transient && e->status >= 500)
        return SLICE("server_error");
    return e->type.len > 0 ? e->type : slice_of_cstr(error_type(e->status));
}

static void write_openai(struct json_writer *w, const struct http_error *e)
{
    json_object_begin(w);
    json_put_object(w, "error");
    json_put_slice(w, "message", e->message);
    key_text(w, "type", type_of(e));
    key_text(w, "param", e->param);
    json_put_u64(w, "code", e->status);
    json_object_end(w);
    json_object_end(w);
}

static void write_anthropic(struct json_writer *w, const struct http_error *e)
{
    json_object_begin(w);
    json_put_cstr(w, "type", "error");
    json_put_object(w, "error");
    json_put_cstr(w, "type", anthropic_type(e->status));
    json_put_slice(w, "message", e->message);
    json_object_end(w);
    if (e->request_id.len > 0)
        key_text(w, "request_id", e->request_id);
    json_object_end(w);
}

static void write_responses_event(struct json_writer *w, const struct http_error *e)
{
    json_object_begin(w);
    json_put_cstr(w, "type", "error");
    json_put_cstr(w, "code", e->transient ? "server_error" : "invalid_prompt");
    json_put_slice(w, "message", e->message);
    key_text(w, "param", e->param);
    json_put_u64(w, "sequence_number", e->sequence_number);
    json_object_end(w);
}

static void write_sglang_event(struct json_writer *w, const struct http_error *e)
{
    json_object_begin(w);
    json_put_object(w, "error");
    json_put_slice(w, "message", e->message);
    key_text(w, "type", type_of(e));
    json_put_u64(w, "code", e->status);
    json_put_bool(w, "retryable", e->transient);
    json_object_end(w);
    json_object_end(w);
}

int http_error_body_write(struct buf *out, const struct http_error *e)
{
    CHECK(e->status >= 400 && e->status <= 599);
    struct json_writer w = json_writer_of(out);
    if (e->form == HTTP_ERROR_ANTHROPIC)
        write_anthropic(&w, e);
    else
        write_openai(&w, e);
    return json_writer_finish(&w);
}

int http_error_event_write(struct buf *out, const struct http_error *e)
{
    CHECK(e->status >= 400 && e->status <= 599);
    size_t start = out->len;
    bool named = e->form == HTTP_ERROR_ANTHROPIC || e->form == HTTP_ERROR_RESPONSES;
    int err = buf_append_cstr(out, named ? "event: error\ndata: " : "data: ");
    if (err == 0) {
        struct json_writer w = json_writer_of(out);
        if (e->form == HTTP_ERROR_ANTHROPIC)
            write_anthropic(&w, e);
        else if (e->form == HTTP_ERROR_RESPONSES)
            write_responses_event(&w, e);
        else if (e->form == HTTP_ERROR_SGLANG)
            write_sglang_event(&w, e);
        else
            write_openai(&w, e);
        err = json_writer_finish(&w);
    }
    if (err == 0)
        err = buf_append_cstr(out, "\n\n");
    if (err != 0)
        out->len = start;
    return err;
}

unsigned http_error_status(struct slice type)
{
    static const struct {
        struct slice type;
        unsigned status;
    } types[] = {
#define TYPE(text, status) {{(text), sizeof(text) - 1}, (status)}
        TYPE("invalid_request_error", 400), TYPE("BadRequestError", 400),
        TYPE("invalid_prompt", 400),        TYPE("authentication_error", 401),
        TYPE("permission_error", 403),      TYPE("not_found_error", 404),
        TYPE("request_too_large", 413),     TYPE("rate_limit_error", 429),
        TYPE("rate_limit_exceeded", 429),   TYPE("api_error", 500),
        TYPE("server_error", 500),          TYPE("InternalServerError", 500),
        TYPE("overloaded_error", 503),      TYPE("Service Unavailable", 503),
        TYPE("timeout_error", 504),
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (slice_equal(type, types[i].type))
            return types[i].status;
    }
    return 0;
}
