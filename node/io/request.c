/* The request of an exchange: its head (which path, what matters for routing) and its body. */
#include "node/io/exchange_parts.h"

#include "base/check.h"
#include "http/answer.h"
#include "http/forward.h"
#include "node/io/fetch.h"
#include "node/io/local.h"

/* --- the head ------------------------------------------------------------------------------- */

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

bool exchange_computes(enum http_path_kind kind)
{
    return carries_prompt(kind) || kind == HTTP_PATH_MULTIPART;
}

bool exchange_generates(enum http_path_kind kind)
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
        exchange_answer_error(x, 403, "PermissionDeniedError", slice_of("", 0),
                              "This path controls an engine and is not open to clients.");
        return true;
    }
    if ((kind == HTTP_PATH_OTHER || kind == HTTP_PATH_STATUS) &&
        o->other_paths == NODE_PATHS_REFUSE) {
        exchange_answer(x, 404, json, SLICE(HTTP_BODY_NOT_FOUND), NULL, 0);
        return true;
    }
    if (!x->route.method_allowed) {
        char methods[64];
        http_methods_text(x->route.methods, methods, sizeof methods);
        struct http_line allow = {SLICE("allow"), slice_of_cstr(methods)};
        exchange_answer(x, 405, json, SLICE(HTTP_BODY_METHOD_NOT_ALLOWED), &allow, 1);
        return true;
    }
    return false;
}

static void log_loop(struct exchange *x, unsigned routers)
{
    struct shell *shell = x->shell;
    uint64_t now = shell_now_ms(shell);
    shell->loops_unlogged++;
    if (shell->loop_logged_ms != 0 && now - shell->loop_logged_ms < SHELL_LOOP_LOG_MS)
        return;
    log_event(
        shell->log, LOG_ERROR, "request_loop", LOG_STR("id", x->request_id),
        LOG_CSTR("from", x->client->peer), LOG_UINT("routers_passed", routers),
        LOG_UINT("count", shell->loops_unlogged),
        LOG_CSTR("want", "engines as replicas: one of them is a router, or leads back to one"));
    shell->loop_logged_ms = now;
    shell->loops_unlogged = 0;
}

/* Answers 508 if the request has been here before, or has passed routers enough. */
static bool refuse_loop(struct exchange *x, const struct http_head *head)
{
    bool passed_self;
    if (!http_head_has(head, HTTP_VIA))
        return false;
    unsigned routers = http_via_routers(head, slice_of_cstr(x->shell->via), &passed_self);
    if (!passed_self && routers <= EXCHANGE_ROUTERS_MAX)
        return false;
    log_loop(x, routers);
    char what[64] = "came back to this router";
    if (!passed_self)
        (void)snprintf(what, sizeof what, "passed %u routers", routers);
    char text[256];
    (void)snprintf(text, sizeof text,
                   "The request %s. Something behind one of %s replicas leads to a router: name "
                   "engines only (gvctl replicas shows them).",
                   what, passed_self ? "its" : "their");
    exchange_refuse(x->client, 508, "LoopDetectedError", text);
    return true;
}

static int write_upstream_head(struct exchange *x, const struct http_head *head, bool has_body)
{
    struct http_forward_request how = {
        .host_fallback = SLICE("grapevine"),
        .client_address = slice_of_cstr(x->client->peer),
        .request_id = x->request_id,
        .via = slice_of_cstr(x->shell->via),
        .distrust_client = x->shell->options->forwarded_headers == NODE_FORWARDED_REPLACE,
        .framing = has_body && !x->chunked_body ? HTTP_BODY_LENGTH : HTTP_BODY_NONE,
        .content_length = head->content_length,
    };
    if (head->framing == HTTP_BODY_LENGTH)
        how.framing = HTTP_BODY_LENGTH; /* "Content-Length: 0" of a POST stays */
    return http_forward_request_write(&x->head, head, &how);
}

void exchange_session_set(struct exchange *x, struct slice value)
{
    size_t n = value.len < EXCHANGE_SESSION_MAX ? value.len : EXCHANGE_SESSION_MAX;
    memcpy(x->session, value.at, n);
    x->session_len = (uint8_t)n;
}

void exchange_read_session(struct exchange *x, const struct http_head *head)
{
    struct slice value = http_head_find(head, slice_of_cstr(x->shell->options->session_header));
    if (value.at != NULL)
        exchange_session_set(x, value);
}

void exchange_begin(struct client *c, const struct http_head *head, bool has_body)
{
    struct exchange *x = exchange_new(c);
    if (x == NULL) {
        client_close(c, CLIENT_END_NO_MEMORY);
        return;
    }
    c->exchange = x;
    x->method = head->method;
    x->minor = head->minor;
    x->head_request = head->method == HTTP_METHOD_HEAD;
    x->chunked_body = head->framing == HTTP_BODY_CHUNKED;
    (void)slice_to_cstr(head->path, x->path, sizeof x->path);
    name_request(x, http_head_get(head, HTTP_X_REQUEST_ID));
    if (head->framing == HTTP_BODY_LENGTH &&
        head->content_length > x->shell->options->body_bytes_max) {
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
        if (!x->local && refuse_loop(x, head))
            return;
    }
    if (x->local) {
        x->probe = slice_equal(http_head_get(head, HTTP_USER_AGENT), SLICE(FETCH_USER_AGENT));
        err = buf_append(&x->head, head->at, head->bytes);
    } else {
        x->skimming = carries_prompt(x->route.kind) && has_body;
        x->whole = x->skimming || x->route.kind == HTTP_PATH_MULTIPART || x->chunked_body;
        if (x->route.kind == HTTP_PATH_RESPONSE_STORED && x->route.id.len <= HTTP_USAGE_ID_MAX) {
            memcpy(x->stored_id, x->route.id.at, x->route.id.len);
            x->stored_id_len = (uint8_t)x->route.id.len;
        }
        exchange_read_session(x, head);
        err = write_upstream_head(x, head, has_body);
    }
    x->route.id = slice_of(NULL, 0); /* the head's memory is not ours */
    if (err != 0) {
        client_close(c, CLIENT_END_NO_MEMORY);
        return;
    }
    if (x->skimming)
        http_skim_init(&x->skim, &x->shell->secret);
    if (head->expect_continue && has_body && head->minor > 0) {
        uv_buf_t iov = uv_buf_init((char *)HTTP_CONTINUE, sizeof HTTP_CONTINUE - 1);
        client_write(c, &iov, 1);
    }
    if (!x->local && !x->whole && has_body)
        exchange_route(x);
}

/* --- the body ------------------------------------------------------------------------------- */

/* After bytes were added to the body; false when the exchange was refused. */
static bool body_grew(struct exchange *x, struct slice added)
{
    x->shell->stats.bytes_in += added.len;
    if (x->body->bytes > x->shell->options->body_bytes_max) {
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
        x->refusal = SHELL_REFUSED_MEMORY;
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
        x->answer_whole = x->skim.understood && exchange_generates(x->route.kind) &&
                          !x->skim.flags[HTTP_SKIM_STREAM];
    }
    if (x->chunked_body) { /* the length is known now: put it in place of the head's last CRLF */
        x->head.len -= 2;
        if (buf_printf(&x->head, "Content-Length: %llu\r\n\r\n",
                       (unsigned long long)x->body->bytes) != 0) {
            client_close(x->client, CLIENT_END_NO_MEMORY);
            return;
        }
    }
    if (x->upstream != NULL)
        upstream_push(x->upstream);
    else if (!x->answering)
        exchange_route(x);
}

/* Whether a retry could need what was sent already. */
static bool body_is_kept(const struct exchange *x)
{
    return !x->answering && (x->whole || x->body->bytes <= EXCHANGE_RETRY_BYTES);
}

void exchange_on_body_sent(struct exchange *x)
{
    struct upstream *u = x->upstream;
    struct body *b = x->body;
    if (u == NULL || body_is_kept(x) || (u->segment == NULL && !u->request_sent))
        return;
    if (u->request_sent) /* all of it goes */
        u->segment = NULL;
    while (b->first != u->segment) {
        struct segment *s = b->first;
        b->first = s->next;
        segment_release(&x->shell->segments, s);
        x->dropped = true;
    }
    if (b->first == NULL)
        b->last = NULL;
}

void exchange_on_answering(struct exchange *x)
{
    x->answering = true;
    exchange_on_body_sent(x);
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
