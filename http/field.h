/* Header fields with a meaning for the router. Each has a number, so a single bit test shows how to
 * treat a field. All others are HTTP_FIELD_OTHER and pass untouched. */
#ifndef HTTP_FIELD_H
#define HTTP_FIELD_H

#include "base/slice.h"

/* X(enumerator without HTTP_, lower-case name) */
#define HTTP_FIELD_MAP(X)                                                                          \
    X(HOST, "host")                                                                                \
    X(CONTENT_LENGTH, "content-length")                                                            \
    X(TRANSFER_ENCODING, "transfer-encoding")                                                      \
    X(CONNECTION, "connection")                                                                    \
    X(CONTENT_TYPE, "content-type")                                                                \
    X(CONTENT_ENCODING, "content-encoding")                                                        \
    X(EXPECT, "expect")                                                                            \
    X(UPGRADE, "upgrade")                                                                          \
    X(KEEP_ALIVE, "keep-alive")                                                                    \
    X(TE, "te")                                                                                    \
    X(TRAILER, "trailer")                                                                          \
    X(PROXY_CONNECTION, "proxy-connection")                                                        \
    X(PROXY_AUTHENTICATE, "proxy-authenticate")                                                    \
    X(PROXY_AUTHENTICATION_INFO, "proxy-authentication-info")                                      \
    X(PROXY_AUTHORIZATION, "proxy-authorization")                                                  \
    X(HTTP2_SETTINGS, "http2-settings")                                                            \
    X(AUTHORIZATION, "authorization")                                                              \
    X(API_KEY, "api-key")                                                                          \
    X(X_API_KEY, "x-api-key")                                                                      \
    X(COOKIE, "cookie")                                                                            \
    X(SET_COOKIE, "set-cookie")                                                                    \
    X(CACHE_CONTROL, "cache-control")                                                              \
    X(ORIGIN, "origin")                                                                            \
    X(ALLOW_ORIGIN, "access-control-allow-origin")                                                 \
    X(USER_AGENT, "user-agent")                                                                    \
    X(ACCEPT, "accept")                                                                            \
    X(ACCEPT_ENCODING, "accept-encoding")                                                          \
    X(DATE, "date")                                                                                \
    X(SERVER, "server")                                                                            \
    X(LOCATION, "location")                                                                        \
    X(RETRY_AFTER, "retry-after")                                                                  \
    X(FORWARDED, "forwarded")                                                                      \
    X(X_FORWARDED_FOR, "x-forwarded-for")                                                          \
    X(X_FORWARDED_PROTO, "x-forwarded-proto")                                                      \
    X(X_FORWARDED_HOST, "x-forwarded-host")                                                        \
    X(X_REAL_IP, "x-real-ip")                                                                      \
    X(VIA, "via")                                                                                  \
    X(X_REQUEST_ID, "x-request-id")                                                                \
    X(X_SESSION_ID, "x-session-id")                                                                \
    X(TRACEPARENT, "traceparent")                                                                  \
    X(TRACESTATE, "tracestate")                                                                    \
    X(X_GRAPEVINE_REPLICA, "x-grapevine-replica")                                                  \
    X(ENDPOINT_LOAD_METRICS, "endpoint-load-metrics") /* and every longer name with this prefix */ \
    /* Families, matched in any case and with '_' for '-': field_family.c has their names. */      \
    X(FORWARDING, "") /* X-Forwarded-Port and other fields in which proxies describe a client */   \
    X(ENGINE_HEADER, "") /* fields between engines (engine_field.h) */                             \
    X(X_GRAPEVINE, "")   /* x-grapevine-...: fields from routers to clients */

enum http_field_id {
    HTTP_FIELD_OTHER,
#define HTTP_FIELD_ENUM(id, name) HTTP_##id,
    HTTP_FIELD_MAP(HTTP_FIELD_ENUM)
#undef HTTP_FIELD_ENUM
        HTTP_FIELD_IDS,
};

_Static_assert(HTTP_FIELD_IDS <= 64, "sets of fields are 64-bit masks");

#define HTTP_FIELD_BIT(id) (UINT64_C(1) << (id))

/* A field to be written. The caller ensures that the syntax is valid (http_field_is_valid). */
struct http_line {
    struct slice name, value;
};

/* The id of a field's name. The name must be a token (RFC 9110, section 5.6.2), in any case. */
enum http_field_id http_field_lookup(struct slice name);
/* The family of a name without a separate id (field_family.c), or HTTP_FIELD_OTHER. */
enum http_field_id http_field_family(struct slice name);

/* The lower-case name; empty for HTTP_FIELD_OTHER and families. */
struct slice http_field_name(enum http_field_id id);

/* True if the name is a token and the value has no control bytes and no outer white space. */
bool http_field_is_valid(struct http_line line);

#endif
