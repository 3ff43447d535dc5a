#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/version.h"
#include "http/path.h"
#include "node/admin/admin_internal.h"

static const struct slice type_json = SLICE("application/json");
static const struct slice type_text = SLICE("text/plain; charset=utf-8");

void admin_answer_buf(struct exchange *x, int err, struct slice type, struct buf *out)
{
    if (err == 0)
        exchange_answer(x, 200, type, buf_slice(out), NULL, 0);
    else
        exchange_answer_error(x, 500, "InternalServerError", slice_of("", 0), "%s", err_text(err));
    buf_free(out);
}

static bool has_token(const struct admin *a, const struct http_head *head)
{
    const char *token = a->config.token;
    struct slice given = http_head_get(head, HTTP_AUTHORIZATION);
    struct slice prefix = SLICE("Bearer ");
    return token != NULL && slice_starts_with(given, prefix) &&
           slice_equal_secret(slice_skip(given, prefix.len), slice_of_cstr(token));
}

/* Whether the authority's host can be nobody's domain but ours: an address, localhost, or the name
 * that admin-listen has. */
static bool is_our_host(const struct admin *a, struct slice authority)
{
    char host[NODE_HOST_BYTES];
    bool ipv6 = authority.len > 0 && authority.at[0] == '[';
    if (ipv6)
        authority = slice_skip(authority, 1);
    struct slice name = slice_of(authority.at, slice_find(authority, ipv6 ? ']' : ':'));
    if (!slice_to_cstr(name, host, sizeof host))
        return false;
    bool address = node_host_is_ip(host) && ipv6 == (strchr(host, ':') != NULL);
    return address || slice_equal_nocase(name, SLICE("localhost")) ||
           slice_equal_nocase(name, slice_of_cstr(a->config.options->admin_listen.host));
}

/* A page in an operator's browser must not talk to this port: not under a name of its own that it
 * points here (DNS rebinding), and not by sending forms. Answers 403 if it is so. */
static bool may_call(const struct admin *a, struct exchange *x, const struct http_head *head)
{
    if (has_token(a, head))
        return true;
    if (head->host.len > 0 && !is_our_host(a, head->host)) {
        exchange_answer_error(x, 403, "PermissionDeniedError", slice_of("", 0),
                              "The admin port is asked under a name that is not its own (Host: "
                              "%.*s): use its address, localhost or the name in admin-listen, or "
                              "give the admin token.",
                              head->host.len > 200 ? 200 : (int)head->host.len, head->host.at);
        return false;
    }
    bool reads = head->method == HTTP_METHOD_GET || head->method == HTTP_METHOD_HEAD;
    if (!reads && http_head_find(head, SLICE("origin")).at != NULL) {
        exchange_answer_error(x, 403, "PermissionDeniedError", slice_of("", 0),
                              "The admin port takes no calls of web pages (Origin) without the "
                              "admin token.");
        return false;
    }
    return true;
}

/* What changes state asks for the token, where one is configured: 401 if it is wrong. Where none
 * is, it must come from this machine: whoever could add a replica would be sent prompts. 403. */
static bool may_change(const struct admin *a, struct exchange *x, const struct http_head *head)
{
    if (a->config.token != NULL ? has_token(a, head) : node_host_is_loopback(x->client->peer))
        return true;
    const char *peer = x->client->peer;
    if (slice_starts_with(slice_of_cstr(peer), SLICE("::ffff:")) && strchr(peer, '.') != NULL)
        peer += strlen("::ffff:"); /* IPv4 at an IPv6 port */
    log_event(a->config.log, LOG_WARN, "admin_refused", LOG_CSTR("from", peer),
              LOG_CSTR("path", x->path), LOG_BOOL("token", a->config.token != NULL));
    if (a->config.token != NULL)
        exchange_answer_error(x, 401, "AuthenticationError", slice_of("", 0),
                              "This call changes state and needs the admin token: gvctl "
                              "--token-file FILE, or the header Authorization: Bearer TOKEN.");
    else
        exchange_answer_error(
            x, 403, "PermissionDeniedError", slice_of("", 0),
            "This call changes state and comes from %s. A router without an admin token takes "
            "changes from loopback alone%s start it with admin-token-file and give the token "
            "(gvctl --token-file FILE).",
            peer,
            a->on_loopback
                ? ": call it on its own machine by 127.0.0.1, or"
                : ", and the admin port of this one does not listen there, so it takes no changes "
                  "at all:");
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

bool admin_query(const struct http_head *head, struct slice name, char *out, size_t size)
{
    struct slice decoded;
    out[0] = '\0';
    struct slice value = query_value(head->query, name);
    return http_percent_decode(value, out, size - 1, &decoded) == 0 &&
           slice_to_cstr(decoded, out, size) && strlen(out) == decoded.len;
}

static void handle_index(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)a, (void)head;
    exchange_answer(x, 200, type_text,
                    SLICE("grapevine " GRAPEVINE_VERSION "\n"
                          "GET  /healthz                 the process is alive\n"
                          "GET  /readyz                  at least one replica can be chosen\n"
                          "GET  /metrics                 Prometheus\n"
                          "GET  /replicas                what is believed of every replica\n"
                          "POST /explain                 body: a request; what each replica would "
                          "cost\n"
                          "POST /explain?all=1           the same, as each router sees it\n"
                          "GET  /members                 the routers of the cluster\n"
                          "GET  /convergence             digests of all routers, and whether they "
                          "are equal\n"
                          "GET  /config                  settings in force\n"
                          "POST /log-level?level=debug   error, warn, info or debug\n"
                          "POST /drain?replica=HOST:PORT no new requests for a replica\n"
                          "POST /undrain?replica=HOST:PORT\n"
                          "POST /replicas?replica=HOST:PORT    add a replica at run time\n"
                          "DELETE /replicas?replica=HOST:PORT  remove one\n"
                          "What is drained, added or removed is so for all routers.\n"),
                    NULL, 0);
}

static void handle_healthz(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)a, (void)head;
    exchange_answer(x, 200, type_text, SLICE("ok\n"), NULL, 0);
}

static void handle_readyz(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    const char *why = proxy_not_ready(a->proxy);
    char text[128];
    (void)snprintf(text, sizeof text, "%s\n", why != NULL ? why : "ready");
    exchange_answer(x, why != NULL ? 503 : 200, type_text, slice_of_cstr(text), NULL, 0);
}

static void handle_metrics(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out;
    buf_init(&out, 0);
    admin_answer_buf(x, a->config.metrics(a->config.metrics_context, &out),
                     SLICE("text/plain; version=0.0.4; charset=utf-8"), &out);
}

static void handle_replicas(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out;
    buf_init(&out, 0);
    int err = node_router_replicas_json(a->config.router, x->proxy->now_ms, &out);
    admin_answer_buf(x, err, type_json, &out);
}

bool admin_describe(struct exchange *x, const struct http_head *head, struct node_request *out)
{
    exchange_read_session(x, head);
    struct slice session = http_head_find(head, SLICE("x-grapevine-session"));
    if (session.at != NULL) /* gvctl does not know the name of the header */
        exchange_session_set(x, session);
    http_skim_init(&x->skim, &x->proxy->config.secret);
    for (const struct segment *s = x->request.body->first; s != NULL; s = s->next)
        http_skim_feed(&x->skim, s->data, s->len);
    http_skim_finish(&x->skim);
    if (!x->skim.understood) {
        exchange_answer_error(x, 400, "invalid_request_error", slice_of("", 0),
                              "The body is not a JSON request; such a request is routed by load.");
        return false;
    }
    x->skimming = true;
    exchange_describe(x, out);
    return true;
}

static void handle_explain(struct admin *a, struct exchange *x, const struct http_head *head)
{
    char all[8];
    if (admin_query(head, SLICE("all"), all, sizeof all) && strcmp(all, "1") == 0) {
        admin_explain_all(a, x, head);
        return;
    }
    struct node_request request;
    if (!admin_describe(x, head, &request))
        return;
    struct buf out;
    buf_init(&out, 0);
    int err = node_router_explain(a->config.router, &request, x->proxy->now_ms, &out);
    admin_answer_buf(x, err, type_json, &out);
}

static void handle_config(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out;
    buf_init(&out, 0);
    admin_answer_buf(x, node_options_effective(a->config.options, &out), type_text, &out);
}

static void handle_log_level(struct admin *a, struct exchange *x, const struct http_head *head)
{
    enum log_level level;
    struct slice name = query_value(head->query, SLICE("level"));
    if (log_level_parse(name, &level) != 0) {
        exchange_answer_error(x, 400, "invalid_request_error", SLICE("level"),
                              "level must be error, warn, info or debug.");
        return;
    }
    a->config.log->level = level;
    log_event(a->config.log, LOG_ERROR, "log_level", LOG_STR("now", name));
    exchange_answer(x, 200, type_json, SLICE("{\"ok\":true}"), NULL, 0);
}

static void set_draining(struct admin *a, struct exchange *x, const struct http_head *head,
                         bool draining)
{
    struct node_replica_option wanted;
    if (!admin_read_replica(x, head, &wanted))
        return;
    int replica = node_router_replica_find(a->config.router, slice_of_cstr(wanted.name));
    if (replica < 0 || !node_router_replica_present(a->config.router, (unsigned)replica)) {
        admin_answer_no_replica(x, wanted.name);
        return;
    }
    node_router_replica_drain(a->config.router, (unsigned)replica, draining);
    log_event(a->config.log, LOG_INFO, "replica_drain", LOG_CSTR("replica", wanted.name),
              LOG_BOOL("draining", draining));
    exchange_answer(x, 200, type_json, SLICE("{\"ok\":true}"), NULL, 0);
}

static void handle_drain(struct admin *a, struct exchange *x, const struct http_head *head)
{
    set_draining(a, x, head, true);
}

static void handle_undrain(struct admin *a, struct exchange *x, const struct http_head *head)
{
    set_draining(a, x, head, false);
}

static const struct call {
    struct slice path;
    enum http_method method;
    bool changes;
    admin_call handle;
} calls[] = {
    {SLICE("/"), HTTP_METHOD_GET, false, handle_index},
    {SLICE("/healthz"), HTTP_METHOD_GET, false, handle_healthz}, /* these three: by any name */
    {SLICE("/readyz"), HTTP_METHOD_GET, false, handle_readyz},
    {SLICE("/metrics"), HTTP_METHOD_GET, false, handle_metrics},
    {SLICE("/replicas"), HTTP_METHOD_GET, false, handle_replicas},
    {SLICE("/replicas"), HTTP_METHOD_POST, true, admin_replica_add},
    {SLICE("/replicas"), HTTP_METHOD_DELETE, true, admin_replica_remove},
    {SLICE("/explain"), HTTP_METHOD_POST, false, handle_explain},
    {SLICE("/members"), HTTP_METHOD_GET, false, admin_members},
    {SLICE("/convergence"), HTTP_METHOD_GET, false, admin_convergence},
    {SLICE("/config"), HTTP_METHOD_GET, false, handle_config},
    {SLICE("/log-level"), HTTP_METHOD_POST, true, handle_log_level},
    {SLICE("/drain"), HTTP_METHOD_POST, true, handle_drain},
    {SLICE("/undrain"), HTTP_METHOD_POST, true, handle_undrain},
};

/* The call, or NULL; `methods` gets what its path does have, for Allow. */
static const struct call *find_call(const struct http_head *head, char *methods, size_t size)
{
    methods[0] = '\0';
    enum http_method wanted = head->method == HTTP_METHOD_HEAD ? HTTP_METHOD_GET : head->method;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (!slice_equal(head->path, calls[i].path))
            continue;
        if (calls[i].method == wanted)
            return &calls[i];
        size_t len = strlen(methods);
        (void)snprintf(methods + len, size - len, "%s%s", len > 0 ? ", " : "",
                       calls[i].method == HTTP_METHOD_GET      ? "GET, HEAD"
                       : calls[i].method == HTTP_METHOD_DELETE ? "DELETE"
                                                               : "POST");
    }
    return NULL;
}

void admin_handle(void *admin, struct exchange *x, const struct http_head *head)
{
    struct admin *a = admin;
    char methods[64];
    const struct call *call = find_call(head, methods, sizeof methods);
    bool probe = call != NULL && (call->handle == handle_healthz || call->handle == handle_readyz ||
                                  call->handle == handle_metrics);
    if (call == NULL && methods[0] == '\0') {
        exchange_answer_error(x, 404, "NotFoundError", slice_of("", 0),
                              "No such admin call; GET / lists them.");
        return;
    }
    if (!probe && !may_call(a, x, head))
        return;
    if (call == NULL) {
        exchange_answer_not_allowed(x, head->path, methods);
        return;
    }
    if (!call->changes || may_change(a, x, head))
        call->handle(a, x, head);
}

/* --- life ------------------------------------------------------------------------------------ */

int admin_create(struct admin **out, const struct admin_config *config)
{
    struct admin *a = calloc(1, sizeof *a);
    if (a == NULL)
        return ERR_NOMEM;
    a->config = *config;
    *out = a;
    return 0;
}

void admin_start(struct admin *a, struct proxy *proxy, struct node_replication *replication)
{
    a->proxy = proxy;
    a->replication = replication;
}

void admin_listens(struct admin *a, bool on_loopback)
{
    a->on_loopback = on_loopback;
}

void admin_tick(struct admin *a)
{
    admin_adds_tick(a);
}

void admin_stop(struct admin *a)
{
    admin_adds_free(a);
}

void admin_destroy(struct admin *a)
{
    if (a == NULL)
        return;
    CHECK(a->adds == NULL);
    admin_asks_free(a);
    free(a);
}
