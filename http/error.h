/* Errors of the router's own, as the body of an answer or as an event of a stream, in the form that
 * the clients of an API understand.
 *
 *   OpenAI       {"error":{"message":...,"type":...,"param":...,"code":502}}
 *   responses    the same as a body. As an event, after "event: error":
 *                {"type":"error","code":"server_error","message":...,"param":...,
 *                 "sequence_number":7}; what is not transient has the code "invalid_prompt"
 *   Anthropic    {"type":"error","error":{"type":"api_error","message":...},"request_id":...}; an
 *                event comes after "event: error"
 *   SGLang       the same body as OpenAI's. As an event of its native stream:
 *                {"error":{"message":...,"type":...,"code":502,"retryable":true}}
 *
 * Sources: OpenAI's and Anthropic's reference of their streams; what vLLM 0.32 and SGLang 0.5.23
 * were seen to send.
 */
#ifndef HTTP_ERROR_H
#define HTTP_ERROR_H

#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

enum http_error_form {
    HTTP_ERROR_OPENAI,
    HTTP_ERROR_RESPONSES,
    HTTP_ERROR_ANTHROPIC,
    HTTP_ERROR_SGLANG,
};

struct http_error {
    enum http_error_form form;
    struct slice message;
    struct slice type;        /* as an engine named it; empty: by the status, "NotFoundError", ...
                                 Anthropic's form has its own names, by the status alone */
    struct slice param;       /* empty: null; Anthropic's form has none */
    struct slice request_id;  /* Anthropic's form only; empty: none */
    unsigned status;          /* is also the "code" */
    bool transient;           /* the same request may be answered if it is sent again: the type is
                                 one that the API's clients repeat (docs/agents.md) */
    uint64_t sequence_number; /* of the event, responses only */
};

/* The status that fits what an API calls an error, where no number is beside it (Anthropic) or a
 * word is its code (OpenAI's responses); 0: unknown. */
unsigned http_error_status(struct slice type);

/* The JSON body alone; all texts are escaped. `out` is unchanged after an error. */
MUST_USE int http_error_body_write(struct buf *out, const struct http_error *error);

/* A whole server-sent event, blank line included; the same. */
MUST_USE int http_error_event_write(struct buf *out, const struct http_error *error);

#endif
