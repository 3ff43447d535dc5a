/* Writes the answers that the router itself gives to a client. */
#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

#include "base/buf.h"
#include "base/err.h"
#include "http/error.h"
#include "http/field.h"
#include "http/status.h"

struct http_answer {
    unsigned status;
    struct slice content_type; /* empty: no Content-Type is sent */
    struct slice body;
    const struct http_line *extra;
    size_t extra_count;
    unsigned client_minor; /* the client speaks HTTP/1.client_minor */
    bool close;            /* the connection closes after the answer */
    bool head_request;     /* an answer to HEAD: the length is sent, the body is not */
    bool endless;          /* no length is sent: the connection's end ends the body, so `close` must
                            * be set */
};

/* Appends an answer's head and body to `out`. Content-Length is always written, except for endless
 * answers and for 1xx, 204 and 304, which have no body (RFC 9112, section 6.3). ERR_NOMEM,
 * ERR_LIMIT: `out` is unchanged. */
MUST_USE int http_answer_write(struct buf *out, const struct http_answer *answer);

/* Writes `answer` as http_answer_write() does, but with the error's status and the error as JSON
 * body. `answer` itself stays unchanged. ERR_NOMEM, ERR_LIMIT: `out` is unchanged. */
MUST_USE int http_answer_error_write(struct buf *out, const struct http_answer *answer,
                                     const struct http_error *error);

#define HTTP_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

#endif
