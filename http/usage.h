/* The scanner of answers: finds what the router learns from an engine's answer while it streams by.
 *
 *     http_usage_init(&usage, HTTP_USAGE_SSE);
 *     http_usage_feed(&usage, bytes, len);   for each piece of the body, in any splits
 *     http_usage_finish(&usage);             at the end of the body
 *
 * It keeps nothing of the body and changes nothing. Server-sent events are framed as the WHATWG
 * standard says (CR, LF or CRLF, comments, data on several lines). Their data, or the whole plain
 * body, goes through the JSON tokenizer as it comes, so no event is too large. Data that is no JSON
 * is ignored. In a stream nearly all events differ in their text only: an event that equals the
 * last token event but for its text is not read again, which saves seven eighths of the cost. It
 * understands OpenAI's chat, completions and responses, Anthropic's messages, vLLM's generate,
 * Ollama's and SGLang's native form, single or as an array (figures are added up).
 *
 * A stream ends with its API's terminal event, with an error event, or with neither, which means
 * that it was cut (http_usage_unfinished). An answer that finishes with "abort" is an error as
 * well: engines say so of what they end themselves. So are a message without a stop reason and a
 * cancelled response, with which vLLM says the same.
 *
 * All results may be read at any time; they grow more complete as the body does.
 */
#ifndef HTTP_USAGE_H
#define HTTP_USAGE_H

#include "base/chain.h"
#include "base/slice.h"
#include "http/json.h"

enum http_usage_form {
    HTTP_USAGE_SSE,
    HTTP_USAGE_JSON,
    HTTP_USAGE_LINES, /* a JSON value on each: Ollama's streams */
};

enum {
    HTTP_USAGE_LEVELS = 8,
    HTTP_USAGE_SCRATCH = 128,
};

_Static_assert(HTTP_USAGE_SCRATCH <= UINT8_MAX, "the length of the scratch has one byte");
_Static_assert((int)HTTP_USAGE_ID_MAX < HTTP_USAGE_SCRATCH,
               "an id is read whole, or known to be longer");

struct http_usage {
    /* Results. Figures are -1 while unknown, and at most 2^40. */
    int64_t prompt_tokens; /* cached ones included, whatever the engine's convention */
    int64_t cached_tokens;
    int64_t completion_tokens;
    int64_t media_tokens[CHAIN_MEDIA]; /* of the prompt's */
    bool first_token; /* text, reasoning or a tool call has arrived, not just a role */
    bool done;        /* [DONE], message_stop, response.completed and its like; JSON: it is whole;
                         lines: the body ended */
    bool error;       /* an error object in the stream or in place of the answer */
    bool error_whole; /* and the event that holds it is complete */
    bool aborted;     /* the error is the finish reason "abort": the engine gave the request up */
    bool understood;  /* SSE: an event was an object; JSON: it begins like one */
    unsigned error_status;   /* of the error, as HTTP has it: by its code or its type; 0: unknown */
    int64_t sequence_number; /* the last one of the events, which OpenAI's responses have; -1 */
    unsigned token_events;   /* events that carried tokens */
    uint64_t text_bytes;     /* of text in them; SGLang's native events repeat what came before */
    char response_id[HTTP_USAGE_ID_MAX + 1]; /* empty while unknown, or too long to be kept */

    /* Private to usage.c and usage_json.c. */
    uint8_t form;
    uint8_t line;       /* SSE: where in a line */
    uint8_t name_len;   /* SSE: bytes of the field name */
    uint8_t mark_len;   /* SSE: bytes of the byte order mark that are past */
    uint8_t done_len;   /* SSE: bytes of the data, while they match [DONE] */
    bool after_cr;      /* SSE: a LF belongs to the CR before */
    bool has_data;      /* SSE: the event has a data line */
    bool has_field;     /* SSE: a line came that is no comment, or a name and its colon */
    bool is_terminal;   /* the event says that the stream ends */
    bool carries_token; /* the event has content */
    bool repeats;       /* the event only repeats what came before (response.*.done) */
    bool watches;       /* a value that carries tokens, if it is not empty, was just entered */
    bool is_list;       /* the JSON value is an array of answers */
    bool is_message;    /* Anthropic's, of which a stop reason may be expected */
    bool has_stop_reason;
    bool scratch_full; /* the string is longer than the scratch */
    bool finished;
    uint8_t ended_in; /* SSE: enum http_usage_place at the end of the body */
    uint8_t slot;     /* what the next value is for */
    uint8_t enters;   /* the level of an object or array in that place */
    uint8_t scratch_len;
    uint8_t levels[HTTP_USAGE_LEVELS]; /* what each open container is */
    int64_t seen[6 + CHAIN_MEDIA];     /* figures of the answer or event being read, */
    uint64_t seen_text;                /* and bytes of its text */
    char name[8];
    uint16_t shape_head; /* bytes of the last token event before its text, 0: none */
    uint16_t shape_tail; /* and behind it */
    uint64_t shape_text; /* bytes of other text in it */
    struct http_json json;
    char scratch[HTTP_USAGE_SCRATCH + HTTP_JSON_SLACK];
    char shape[HTTP_USAGE_SHAPE_MAX];
};

void http_usage_init(struct http_usage *u, enum http_usage_form form);
void http_usage_feed(struct http_usage *u, const void *bytes, size_t len);

/* Once, at the end of the body. */
void http_usage_finish(struct http_usage *u);

/* The body ended and is not whole, although its framing may say so: a stream without the terminal
 * event of its API and without an error event, or half of a JSON value. A body of which nothing is
 * understood is never called unfinished; a stream in which nothing came but comments is. */
bool http_usage_unfinished(const struct http_usage *u);

/* Where a stream stands, for who must add an event of its own to what came so far. */
enum http_usage_place {
    HTTP_USAGE_BETWEEN, /* events */
    HTTP_USAGE_IN_NAME, /* of a field: an end of the line would make it one without a value */
    HTTP_USAGE_IN_LINE, /* of a field's value, or between two lines of an event */
};
enum http_usage_place http_usage_place(const struct http_usage *u);

#endif
