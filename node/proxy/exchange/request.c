/* The request of an exchange: the head (the path, fields for routing) and the body. */
#include "node/proxy/exchange/exchange_internal.h"

#include <sodium.h>
#include <stdio.h>

#include "base/bug.h"
#include "base/check.h"
#include "http/answer.h"
#include "http/forward.h"
#include "node/proxy/engine/probe.h"

enum { ROOM_BYTES = 16384 };

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

/* Writes four bytes as eight hexadecimal digits, in their order, computed in parallel. */
static void put_hex(const unsigned char *bytes, char *out)
{
    const uint64_t ones = 0x0101010101010101;
    uint64_t digits = (uint64_t)bytes[0] | (uint64_t)bytes[1] << 16 | (uint64_t)bytes[2] << 32 |
                      (uint64_t)bytes[3] << 48;
    digits = (digits >> 4 & 0x000f000f000f000f) | (digits & 0x000f000f000f000f) << 8;
    uint64_t letters = (digits + 6 * ones) >> 4 & ones; /* digits from ten on */
    digits += '0' * ones + letters * ('a' - '0' - 10);
    for (unsigned i = 0; i < sizeof digits; i++) /* a single store */
        out[i] = (char)(digits >> 8 * i);
}

/* Names the request: the client's X-Request-Id, or 32 unpredictable hex digits. An engine refuses
 * an id under way (vLLM), so predictable ids would let a client make others' requests fail. */
static void name_request(struct exchange *x, struct slice given)
{
    struct proxy *p = x->proxy;
    if (is_safe_id(given)) {
        memcpy(x->request_id_text, given.at, given.len);
        x->request_id = slice_of(x->request_id_text, given.len);
        return;
    }
    uint64_t number = p->exchanges.ids++;
    unsigned char id[crypto_shorthash_siphashx24_BYTES];
    (void)crypto_shorthash_siphashx24(id, (const unsigned char *)&number, sizeof number,
                                      (const unsigned char *)p->exchanges.id_key);
    for (unsigned i = 0; i < sizeof id; i += 4)
        put_hex(id + i, x->request_id_text + 2 * i);
    x->request_id = slice_of(x->request_id_text, 32);
}

/* Answers 403, 404 or 405 if the path is not proxied. Returns true if answered. */
static bool refuse_path(struct exchange *x)
{
    const struct node_options *o = x->proxy->config.options;
    const struct slice json = SLICE("application/json");
    enum http_path_kind kind = x->route.kind;
    if (kind == HTTP_PATH_CONTROL && o->engine_control_paths == NODE_PATHS_REFUSE) {
        exchange_answer_refusal(x, REFUSED_CONTROL);
        return true;
    }
    if ((kind == HTTP_PATH_OTHER || kind == HTTP_PATH_STATUS || x->route.behind) &&
        o->other_paths == NODE_PATHS_REFUSE) {
        if (exchange_error_form(x) == HTTP_ERROR_ANTHROPIC)
            exchange_answer_error(x, 404, slice_of("", 0), "Not found.");
        else
            exchange_answer(x, 404, json, SLICE(HTTP_BODY_NOT_FOUND), NULL, 0);
        return true;
    }
    if (!x->route.method_allowed) {
        char methods[64];
        http_methods_text(x->route.methods, methods, sizeof methods);
        struct http_line allow = {SLICE("allow"), slice_of_cstr(methods)};
        if (exchange_error_form(x) == HTTP_ERROR_ANTHROPIC)
            exchange_answer_not_allowed(x, slice_of_cstr(x->path), methods);
        else
            exchange_answer(x, 405, json, SLICE(HTTP_BODY_METHOD_NOT_ALLOWED), &allow, 1);
        return true;
    }
    return false;
}

/* Returns true for a request to open a WebSocket (RFC 6455, section 4.1). Also recognizes
 * Sec-WebSocket-Key, because most proxies remove Upgrade, a field for the next hop. */
static bool is_websocket(const struct http_head *head)
{
    if (head->method != HTTP_METHOD_GET || head->minor == 0)
        return false;
    return http_list_has(http_head_get(head, HTTP_UPGRADE), SLICE("websocket")) ||
           http_head_find(head, SLICE("sec-websocket-key")).len > 0;
}

/* Answers 426, so that programs fall back to HTTP at once. */
static bool refuse_upgrade(struct exchange *x, const struct http_head *head)
{
    const struct node_options *o = x->proxy->config.options;
    enum http_path_kind kind = x->route.kind;
    bool unknown = kind == HTTP_PATH_OTHER || kind == HTTP_PATH_STATUS;
    if (!is_websocket(head) || (unknown && o->other_paths == NODE_PATHS_REFUSE) ||
        (kind == HTTP_PATH_CONTROL && o->engine_control_paths == NODE_PATHS_REFUSE))
        return false;
    exchange_answer_upgrade(x);
    return true;
}

static void log_loop(struct exchange *x, unsigned routers)
{
    struct proxy *p = x->proxy;
    uint64_t now = p->now_ms;
    p->exchanges.loops_unlogged++;
    if (p->exchanges.loop_logged_ms != 0 && now - p->exchanges.loop_logged_ms < PROXY_LOOP_LOG_MS)
        return;
    log_event(
        p->config.log, LOG_ERROR, "request_loop", LOG_STR("id", x->request_id),
        LOG_CSTR("from", x->client->peer), LOG_UINT("routers_passed", routers),
        LOG_UINT("count", p->exchanges.loops_unlogged),
        LOG_CSTR("want",
                 "use only engines as replicas: one replica is a router, or leads back to one"));
    p->exchanges.loop_logged_ms = now;
    p->exchanges.loops_unlogged = 0;
}

/* Answers 508 if the request has been here before, or has passed too many routers. */
static bool refuse_loop(struct exchange *x, const struct http_head *head)
{
    bool passed_self;
    if (!http_head_has(head, HTTP_VIA))
        return false;
    unsigned routers = http_via_routers(head, slice_of_cstr(x->proxy->via), &passed_self);
    if (!passed_self && routers <= EXCHANGE_ROUTERS_MAX)
        return false;
    log_loop(x, routers);
    char what[64] = "came back to this router";
    if (!passed_self)
        (void)snprintf(what, sizeof what, "passed %u routers", routers);
    char text[256];
    (void)snprintf(text, sizeof text,
                   "The request %s. One of %s replicas is a router or leads to one: use only "
                   "engines as replicas (gvctl replicas lists them).",
                   what, passed_self ? "its" : "their");
    exchange_refuse(x->client, 508, text);
    return true;
}

/* Returns "Bearer KEY" with the engines' key; empty: none. Valid for the present event. */
static struct slice engines_authorization(struct proxy *p)
{
    struct slice key = exchange_key_of_engines(p);
    if (key.len == 0)
        return key;
    int n = snprintf(p->joined, sizeof p->joined, "Bearer %.*s", SLICE_ARG(key));
    CHECK(n > 0 && (size_t)n < sizeof p->joined);
    return slice_of(p->joined, (size_t)n);
}

static int write_upstream_head(struct exchange *x, const struct http_head *head, bool has_body)
{
    struct http_forward_request how = {
        .path = x->route.slashed ? slice_of(head->path.at, head->path.len - 1) : slice_of("", 0),
        .host_fallback = SLICE("grapevine"),
        .client_address = slice_of_cstr(x->client->peer),
        .proto = x->proxy->config.options->tls_cert.count > 0 ? SLICE("https") : SLICE("http"),
        .request_id = x->request_id,
        .via = slice_of_cstr(x->proxy->via),
        .distrust_client = x->proxy->config.options->forwarded_headers == NODE_FORWARDED_REPLACE,
        .framing = has_body && !x->chunked_body ? HTTP_BODY_LENGTH : HTTP_BODY_NONE,
        .content_length = head->content_length,
    };
    struct slice authorization = engines_authorization(x->proxy);
    struct http_line extra[2];
    if (head->framing == HTTP_BODY_LENGTH && x->coding == HTTP_CODING_NONE)
        how.framing = HTTP_BODY_LENGTH;  /* "Content-Length: 0" of a POST stays */
    if (x->proxy->config.access != NULL) /* the client's key was for this router */
        how.drop = HTTP_FIELD_BIT(HTTP_AUTHORIZATION) | HTTP_FIELD_BIT(HTTP_X_API_KEY) |
                   HTTP_FIELD_BIT(HTTP_API_KEY);
    bool reads = x->proxy->config.options->ask_usage && exchange_answers_tokens(x->route.kind);
    x->asks_plain = reads || x->proxy->config.access != NULL; /* tokens can be counted only in
                                                                 readable answers */
    if (x->asks_plain && !BUG(USAGE_SHOWN))
        how.drop |= HTTP_FIELD_BIT(HTTP_ACCEPT_ENCODING);
    if (x->coding != HTTP_CODING_NONE)
        how.drop |= HTTP_FIELD_BIT(HTTP_CONTENT_ENCODING);
    how.extra = extra;
    how.extra_count = authorization.len > 0;
    if (authorization.len > 0)
        extra[0] = (struct http_line){SLICE("Authorization"), authorization};
    how.extra_count += exchange_trace_line(x, &how, &extra[how.extra_count]);
    return http_forward_request_write(&x->request.head, head, &how);
}

/* Chooses how to find the model in such a body. On an unknown path only an object or a form is
 * read, and anything else streams through. The first byte decides, because the Content-Type is
 * often wrong (curl's default is a form's). */
static void read_form(struct exchange *x, const struct http_head *head)
{
    bool known = x->route.kind != HTTP_PATH_OTHER;
    x->form = exchange_is_form(head);
    x->skimming = !x->form && known;
    x->undecided = !known && !exchange_is_multipart(head);
}

/* If the router answers (x->local), stores the head. Otherwise notes what the head says for
 * routing, decides how the body is read, and writes the head for a replica. ERR_NOMEM,
 * ERR_LIMIT. */
static int read_head(struct exchange *x, const struct http_head *head, bool has_body)
{
    if (x->local) {
        x->probe = slice_equal(http_head_get(head, HTTP_USER_AGENT), SLICE(PROBE_USER_AGENT));
        return buf_append(&x->request.head, head->at, head->bytes);
    }
    if (has_body && exchange_names_model(x->route.kind))
        read_form(x, head);
    else
        x->skimming = exchange_carries_prompt(x->route.kind) && has_body;
    x->whole = x->skimming || x->form || x->undecided || x->chunked_body;
    bool stored =
        x->route.kind == HTTP_PATH_RESPONSE_STORED || x->route.kind == HTTP_PATH_MEDIA_STORED;
    if (stored && x->route.id.len <= HTTP_USAGE_ID_MAX) {
        memcpy(x->stored_id, x->route.id.at, x->route.id.len);
        x->stored_id_len = (uint8_t)x->route.id.len;
    }
    if (x->skimming)
        exchange_skim_begin(x);
    exchange_read_session(x, head);
    exchange_read_agent(x, head);
    if (exchange_weighs_rejections(x->route.kind))
        x->client_id = exchange_key_client(x, head);
    exchange_host_note(x, head->host);
    return write_upstream_head(x, head, has_body);
}

/* Refuses a large control body, because each replica gets a copy. */
static bool refuse_large_control(struct exchange *x)
{
    exchange_refuse(x->client, 413, "A body that goes to all replicas has at most 64 KiB.");
    return false;
}

/* Makes an exchange from a head. Returns false if refused or answered. */
static bool begin(struct client *c, const struct http_head *head, bool has_body)
{
    struct exchange *x = exchange_new(c);
    if (x == NULL) {
        client_close(c, false);
        return false;
    }
    c->exchange = x;
    x->method = head->method;
    x->minor = head->minor;
    x->request.to_head = head->method == HTTP_METHOD_HEAD;
    x->chunked_body = head->framing == HTTP_BODY_CHUNKED;
    x->local = c->port != PROXY_PORT_CLIENT;
    (void)slice_to_cstr(head->path, x->path, sizeof x->path);
    name_request(x, http_head_get(head, HTTP_X_REQUEST_ID));
    if (x->proxy->config.trace != NULL)
        exchange_trace_begin(x, head);
    if (head->framing == HTTP_BODY_LENGTH &&
        head->content_length > x->proxy->config.options->body_bytes_max) {
        exchange_refuse_because(x->client, REFUSED_BODY_LIMIT);
        return false;
    }
    if (!x->local) {
        x->route = http_path_lookup(head->path, head->method);
        if (http_head_has(head, HTTP_ORIGIN))
            exchange_cors_note(x, head);
        if (head->method == HTTP_METHOD_OPTIONS && exchange_preflight(x, head))
            return false;
        if (refuse_upgrade(x, head) || exchange_key_refuse(x, head) || refuse_path(x))
            return false;
        enum http_path_kind kind = x->route.kind;
        x->to_all = kind == HTTP_PATH_CONTROL; /* with other settings control requests are refused,
                                                * or go to one replica */
        x->to_all = x->to_all && x->proxy->config.options->engine_control_paths == NODE_PATHS_ALL;
        x->local = kind == HTTP_PATH_HEALTH || kind == HTTP_PATH_MODELS ||
                   kind == HTTP_PATH_MODEL_ONE || kind == HTTP_PATH_ROOT ||
                   kind == HTTP_PATH_SERVER || x->to_all;
        if (x->to_all && exchange_key_refuse_control(x))
            return false;
        if (!x->local && (refuse_loop(x, head) || exchange_key_refuse_path(x, head) ||
                          exchange_engine_fields_refuse_head(x, head)))
            return false;
    }
    if ((!x->local || x->to_all) && has_body && http_head_has(head, HTTP_CONTENT_ENCODING) &&
        !exchange_decode_begin(x, head))
        return false;
    int err = read_head(x, head, has_body);
    x->route.id = slice_of(NULL, 0); /* the head's memory is not the exchange's */
    if (err != 0) {
        exchange_cut(x, CLIENT_END_NO_MEMORY, false);
        return false;
    }
    if (c->port != PROXY_PORT_CLIENT && has_body) {
        x->proxy->config.admin_head(x->proxy->config.admin_context, x, head);
        if (c->exchange != x)
            return false;
    }
    /* Requests that must be complete are judged later: the client must finish sending to see an
     * error. */
    if (!x->local && !x->whole && has_body)
        exchange_route(x);
    if (c->exchange == x && head->expect_continue && has_body && head->minor > 0) {
        static const struct slice go_on = SLICE(HTTP_CONTINUE);
        client_write(c, &go_on, 1);
    }
    return c->exchange == x;
}

/* --- the body ------------------------------------------------------------------------------- */

/* Routes a long body on an unknown path. The body may be an upload of any size, and most bodies
 * name the model first. The received part decides, and the body streams through. Returns false if
 * answered. */
static bool route_early(struct exchange *x)
{
    struct client *c = x->client;
    if (x->skimming && exchange_engine_fields_refuse_body(x))
        return false;
    x->whole = false;
    x->undecided = false;
    x->early = x->skimming;
    x->skimming = false;
    exchange_route(x);
    return c->exchange == x;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Decides by a body's first byte, after white space, if the body is read as an object. Returns
 * false if answered. */
static bool decide(struct exchange *x, struct slice added)
{
    size_t i = 0;
    while (i < added.len && is_space(added.at[i]))
        i++;
    if (i == added.len)
        return true;
    x->undecided = false;
    if (added.at[i] == '{')
        exchange_skim_begin(x);
    else if (!x->chunked_body)
        return route_early(x);
    return true;
}

/* Called after bytes were added to the body. Returns false if the exchange was refused. */
static bool body_grew(struct exchange *x, struct slice added)
{
    x->proxy->stats.bytes_in += added.len;
    if (x->request.body->bytes > x->proxy->config.options->body_bytes_max) {
        exchange_refuse_because(x->client, REFUSED_BODY_LIMIT);
        return false;
    }
    if (x->undecided && !decide(x, added))
        return false;
    if (x->skimming || x->early) /* after early routing only engine fields count */
        http_skim_feed(&x->skim, added.at, added.len);
    if (x->early && exchange_engine_fields_refuse_body(x))
        return false;
    if (x->whole && x->route.kind == HTTP_PATH_OTHER && !x->chunked_body &&
        x->request.body->bytes > EXCHANGE_RETRY_BYTES && !route_early(x))
        return false;
    if (!x->whole && !x->local)
        exchange_push(x); /* a request routed by the head streams through */
    return true;
}

static bool add_coded(struct exchange *x, struct slice bytes)
{
    struct slice added;
    do {
        if (!exchange_decode(x, &bytes, &added) || !body_grew(x, added))
            return false;
        if (x->to_all && x->request.body->bytes > PROXY_CONTROL_BODY_BYTES_MAX)
            return refuse_large_control(x);
    } while (bytes.len > 0 || added.len > 0);
    return true;
}

static bool add_body(struct exchange *x, struct slice bytes)
{
    const struct client *c = x->client;
    if (x->local && !x->to_all) { /* such requests mostly need no key: nothing is stored */
        x->request.body->bytes += bytes.len;
        return body_grew(x, bytes);
    }
    if (x->decoder != NULL)
        return add_coded(x, bytes);
    if (x->to_all && x->request.body->bytes + bytes.len > PROXY_CONTROL_BODY_BYTES_MAX)
        return refuse_large_control(x);
    uint64_t expected = c->framing == HTTP_BODY_LENGTH ? c->remaining : 0;
    uint64_t came = x->request.body->bytes + bytes.len;
    if (body_append(&x->proxy->segments, x->request.body, bytes,
                    bytes.len + (expected < came ? expected : came)) != 0) {
        exchange_refuse_because(x->client, REFUSED_MEMORY);
        return false;
    }
    return body_grew(x, bytes);
}

/* Prepares the prompt of a complete body, after all checks. */
static void take_prompt(struct exchange *x)
{
    exchange_render(x);
    bool tokens = x->skim.understood && exchange_answers_tokens(x->route.kind);
    x->request.streams_tokens = tokens && x->skim.flags[HTTP_SKIM_STREAM];
    x->request.answered_whole =
        (tokens || x->route.kind == HTTP_PATH_MEDIA) && !x->skim.flags[HTTP_SKIM_STREAM];
    if (tokens)
        exchange_questions_ask(x);
}

/* Completes the request. Returns true if the router itself answers. */
static bool complete(struct exchange *x)
{
    if (x->decoder != NULL && !exchange_decode_end(x))
        return false;
    client_body_ended(x->client);
    x->request.body->complete = true;
    if (x->local)
        return true;
    x->request.answered_whole = x->form && x->route.kind == HTTP_PATH_MEDIA;
    if (x->skimming) {
        http_skim_end(&x->skim);
        exchange_session_from_body(x);
        if (!x->skim.understood)
            x->proxy->stats.not_understood++;
    }
    if ((x->skimming && exchange_engine_fields_refuse_body(x)) || exchange_key_refuse_body(x) ||
        !exchange_alias_apply(x))
        return false;
    if (x->skimming)
        take_prompt(x);
    if (x->chunked_body && http_forward_length_write(&x->request.head, x->request.body->bytes) != 0)
        exchange_cut(x, CLIENT_END_NO_MEMORY, false);
    else if (x->now.upstream != NULL)
        exchange_push(x);
    else if (!exchange_is_committed(x) && !x->now.booked)
        exchange_route(x);
    return false;
}

bool exchange_request(struct client *c, const struct client_input *in)
{
    if (in->head != NULL && !begin(c, in->head, in->has_body))
        return false;
    struct exchange *x = c->exchange;
    if (in->body.len > 0 && !add_body(x, in->body))
        return false;
    return in->end && c->exchange == x && complete(x);
}

/* Reserves memory for the bytes still expected, in proportion to the received bytes: at most as
 * many again. If so many are expected, at least ROOM_BYTES and at most PROXY_READ_BYTES are
 * reserved at a time. */
struct slice exchange_body_room(struct exchange *x, uint64_t expected)
{
    if (x->local || x->decoder != NULL)
        return slice_of(NULL, 0);
    uint64_t came = x->request.body->bytes;
    size_t hint = came < ROOM_BYTES         ? ROOM_BYTES
                  : came < PROXY_READ_BYTES ? (size_t)came
                                            : PROXY_READ_BYTES;
    if (hint > expected)
        hint = (size_t)expected;
    struct segment *s = body_room(&x->proxy->segments, x->request.body, hint);
    if (s == NULL)
        return slice_of(NULL, 0);
    size_t room = s->cap - s->len;
    return slice_of(s->data + s->len, room < expected ? room : (size_t)expected);
}

bool exchange_body_read(struct exchange *x, size_t n, bool end)
{
    struct client *c = x->client;
    struct segment *s = x->request.body->last;
    struct slice added = slice_of(s->data + s->len, n);
    s->len += (uint32_t)n;
    x->request.body->bytes += n;
    return body_grew(x, added) && c->exchange == x && end && complete(x);
}
