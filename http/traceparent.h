/* W3C Trace Context (Recommendation of November 2021): the header field traceparent.
 *
 *     traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
 *                  version - trace id - parent's span id - flags
 *
 * Ids stay hex text, as in OTLP/JSON.
 */
#ifndef HTTP_TRACEPARENT_H
#define HTTP_TRACEPARENT_H

#include "http/head.h"

enum {
    HTTP_TRACE_ID_HEX = 32,
    HTTP_SPAN_ID_HEX = 16,
    HTTP_TRACEPARENT_BYTES = 55, /* bytes of a traceparent of version 00 */
    HTTP_TRACEPARENT_SPAN_AT = 36,
};

struct http_traceparent {
    char trace[HTTP_TRACE_ID_HEX];
    char span[HTTP_SPAN_ID_HEX]; /* the parent's span id */
    bool sampled;
};

/* Reads a traceparent. False: `text` is no valid traceparent, and the request begins a new trace
 * (section 4.3). Of a later version the first four fields are read. */
bool http_traceparent_parse(struct slice text, struct http_traceparent *out);
/* Parses a request's traceparent. False also if the request has none or several. */
bool http_traceparent_find(const struct http_head *head, struct http_traceparent *out);

/* Writes a traceparent of version 00, without a NUL. */
void http_traceparent_write(const struct http_traceparent *t, char out[HTTP_TRACEPARENT_BYTES]);

/* Sets the parent's span id in a written head. The head must have a traceparent of this trace, made
 * by http_traceparent_write(). */
void http_traceparent_aim(struct slice head, const char trace[HTTP_TRACE_ID_HEX],
                          const char span[HTTP_SPAN_ID_HEX]);

#endif
