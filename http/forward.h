/* Heads that are forwarded: a parsed request written for an engine, a parsed response for a client.
 *
 * End-to-end fields are copied as they came, in their order, whole runs of lines at once. Dropped
 * are hop-by-hop fields (RFC 9110, section 7.6.1: Connection, Keep-Alive, Proxy-Connection, TE,
 * Trailer, Transfer-Encoding, Upgrade, Proxy-Authenticate, Proxy-Authorization,
 * Proxy-Authentication-Info, HTTP2-Settings), Expect, Content-Length (written anew), ORCA load
 * reports (endpoint-load-metrics*), and every field that Connection names. Fields that field.h
 * knows stay even if Connection names them: a client must not strip X-Forwarded-For or
 * Authorization.
 *
 * Both append to `out` after one reservation; an error (ERR_NOMEM, ERR_LIMIT) leaves it unchanged.
 * The head must still point into its buffer.
 */
#ifndef HTTP_FORWARD_H
#define HTTP_FORWARD_H

#include "base/buf.h"
#include "base/err.h"
#include "http/head.h"

struct http_forward_request {
    struct slice path;           /* to ask for; empty: the head's own */
    struct slice host;           /* to send as Host; empty: the client's own */
    struct slice host_fallback;  /* where that is empty as well (HTTP/1.0) */
    struct slice client_address; /* without port or brackets; empty: no forwarding fields */
    struct slice proto;          /* that the client used; empty: "http" */
    struct slice request_id;     /* replaces X-Request-Id; empty: what the client sent */
    struct slice via;            /* our own pseudonym, to be appended to Via; empty: Via passes */
    bool distrust_client;        /* forwarding fields of the client are dropped, not continued */
    uint64_t drop;               /* HTTP_FIELD_BIT of others that do not go on */
    enum http_framing framing;   /* of the body as it will be sent: NONE, LENGTH or CHUNKED */
    uint64_t content_length;
    const struct http_line *extra; /* fields to add; they replace those of the same known name */
    size_t extra_count;
};

/* Always HTTP/1.1, persistent, target in origin form (or "*").
 * Host is the second line, so that it can be found and changed. X-Forwarded-For gets the address appended; X-Forwarded-Proto and -Host are set unless the client
 * (a proxy before us) sent them; Forwarded (RFC 7239) is continued where it sent one. Of a client
 * that is not trusted all of them are dropped first. */
MUST_USE int http_forward_request_write(struct buf *out, const struct http_head *head,
                                        const struct http_forward_request *how);

/* Puts Content-Length behind a head that was written without it (framing NONE), because the length
 * of the body is known only now. */
MUST_USE int http_forward_length_write(struct buf *out, uint64_t content_length);

enum { HTTP_LENGTH_ROOM = 20 }; /* bytes */

/* The body has another length than the head says, which was written with framing LENGTH. ERR_NOMEM,
 * ERR_LIMIT; not where the head has room for HTTP_LENGTH_ROOM more. */
MUST_USE int http_forward_length_change(struct buf *head, uint64_t content_length);

/* Changes the Host of a head that http_forward_request_write() wrote. ERR_NOMEM, ERR_LIMIT. */
MUST_USE int http_forward_host_set(struct buf *head, struct slice host);

/* Sets a field of a head that was written: it replaces all of that name. An empty value: there is
 * none from now on. */
MUST_USE int http_forward_field_set(struct buf *head, struct slice name, struct slice value);

/* A gateway appends itself to Via, so that loops are found (RFC 9110, section 7.6.3). Routers do so
 * under a pseudonym: this prefix and 16 hex digits, random per process, which reveal no name or
 * address. A header of our own (or CDN-Loop of RFC 8586) would show no more. */
#define HTTP_VIA_ROUTER "grapevine-"

/* How many routers the request has passed, by its Via; `*passed_self`: `self` is one of them. */
unsigned http_via_routers(const struct http_head *head, struct slice self, bool *passed_self);

struct http_forward_response {
    unsigned client_minor;     /* of the client's HTTP/1.x */
    bool keep_alive;           /* the client's connection persists */
    enum http_framing framing; /* of the body as it will be sent */
    uint64_t content_length;
    uint64_t drop; /* HTTP_FIELD_BIT of others that do not go on */
    const struct http_line
        *extra; /* e.g. x-request-id; they replace those of the same known name */
    size_t extra_count;
};

/* How the body of this response goes to a client of HTTP/1.client_minor: an HTTP/1.0 client cannot
 * read chunks, so its body ends with the connection (keep_alive must then be false); a body that
 * ended with the engine's connection is chunked for others, so that the client's persists. */
enum http_framing http_forward_response_framing(const struct http_head *head,
                                                unsigned client_minor);

/* Always HTTP/1.1, with "Connection: close", or "keep-alive" for HTTP/1.0, where needed. Without a
 * body (HEAD, 304) the engine's Content-Length is kept. */
MUST_USE int http_forward_response_write(struct buf *out, const struct http_head *head,
                                         const struct http_forward_response *how);

#endif
