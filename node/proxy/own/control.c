#include "node/proxy/own/control.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "base/json_write.h"
#include "http/path.h"
#include "node/proxy/engine/fetch.h"
#include "node/replica/model.h"
#include "node/settings/options.h"

struct control_ask;

enum { WHY_BYTES = NODE_NAME_MAX + 64 };

/* A request to a replica, which becomes a row of the answer. Data-parallel ranks have no rows. */
struct asked {
    struct fetch fetch;
    struct control_ask *ask; /* NULL: free */
    unsigned replica;
    unsigned era; /* the era of the replica's name: differs if the name was reused */
    bool second;  /* a reset by the path of the other type of engine, because the first path is
                   * missing */
    char name[NODE_REPLICA_NAME_BYTES];
};

struct control_ask {
    struct exchange *x;
    struct proxy *proxy;
    const char *method;
    struct buf target; /* the path and query; empty: a reset, by each engine's own path */
    struct buf lines, body;
    struct buf rows; /* finished rows, as JSON */
    bool resets;     /* 2xx confirms an empty cache */
    struct node_replica_set todo;
    unsigned next, open;   /* the next replica of `todo` to look at; requests under way */
    unsigned count, good;  /* number of all rows, and of rows with 2xx */
    unsigned status;       /* the highest status of rows without 2xx */
    bool said;             /* `status` is an engine's answer, not this router's */
    unsigned resets_count; /* number of replicas that confirmed an empty cache */
    struct asked asked[CONTROL_AT_ONCE];
};

static const struct slice vllm_reset = SLICE("/reset_prefix_cache");
static const struct slice sglang_reset = SLICE("/flush_cache");

static void ask_free(struct control_ask *ask)
{
    for (unsigned i = 0; i < CONTROL_AT_ONCE; i++) {
        if (ask->asked[i].ask != NULL)
            fetch_cancel(&ask->asked[i].fetch);
    }
    ask->proxy->control_asks--;
    buf_free_wiped(&ask->lines);
    buf_free(&ask->target);
    buf_free(&ask->body);
    buf_free(&ask->rows);
    free(ask);
}

static void on_forget(void *context)
{
    ask_free(context);
}

/* --- rows ------------------------------------------------------------------------------------ */

static unsigned status_of(int err)
{
    switch (err) {
    case ERR_TIMEOUT:
        return 504;
    case ERR_FULL:
    case ERR_NOMEM:
        return 503;
    default:
        return 502;
    }
}

static int begin_row(struct buf *rows, struct json_writer *w)
{
    int err = rows->len > 0 ? buf_append_char(rows, ',') : ERR_OK;
    *w = json_writer_of(rows);
    json_object_begin(w);
    json_key(w, "replica");
    return err;
}

static int write_left_out(struct buf *rows, struct slice name, const char *why)
{
    struct json_writer w;
    int err = begin_row(rows, &w);
    json_slice(&w, name);
    json_key(&w, "left_out");
    json_cstr(&w, why);
    json_object_end(&w);
    return err != ERR_OK ? err : json_writer_finish(&w);
}

static int write_row(struct buf *rows, const struct asked *a, unsigned status, struct slice body,
                     const char *error)
{
    struct json_writer w;
    int err = begin_row(rows, &w);
    if (err != ERR_OK)
        return err;
    json_cstr(&w, a->name);
    json_put_u64(&w, "status", status);
    json_key(&w, error != NULL ? "error" : "answer");
    if (error != NULL)
        json_cstr(&w, error);
    else
        json_slice(&w, slice_of(body.at, body.len < CONTROL_ANSWER_BYTES_MAX
                                             ? body.len
                                             : CONTROL_ANSWER_BYTES_MAX));
    json_object_end(&w);
    return json_writer_finish(&w);
}

/* Returns true if the body of a 200 reports a failed reset, as some engines do. */
static bool says_no(struct slice body)
{
    static const char key[] = "\"success\"";
    const char *at = body.len > 0 ? memmem(body.at, body.len, key, sizeof key - 1) : NULL;
    if (at == NULL)
        return false;
    struct slice rest = slice_skip(body, (size_t)(at - body.at) + sizeof key - 1);
    while (rest.len > 0 && strchr(" \t\r\n:", rest.at[0]) != NULL)
        rest = slice_skip(rest, 1);
    return slice_starts_with(rest, SLICE("false"));
}

static void note(struct control_ask *ask, const struct asked *a, unsigned status, struct slice body,
                 const char *error)
{
    struct proxy *p = ask->proxy;
    bool good = error == NULL && status / 100 == 2;
    ask->count++;
    ask->good += good;
    if (!good && status > ask->status) {
        ask->status = status;
        ask->said = error == NULL;
    }
    bool same = node_router_replica(p->config.router, a->replica)->era == a->era;
    if (good && ask->resets && same && !says_no(body)) {
        node_router_cache_reset(p->config.router, a->replica, p->now_ms);
        p->stats.cache_resets++;
        ask->resets_count++;
    }
    if (write_row(&ask->rows, a, status, body, error) != ERR_OK) {
        ask->status = 503; /* no memory for the row */
        ask->said = false;
    }
}

/* --- asking ---------------------------------------------------------------------------------- */

static void go_on(struct control_ask *ask);

/* Returns the path by which to reset the engine's cache. For an unknown type, vLLM's path is
 * first. */
static struct slice reset_path(const struct asked *a)
{
    bool sglang =
        node_router_replica_engine(a->ask->proxy->config.router, a->replica) == NODE_ENGINE_SGLANG;
    return sglang != a->second ? sglang_reset : vllm_reset;
}

static void send(struct asked *a)
{
    struct control_ask *ask = a->ask;
    struct fetch_question q = {.method = ask->method,
                               .target =
                                   ask->target.len > 0 ? buf_slice(&ask->target) : reset_path(a),
                               .lines = buf_slice(&ask->lines),
                               .body = buf_slice(&ask->body),
                               .pace = FETCH_PATIENT};
    ask->proxy->stats.controls++;
    fetch_ask(&a->fetch, &q);
}

static void on_answered(void *context, int err, bool refused, unsigned status, struct slice body)
{
    struct asked *a = context;
    struct control_ask *ask = a->ask;
    const char *error = refused   ? "its port refuses connections"
                        : err < 0 ? fetch_error_text(err)
                                  : NULL;
    fetch_cancel(&a->fetch); /* each control request must have a fresh connection */
    bool absent = error == NULL && (status == 404 || status == 405);
    if (absent && ask->target.len == 0 && !a->second) {
        a->second = true;
        send(a);
        return;
    }
    note(ask, a, error == NULL ? status : status_of(err), body, error);
    a->ask = NULL;
    ask->open--;
    go_on(ask);
}

static void begin(struct control_ask *ask, struct asked *a, unsigned replica)
{
    const struct node_router *r = ask->proxy->config.router;
    a->ask = ask;
    a->replica = replica;
    a->era = node_router_replica(r, replica)->era;
    a->second = false;
    (void)slice_to_cstr(node_router_replica_name(r, replica), a->name, sizeof a->name);
    ask->open++;
    fetch_init(&a->fetch, &ask->proxy->engines.pools[replica], on_answered, a);
    send(a);
}

static void answer(struct exchange *x, struct control_ask *ask)
{
    struct buf body;
    unsigned status = ask->good == ask->count && ask->status == 0 ? 200 : ask->status;
    buf_init(&body, 0);
    log_event(ask->proxy->config.log, LOG_INFO, "engine_control", LOG_CSTR("path", x->path),
              LOG_CSTR("from", x->client->peer),
              LOG_CSTR("key", x->key != NULL ? x->key->use->name : ""),
              LOG_UINT("replicas", ask->count), LOG_UINT("failed", ask->count - ask->good),
              LOG_UINT("caches_reset", ask->resets_count));
    int err = buf_printf(&body, "{\"status\":%u,\"replicas\":[", status);
    if (err == ERR_OK)
        err = buf_append_slice(&body, buf_slice(&ask->rows));
    if (err == ERR_OK)
        err = buf_append_cstr(&body, "]}");
    if (status >= 400 && ask->said)
        x->refusal = REFUSED_BY_ENGINE;
    if (err == ERR_OK)
        exchange_answer(x, status, SLICE("application/json"), buf_slice(&body), NULL, 0);
    else
        exchange_answer_error(x, 503, slice_of("", 0), "%s", err_text(err));
    buf_free(&body);
}

/* Asks the next replicas. If none is left, answers the client. */
static void go_on(struct control_ask *ask)
{
    for (unsigned i = 0; i < CONTROL_AT_ONCE; i++) {
        if (ask->asked[i].ask != NULL)
            continue;
        ask->next = node_replica_set_next(&ask->todo, ask->next, ask->proxy->engines.pool_count);
        if (ask->next == ask->proxy->engines.pool_count)
            break;
        begin(ask, &ask->asked[i], ask->next++);
    }
    if (ask->open > 0)
        return;
    exchange_wait(ask->x, NULL, NULL);
    answer(ask->x, ask);
    ask_free(ask);
}

/* --- the replicas of a request -------------------------------------------------------------- */

/* Returns true if the request is for the replica. Data-parallel ranks are reached through their
 * process, which is asked once. */
static bool is_meant(const struct proxy *p, unsigned replica, const struct control_whom *whom)
{
    const struct node_router *r = p->config.router;
    if (p->engines.pools[replica].proxy == NULL || !node_router_replica_present(r, replica) ||
        node_router_server(r, replica) != replica ||
        node_router_replica_health(r, replica) == NODE_HEALTH_ROUTER)
        return false;
    return whom->model.len == 0 || node_router_replica_serves(r, replica, whom->model);
}

/* Returns the reason why a listed replica cannot be asked, in `room` if not a constant; NULL: the
 * replica can be asked. */
static const char *why_left_out(const struct node_router *r, unsigned replica,
                                const struct control_whom *whom, char room[WHY_BYTES])
{
    struct slice only_at = node_router_only_at(r, replica);
    bool wanted = whom->model.len == 0 || node_router_replica_serves(r, replica, whom->model);
    if (only_at.len > 0 && wanted && node_router_server(r, replica) == replica) {
        (void)snprintf(room, WHY_BYTES,
                       "only router %.*s can reach it: send this call to that router",
                       SLICE_ARG(only_at));
        return room;
    }
    bool router = node_router_replica_present(r, replica) && whom->model.len == 0 &&
                  node_router_replica_health(r, replica) == NODE_HEALTH_ROUTER;
    return router ? "it is a Grapevine router, not an engine" : NULL;
}

/* Finds the replicas to ask, and returns their number. If a listed replica cannot be asked, it gets
 * a row, shown to the client only if another replica is asked. */
static unsigned find(struct control_ask *ask, const struct control_whom *whom)
{
    const struct node_router *r = ask->proxy->config.router;
    int one = whom->replica.len > 0 ? node_router_replica_find(r, whom->replica) : 0;
    unsigned found = 0;
    for (unsigned i = 0; i < node_router_replica_count(r) && one >= 0; i++) {
        char room[WHY_BYTES];
        const char *why = why_left_out(r, i, whom, room);
        if (whom->replica.len > 0 && i != (unsigned)one)
            continue;
        if (why == NULL && i < ask->proxy->engines.pool_count && is_meant(ask->proxy, i, whom)) {
            node_replica_set_add(&ask->todo, i);
            found++;
        }
        if (why != NULL && write_left_out(&ask->rows, node_router_replica_name(r, i), why) != 0)
            ask->status = 503; /* no memory for the row */
    }
    return found;
}

static void answer_nobody(struct exchange *x, const struct control_whom *whom)
{
    const struct node_router *r = x->proxy->config.router;
    int one = node_router_replica_find(r, whom->replica);
    char room[WHY_BYTES];
    const char *why = one >= 0 ? why_left_out(r, (unsigned)one, whom, room) : NULL;
    bool replica = whom->replica.len > 0;
    struct slice wanted = replica ? whom->replica : whom->model;
    if (wanted.len > 256)
        wanted.len = 256;
    if (replica && why != NULL)
        exchange_answer_error(x, 404, SLICE("replica"), "Nothing was sent to `%.*s`: %s.",
                              SLICE_ARG(wanted), why);
    else if (wanted.len == 0)
        exchange_answer_error(x, 503, wanted, "There is no replica.");
    else if (replica)
        exchange_answer_error(x, 404, SLICE("replica"), "There is no replica `%.*s`.",
                              SLICE_ARG(wanted));
    else
        exchange_answer_error(x, exchange_because(x, REFUSED_MODEL), SLICE("model"),
                              "No replica lists the model `%.*s`.", SLICE_ARG(wanted));
}

/* Returns NULL if the request was refused and answered. */
static struct control_ask *ask_new(struct exchange *x)
{
    struct proxy *p = x->proxy;
    struct control_ask *ask = p->control_asks < CONTROL_ASKS_MAX ? calloc(1, sizeof *ask) : NULL;
    if (ask == NULL) {
        exchange_answer_error(x, 503, slice_of("", 0),
                              "Too many requests go to all replicas now, try again later.");
        return NULL;
    }
    p->control_asks++;
    ask->x = x;
    ask->proxy = p;
    return ask;
}

static void ask_all(struct control_ask *ask, const struct control_whom *whom)
{
    struct exchange *x = ask->x;
    if (find(ask, whom) == 0) {
        ask_free(ask);
        answer_nobody(x, whom);
        return;
    }
    exchange_wait(x, on_forget, ask);
    go_on(ask);
}

/* --- control paths of the client port ------------------------------------------------------- */

static int pass_line(struct buf *out, const struct http_head *head, const char *name)
{
    struct slice value = http_head_find(head, slice_of_cstr(name));
    return value.at == NULL ? 0 : buf_printf(out, "%s: %.*s\r\n", name, SLICE_ARG(value));
}

/* Writes the header line with the key: the engines' key if the router checks clients' keys,
 * otherwise the client's key. */
static int write_key(struct control_ask *ask, const struct http_head *head)
{
    const struct proxy *p = ask->proxy;
    unsigned version;
    bool own = head == NULL || p->config.access != NULL;
    struct slice key = own && p->config.replica_key != NULL
                           ? p->config.replica_key(p->config.replica_key_context, &version)
                           : slice_of("", 0);
    if (key.len > 0)
        return buf_printf(&ask->lines, "Authorization: Bearer %.*s\r\n", SLICE_ARG(key));
    if (own)
        return ERR_OK;
    int err = pass_line(&ask->lines, head, "authorization");
    return err == ERR_OK ? pass_line(&ask->lines, head, "x-api-key") : err;
}

static int write_body(struct control_ask *ask, const struct body *body)
{
    int err = ERR_OK;
    for (const struct segment *s = body->first; s != NULL && err == ERR_OK; s = s->next)
        err = buf_append(&ask->body, s->data, s->len);
    return err;
}

/* Writes the path without the parameters meant for the router. ERR_SYNTAX, ERR_LIMIT: a value
 * cannot be decoded, is empty, or is repeated. ERR_NOMEM. */
static int write_target(struct buf *target, const struct http_head *head, char *decoded,
                        size_t size, struct control_whom *whom)
{
    struct slice rest = head->query;
    int err = buf_append_slice(target, head->path);
    char sign = '?';
    while (rest.len > 0 && err == ERR_OK) {
        struct slice pair = slice_cut(&rest, '&'), value = pair;
        struct slice name = slice_cut(&value, '=');
        struct slice *own = slice_equal(name, SLICE("replica")) ? &whom->replica
                            : slice_equal(name, SLICE("model")) ? &whom->model
                                                                : NULL;
        if (own != NULL) {
            if (own->len > 0 || value.len == 0) /* an empty value must not select all replicas */
                return ERR_SYNTAX;
            err = http_percent_decode(value, decoded, size, own);
            decoded += own->len;
            size -= own->len;
            if (slice_starts_with(*own, SLICE("http://"))) /* settings may name replicas so */
                *own = slice_skip(*own, sizeof "http://" - 1);
            continue;
        }
        err = buf_append_char(target, sign);
        if (err == ERR_OK)
            err = buf_append_slice(target, pair);
        sign = '&';
    }
    return err;
}

void control_answer(struct exchange *x, const struct http_head *head)
{
    char decoded[1024];
    struct control_whom whom = {0};
    if (head->method == HTTP_METHOD_HEAD || head->method == HTTP_METHOD_OPTIONS) {
        exchange_answer_not_allowed(x, head->path, "GET, POST, PUT, DELETE, PATCH");
        return;
    }
    struct control_ask *ask = ask_new(x);
    if (ask == NULL)
        return;
    ask->method = http_method_name(head->method);
    ask->resets = http_path_resets_cache(head->path);
    int err = write_target(&ask->target, head, decoded, sizeof decoded, &whom);
    if (err == ERR_SYNTAX || err == ERR_LIMIT) {
        ask_free(ask);
        exchange_answer_error(
            x, 400, SLICE("replica"),
            "Name one replica (?replica=HOST:PORT) or one model (?model=NAME), or "
            "neither, for all.");
        return;
    }
    if (err == ERR_OK)
        err = write_key(ask, head);
    if (err == ERR_OK)
        err = pass_line(&ask->lines, head, "user-agent");
    if (err == ERR_OK)
        err = pass_line(&ask->lines, head, "content-type");
    if (err == ERR_OK)
        err = write_body(ask, x->request.body);
    if (err != ERR_OK) {
        ask_free(ask);
        exchange_answer_error(x, 503, slice_of("", 0), "%s", err_text(err));
        return;
    }
    ask_all(ask, &whom);
}

void control_reset(struct exchange *x, const struct control_whom *whom)
{
    struct control_ask *ask = ask_new(x);
    if (ask == NULL)
        return;
    ask->method = "POST";
    ask->resets = true;
    if (write_key(ask, NULL) != ERR_OK) {
        ask_free(ask);
        exchange_answer_error(x, 503, slice_of("", 0), "%s", err_text(ERR_NOMEM));
        return;
    }
    ask_all(ask, whom);
}
