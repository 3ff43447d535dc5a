/* The router's own answers, errors included. */
#include "node/proxy/exchange/exchange_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "http/answer.h"
#include "node/proxy/engine/probe.h"

/* Returns the usual reason for an error with this status. */
static enum refusal refusal_of(unsigned status)
{
    static const struct {
        unsigned status;
        enum refusal why;
    } usual[] = {
        {403, REFUSED_PATH},       {404, REFUSED_PATH},        {405, REFUSED_PATH},
        {408, REFUSED_TIMEOUT},    {413, REFUSED_BODY_LIMIT},  {426, REFUSED_UPGRADE},
        {500, REFUSED_INTERNAL},   {502, REFUSED_BAD_GATEWAY}, {504, REFUSED_BAD_GATEWAY},
        {503, REFUSED_NO_REPLICA}, {508, REFUSED_LOOP},
    };
    for (size_t i = 0; i < ARRAY_LEN(usual); i++)
        if (usual[i].status == status)
            return usual[i].why;
    return REFUSED_MALFORMED;
}

unsigned exchange_because(struct exchange *x, enum refusal why)
{
    x->refusal = why;
    x->limit = refusal_rows[why].setting;
    return refusal_rows[why].status;
}

static void note_refusal(struct exchange *x, unsigned status)
{
    if (status < 400)
        return;
    x->refused = true;
    if (x->refusal == REFUSED_NONE)
        x->refusal = refusal_of(status);
}

static void count_refusal(struct exchange *x)
{
    if (x->refused && x->client->port == PROXY_PORT_CLIENT && !x->client->surplus)
        x->proxy->stats.requests_refused[x->refusal]++;
}

/* Writes header lines with the reason for the router's own error, and the setting behind the error.
 * Returns the number of lines. */
static size_t say_why(const struct exchange *x, struct http_line *lines)
{
    size_t n = 0;
    if (!x->refused || x->client->port != PROXY_PORT_CLIENT)
        return 0;
    lines[n++] = (struct http_line){SLICE("x-grapevine-reason"),
                                    slice_of_cstr(refusal_rows[x->refusal].word)};
    if (x->limit != NULL)
        lines[n++] = (struct http_line){SLICE("x-grapevine-limit"), slice_of_cstr(x->limit)};
    return n;
}

/* Returns true if a repeated request may succeed. A repetition is useless after poison, after a
 * request in a circle of routers, or after an engine's own error. */
static bool is_transient(const struct exchange *x, unsigned status)
{
    if (x->client->port != PROXY_PORT_CLIENT || x->route.kind == HTTP_PATH_HEALTH ||
        refusal_is_clients(x->refusal) || x->refusal == REFUSED_POISON ||
        x->refusal == REFUSED_LOOP || x->refusal == REFUSED_BY_ENGINE)
        return false;
    return status == 408 || status == 429 || status >= 500;
}

/* Adds the words by which client programs decide to repeat a request: a type, and a text after the
 * message, for programs that read only the message (docs/agents.md). `out` has the new message. */
static void say_error(const struct exchange *x, struct http_error *e, char out[EXCHANGE_WORDS])
{
    e->transient = is_transient(x, e->status);
    if (!e->transient)
        return;
    const char *kind = e->status == 429   ? "too many requests"
                       : e->status == 408 ? "request timeout"
                                          : "server error";
    char when[24] = "later";
    if (x->retry_after_s > 0)
        (void)snprintf(when, sizeof when, "in %u s", x->retry_after_s);
    if (e->message.len > EXCHANGE_WORDS - EXCHANGE_WORDS_ADDED)
        e->message.len = EXCHANGE_WORDS - EXCHANGE_WORDS_ADDED;
    int n = snprintf(out, EXCHANGE_WORDS, "%.*s Provider returned error %u (%s): try again %s.",
                     SLICE_ARG(e->message), e->status, kind, when);
    CHECK(n > 0 && n < EXCHANGE_WORDS);
    e->message = slice_of(out, (size_t)n);
}

void exchange_event_say(const struct exchange *x, struct http_error *e, char out[EXCHANGE_WORDS])
{
    /* Client programs see no HTTP status in an event. Those that read "code" repeat after 503.
     * Anthropic's repeat after the type of an overload, which 503 gives. */
    if (e->status >= 500 && is_transient(x, e->status))
        e->status = 503;
    say_error(x, e, out);
}

enum http_error_form exchange_error_form(const struct exchange *x)
{
    struct slice path = slice_of_cstr(x->path); /* may be cut */
    size_t prefix = x->route.prefix < path.len ? x->route.prefix : path.len;
    switch (x->route.kind) {
    case HTTP_PATH_RESPONSES:
        return HTTP_ERROR_RESPONSES;
    case HTTP_PATH_GENERATE:
        return HTTP_ERROR_SGLANG;
    case HTTP_PATH_MESSAGES:
        return HTTP_ERROR_ANTHROPIC;
    default: /* also /v1/messages/count_tokens, and unknown paths below /v1/messages */
        return slice_starts_with(slice_skip(path, prefix), SLICE("/v1/messages"))
                   ? HTTP_ERROR_ANTHROPIC
                   : HTTP_ERROR_OPENAI;
    }
}

/* Ends a stream after the head was sent: writes an event with the error, and cuts the answer. */
static void end_stream(struct exchange *x, const struct http_error *error)
{
    struct http_error e = *error;
    char words[EXCHANGE_WORDS];
    struct buf event;
    buf_init(&event, 0);
    x->now.status = 200;
    x->event_status = error->status;
    exchange_event_say(x, &e, words);
    if (http_error_event_write(&event, &e) == 0) {
        client_gather(x->client, buf_slice(&event));
        x->bytes_out += client_flush(x->client, x->out_framing == HTTP_BODY_CHUNKED, false);
    }
    buf_free(&event);
    exchange_finish_cut(x);
}

bool exchange_answer_kept(struct exchange *x)
{
    struct exchange_kept *k = &x->kept;
    struct buf bytes = k->bytes;
    struct slice head = slice_of(bytes.at, k->head), rest = slice_skip(buf_slice(&bytes), k->head);
    k->bytes = (struct buf){0};
    x->refusal = REFUSED_NONE;
    x->limit = NULL;
    exchange_forget_answer(x);
    exchange_kept_drop(x);
    x->now.outcome = NODE_OUTCOME_REJECTED;
    if (k->is_error) {
        exchange_answer_engine_error(x, k->what.replica, k->what.status, head.at, rest.at);
    } else {
        x->now.status = k->what.status;
        x->out_framing = k->framing;
        x->client->last = x->client->last || k->last;
        exchange_goes(x, ATTEMPT_HELD);
        exchange_goes(x, ATTEMPT_ANSWERING);
        client_gather_front(x->client, head, rest);
        x->bytes_out += client_flush(x->client, x->out_framing == HTTP_BODY_CHUNKED, true);
        exchange_finish(x);
    }
    buf_free(&bytes);
    return true;
}

static void answer(struct exchange *x, const struct http_answer *given,
                   const struct http_error *error)
{
    if (error != NULL && exchange_kept_stands(x)) {
        (void)exchange_answer_kept(x);
        return;
    }
    unsigned status = error != NULL ? error->status : given->status;
    note_refusal(x, status);
    if (x->alive && error != NULL) {
        end_stream(x, error);
        return;
    }
    struct http_answer a = *given;
    struct http_error e;
    char words[EXCHANGE_WORDS];
    struct http_line lines[12 + EXCHANGE_CORS_LINES];
    size_t n = 0;
    CHECK(a.extra_count + 5 + EXCHANGE_CORS_LINES <= ARRAY_LEN(lines));
    for (; n < a.extra_count; n++)
        lines[n] = a.extra[n];
    if (x->request_id.len > 0)
        lines[n++] = (struct http_line){SLICE("x-request-id"), x->request_id};
    if (x->probe)
        lines[n++] =
            (struct http_line){SLICE(PROBE_ROUTER_NAME), slice_of_cstr(x->proxy->identity)};
    x->now.status = status;
    n += say_why(x, lines + n);
    if (error != NULL) {
        e = *error;
        say_error(x, &e, words);
        if (status >= 500 && !e.transient && x->refusal != REFUSED_BY_ENGINE &&
            x->client->port == PROXY_PORT_CLIENT && x->route.kind != HTTP_PATH_HEALTH)
            lines[n++] = (struct http_line){SLICE("x-should-retry"), SLICE("false")};
    }
    n += exchange_cors_lines(x, lines + n);
    a.extra = lines;
    a.extra_count = n;
    a.client_minor = x->minor;
    a.close = x->client->last || x->client->state == CLIENT_BODY;
    a.head_request = x->request.to_head;
    count_refusal(x);
    struct buf *out = &x->proxy->scratch;
    buf_clear(out);
    int err = error != NULL ? http_answer_error_write(out, &a, &e) : http_answer_write(out, &a);
    if (err != 0) {
        exchange_cut(x, CLIENT_END_NO_MEMORY, false);
        return;
    }
    x->bytes_out += out->len;
    struct slice text = buf_slice(out);
    if (a.close)
        x->client->last = true;
    client_write(x->client, &text, 1);
    exchange_finish(x);
}

void exchange_answer(struct exchange *x, unsigned status, struct slice content_type,
                     struct slice body, const struct http_line *extra, size_t extra_count)
{
    struct http_answer a = {.status = status,
                            .content_type = content_type,
                            .body = body,
                            .extra = extra,
                            .extra_count = extra_count};
    answer(x, &a, NULL);
}

bool exchange_endless_begin(struct exchange *x, struct slice content_type,
                            const struct http_line *extra, size_t extra_count)
{
    struct http_answer a = {.status = 200,
                            .content_type = content_type,
                            .extra = extra,
                            .extra_count = extra_count,
                            .client_minor = x->minor,
                            .close = true,
                            .endless = true};
    if (x->request.to_head) {
        exchange_answer(x, 200, content_type, slice_of("", 0), extra, extra_count);
        return false;
    }
    struct buf *out = &x->proxy->scratch;
    buf_clear(out);
    if (http_answer_write(out, &a) != 0) {
        exchange_cut(x, CLIENT_END_NO_MEMORY, false);
        return false;
    }
    struct slice text = buf_slice(out);
    x->now.status = 200;
    x->endless = true;
    x->client->last = true;
    client_write(x->client, &text, 1);
    return true;
}

bool exchange_endless_write(struct exchange *x, struct slice text)
{
    CHECK(x->endless);
    if (x->client->out_bytes > 0)
        return false;
    x->bytes_out += text.len;
    client_write(x->client, &text, 1);
    return true;
}

void exchange_endless_end(struct exchange *x)
{
    CHECK(x->endless);
    exchange_finish(x);
}

/* Answers with an error and these header lines. `type`: the type of the engine's error; empty: the
 * status decides. */
static void answer_error_lines(struct exchange *x, unsigned status, const char *type,
                               struct slice param, const char *text, const struct http_line *lines,
                               size_t count)
{
    struct http_answer a = {.extra = lines, .extra_count = count};
    struct http_error error = {.form = exchange_error_form(x),
                               .message = slice_of_cstr(text),
                               .request_id = x->request_id,
                               .type = slice_of_cstr(type),
                               .param = param,
                               .status = status};
    answer(x, &a, &error);
}

/* Answers with an error, and with header lines for Retry-After and the replica. `replica`: the
 * replica at fault; empty: the router itself. */
static void answer_error_text(struct exchange *x, unsigned status, const char *type,
                              struct slice param, const char *text, struct slice replica)
{
    char seconds[16];
    struct http_line lines[2];
    size_t n = 0;
    unsigned after_s = x->retry_after_s > 0 ? x->retry_after_s : status == 503 || status == 429;
    (void)snprintf(seconds, sizeof seconds, "%u", after_s);
    if (after_s > 0)
        lines[n++] = (struct http_line){SLICE("retry-after"), slice_of_cstr(seconds)};
    if (replica.len > 0)
        lines[n++] = (struct http_line){SLICE("x-grapevine-replica"), replica};
    answer_error_lines(x, status, type, param, text, lines, n);
}

void exchange_answer_error(struct exchange *x, unsigned status, struct slice param,
                           const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    answer_error_text(x, status, "", param, text, slice_of("", 0));
}

void exchange_answer_refusal(struct exchange *x, enum refusal why)
{
    exchange_answer_error(x, exchange_because(x, why), slice_of("", 0), "%s",
                          refusal_rows[why].text);
}

void exchange_answer_engine_error(struct exchange *x, unsigned replica, unsigned status,
                                  const char *type, const char *text)
{
    const struct proxy *p = x->proxy;
    struct slice name = slice_of("", 0);
    if (p->config.options->replica_header)
        name = node_router_replica_name(p->config.router, replica);
    if (x->refusal == REFUSED_NONE)
        x->refusal = REFUSED_BY_ENGINE;
    answer_error_text(x, status, type, slice_of("", 0), text, name);
}

void exchange_answer_error_with(struct exchange *x, unsigned status, const char *text,
                                const struct http_line *line)
{
    answer_error_lines(x, status, "", slice_of("", 0), text, line, 1);
}

void exchange_answer_not_allowed(struct exchange *x, struct slice path, const char *methods)
{
    struct http_line allow = {SLICE("allow"), slice_of_cstr(methods)};
    char text[256];
    (void)snprintf(text, sizeof text, "%.*s takes %s.", path.len > 100 ? 100 : (int)path.len,
                   path.at, methods);
    answer_error_lines(x, 405, "", slice_of("", 0), text, &allow, 1);
}

void exchange_answer_upgrade(struct exchange *x)
{
    static const struct http_line lines[] = {{SLICE("upgrade"), SLICE("HTTP/1.1")},
                                             {SLICE("connection"), SLICE("upgrade")}};
    answer_error_lines(x, 426, "", slice_of("", 0),
                       "WebSocket is not served here: send the request with HTTP/1.1.", lines,
                       ARRAY_LEN(lines));
}

void exchange_refuse_for(struct client *c, const struct exchange_refusal *why)
{
    struct exchange *x = c->exchange;
    if (x == NULL)
        x = exchange_new(c);
    if (x == NULL) {
        client_close(c, false);
        return;
    }
    c->exchange = x;
    x->refusal = why->refusal != REFUSED_NONE ? why->refusal : x->refusal;
    x->limit = why->limit != NULL ? why->limit : x->limit;
    if (exchange_is_committed(x) || x->alive) {
        if (x->refusal == REFUSED_NONE)
            x->refusal = refusal_of(why->status);
        exchange_cut(x, CLIENT_END_REFUSED, false);
        return;
    }
    if (x->now.booked) /* the error is not the replica's, which has not answered */
        x->now.outcome = NODE_OUTCOME_CLIENT_GONE;
    c->last = true;
    c->lingering = true;
    answer_error_text(x, why->status, "", slice_of("", 0), why->text, slice_of("", 0));
}

void exchange_refuse(struct client *c, unsigned status, const char *text)
{
    struct exchange_refusal why = {.status = status, .text = text};
    exchange_refuse_for(c, &why);
}

void exchange_refuse_because(struct client *c, enum refusal why)
{
    const struct refusal_row *row = &refusal_rows[why];
    struct exchange_refusal refusal = {row->status, why, row->setting, row->text};
    exchange_refuse_for(c, &refusal);
}
