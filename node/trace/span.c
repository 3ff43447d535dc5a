/* The spans of a request, as OTLP/JSON: the JSON form of opentelemetry.proto.trace.v1.Span, with
 * ids in hex and 64-bit numbers as strings. Attributes have the names of the semantic conventions
 * for HTTP and for GenAI; other names begin with "grapevine.". */
#include <stdlib.h>

#include "base/check.h"
#include "base/json_write.h"
#include "node/trace/trace_internal.h"

enum {
    SPAN_ROOM = 3072, /* bytes of a span without the strings in it */
    EVENT_ROOM = 128, /* bytes of an event without the name */
    ESCAPED = 6,      /* most bytes for each byte of a string */
    KIND_SERVER = 2,
    KIND_CLIENT = 3,
};

/* --- JSON ------------------------------------------------------------------------------------ */

/* Appends bytes for which the caller has reserved room. */
static inline void put(struct buf *b, const char *at, size_t len)
{
    if (len > 0) /* an empty text may be NULL */
        memcpy(b->at + b->len, at, len);
    b->len += len;
}

#define PUT(b, literal) put(b, literal, sizeof(literal) - 1)

static void put_u64(struct buf *b, uint64_t n)
{
    char digits[20];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    put(b, digits + at, sizeof digits - at);
}

static bool is_plain(struct slice s)
{
    unsigned odd = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.at[i];
        odd |= (unsigned)(c < 0x20) | (unsigned)(c > 0x7e) | (unsigned)(c == '"') |
               (unsigned)(c == '\\');
    }
    return odd == 0;
}

static void put_string(struct buf *b, struct slice s)
{
    if (!is_plain(s)) {
        CHECK(json_string_append(b, s) == 0);
        return;
    }
    PUT(b, "\"");
    put(b, s.at, s.len);
    PUT(b, "\"");
}

/* Attributes: the first of a list has no comma before. */
#define KEY(name) "{\"key\":\"" name "\",\"value\":{"
#define TEXT_FIRST(b, name, text)                                                                  \
    do {                                                                                           \
        PUT(b, KEY(name) "\"stringValue\":");                                                      \
        put_string(b, text);                                                                       \
        PUT(b, "}}");                                                                              \
    } while (0)
#define TEXT(b, name, text)                                                                        \
    do {                                                                                           \
        PUT(b, ",");                                                                               \
        TEXT_FIRST(b, name, text);                                                                 \
    } while (0)
/* Puts the attribute unless the text is empty. */
#define TEXT_IF(b, name, text)                                                                     \
    do {                                                                                           \
        if ((text).len > 0)                                                                        \
            TEXT(b, name, text);                                                                   \
    } while (0)
#define NUMBER(b, name, n)                                                                         \
    do {                                                                                           \
        PUT(b, "," KEY(name) "\"intValue\":\"");                                                   \
        put_u64(b, n);                                                                             \
        PUT(b, "\"}}");                                                                            \
    } while (0)
#define KNOWN(b, name, n)                                                                          \
    do {                                                                                           \
        if ((n) >= 0)                                                                              \
            NUMBER(b, name, (uint64_t)(n));                                                        \
    } while (0)
#define TRUTH(b, name) PUT(b, "," KEY(name) "\"boolValue\":true}}")

/* Appends a time of the router's clock, in ms, as nanoseconds since 1970, and the closing quote. */
static void put_time(struct buf *b, const struct trace_request *r, uint64_t ms)
{
    put_u64(b, ms + r->wall_ahead_ms);
    PUT(b, "000000\"");
}

static bool span_room(struct buf *b, size_t strings)
{
    return buf_reserve(b, SPAN_ROOM + ESCAPED * strings) == 0;
}

static void put_comma(struct buf *b)
{
    if (b->len > 0)
        PUT(b, ",");
}

static void span_begin(struct buf *b, const struct trace_request *r, const char *id,
                       const char *parent)
{
    PUT(b, "{\"traceId\":\"");
    put(b, r->self.trace, sizeof r->self.trace);
    PUT(b, "\",\"spanId\":\"");
    put(b, id, HTTP_SPAN_ID_HEX);
    if (parent != NULL) {
        PUT(b, "\",\"parentSpanId\":\"");
        put(b, parent, HTTP_SPAN_ID_HEX);
    }
    PUT(b, "\",\"name\":\"");
}

static void span_times(struct buf *b, const struct trace_request *r, uint64_t from, uint64_t to)
{
    PUT(b, ",\"startTimeUnixNano\":\"");
    put_time(b, r, from);
    PUT(b, ",\"endTimeUnixNano\":\"");
    put_time(b, r, to);
}

static void put_first_token(struct buf *b, const struct trace_request *r, uint64_t ms)
{
    PUT(b, "{\"timeUnixNano\":\"");
    put_time(b, r, ms);
    PUT(b, ",\"name\":\"first_token\"}");
}

/* Appends the attribute error.type: the word, or without a word the status. */
static void put_error(struct buf *b, const char *word, unsigned status)
{
    PUT(b, "," KEY("error.type") "\"stringValue\":\"");
    if (word != NULL && word[0] != '\0')
        put(b, word, strlen(word));
    else
        put_u64(b, status);
    PUT(b, "\"}}");
}

static void put_usage(struct buf *b, const struct trace_usage *u)
{
    KNOWN(b, "gen_ai.usage.input_tokens", u->prompt_tokens);
    KNOWN(b, "gen_ai.usage.output_tokens", u->completion_tokens);
    KNOWN(b, "gen_ai.usage.cache_read.input_tokens", u->cached_tokens);
}

/* --- events ---------------------------------------------------------------------------------- */

void trace_event(struct trace_request *r, struct slice name, uint64_t now_ms)
{
    struct buf *b = &r->events;
    if (b->len > TRACE_REQUEST_BYTES_MAX || buf_reserve(b, EVENT_ROOM + name.len) != 0) {
        r->dropped_events++;
        return;
    }
    put_comma(b);
    PUT(b, "{\"timeUnixNano\":\"");
    put_time(b, r, now_ms);
    PUT(b, ",\"name\":\"");
    put(b, name.at, name.len);
    PUT(b, "\"}");
}

/* --- attempts -------------------------------------------------------------------------------- */

void trace_attempt_sent(struct trace_request *r, const struct buf *head, uint64_t now_ms)
{
    if (!r->open) {
        r->open = true;
        r->attempt_began_ms = now_ms;
        trace_span_id(r->owner, r->attempt);
    }
    if (head != NULL)
        http_traceparent_aim(buf_slice(head), r->self.trace, r->attempt);
}

/* Puts host and port of a name such as "[::1]:8000". A name without a port gets no port. */
static void put_server(struct buf *b, struct slice server)
{
    size_t end = server.len, host = server.len;
    while (end > 0 && server.at[end - 1] >= '0' && server.at[end - 1] <= '9')
        end--;
    bool bracketed = server.len > 0 && server.at[0] == '[';
    if (end > 1 && end < server.len && server.at[end - 1] == ':')
        host = end - 1;
    struct slice name = slice_of(server.at, host);
    struct slice port = slice_skip(server, host < server.len ? host + 1 : host);
    if (bracketed && host > 2)
        name = slice_of(server.at + 1, host - 2);
    TEXT_IF(b, "server.address", name);
    if (port.len > 0 && port.len <= 5) {
        PUT(b, "," KEY("server.port") "\"intValue\":\"");
        put(b, port.at, port.len);
        PUT(b, "\"}}");
    }
}

static void write_attempt(const struct trace_request *r, struct buf *b,
                          const struct trace_attempt *a, uint64_t now_ms)
{
    struct slice method = slice_of_cstr(a->method);
    bool failed = a->error != NULL || a->status >= 400;
    put_comma(b);
    span_begin(b, r, r->attempt, r->self.span);
    put(b, method.at, method.len);
    PUT(b, "\",\"kind\":3");
    _Static_assert(KIND_CLIENT == 3, "as it stands there");
    span_times(b, r, r->attempt_began_ms, now_ms);
    PUT(b, ",\"attributes\":[");
    TEXT_FIRST(b, "http.request.method", method);
    put_server(b, a->server);
    if (a->status > 0)
        NUMBER(b, "http.response.status_code", a->status);
    if (a->number > 1)
        NUMBER(b, "http.request.resend_count", a->number - 1);
    if (failed)
        put_error(b, a->error, a->status);
    KNOWN(b, "gen_ai.usage.cache_read.input_tokens", a->cached_told);
    TEXT(b, "grapevine.replica", a->replica);
    TEXT(b, "grapevine.reason", slice_of_cstr(a->reason));
    NUMBER(b, "grapevine.cached_tokens.predicted", a->cached_predicted);
    PUT(b, "]");
    if (a->first_token_ms > 0) {
        PUT(b, ",\"events\":[");
        put_first_token(b, r, a->first_token_ms);
        PUT(b, "]");
    }
    if (failed)
        PUT(b, ",\"status\":{\"code\":2}");
    PUT(b, "}");
}

void trace_attempt_ended(struct trace_request *r, const struct trace_attempt *a, uint64_t now_ms)
{
    struct buf *b = &r->attempts;
    size_t strings = a->replica.len + a->server.len + (a->error != NULL ? strlen(a->error) : 0);
    if (!r->open)
        return;
    r->open = false;
    if (b->len > TRACE_REQUEST_BYTES_MAX || !span_room(b, strings)) {
        r->dropped_spans++;
        return;
    }
    write_attempt(r, b, a, now_ms);
    r->spans++;
}

/* --- the request itself ---------------------------------------------------------------------- */

static void put_name(struct buf *b, const struct trace_end *e)
{
    put(b, e->method, strlen(e->method));
    if (e->route.len > 0 && is_plain(e->route)) {
        PUT(b, " ");
        put(b, e->route.at, e->route.len);
    }
    PUT(b, "\",\"kind\":2");
    _Static_assert(KIND_SERVER == 2, "as it stands there");
}

static void put_request_attributes(struct buf *b, const struct trace_end *e)
{
    TEXT_FIRST(b, "http.request.method", slice_of_cstr(e->method));
    TEXT(b, "url.path", e->path);
    TEXT_IF(b, "http.route", e->route);
    TEXT_IF(b, "client.address", e->client);
    if (e->status > 0)
        NUMBER(b, "http.response.status_code", e->status);
    if (e->failed || e->status >= 500)
        put_error(b, e->reason, e->status);
    TEXT_IF(b, "gen_ai.operation.name", e->operation);
    TEXT_IF(b, "gen_ai.request.model", e->model);
    put_usage(b, &e->told);
    if (e->stream)
        TRUTH(b, "grapevine.stream");
    TEXT_IF(b, "grapevine.request_id", e->id);
    TEXT_IF(b, "grapevine.key", e->key);
    if (e->attempts > 1)
        NUMBER(b, "grapevine.attempts", e->attempts);
    TEXT_IF(b, "grapevine.replica", e->replica);
    TEXT_IF(b, "grapevine.refused", slice_of_cstr(e->reason));
    TEXT(b, "grapevine.end", slice_of_cstr(e->how));
}

static void write_request(struct trace_request *r, struct buf *b, const struct trace_end *e,
                          uint64_t now_ms)
{
    put_comma(b);
    span_begin(b, r, r->self.span, r->has_parent ? r->parent : NULL);
    put_name(b, e);
    span_times(b, r, r->began_ms, now_ms);
    PUT(b, ",\"attributes\":[");
    put_request_attributes(b, e);
    PUT(b, "],\"events\":[");
    put(b, r->events.at, r->events.len);
    if (e->first_token_ms > 0) {
        if (r->events.len > 0)
            PUT(b, ",");
        put_first_token(b, r, e->first_token_ms);
    }
    PUT(b, "]");
    if (r->dropped_events > 0) {
        PUT(b, ",\"droppedEventsCount\":");
        put_u64(b, r->dropped_events);
    }
    if (e->failed || e->status >= 500)
        PUT(b, ",\"status\":{\"code\":2}");
    PUT(b, "}");
}

void trace_end(struct trace_request *r, const struct trace_end *e, uint64_t now_ms)
{
    struct trace *t = r->owner;
    size_t strings = 2 * e->route.len + e->path.len + e->operation.len + e->model.len +
                     e->client.len + e->key.len + e->id.len + e->replica.len +
                     2 * strlen(e->reason) + strlen(e->how) + r->events.len;
    if (span_room(&r->attempts, strings)) {
        write_request(r, &r->attempts, e, now_ms);
        r->spans++;
    } else {
        t->dropped[TRACE_DROPPED_MEMORY]++;
    }
    t->dropped[TRACE_DROPPED_FULL] += r->dropped_spans;
    trace_put(t, buf_slice(&r->attempts), r->spans, now_ms);
    trace_drop(r);
}
