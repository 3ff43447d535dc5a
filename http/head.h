/* Parses heads of HTTP/1.1 messages (RFC 9112) as a proxy must: input with two possible readings is
 * refused, never forwarded.
 *
 * The parser works on a contiguous buffer, allocates nothing and copies nothing. Every slice of
 * struct http_head points into the buffer (or at a literal), and is valid as long as the buffer.
 *
 *     while ((err = http_request_parse(&head, at, len, &limits)) == ERR_AGAIN) {
 *         do
 *             read more;
 *         while (!http_head_progress(&progress, at, len, &limits));
 *     }
 *
 * Also refused, beyond RFC 9112: a repeated Host, Content-Length or Transfer-Encoding; lists of
 * lengths; Content-Length with Transfer-Encoding; any transfer coding but a single "chunked"; bare
 * CR or LF; control bytes; folded lines; characters not in RFC 3986; user info; Content_Length and
 * the like; TRACE, CONNECT and unregistered methods.
 *
 * Invariants after a parser returned 0:
 *   1. bytes <= head_bytes_max, field_count <= fields_max, every name is a token, no value holds a
 *      control byte but HTAB or has white space at either end.
 *   2. fields[i].name.at is the first byte of line i. A line ends where the next begins, the
 *      last line 2 bytes before `bytes`. Forwarding copies runs of lines by this.
 *   3. `framing` is the only framing of the body. content_length is 0 unless `framing` is
 *      HTTP_BODY_LENGTH or length_given is set.
 */
#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

#include "base/err.h"
#include "base/slice.h"
#include "http/field.h"
#include "http/limits.h"

struct http_limits {
    size_t head_bytes_max;   /* a longer head gets 431 */
    size_t target_bytes_max; /* a longer target gets 414 */
    unsigned fields_max;     /* more fields get 431; at most HTTP_FIELDS_MAX */
};

/* 32 KiB, 8 KiB, 100. */
extern const struct http_limits http_limits_default;

enum http_method {
    HTTP_METHOD_OTHER, /* refused with 501 */
    HTTP_METHOD_GET,
    HTTP_METHOD_HEAD,
    HTTP_METHOD_POST,
    HTTP_METHOD_PUT,
    HTTP_METHOD_DELETE,
    HTTP_METHOD_OPTIONS,
    HTTP_METHOD_PATCH,
    HTTP_METHODS,
};

enum http_framing { HTTP_BODY_NONE, HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_UNTIL_CLOSE };

struct http_field {
    struct slice name, value;
    uint8_t id; /* enum http_field_id */
};

struct http_head {
    enum http_method method;
    struct slice method_text;
    struct slice target; /* as sent */
    struct slice host;   /* Host, or the authority of an absolute target; empty: none (HTTP/1.0) */
    struct slice path;   /* "*" for OPTIONS *; "/" if an absolute target has none */
    struct slice query;  /* without '?' */
    bool has_query;      /* a '?' was sent, maybe without a query */

    unsigned status; /* status of a response; 0 in a request */
    struct slice reason;

    unsigned minor; /* HTTP/1.minor */
    enum http_framing framing;
    uint64_t content_length;
    bool length_given;     /* Content-Length was sent (an answer to HEAD or a 304 has no body even
                            * so) */
    bool keep_alive;       /* the connection persists after this message */
    bool expect_continue;  /* the client waits for 100 before sending the body */
    bool connection_names; /* Connection lists more than "close" and "keep-alive" */

    unsigned field_count;
    struct http_field fields[HTTP_FIELDS_MAX];
    uint16_t first[HTTP_FIELD_IDS]; /* index + 1 of the first field of each id, 0 = absent */
    const char *at;                 /* the parsed buffer */
    size_t bytes;                   /* bytes of the head, with the blank line */

    unsigned refusal;         /* the status to answer after an error */
    const char *refusal_text; /* a short reason for `refusal` */
    bool fields_exceeded;     /* 431 because of fields_max, not of head_bytes_max */
};

/* Parse the head of a request or of a response at the front of `at`. Both return 0; ERR_AGAIN if
 * the head is incomplete and valid so far; or ERR_SYNTAX, ERR_LIMIT or ERR_UNSUPPORTED. Errors set
 * `refusal`: 400, 414, 417, 431, 501 or 505 for a request, 502 for a response. After a refusal the
 * connection is unusable, because the start of the next message is unknown. Up to two empty lines
 * before a request are skipped (RFC 9112, 2.2). In http_response_parse(), `head_request` says that
 * the request was HEAD. 1xx heads are returned like others (no body; the next head follows). 101 is
 * refused, because the router never requests an upgrade. */
MUST_USE int http_request_parse(struct http_head *head, const char *at, size_t len,
                                const struct http_limits *limits);
MUST_USE int http_response_parse(struct http_head *head, const char *at, size_t len,
                                 bool head_request, const struct http_limits *limits);

/* Progress through an incomplete head. All zero at the start of each message. */
struct http_progress {
    size_t searched;    /* bytes searched without finding the head's end */
    size_t line_start;  /* start of the line at `searched` */
    size_t parse_again; /* length from which to parse again in any case */
};

/* After ERR_AGAIN: true if parsing `len` bytes could now end differently, because the blank line or
 * a bare LF has arrived, or the limit is reached. Also true each time the length has doubled, so
 * that errors are seen early while the total effort stays linear. */
bool http_head_progress(struct http_progress *progress, const char *at, size_t len,
                        const struct http_limits *limits);

static inline bool http_head_has(const struct http_head *head, enum http_field_id id)
{
    return head->first[id] != 0;
}

/* Value of the first field with this id, or empty. */
static inline struct slice http_head_get(const struct http_head *head, enum http_field_id id)
{
    return head->first[id] != 0 ? head->fields[head->first[id] - 1].value : slice_of("", 0);
}

/* Value of the first field with this name (any case), or empty with a NULL `at`. */
struct slice http_head_find(const struct http_head *head, struct slice name);

/* True if a list of tokens (Connection, TE) has this token, in any case. */
bool http_list_has(struct slice list, struct slice token);

#endif
