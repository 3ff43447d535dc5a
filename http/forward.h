/* Forwards heads: writes a parsed request for an engine, and a parsed response for a client.
 *
 * End-to-end fields are copied as received, in their order, in runs of whole lines. Dropped are
 * Expect, Content-Length (written anew), ORCA load reports (endpoint-load-metrics*), every field
 * that Connection names, and hop-by-hop fields (RFC 9110, section 7.6.1). The hop-by-hop fields are
 * Connection, Keep-Alive, Proxy-Connection, TE, Trailer, Transfer-Encoding, Upgrade,
 * Proxy-Authenticate, Proxy-Authorization, Proxy-Authentication-Info and HTTP2-Settings. Fields
 * listed in field.h stay even if Connection names them: a client must not strip X-Forwarded-For or
 * Authorization.
 *
 * Both writers append to `out` after a single reservation; an error (ERR_NOMEM, ERR_LIMIT) leaves
 * `out` unchanged. The parsed buffer of the head must still exist.
 */
#ifndef HTTP_FORWARD_H
#define HTTP_FORWARD_H

#include "base/buf.h"
#include "base/err.h"
#include "http/head.h"

struct http_forward_request {
    struct slice path;           /* the path to request; empty: the path of the head */
    struct slice host;           /* the Host to send; empty: the client's Host */
    struct slice host_fallback;  /* the Host to send if the client sent none (HTTP/1.0) */
    struct slice client_address; /* without port or brackets; empty: no forwarding fields */
    struct slice proto;          /* the client's scheme; empty: "http" */
    struct slice request_id;     /* replaces X-Request-Id; empty: what the client sent */
    struct slice via;            /* this router's pseudonym, appended to Via; empty: Via is
                                  * unchanged */
    bool distrust_client;        /* the client's forwarding fields are dropped, not continued */
    uint64_t drop;               /* further fields to drop, HTTP_FIELD_BIT of each */
    enum http_framing framing;   /* framing of the body as sent on: NONE, LENGTH or CHUNKED */
    uint64_t content_length;
    /* Fields to add; a field listed in field.h replaces the client's. */
    const struct http_line *extra;
    size_t extra_count;
};

/* Writes the head of a request: always HTTP/1.1, persistent, target in origin form (or "*"). Host
 * is the second line, where it can be found and changed. The client's address is appended to
 * X-Forwarded-For. X-Forwarded-Proto and -Host are set unless the client (a proxy before this
 * router) sent them. A client's Forwarded (RFC 7239) is continued. If the client is not trusted,
 * all of these fields are dropped first. */
MUST_USE int http_forward_request_write(struct buf *out, const struct http_head *head,
                                        const struct http_forward_request *how);

/* Adds Content-Length to a head written without it (framing NONE), once the body's length is
 * known. */
MUST_USE int http_forward_length_write(struct buf *out, uint64_t content_length);

enum { HTTP_LENGTH_ROOM = 20 }; /* digits of the longest Content-Length */

/* Changes Content-Length in a head written with framing LENGTH. ERR_NOMEM, ERR_LIMIT; neither
 * happens if the head has room for HTTP_LENGTH_ROOM more bytes. */
MUST_USE int http_forward_length_change(struct buf *head, uint64_t content_length);

/* Changes the Host of a head written by http_forward_request_write(). ERR_NOMEM, ERR_LIMIT. */
MUST_USE int http_forward_host_set(struct buf *head, struct slice host);

/* Sets a field in a written head, in place of all fields of the same name. An empty value removes
 * the field. */
MUST_USE int http_forward_field_set(struct buf *head, struct slice name, struct slice value);

/* A gateway appends itself to Via, so that loops are found (RFC 9110, section 7.6.3). A router does
 * so under a pseudonym: this prefix and 16 hex digits, random per process, which reveal no name or
 * address. A separate header (or CDN-Loop of RFC 8586) would tell no more. */
#define HTTP_VIA_ROUTER "grapevine-"

/* The number of routers that the request has passed, by Via; `*passed_self`: set if `self` is among
 * them. */
unsigned http_via_routers(const struct http_head *head, struct slice self, bool *passed_self);

struct http_forward_response {
    unsigned client_minor;     /* the client speaks HTTP/1.client_minor */
    bool keep_alive;           /* the client's connection persists */
    enum http_framing framing; /* framing of the body as sent on */
    uint64_t content_length;
    uint64_t drop; /* further fields to drop, HTTP_FIELD_BIT of each */
    /* Fields to add, such as x-request-id; a field listed in field.h replaces the engine's. */
    const struct http_line *extra;
    size_t extra_count;
};

/* The body framing of this response for a client of HTTP/1.client_minor. An HTTP/1.0 client cannot
 * read chunks, so the body ends with the connection (keep_alive must then be false). For other
 * clients a body that ended with the engine's connection is chunked, so that the client's
 * connection persists. */
enum http_framing http_forward_response_framing(const struct http_head *head,
                                                unsigned client_minor);

/* Writes the head of a response: always HTTP/1.1, if needed with "Connection: close", or
 * "keep-alive" for HTTP/1.0. Without a body (HEAD, 304) the engine's Content-Length is kept. */
MUST_USE int http_forward_response_write(struct buf *out, const struct http_head *head,
                                         const struct http_forward_response *how);

#endif
