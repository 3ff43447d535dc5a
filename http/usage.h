/* The scanner of answers: extracts token counts, errors and the end from an engine's answer as it
 * streams.
 *
 *     http_usage_init(&usage, HTTP_USAGE_SSE);
 *     http_usage_feed(&usage, bytes, len);   for each piece of the body, in any splits
 *     http_usage_finish(&usage);             at the end of the body
 *
 * The scanner stores nothing of the body and changes nothing. Server-sent events are framed as in
 * the WHATWG standard (CR, LF or CRLF, comments, data on several lines). Their data, or the whole
 * plain body, goes through the JSON tokenizer on arrival, so no event is too large. Data that is no
 * JSON is ignored. Most events of a stream differ only in the text. An event equal to the last
 * token event in all but the text is not parsed again, which saves seven eighths of the cost. The
 * scanner understands OpenAI's chat, completions and responses, Anthropic's messages, vLLM's
 * generate, and Ollama's and SGLang's native forms, single or as an array (figures are added up).
 *
 * A stream ends with the API's terminal event or with an error event. A stream with neither was cut
 * (http_usage_unfinished). The finish reason "abort" is an error as well, because the engine itself
 * ended the request. So are a message without a stop reason and a cancelled response: vLLM's aborts
 * in the Messages and Responses APIs.
 *
 * All results may be read at any time; they become more complete as the body arrives.
 */
#ifndef HTTP_USAGE_H
#define HTTP_USAGE_H

#include "base/chain.h"
#include "base/slice.h"
#include "http/json.h"

enum http_usage_form {
    HTTP_USAGE_SSE,
    HTTP_USAGE_JSON,
    HTTP_USAGE_LINES, /* a JSON value per line: Ollama's streams */
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
    int64_t prompt_tokens; /* including cached ones, whatever the engine's convention */
    int64_t cached_tokens;
    int64_t completion_tokens;
    int64_t media_tokens[CHAIN_MEDIA]; /* the prompt's media tokens, by medium */
    bool first_token; /* text, reasoning or a tool call has arrived, not just a role */
    bool done;        /* the stream's end ([DONE], message_stop, response.completed, ...), the end
                       * of the JSON value, or of a body of lines, has arrived */
    bool error;       /* an error object in the stream or in place of the answer */
    bool error_whole; /* the event with the error has arrived completely */
    bool aborted;     /* the error is the finish reason "abort": the engine gave the request up */
    bool understood;  /* SSE: an event was an object; JSON: the body begins like an object */
    /* The error's HTTP status, from the error's code or type; 0: unknown. */
    unsigned error_status;
    int64_t sequence_number; /* number of the last event (OpenAI's responses); -1: none */
    unsigned token_events;   /* events with tokens */
    uint64_t text_bytes;     /* bytes of text in token events; too many for SGLang's native
                              * events, because each repeats the earlier text */
    char response_id[HTTP_USAGE_ID_MAX + 1]; /* empty while unknown, or if too long */

    /* Private to usage.c and usage_json.c. */
    uint8_t form;
    uint8_t line;       /* SSE: enum line in usage.c */
    uint8_t name_len;   /* SSE: bytes of the field name */
    uint8_t mark_len;   /* SSE: bytes read of the byte order mark */
    uint8_t done_len;   /* SSE: bytes of the data, while they match [DONE] */
    bool after_cr;      /* SSE: the last byte was a CR: a LF now belongs to the same line end */
    bool has_data;      /* SSE: the event has a data line */
    bool has_field;     /* SSE: a complete line that is no comment, or a name with a colon, has
                           arrived */
    bool is_terminal;   /* the event ends the stream */
    bool carries_token; /* the event has content */
    bool repeats;       /* the event only repeats earlier content (response.*.done) */
    bool watches;       /* an object or array has begun, which has tokens unless empty */
    bool is_list;       /* the JSON value is an array of answers */
    bool is_message;    /* an Anthropic message, which should have a stop reason */
    bool has_stop_reason;
    bool scratch_full; /* the string is longer than the scratch */
    bool finished;
    uint8_t ended_in; /* SSE: enum http_usage_place at the end of the body */
    uint8_t slot;     /* meaning of the next value */
    uint8_t enters;   /* the level that an object or array opens if it is the next value */
    uint8_t scratch_len;
    uint8_t levels[HTTP_USAGE_LEVELS]; /* level of each open container */
    int64_t seen[6 + CHAIN_MEDIA];     /* figures of the answer or event being read */
    uint64_t seen_text;                /* bytes of text in the answer or event being read */
    char name[8];
    uint16_t shape_head; /* bytes of the last token event before the text, 0: none */
    uint16_t shape_tail; /* bytes of the last token event after the text */
    uint64_t shape_text; /* bytes of texts in the last token event, besides the text left out of
                          * `shape` */
    struct http_json json;
    char scratch[HTTP_USAGE_SCRATCH + HTTP_JSON_SLACK];
    char shape[HTTP_USAGE_SHAPE_MAX];
};

void http_usage_init(struct http_usage *u, enum http_usage_form form);
void http_usage_feed(struct http_usage *u, const void *bytes, size_t len);

/* Completes the results. Call once, at the end of the body. */
void http_usage_finish(struct http_usage *u);

/* True if the body ended incomplete, although the framing may look complete: a stream without the
 * API's terminal event and without an error event, or an incomplete JSON value. A body that was not
 * understood is never unfinished; a stream with nothing but comments is. */
bool http_usage_unfinished(const struct http_usage *u);

/* The position in a stream, for callers that add an event. */
enum http_usage_place {
    HTTP_USAGE_BETWEEN, /* between two events */
    HTTP_USAGE_IN_NAME, /* in a field name: an end of the line would complete a field without a
                           value */
    HTTP_USAGE_IN_LINE, /* in a field's value, or between two lines of an event */
};
enum http_usage_place http_usage_place(const struct http_usage *u);

#endif
