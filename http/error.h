/* The router's own errors, as the body of an answer or as an event of a stream, in the form of each
 * API.
 *
 *   OpenAI       {"error":{"message":...,"type":...,"param":...,"code":502}}
 *   responses    the same as a body. As an event, after "event: error":
 *                {"type":"error","code":"server_error","message":...,"param":...,
 *                 "sequence_number":7}; errors that are not transient have "invalid_prompt"
 *   Anthropic    {"type":"error","error":{"type":"api_error","message":...},"request_id":...}; an
 *                event comes after "event: error"
 *   SGLang       the same body as OpenAI's. As an event of the native stream:
 *                {"error":{"message":...,"type":...,"code":502,"retryable":true}}
 *
 * Sources: OpenAI's and Anthropic's references of streams; observed output of vLLM 0.32 and SGLang
 * 0.5.23.
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
    struct slice type;       /* the type from an engine; empty: derived from the status
                               * ("NotFoundError"). Anthropic's form always derives the type from
                               * the status */
    struct slice param;      /* empty: null; not in Anthropic's form */
    struct slice request_id; /* in Anthropic's form only; empty: left out */
    unsigned status;         /* also the "code" */
    /* The same request may succeed if repeated: the type tells the API's clients to retry
     * (docs/agents.md). */
    bool transient;
    uint64_t sequence_number; /* the event's number, only for an event of responses */
};

/* The HTTP status of an API's error type, for errors without a number (Anthropic) or with a word as
 * their code (OpenAI's responses); 0: unknown. */
unsigned http_error_status(struct slice type);

/* Writes the JSON body alone; all texts are escaped. `out` is unchanged after an error. */
MUST_USE int http_error_body_write(struct buf *out, const struct http_error *error);

/* Writes a whole server-sent event, blank line included. All texts are escaped. `out` is unchanged
 * after an error. */
MUST_USE int http_error_event_write(struct buf *out, const struct http_error *error);

#endif
