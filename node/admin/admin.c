/* The admin port's calls, and this router's answers about itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/err.h"
#include "base/json_write.h"
#include "base/version.h"
#include "node/admin/admin_internal.h"
#include "node/admin/live.h"
#include "node/admin/page.h"
#include "node/admin/together.h"
#include "node/cluster/replication.h"

static const struct slice type_text = SLICE("text/plain; charset=utf-8");

void admin_index(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)a, (void)head;
    struct buf out = {0};
    int err = buf_printf(&out, "grapevine %s\n", version_text);
    for (unsigned i = 0; i < ADMIN_CALL_COUNT && err == 0; i++) {
        const struct admin_call_row *row = admin_call_row((enum admin_call)i);
        char what[64];
        (void)snprintf(what, sizeof what, "%s%s%s", row->path, row->argument != NULL ? "?" : "",
                       row->argument != NULL ? row->argument : "");
        if (row->about != NULL)
            err = row->about[0] != '\0'
                      ? buf_printf(&out, "%-4s %-24s %s\n", row->method, what, row->about)
                      : buf_printf(&out, "%-4s %s\n", row->method, what);
    }
    if (err == 0)
        err = buf_append_cstr(&out, "Drains, additions and removals apply to all routers.\n");
    admin_answer_buf(x, err, type_text, &out);
}

void admin_healthz(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)a, (void)head;
    exchange_answer(x, 200, type_text, SLICE("ok\n"), NULL, 0);
}

void admin_readyz(struct admin *a, struct exchange *x, const struct http_head *head)
{
    const char *why = proxy_not_ready(a->proxy);
    struct node_replication *n = a->config.replication;
    const char *alone = n != NULL ? node_replication_alone(n, node_replication_now_us(n)) : NULL;
    int status = why != NULL ? 503 : 200;
    char format[8];
    if (!admin_query(head, SLICE("format"), format, sizeof format) || strcmp(format, "json") != 0) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s\n%s%s%s", why != NULL ? why : "ready",
                       alone != NULL ? "alone: " : "", alone != NULL ? alone : "",
                       alone != NULL ? "\n" : "");
        exchange_answer(x, status, type_text, slice_of_cstr(text), NULL, 0);
        return;
    }
    struct buf out = {0};
    struct json_writer w = json_writer_of(&out);
    json_object_begin(&w);
    json_put_bool(&w, "ready", why == NULL);
    json_put_cstr(&w, "why", why);
    json_put_cstr(&w, "alone", alone);
    json_put_cstr(&w, "router", a->config.name); /* callers without a token learn the name here */
    json_object_end(&w);
    int err = json_writer_finish(&w);
    if (err == 0)
        exchange_answer(x, status, ADMIN_JSON, buf_slice(&out), NULL, 0);
    else
        exchange_answer(x, status, type_text, SLICE("out of memory\n"), NULL, 0);
    buf_free(&out);
}

void admin_metrics(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out = {0};
    admin_answer_buf(x, a->config.metrics(a->config.metrics_context, &out),
                     SLICE("text/plain; version=0.0.4; charset=utf-8"), &out);
}

/* Writes the error in the last loaded settings as a comment line of settings. No setting has that
 * name, so every reader of settings can read the line. */
static int write_refused(const struct admin *a, struct buf *out)
{
    if (a->refused == NULL)
        return 0;
    int err = buf_append_cstr(out, "# config-refused: ");
    if (err == 0)
        err = json_string_append(out, slice_of_cstr(a->refused));
    return err == 0 ? buf_append_cstr(
                          out, "   # the file is wrong; the earlier settings stay in force\n")
                    : err;
}

void admin_config(struct admin *a, struct exchange *x, const struct http_head *head)
{
    (void)head;
    struct buf out = {0};
    int err = write_refused(a, &out);
    if (err == 0)
        err = node_options_effective(a->config.options, &out);
    if (err == 0 && a->wanted != NULL)
        err = node_options_waiting(a->config.options, a->wanted, &out);
    admin_answer_buf(x, err, type_text, &out);
}

void admin_log_level(struct admin *a, struct exchange *x, const struct http_head *head)
{
    enum log_level level;
    char name[16];
    if (!admin_query(head, SLICE("level"), name, sizeof name) ||
        log_level_parse(slice_of_cstr(name), &level) != 0) {
        exchange_answer_error(x, 400, SLICE("level"), "level must be error, warn, info or debug.");
        return;
    }
    struct admin_who who;
    admin_who(a, x, head, &who);
    a->config.log->level = level;
    log_event(a->config.log, LOG_ERROR, "log_level", LOG_CSTR("now", name),
              LOG_CSTR("from", who.from), LOG_CSTR("token", who.token));
    exchange_answer(x, 200, ADMIN_JSON, SLICE("{\"ok\":true}"), NULL, 0);
}

static const struct call {
    struct slice path;
    enum http_method method;
    unsigned flags;
    admin_call_handler *handle;
} calls[] = {
#define CALL(name, m, p, argument, handler, f, about)                                              \
    {.path = SLICE(p), .method = HTTP_METHOD_##m, .flags = (f), .handle = (handler)},
    ADMIN_CALLS(CALL)
#undef CALL
};

/* Returns the call, or NULL. `methods` receives the existing methods of the path, for Allow. */
static const struct call *find_call(const struct http_head *head, char *methods, size_t size)
{
    methods[0] = '\0';
    enum http_method wanted = head->method == HTTP_METHOD_HEAD ? HTTP_METHOD_GET : head->method;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        if (!slice_equal(head->path, calls[i].path))
            continue;
        if (calls[i].method == wanted)
            return &calls[i];
        const char *method = calls[i].method == HTTP_METHOD_GET
                                 ? "GET, HEAD"
                                 : admin_call_row((enum admin_call)i)->method;
        size_t len = strlen(methods);
        if (strstr(methods, method) == NULL)
            (void)snprintf(methods + len, size - len, "%s%s", len > 0 ? ", " : "", method);
    }
    return NULL;
}

/* Answers 503 while the router joins. A change made then would count as the replica's first and
 * lose against the other routers' state: accepted, then gone. */
static bool has_joined(const struct admin *a, struct exchange *x)
{
    if (a->config.replication == NULL || node_replication_ready(a->config.replication))
        return true;
    exchange_answer_error(
        x, 503, slice_of("", 0),
        "This router is joining the cluster and has not copied its state yet: ask "
        "again in a moment, or ask another router.");
    return false;
}

/* The target of a request: a call or a page file. */
struct asked {
    const struct call *call;
    const struct admin_page_file *file;
};

/* Judges a request by the head alone. Returns false after answering with the reason. */
static bool judge(struct admin *a, struct exchange *x, const struct http_head *head,
                  struct asked *out)
{
    char methods[64];
    const struct call *call = find_call(head, methods, sizeof methods);
    *out = (struct asked){.call = call};
    bool probed = call != NULL && (call->flags & ADMIN_PROBED) != 0;
    if (x->client->port == PROXY_PORT_PROBE && !probed) {
        exchange_answer_error(x, 404, slice_of("", 0),
                              "This port serves only GET /healthz, /readyz and /metrics.");
        return false;
    }
    bool changes = call == NULL || (call->flags & ADMIN_CHANGES) != 0;
    out->file = admin_page_find(head);
    if (out->file != NULL)
        return admin_may_call(a, x, head, false);
    if (call == NULL && methods[0] == '\0') {
        exchange_answer_error(x, 404, slice_of("", 0), "No such admin call; GET / lists them.");
        return false;
    }
    if (!probed && !admin_may_call(a, x, head, changes))
        return false;
    if (call == NULL) {
        exchange_answer_not_allowed(x, head->path, methods);
        return false;
    }
    bool asks = (call->flags & ADMIN_ASKS) != 0;
    bool may =
        probed || (admin_may_read(a, x, head) && (!changes || admin_may_change(a, x, head)) &&
                   (!asks || admin_may_ask(a, x, head)));
    return may && ((call->flags & ADMIN_SHARED) == 0 || has_joined(a, x));
}

void admin_head(void *admin, struct exchange *x, const struct http_head *head)
{
    struct asked asked;
    if (judge(admin, x, head, &asked) && asked.file == NULL &&
        (asked.call->flags & ADMIN_BODY) != 0)
        exchange_skim_begin(x);
}

void admin_handle(void *admin, struct exchange *x, const struct http_head *head)
{
    struct asked asked;
    if (!judge(admin, x, head, &asked))
        return;
    if (asked.file != NULL)
        admin_page_answer(x, asked.file);
    else
        asked.call->handle(admin, x, head);
}

/* --- life ------------------------------------------------------------------------------------- */

int admin_create(struct admin **out, const struct admin_config *config)
{
    struct admin *a = calloc(1, sizeof *a);
    if (a == NULL)
        return ERR_NOMEM;
    a->config = *config;
    int err = admin_events_create(&a->events);
    if (err == ERR_OK)
        err = admin_live_create(&a->live, a);
    if (err != ERR_OK) {
        admin_events_destroy(a->events);
        free(a);
        return err;
    }
    a->since_ms = admin_unix_ms(a);
    config->log->tap = admin_events_tap;
    config->log->tap_context = a->events;
    if (config->replication != NULL) {
        node_replication_events(config->replication, admin_events_answer, a);
        node_replication_figures(config->replication, admin_together_answer, a);
    }
    *out = a;
    return 0;
}

void admin_start(struct admin *a, struct proxy *proxy)
{
    a->proxy = proxy;
}

void admin_listens(struct admin *a, bool on_loopback)
{
    a->on_loopback = on_loopback;
}

void admin_options_wanted(struct admin *a, const struct node_options *wanted)
{
    a->wanted = wanted;
}

void admin_options_refused(struct admin *a, const char *why)
{
    a->refused = why;
}

void admin_tick(struct admin *a)
{
    admin_adds_tick(a);
    admin_watch(a, proxy_now_ms(a->proxy));
    admin_live_tick(a->live, proxy_now_ms(a->proxy));
}

void admin_stop(struct admin *a)
{
    admin_live_stop(a->live);
    admin_adds_free(a);
}

void admin_viewers_end(struct admin *a)
{
    admin_live_stop(a->live);
}

void admin_destroy(struct admin *a)
{
    if (a == NULL)
        return;
    CHECK(a->adds == NULL);
    admin_asks_free(a);
    a->config.log->tap = NULL;
    admin_live_destroy(a->live);
    admin_events_destroy(a->events);
    free(a);
}
