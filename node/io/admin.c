#include "base/err.h"
#include "base/json_write.h"
#include "node/core/version.h"
#include "node/io/local.h"
#include "node/io/random.h"

static const struct slice type_json = SLICE("application/json");
static const struct slice type_text = SLICE("text/plain; charset=utf-8");

static void answer_buf(struct exchange *x, int err, struct slice type, struct buf *out)
{
    if (err == 0)
        exchange_answer(x, 200, type, buf_slice(out), NULL, 0);
    else
        exchange_answer_error(x, 500, "InternalServerError", slice_of("", 0), "%s", err_text(err));
    buf_free(out);
}

static bool has_token(const struct exchange *x, const struct http_head *head)
{
    const char *token = x->shell->admin_token;
    struct slice given = http_head_get(head, HTTP_AUTHORIZATION);
    struct slice prefix = SLICE("Bearer ");
    return token != NULL && slice_starts_with(given, prefix) &&
           io_secret_equal(slice_skip(given, prefix.len), slice_of_cstr(token));
}

/* Whether the authority's host can be nobody's domain but ours: an address, localhost, or the name
 * that admin-listen has. */
static bool is_our_host(const struct exchange *x, struct slice authority)
{
    char host[NODE_HOST_BYTES];
    bool ipv6 = authority.len > 0 && authority.at[0] == '[';
    if (ipv6)
        authority = slice_skip(authority, 1);
    struct slice name = slice_of(authority.at, slice_find(authority, ipv6 ? ']' : ':'));
    if (!slice_to_cstr(name, host, sizeof host))
        return false;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    return uv_ip4_addr(host, 0, &v4) == 0 || (ipv6 && uv_ip6_addr(host, 0, &v6) == 0) ||
           slice_equal_nocase(name, SLICE("localhost")) ||
           slice_equal_nocase(name, slice_of_cstr(x->shell->options->admin_listen.host));
}

/* A page in an operator's browser must not talk to this port: not under a name of its own that it
 * points here (DNS rebinding), and not by sending forms. Answers 403 if it is so. */
static bool may_call(struct exchange *x, const struct http_head *head)
{
    if (has_token(x, head))
        return true;
    if (head->host.len > 0 && !is_our_host(x, head->host)) {
        exchange_answer_error(x, 403, "PermissionDeniedError", slice_of("", 0),
                              "The admin port is asked under a name that is not its own (Host: "
                              "%.*s): use its address, localhost or the name in admin-listen, or "
                              "give the admin token.",
                              head->host.len > 200 ? 200 : (int)head->host.len, head->host.at);
        return false;
    }
    if (head->method == HTTP_METHOD_POST && http_head_find(head, SLICE("origin")).at != NULL) {
        exchange_answer_error(x, 403, "PermissionDeniedError", slice_of("", 0),
                              "The admin port takes no calls of web pages (Origin) without the "
                              "admin token.");
        return false;
    }
    return true;
}

/* What changes state asks for the token, where one is configured. Answers 401 if it is wrong. */
static bool may_change(struct exchange *x, const struct http_head *head)
{
    if (x->shell->admin_token == NULL || has_token(x, head))
        return true;
    exchange_answer_error(x, 401, "AuthenticationError", slice_of("", 0),
                          "This call changes state and needs the admin token "
                          "(Authorization: Bearer ...).");
    return false;
}

/* Value of `name` in a query string; empty if it is not there. */
static struct slice query_value(struct slice query, struct slice name)
{
    while (query.len > 0) {
        struct slice pair = slice_cut(&query, '&');
        struct slice key = slice_cut(&pair, '=');
        if (slice_equal(key, name))
            return pair;
    }
    return slice_of("", 0);
}

static void handle_index(struct exchange *x, const struct http_head *head)
{
    (void)head;
    exchange_answer(x, 200, type_text,
                    SLICE("grapevine " GRAPEVINE_VERSION "\n"
                          "GET  /healthz                 the process is alive\n"
                          "GET  /readyz                  at least one replica can be chosen\n"
                          "GET  /metrics                 Prometheus\n"
                          "GET  /replicas                what is believed of every replica\n"
                          "POST /explain                 body: a request; what each replica would "
                          "cost\n"
                          "GET  /config                  settings in force\n"
                          "POST /log-level?level=debug   error, warn, info or debug\n"
                          "POST /drain?replica=HOST:PORT no new requests for a replica\n"
                          "POST /undrain?replica=HOST:PORT\n"),
                    NULL, 0);
}

static void handle_healthz(struct exchange *x, const struct http_head *head)
{
    (void)head;
    exchange_answer(x, 200, type_text, SLICE("ok\n"), NULL, 0);
}

static void handle_readyz(struct exchange *x, const struct http_head *head)
{
    (void)head;
    if (x->shell->draining)
        exchange_answer(x, 503, type_text, SLICE("draining\n"), NULL, 0);
    else if (!node_router_ready(x->shell->router))
        exchange_answer(x, 503, type_text, SLICE("no replica is up\n"), NULL, 0);
    else
        exchange_answer(x, 200, type_text, SLICE("ready\n"), NULL, 0);
}

static void handle_metrics(struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out;
    buf_init(&out, 0);
    answer_buf(x, metrics_write(x->shell, &out), SLICE("text/plain; version=0.0.4; charset=utf-8"),
               &out);
}

static void handle_replicas(struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out;
    buf_init(&out, 0);
    int err = node_router_replicas_json(x->shell->router, shell_now_ms(x->shell), &out);
    answer_buf(x, err, type_json, &out);
}

static void handle_explain(struct exchange *x, const struct http_head *head)
{
    exchange_read_session(x, head);
    struct slice session = http_head_find(head, SLICE("x-grapevine-session"));
    if (session.at != NULL) /* gvctl does not know the name of the header */
        exchange_session_set(x, session);
    http_skim_init(&x->skim, &x->shell->secret);
    for (const struct segment *s = x->body->first; s != NULL; s = s->next)
        http_skim_feed(&x->skim, s->data, s->len);
    http_skim_finish(&x->skim);
    if (!x->skim.understood) {
        exchange_answer_error(x, 400, "invalid_request_error", slice_of("", 0),
                              "The body is not a JSON request; such a request is routed by load.");
        return;
    }
    x->skimming = true;
    struct node_request request;
    exchange_describe(x, &request);
    struct buf out;
    buf_init(&out, 0);
    int err = node_router_explain(x->shell->router, &request, shell_now_ms(x->shell), &out);
    answer_buf(x, err, type_json, &out);
}

static void handle_config(struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out;
    buf_init(&out, 0);
    answer_buf(x, node_options_effective(x->shell->options, &out), type_text, &out);
}

static void handle_log_level(struct exchange *x, const struct http_head *head)
{
    enum log_level level;
    struct slice name = query_value(head->query, SLICE("level"));
    if (log_level_parse(name, &level) != 0) {
        exchange_answer_error(x, 400, "invalid_request_error", SLICE("level"),
                              "level must be error, warn, info or debug.");
        return;
    }
    x->shell->log->level = level;
    log_event(x->shell->log, LOG_ERROR, "log_level", LOG_STR("level", name));
    exchange_answer(x, 200, type_json, SLICE("{\"ok\":true}"), NULL, 0);
}

static void set_draining(struct exchange *x, const struct http_head *head, bool draining)
{
    struct shell *shell = x->shell;
    struct slice name = query_value(head->query, SLICE("replica"));
    for (unsigned i = 0; i < node_router_replica_count(shell->router); i++) {
        if (!slice_equal(node_router_replica_name(shell->router, i), name))
            continue;
        node_router_replica_drain(shell->router, i, draining);
        log_event(shell->log, LOG_INFO, "replica_drain", LOG_STR("replica", name),
                  LOG_BOOL("draining", draining));
        exchange_answer(x, 200, type_json, SLICE("{\"ok\":true}"), NULL, 0);
        return;
    }
    exchange_answer_error(x, 404, "NotFoundError", SLICE("replica"),
                          "There is no replica `%.*s`; GET /replicas lists them.",
                          name.len > 200 ? 200 : (int)name.len, name.at);
}

static void handle_drain(struct exchange *x, const struct http_head *head)
{
    set_draining(x, head, true);
}

static void handle_undrain(struct exchange *x, const struct http_head *head)
{
    set_draining(x, head, false);
}

static const struct {
    struct slice path;
    enum http_method method;
    bool changes;
    void (*handle)(struct exchange *x, const struct http_head *head);
} calls[] = {
    {SLICE("/"), HTTP_METHOD_GET, false, handle_index},
    {SLICE("/healthz"), HTTP_METHOD_GET, false, handle_healthz}, /* these three: by any name */
    {SLICE("/readyz"), HTTP_METHOD_GET, false, handle_readyz},
    {SLICE("/metrics"), HTTP_METHOD_GET, false, handle_metrics},
    {SLICE("/replicas"), HTTP_METHOD_GET, false, handle_replicas},
    {SLICE("/explain"), HTTP_METHOD_POST, false, handle_explain},
    {SLICE("/config"), HTTP_METHOD_GET, false, handle_config},
    {SLICE("/log-level"), HTTP_METHOD_POST, true, handle_log_level},
    {SLICE("/drain"), HTTP_METHOD_POST, true, handle_drain},
    {SLICE("/undrain"), HTTP_METHOD_POST, true, handle_undrain},
};

void admin_handle(struct exchange *x, const struct http_head *head)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!slice_equal(head->path, calls[i].path))
            continue;
        bool probe = calls[i].handle == handle_healthz || calls[i].handle == handle_readyz ||
                     calls[i].handle == handle_metrics;
        if (!probe && !may_call(x, head))
            return;
        bool get = calls[i].method == HTTP_METHOD_GET &&
                   (head->method == HTTP_METHOD_GET || head->method == HTTP_METHOD_HEAD);
        if (!get && head->method != calls[i].method) {
            struct http_line allow = {SLICE("allow"), calls[i].method == HTTP_METHOD_GET
                                                          ? SLICE("GET, HEAD")
                                                          : SLICE("POST")};
            exchange_answer(x, 405, type_json, SLICE(HTTP_BODY_METHOD_NOT_ALLOWED), &allow, 1);
            return;
        }
        if (!calls[i].changes || may_change(x, head))
            calls[i].handle(x, head);
        return;
    }
    exchange_answer_error(x, 404, "NotFoundError", slice_of("", 0),
                          "No such admin call; GET / lists them.");
}
