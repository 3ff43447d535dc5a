#include "node/io/exchange.h"

#include <stdarg.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "http/answer.h"
#include "http/forward.h"
#include "node/io/local.h"
#include "node/io/output.h"

enum { EXCHANGES_KEPT = 256 };

/* --- life ----------------------------------------------------------------------------------- */

static struct exchange *exchange_new(struct client *c)
{
    struct shell *shell = c->shell;
    struct exchange *x = shell->exchange_free;
    if (x != NULL) {
        shell->exchange_free = x->next_free;
        shell->exchange_free_count--;
    } else {
        x = malloc(sizeof *x);
        if (x == NULL)
            return NULL;
        buf_init(&x->head, 0);
    }
    struct buf head = x->head;
    memset(x, 0, offsetof(struct exchange, usage));
    head.len = 0;
    x->head = head;
    x->body = body_new();
    if (x->body == NULL) {
        buf_free(&x->head);
        free(x);
        return NULL;
    }
    x->shell = shell;
    x->client = c;
    x->started_ms = shell_now_ms(shell);
    x->outcome = NODE_OUTCOME_OK;
    shell->stats.requests++;
    shell->stats.requests_open++;
    return x;
}

static void exchange_free(struct exchange *x)
{
    struct shell *shell = x->shell;
    CHECK(!x->booked && x->upstream == NULL);
    body_unref(&shell->segments, x->body);
    x->body = NULL;
    shell->stats.requests_open--;
    if (shell->exchange_free_count >= EXCHANGES_KEPT || x->head.cap > 64 * 1024) {
        buf_free(&x->head);
        free(x);
        return;
    }
    x->next_free = shell->exchange_free;
    shell->exchange_free = x;
    shell->exchange_free_count++;
}

void exchange_pool_free(struct shell *shell)
{
    while (shell->exchange_free != NULL) {
        struct exchange *x = shell->exchange_free;
        shell->exchange_free = x->next_free;
        buf_free(&x->head);
        free(x);
    }
    shell->exchange_free_count = 0;
}

static void release_booking(struct exchange *x, enum node_outcome outcome)
{
    if (!x->booked)
        return;
    x->booked = false;
    struct node_usage usage = {-1, -1, -1};
    bool computed = x->status / 100 == 2;
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        usage.prompt_tokens = x->usage.prompt_tokens;
        usage.cached_tokens = x->usage.cached_tokens;
        usage.completion_tokens = x->usage.completion_tokens;
        if (usage.completion_tokens < 0 && x->usage.token_events > 0)
            usage.completion_tokens = x->usage.token_events;
    }
    node_router_finish(x->shell->router, x->decision.booking, outcome, computed ? &usage : NULL,
                       shell_now_ms(x->shell));
}

static void log_access(const struct exchange *x, bool client_gone)
{
    struct shell *shell = x->shell;
    bool bad = client_gone || x->status >= 400 || x->outcome != NODE_OUTCOME_OK;
    if (shell->options->access_log == NODE_ACCESS_LOG_OFF ||
        (shell->options->access_log == NODE_ACCESS_LOG_ERRORS && !bad))
        return;
    bool has_replica = x->attempts > 0;
    uint64_t now = shell_now_ms(shell);
    log_event(
        shell->log, LOG_INFO, "request", LOG_STR("id", x->request_id),
        LOG_CSTR("client", x->client->peer), LOG_CSTR("path", x->path),
        LOG_UINT("status", x->status),
        LOG_STR("replica", has_replica
                               ? node_router_replica_name(shell->router, x->decision.replica)
                               : slice_of("", 0)),
        LOG_UINT("attempts", x->attempts), LOG_UINT("ms", now - x->started_ms),
        LOG_UINT("first_byte_ms", x->first_byte_ms != 0 ? x->first_byte_ms - x->started_ms : 0),
        LOG_UINT("bytes_in", x->body->bytes), LOG_UINT("bytes_out", x->bytes_out),
        LOG_INT("prompt_tokens", x->scan ? x->usage.prompt_tokens : -1),
        LOG_INT("cached_tokens", x->scan ? x->usage.cached_tokens : -1),
        LOG_UINT("cached_predicted", x->decision.cached_tokens),
        LOG_BOOL("client_gone", client_gone));
}

/* The end of every exchange whose client is still there. */
static void finish(struct exchange *x)
{
    struct client *c = x->client;
    if (x->status >= 100 && x->status < 600)
        x->shell->stats.responses[x->status / 100]++;
    if (x->upstream != NULL) {
        struct upstream *u = x->upstream;
        x->upstream = NULL;
        upstream_abort(u);
    }
    release_booking(x, x->outcome);
    log_access(x, false);
    exchange_free(x);
    client_answered(c);
}

void exchange_on_client_gone(struct exchange *x)
{
    output_discard(x);
    if (x->upstream != NULL) {
        struct upstream *u = x->upstream;
        x->upstream = NULL;
        upstream_abort(u);
    }
    release_booking(x, NODE_OUTCOME_CLIENT_GONE);
    log_access(x, true);
    exchange_free(x);
}

/* --- answers of the router's own ------------------------------------------------------------ */

static void answer(struct exchange *x, const struct http_answer *given,
                   const struct http_error *error)
{
    struct http_answer a = *given;
    struct http_line lines[8];
    size_t n = 0;
    CHECK(a.extra_count < ARRAY_LEN(lines));
    for (; n < a.extra_count; n++)
        lines[n] = a.extra[n];
    if (x->request_id.len > 0)
        lines[n++] = (struct http_line){SLICE("x-request-id"), x->request_id};
    a.extra = lines;
    a.extra_count = n;
    a.client_minor = x->minor;
    a.close = x->client->last || x->client->state == CLIENT_BODY;
    a.head_request = x->head_request;
    x->status = error != NULL ? error->status : a.status;
    struct buf *out = &x->shell->scratch;
    buf_clear(out);
    int err = error != NULL ? http_answer_error_write(out, &a, error) : http_answer_write(out, &a);
    if (err != 0) {
        client_close(x->client);
        return;
    }
    x->bytes_out += out->len;
    uv_buf_t iov = uv_buf_init(out->at, (unsigned)out->len);
    if (a.close)
        x->client->last = true;
    client_write(x->client, &iov, 1);
    finish(x);
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

static void answer_error_text(struct exchange *x, unsigned status, const char *type,
                              struct slice param, const char *text)
{
    struct http_line retry = {SLICE("retry-after"), SLICE("1")};
    struct http_answer a = {.extra = &retry, .extra_count = status == 503 ? 1 : 0};
    struct http_error error = {.message = slice_of_cstr(text),
                               .type = slice_of_cstr(type),
                               .param = param,
                               .status = status};
    answer(x, &a, &error);
}

void exchange_answer_error(struct exchange *x, unsigned status, const char *type,
                           struct slice param, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    answer_error_text(x, status, type, param, text);
}

void exchange_refuse(struct client *c, unsigned status, const char *type, const char *text)
{
    struct exchange *x = c->exchange;
    if (x == NULL)
        x = exchange_new(c);
    if (x == NULL || x->answering) {
        client_close(c);
        return;
    }
    c->exchange = x;
    c->last = true;
    c->lingering = true;
    answer_error_text(x, status, type, slice_of("", 0), text);
}

/* --- the request ---------------------------------------------------------------------------- */

static bool is_safe_id(struct slice id)
{
    if (id.len == 0 || id.len > EXCHANGE_ID_MAX)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        if (id.at[i] <= ' ' || id.at[i] > '~')
            return false;
    }
    return true;
}

/* The client's X-Request-Id, or one of our own: 32 hex digits. */
static void name_request(struct exchange *x, struct slice given)
{
    struct shell *shell = x->shell;
    if (is_safe_id(given)) {
        memcpy(x->request_id_text, given.at, given.len);
        x->request_id = slice_of(x->request_id_text, given.len);
        return;
    }
    static const char digits[] = "0123456789abcdef";
    uint64_t words[2] = {shell->request_id_high, hash_mix(shell->request_id_low++)};
    for (unsigned i = 0; i < 32; i++)
        x->request_id_text[i] = digits[(words[i / 16] >> (60 - 4 * (i % 16))) & 15];
    x->request_id = slice_of(x->request_id_text, 32);
}

static bool carries_prompt(enum http_path_kind kind)
{
    switch (kind) {
    case HTTP_PATH_CHAT:
    case HTTP_PATH_COMPLETIONS:
    case HTTP_PATH_RESPONSES:
    case HTTP_PATH_MESSAGES:
    case HTTP_PATH_GENERATE:
    case HTTP_PATH_TOKENS:
    case HTTP_PATH_PROMPT:
        return true;
    default:
        return false;
    }
}

/* Whether the answer tells tokens (and the work is a generation). */
static bool generates(enum http_path_kind kind)
{
    return carries_prompt(kind) && kind != HTTP_PATH_PROMPT;
}

/* Answers 403, 404 or 405 for a path that is not proxied. Returns whether it did. */
static bool refuse_path(struct exchange *x)
{
    const struct node_options *o = x->shell->options;
    const struct slice json = SLICE("application/json");
    enum http_path_kind kind = x->route.kind;
    if (kind == HTTP_PATH_CONTROL && o->engine_control_paths == NODE_PATHS_REFUSE) {
        x->shell->stats.requests_refused[SHELL_REFUSED_PATH]++;
        exchange_answer_error(x, 403, "PermissionDeniedError", slice_of("", 0),
                              "This path controls an engine and is not open to clients.");
        return true;
    }
    if ((kind == HTTP_PATH_OTHER || kind == HTTP_PATH_STATUS) &&
        o->other_paths == NODE_PATHS_REFUSE) {
        x->shell->stats.requests_refused[SHELL_REFUSED_PATH]++;
        exchange_answer(x, 404, json, SLICE(HTTP_BODY_NOT_FOUND), NULL, 0);
        return true;
    }
    if (!x->route.method_allowed) {
        char methods[64];
        http_methods_text(x->route.methods, methods, sizeof methods);
        struct http_line allow = {SLICE("allow"), slice_of_cstr(methods)};
        x->shell->stats.requests_refused[SHELL_REFUSED_PATH]++;
        exchange_answer(x, 405, json, SLICE(HTTP_BODY_METHOD_NOT_ALLOWED), &allow, 1);
        return true;
    }
    return false;
}

static int write_upstream_head(struct exchange *x, const struct http_head *head, bool has_body)
{
    struct http_forward_request how = {
        .host_fallback = SLICE("grapevine"),
        .client_address = slice_of_cstr(x->client->peer),
        .request_id = x->request_id,
        .framing = has_body && !x->chunked_body ? HTTP_BODY_LENGTH : HTTP_BODY_NONE,
        .content_length = head->content_length,
    };
    if (head->framing == HTTP_BODY_LENGTH)
        how.framing = HTTP_BODY_LENGTH; /* "Content-Length: 0" of a POST stays */
    return http_forward_request_write(&x->head, head, &how);
}

static void read_session(struct exchange *x, const struct http_head *head)
{
    struct slice value = http_head_find(head, slice_of_cstr(x->shell->options->session_header));
    if (value.at == NULL)
        return;
    size_t n = value.len < EXCHANGE_SESSION_MAX ? value.len : EXCHANGE_SESSION_MAX;
    memcpy(x->session, value.at, n);
    x->session_len = (uint8_t)n;
}

static void route(struct exchange *x);

void exchange_begin(struct client *c, const struct http_head *head, bool has_body)
{
    struct exchange *x = exchange_new(c);
    if (x == NULL) {
        client_close(c);
        return;
    }
    c->exchange = x;
    x->method = head->method;
    x->minor = head->minor;
    x->keep_alive = head->keep_alive;
    x->head_request = head->method == HTTP_METHOD_HEAD;
    x->chunked_body = head->framing == HTTP_BODY_CHUNKED;
    (void)slice_to_cstr(head->path, x->path, sizeof x->path);
    name_request(x, http_head_get(head, HTTP_X_REQUEST_ID));
    if (head->framing == HTTP_BODY_LENGTH &&
        head->content_length > x->shell->options->body_bytes_max) {
        x->shell->stats.requests_refused[SHELL_REFUSED_BODY_LIMIT]++;
        exchange_refuse(c, 413, "invalid_request_error", "The request body is too large.");
        return;
    }
    int err = 0;
    if (c->port == SHELL_PORT_ADMIN) {
        x->local = true;
    } else {
        x->route = http_path_lookup(head->path, head->method);
        if (refuse_path(x))
            return;
        enum http_path_kind kind = x->route.kind;
        x->local = kind == HTTP_PATH_HEALTH || kind == HTTP_PATH_MODELS ||
                   kind == HTTP_PATH_MODEL_ONE || kind == HTTP_PATH_SERVER;
    }
    if (x->local) {
        err = buf_append(&x->head, head->at, head->bytes);
    } else {
        x->skimming = carries_prompt(x->route.kind) && has_body;
        x->whole = x->skimming || x->route.kind == HTTP_PATH_MULTIPART || x->chunked_body;
        if (x->route.kind == HTTP_PATH_RESPONSE_STORED && x->route.id.len <= HTTP_USAGE_ID_MAX) {
            memcpy(x->stored_id, x->route.id.at, x->route.id.len);
            x->stored_id_len = (uint8_t)x->route.id.len;
        }
        read_session(x, head);
        err = write_upstream_head(x, head, has_body);
    }
    x->route.id = slice_of(NULL, 0); /* the head's memory is not ours */
    if (err != 0) {
        client_close(c);
        return;
    }
    if (x->skimming)
        http_skim_init(&x->skim, &x->shell->secret);
    if (head->expect_continue && has_body && head->minor > 0) {
        uv_buf_t iov = uv_buf_init((char *)HTTP_CONTINUE, sizeof HTTP_CONTINUE - 1);
        client_write(c, &iov, 1);
    }
    if (!x->local && !x->whole && has_body)
        route(x);
}

/* After bytes were added to the body; false when the exchange was refused. */
static bool body_grew(struct exchange *x, struct slice added)
{
    x->shell->stats.bytes_in += added.len;
    if (x->body->bytes > x->shell->options->body_bytes_max) {
        x->shell->stats.requests_refused[SHELL_REFUSED_BODY_LIMIT]++;
        exchange_refuse(x->client, 413, "invalid_request_error", "The request body is too large.");
        return false;
    }
    if (x->skimming)
        http_skim_feed(&x->skim, added.at, added.len);
    return true;
}

/* A request that is routed by its head streams through as it comes. */
static void stream_body(struct exchange *x)
{
    if (x->whole || x->local)
        return;
    if (x->body->bytes > EXCHANGE_RETRY_BYTES)
        x->dropping = true;
    struct upstream *u = x->upstream;
    if (u == NULL)
        return;
    upstream_push(u);
    if (x->body->bytes - u->body_sent > EXCHANGE_SEND_BYTES_HIGH)
        client_hold_body(x->client);
}

void exchange_on_body(struct exchange *x, struct slice bytes)
{
    uint64_t expected = x->client->framing == HTTP_BODY_LENGTH ? x->client->remaining : 0;
    if (body_append(&x->shell->segments, x->body, bytes, bytes.len + expected) != 0) {
        x->shell->stats.requests_refused[SHELL_REFUSED_MEMORY]++;
        exchange_refuse(x->client, 503, "overloaded_error",
                        "Too many request bodies are held now, try again later.");
        return;
    }
    if (body_grew(x, bytes))
        stream_body(x);
}

struct slice exchange_body_room(struct exchange *x, uint64_t expected)
{
    size_t hint = expected < SHELL_READ_BYTES ? (size_t)expected : SHELL_READ_BYTES;
    struct segment *s = body_room(&x->shell->segments, x->body, hint);
    if (s == NULL)
        return slice_of(NULL, 0);
    size_t room = s->cap - s->len;
    return slice_of(s->data + s->len, room < expected ? room : (size_t)expected);
}

void exchange_on_body_read(struct exchange *x, size_t n)
{
    struct segment *s = x->body->last;
    struct slice added = slice_of(s->data + s->len, n);
    s->len += (uint32_t)n;
    x->body->bytes += n;
    if (body_grew(x, added))
        stream_body(x);
}

void exchange_on_body_end(struct exchange *x)
{
    x->body->complete = true;
    if (x->local) {
        local_handle(x);
        return;
    }
    if (x->skimming) {
        http_skim_finish(&x->skim);
        if (!x->skim.understood)
            x->shell->stats.not_understood++;
    }
    if (x->chunked_body) { /* the length is known now: put it in place of the head's last CRLF */
        x->head.len -= 2;
        if (buf_printf(&x->head, "Content-Length: %llu\r\n\r\n",
                       (unsigned long long)x->body->bytes) != 0) {
            client_close(x->client);
            return;
        }
    }
    if (x->upstream != NULL)
        upstream_push(x->upstream);
    else if (!x->answering)
        route(x);
}

int exchange_body_copy(const struct exchange *x, struct buf *out)
{
    for (const struct segment *s = x->body->first; s != NULL; s = s->next) {
        int err = buf_append(out, s->data, s->len);
        if (err != 0)
            return err;
    }
    return 0;
}

/* --- the choice ----------------------------------------------------------------------------- */

static struct slice session_of(const struct exchange *x)
{
    if (x->session_len > 0)
        return slice_of(x->session, x->session_len);
    if (!x->skimming || !x->skim.understood)
        return slice_of(NULL, 0);
    static const enum http_skim_name keys[] = {HTTP_SKIM_PROMPT_CACHE_KEY, HTTP_SKIM_SESSION_ID,
                                               HTTP_SKIM_USER, HTTP_SKIM_METADATA_USER_ID};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct slice value = http_skim_field(&x->skim, keys[i]);
        if (value.len > 0)
            return value;
    }
    return slice_of(NULL, 0);
}

/* The stored response that the request asks for or continues: only its maker has it. */
static struct slice stored_response_of(const struct exchange *x)
{
    if (x->stored_id_len > 0)
        return slice_of(x->stored_id, x->stored_id_len);
    if (x->skimming && x->skim.understood)
        return http_skim_field(&x->skim, HTTP_SKIM_PREVIOUS_RESPONSE_ID);
    return slice_of(NULL, 0);
}

void exchange_describe(const struct exchange *x, struct node_request *out)
{
    *out = (struct node_request){
        .session = session_of(x), .body_bytes = x->body->bytes, .replica_wanted = -1};
    if (x->route.kind == HTTP_PATH_MULTIPART) {
        out->model = local_multipart_model(x->body);
    } else if (x->skimming && x->skim.understood) {
        out->model = http_skim_field(&x->skim, HTTP_SKIM_MODEL);
        out->chain = http_skim_chain(&x->skim);
        out->answer_whole = !x->skim.flags[HTTP_SKIM_STREAM];
        int64_t limit = http_skim_output_max(&x->skim);
        out->output_tokens_max = limit > 0 && limit < INT32_MAX ? (uint32_t)limit : 0;
    }
    struct slice stored = stored_response_of(x);
    if (stored.len > 0)
        out->replica_wanted = node_affinity_get(x->shell->affinity, stored);
}

static void no_replica(struct exchange *x, int err)
{
    if (err == ERR_NOT_FOUND && x->attempts == 0) {
        struct node_request request;
        exchange_describe(x, &request);
        struct slice model = request.model;
        x->shell->stats.requests_refused[SHELL_REFUSED_MODEL]++;
        exchange_answer_error(x, 404, "NotFoundError", SLICE("model"),
                              "The model `%.*s` does not exist.",
                              model.len > 256 ? 256 : (int)model.len, model.at);
        return;
    }
    x->shell->stats.requests_refused[SHELL_REFUSED_NO_REPLICA]++;
    if (x->attempts > 0 && err != ERR_FULL)
        exchange_answer_error(x, x->timed_out ? 504 : 502,
                              x->timed_out ? "GatewayTimeoutError" : "BadGatewayError",
                              slice_of("", 0), "No replica answered (%u tried).", x->attempts);
    else
        exchange_answer_error(x, 503, "ServiceUnavailableError", slice_of("", 0),
                              err == ERR_FULL ? "Too many requests are under way."
                                              : "No replica that serves this request is up.");
}

static void exclude(struct exchange *x)
{
    unsigned r = x->decision.replica;
    x->excluded[r / 64] |= UINT64_C(1) << (r % 64);
}

/* Books a replica that was not tried yet. */
static int choose(struct exchange *x)
{
    struct shell *shell = x->shell;
    struct node_request request;
    exchange_describe(x, &request);
    x->asking_around = stored_response_of(x).len > 0 && request.replica_wanted < 0;
    uint64_t now = shell_now_ms(shell);
    int err =
        x->skimming && generates(x->route.kind)
            ? node_router_choose(shell->router, &request, x->excluded, now, &x->decision)
            : node_router_choose_by_load(shell->router, &request, x->excluded, now, &x->decision);
    if (err == 0) {
        x->booked = true;
        x->attempts++;
    }
    return err;
}

/* Begins to send to the replica that is booked; tries others where that fails at once. */
static void start(struct exchange *x)
{
    struct shell *shell = x->shell;
    int err;
    while ((err = upstream_start(&shell->pools[x->decision.replica], x, false, &x->upstream)) !=
           0) {
        bool full = err == ERR_FULL; /* our own limit is no failure of the replica */
        release_booking(x, full ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_CONNECT_FAILED);
        exclude(x);
        err = x->attempts > shell->options->retries_max ? ERR_UNREACHABLE : choose(x);
        if (err != 0) {
            no_replica(x, full ? ERR_FULL : err);
            return;
        }
    }
    upstream_push(x->upstream);
}

static void route(struct exchange *x)
{
    int err = choose(x);
    if (err != 0)
        no_replica(x, err);
    else
        start(x);
}

/* Whether another attempt may be made, with the request whole as it was. */
static bool may_retry(const struct exchange *x)
{
    return !x->answering && !x->dropping && x->attempts <= x->shell->options->retries_max;
}

static void retry_elsewhere(struct exchange *x, enum node_outcome outcome)
{
    output_discard(x); /* the start of an answer that turned out to be none */
    release_booking(x, outcome);
    exclude(x);
    x->shell->stats.retries++;
    x->scan = EXCHANGE_SCAN_NONE;
    route(x);
}

/* --- the answer ----------------------------------------------------------------------------- */

void exchange_on_failure(struct exchange *x, enum upstream_failure failure)
{
    struct shell *shell = x->shell;
    struct upstream_pool *pool = &shell->pools[x->decision.replica];
    x->upstream = NULL;
    x->timed_out = failure == UPSTREAM_TIMEOUT;
    if (failure == UPSTREAM_STALE && !x->dropping &&
        upstream_start(pool, x, true, &x->upstream) == 0) {
        upstream_push(x->upstream);
        return; /* the same booking goes on */
    }
    enum node_outcome outcome = NODE_OUTCOME_BROKEN;
    if (failure == UPSTREAM_CONNECT_FAILED) {
        shell->stats.upstream_connect_failures++;
        outcome = NODE_OUTCOME_CONNECT_FAILED;
        upstream_pool_resolve(pool, 5000);
    } else {
        shell->stats.upstream_broken++;
    }
    log_event(shell->log, LOG_WARN, "upstream_failed", LOG_STR("id", x->request_id),
              LOG_STR("replica", node_router_replica_name(shell->router, x->decision.replica)),
              LOG_CSTR("what", failure == UPSTREAM_CONNECT_FAILED ? "connect"
                               : failure == UPSTREAM_TIMEOUT      ? "timeout"
                               : failure == UPSTREAM_MALFORMED    ? "malformed answer"
                                                                  : "connection broke"),
              LOG_BOOL("answering", x->answering));
    if (may_retry(x)) {
        retry_elsewhere(x, outcome);
        return;
    }
    x->outcome = outcome;
    if (x->answering) { /* the client must see that the answer is cut: no proper end of chunks */
        struct client *c = x->client;
        output_flush(x);
        release_booking(x, outcome);
        if (x->out_framing == HTTP_BODY_UNTIL_CLOSE)
            client_reset(c);
        else
            client_close(c);
        return;
    }
    output_discard(x);
    if (failure == UPSTREAM_TIMEOUT)
        exchange_answer_error(x, 504, "GatewayTimeoutError", slice_of("", 0),
                              "The replica did not answer in time.");
    else
        exchange_answer_error(x, 502, "BadGatewayError", slice_of("", 0),
                              "The replica failed before it answered.");
}

static void choose_scan(struct exchange *x, const struct http_head *head)
{
    x->scan = EXCHANGE_SCAN_NONE;
    if (!generates(x->route.kind))
        return;
    struct slice type = http_head_get(head, HTTP_CONTENT_TYPE);
    if (type.len >= 17 && slice_equal_nocase(slice_of(type.at, 17), SLICE("text/event-stream")))
        http_usage_init(&x->usage, HTTP_USAGE_SSE);
    else if (type.len >= 16 && slice_equal_nocase(slice_of(type.at, 16), SLICE("application/json")))
        http_usage_init(&x->usage, HTTP_USAGE_JSON);
    else
        return;
    x->scan = EXCHANGE_SCAN_USAGE;
}

static void note_first_token(struct exchange *x)
{
    x->first_token = true;
    x->first_byte_ms = shell_now_ms(x->shell);
    if (x->booked)
        node_router_first_byte(x->shell->router, x->decision.booking, x->first_byte_ms);
}

void exchange_on_head(struct exchange *x, const struct http_head *head)
{
    struct shell *shell = x->shell;
    bool busy = head->status == 503;
    /* Asking around is no failure: each replica may be asked once. */
    bool elsewhere = x->asking_around && head->status == 404 && !x->answering && !x->dropping;
    if (elsewhere || (busy && may_retry(x))) {
        struct node_decision before = x->decision;
        struct upstream *u = x->upstream;
        release_booking(x, busy ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_OK);
        exclude(x);
        if (choose(x) == 0) {
            x->upstream = NULL;
            upstream_abort(u);
            shell->stats.retries++;
            start(x);
            return;
        }
        x->decision = before; /* nobody else: this answer goes to the client */
    }
    x->status = head->status;
    if (x->asking_around && head->status / 100 == 2) /* found: not asked for again */
        node_affinity_put(shell->affinity, stored_response_of(x), x->decision.replica);
    if (head->status >= 500)
        x->outcome = busy ? NODE_OUTCOME_ENGINE_BUSY : NODE_OUTCOME_ENGINE_ERROR;
    x->first_byte_ms = shell_now_ms(shell);
    choose_scan(x, head);
    if (x->scan == EXCHANGE_SCAN_NONE || x->usage.form == HTTP_USAGE_JSON)
        note_first_token(x);
    x->out_framing = http_forward_response_framing(head, x->minor);
    if (x->out_framing == HTTP_BODY_UNTIL_CLOSE || shell->draining ||
        x->client->state == CLIENT_BODY) /* answered early: the rest of the body is not wanted */
        x->client->last = true;
    struct http_line lines[2] = {{SLICE("x-request-id"), x->request_id}};
    size_t n = 1;
    if (shell->options->replica_header)
        lines[n++] =
            (struct http_line){SLICE("x-grapevine-replica"),
                               node_router_replica_name(shell->router, x->decision.replica)};
    struct http_forward_response how = {.client_minor = x->minor,
                                        .keep_alive = !x->client->last,
                                        .framing = x->out_framing,
                                        .content_length = head->content_length,
                                        .extra = lines,
                                        .extra_count = n};
    output_head(x, head, &how);
}

void exchange_on_data(struct exchange *x, struct slice bytes)
{
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        http_usage_feed(&x->usage, bytes.at, bytes.len);
        if (!x->first_token && x->usage.first_token)
            note_first_token(x);
    }
    output_data(x, bytes);
}

void exchange_flush(struct exchange *x)
{
    output_flush(x);
    if (x->upstream != NULL && client_congested(x->client)) {
        x->shell->stats.backpressure++;
        upstream_pause(x->upstream);
    }
}

void exchange_on_end(struct exchange *x)
{
    x->upstream = NULL;
    if (x->scan == EXCHANGE_SCAN_USAGE) {
        http_usage_finish(&x->usage);
        if (x->route.kind == HTTP_PATH_RESPONSES && x->usage.response_id[0] != '\0')
            node_affinity_put(x->shell->affinity, slice_of_cstr(x->usage.response_id),
                              x->decision.replica);
    }
    output_end(x);
    finish(x);
}

void exchange_on_client_drained(struct exchange *x)
{
    if (x->upstream != NULL)
        upstream_resume(x->upstream);
}

void exchange_on_segment_sent(struct exchange *x)
{
    if (!x->dropping)
        return;
    struct body *b = x->body;
    while (b->first != NULL && b->first != x->upstream->segment) {
        struct segment *s = b->first;
        b->first = s->next;
        segment_release(&x->shell->segments, s);
    }
}

void exchange_on_request_drained(struct exchange *x)
{
    const struct upstream *u = x->upstream;
    if (u != NULL && x->body->bytes - u->body_sent < EXCHANGE_SEND_BYTES_HIGH / 2)
        client_resume_body(x->client);
}
