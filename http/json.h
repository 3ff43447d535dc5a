/* A strict JSON tokenizer (RFC 8259). The caller feeds bytes in any splits and pulls tokens.
 *
 *     struct slice in = bytes that just arrived;
 *     while ((token = http_json_next(&json, &in)) > HTTP_JSON_MORE)
 *         if (token == HTTP_JSON_KEY || token == HTTP_JSON_STRING)
 *             while (http_json_in_text(&json) && in.len > 0)
 *                 n = http_json_text(&json, &in, out, room);    (unescaped bytes)
 *
 * Strings are not buffered. After KEY or STRING the caller gets the unescaped bytes with
 * http_json_text(), straight into the caller's memory, until http_json_in_text() is false. If the
 * input ends inside a string, the caller continues when more has arrived.
 *
 * The tokenizer refuses everything not allowed by RFC 8259 (a byte order mark, control bytes in
 * strings, NUL, bytes after the value). It also refuses nesting beyond HTTP_JSON_DEPTH_MAX and
 * numbers longer than HTTP_JSON_NUMBER_MAX. The RFC leaves two choices: bytes of strings need not
 * be UTF-8 and pass unchanged; a lone surrogate (\ud800) becomes three bytes (WTF-8).
 *
 * 1. Tokens and text do not depend on how the input was split.
 * 2. After an error every call answers HTTP_JSON_ERROR, or 0 bytes, and consumes nothing.
 */
#ifndef HTTP_JSON_H
#define HTTP_JSON_H

#include "base/slice.h"
#include "http/limits.h"

enum {
    HTTP_JSON_SLACK = 32, /* bytes behind `room`, which http_json_text() may overwrite */
};

enum http_json_token {
    HTTP_JSON_ERROR,
    HTTP_JSON_MORE, /* the input is used up */
    HTTP_JSON_OBJECT_BEGIN,
    HTTP_JSON_OBJECT_END,
    HTTP_JSON_ARRAY_BEGIN,
    HTTP_JSON_ARRAY_END,
    HTTP_JSON_KEY,    /* text follows */
    HTTP_JSON_STRING, /* text follows */
    HTTP_JSON_NUMBER, /* http_json_number() has the text */
    HTTP_JSON_TRUE,
    HTTP_JSON_FALSE,
    HTTP_JSON_NULL,
};

/* The two states tested by callers; json.c has the others. */
enum { HTTP_JSON_FAILED, HTTP_JSON_IN_TEXT, HTTP_JSON_STATES };

struct http_json {
    /* Written for every token. */
    uint8_t state;        /* what may come next: enum state in json.c */
    uint8_t number_state; /* position in the grammar of numbers */
    uint8_t literal;      /* token of the literal being read */
    uint8_t matched;      /* bytes of `literal` so far */
    bool is_key;          /* the string being read is a key */
    uint16_t depth;
    uint16_t number_len;
    char pending[8];
    /* Written for unusual strings only. These members are kept apart from the members above,
     * because a processor that loads all of them at once waits for the latest store. */
    uint8_t escape;      /* position inside an escape, 0 = in none */
    uint8_t pending_len; /* unescaped bytes without space in the caller's buffer yet */
    uint16_t unit;       /* the \u escape being read */
    uint16_t high;       /* a high surrogate, whose low surrogate has not come yet; 0: none */
    struct slice number; /* text of the last NUMBER: in the input or in number_text */
    uint64_t is_object[HTTP_JSON_DEPTH_MAX / 64]; /* a bit for each open container: 1 = object, 0 =
                                                   * array */
    char number_text[HTTP_JSON_NUMBER_MAX];
};

void http_json_init(struct http_json *j);

/* Takes bytes off the front of `in` up to the end of the next token. Must not be called while
 * http_json_in_text(). */
enum http_json_token http_json_next(struct http_json *j, struct slice *in);

/* True if the text of a KEY or STRING is not yet read to its end. */
static inline bool http_json_in_text(const struct http_json *j)
{
    return j->state == HTTP_JSON_IN_TEXT;
}

/* Takes bytes off the front of `in` and writes up to `room` unescaped bytes to `out`, which must
 * have HTTP_JSON_SLACK bytes more. Returns the number written. Stops at the end of the string or
 * input, when `out` is full, and at an error. */
size_t http_json_text(struct http_json *j, struct slice *in, char *out, size_t room);

/* Text of the NUMBER just returned; valid until the next call, while the input lives. */
static inline struct slice http_json_number(const struct http_json *j)
{
    return j->number;
}

/* After all input: true if the input was exactly one JSON value. (A number right at the end of the
 * input counts, though no token was returned.) */
bool http_json_finish(const struct http_json *j);

static inline bool http_json_failed(const struct http_json *j)
{
    return j->state == HTTP_JSON_FAILED;
}

#endif
