#include "tests/bench/replay/client.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"

struct connection {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct client *client;
    struct exchange *ex; /* NULL while idle or closing */
    size_t target;
    bool reused, writing, got_bytes, in_body, keep_alive;
    enum http_framing framing;
    uint64_t body_left;
    struct http_chunked chunked;
    struct buf pending; /* a head that came in pieces */
    char request[512];
    size_t request_len;
    uint64_t idle_since_ns;
    struct connection *idle_next;
};

void client_init(struct client *c, uv_loop_t *loop)
{
    c->loop = loop;
    c->target_count = 0;
    c->timeout_s = 600;
    c->idle_max_s = 4;
    c->active = NULL;
    c->connections_made = 0;
}

int client_add_target(struct client *c, const char *url)
{
    static const char SCHEME[] = "http://";
    char host[64];
    const char *at = strncmp(url, SCHEME, sizeof SCHEME - 1) == 0 ? url + sizeof SCHEME - 1 : NULL;
    const char *colon = at == NULL ? NULL : strrchr(at, ':');
    struct client_target *t = &c->targets[c->target_count];
    if (colon == NULL || c->target_count == CLIENT_TARGETS ||
        !slice_to_cstr(slice_of(at, (size_t)(colon - at)), host, sizeof host)) {
        (void)fprintf(stderr, "replay: --target \"%s\" should be http://HOST:PORT\n", url);
        return ERR_SYNTAX;
    }
    char port[8];
    struct slice digits = slice_of_cstr(colon + 1);
    digits = slice_of(digits.at, slice_find(digits, '/'));
    (void)slice_to_cstr(digits, port, sizeof port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        (void)fprintf(stderr, "replay: --target \"%s\": the name does not resolve\n", url);
        return ERR_NOT_FOUND;
    }
    memcpy(&t->address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    (void)snprintf(t->name, sizeof t->name, "%s:%s", host, port);
    t->idle = NULL;
    c->target_count++;
    return 0;
}

static void closed(uv_handle_t *handle)
{
    struct connection *conn = handle->data;
    buf_free(&conn->pending);
    free(conn);
}

static void connection_close(struct connection *conn)
{
    if (!uv_is_closing((uv_handle_t *)&conn->tcp))
        uv_close((uv_handle_t *)&conn->tcp, closed);
}

static void active_add(struct client *c, struct exchange *ex)
{
    ex->previous = NULL;
    ex->next = c->active;
    if (c->active != NULL)
        c->active->previous = ex;
    c->active = ex;
}

static void active_remove(struct client *c, struct exchange *ex)
{
    if (ex->previous != NULL)
        ex->previous->next = ex->next;
    else
        c->active = ex->next;
    if (ex->next != NULL)
        ex->next->previous = ex->previous;
}

static void start(struct client *c, struct exchange *ex, bool fresh);

/* The exchange is over; the connection was closed or made idle before. */
static void finish(struct client *c, struct exchange *ex, const char *failure)
{
    ex->end_ns = uv_hrtime();
    ex->connection = NULL;
    active_remove(c, ex);
    answer_end(&ex->answer);
    if (failure != NULL)
        (void)snprintf(ex->failure, sizeof ex->failure, "%s", failure);
    else if (ex->status != 200)
        (void)snprintf(ex->failure, sizeof ex->failure, "status_%u", ex->status);
    else if (ex->answer.error)
        (void)snprintf(ex->failure, sizeof ex->failure, "error_in_stream");
    else if (ex->answer.stream && !ex->answer.done)
        (void)snprintf(ex->failure, sizeof ex->failure, "stream_cut_short");
    ex->done(ex);
}

/* The connection broke. The other side may have closed an idle connection just as it was reused.
 * Such a request starts afresh, as in any client. */
static void broken(struct connection *conn, const char *failure)
{
    struct client *c = conn->client;
    struct exchange *ex = conn->ex;
    bool again = ex != NULL && conn->reused && !conn->got_bytes && !ex->retried;
    conn->ex = NULL;
    connection_close(conn);
    if (ex == NULL)
        return;
    if (again) {
        ex->retried = true;
        active_remove(c, ex);
        start(c, ex, true);
        return;
    }
    finish(c, ex, failure);
}

static void complete(struct connection *conn)
{
    struct client *c = conn->client;
    struct exchange *ex = conn->ex;
    conn->ex = NULL;
    if (conn->keep_alive && !conn->writing) {
        struct client_target *t = &c->targets[conn->target];
        conn->idle_since_ns = uv_hrtime();
        conn->idle_next = t->idle;
        t->idle = conn;
    } else {
        connection_close(conn);
    }
    finish(c, ex, NULL);
}

static void payload(struct exchange *ex, struct slice data)
{
    answer_feed(&ex->answer, data);
    if (ex->first_ns == 0 && ex->answer.content)
        ex->first_ns = uv_hrtime();
}

static void body(struct connection *conn, struct slice in)
{
    struct exchange *ex = conn->ex;
    if (conn->framing == HTTP_BODY_CHUNKED) {
        while (in.len > 0 && !conn->chunked.done) {
            size_t used;
            struct slice data;
            if (http_chunked_next(&conn->chunked, in, &used, &data) != 0) {
                broken(conn, "bad_chunk");
                return;
            }
            if (data.len > 0)
                payload(ex, data);
            in = slice_skip(in, used);
        }
        if (conn->chunked.done)
            complete(conn);
        return;
    }
    size_t n =
        conn->framing == HTTP_BODY_LENGTH && in.len > conn->body_left ? conn->body_left : in.len;
    if (n > 0)
        payload(ex, slice_of(in.at, n));
    conn->body_left -= conn->framing == HTTP_BODY_LENGTH ? n : 0;
    if (conn->framing == HTTP_BODY_NONE ||
        (conn->framing == HTTP_BODY_LENGTH && conn->body_left == 0))
        complete(conn);
}

static void head_read(struct connection *conn, const struct http_head *head)
{
    struct exchange *ex = conn->ex;
    ex->status = head->status;
    conn->in_body = true;
    conn->keep_alive = head->keep_alive;
    conn->framing = head->framing;
    conn->body_left = head->content_length;
    http_chunked_init(&conn->chunked);
    struct slice type = http_head_get(head, HTTP_CONTENT_TYPE);
    answer_start(&ex->answer, slice_starts_with(type, SLICE("text/event-stream")));
    struct slice replica = http_head_get(head, HTTP_X_GRAPEVINE_REPLICA);
    if (replica.len > 0)
        (void)slice_to_cstr(replica, ex->replica, sizeof ex->replica);
}

static void received(struct connection *conn, struct slice in)
{
    struct client *c = conn->client;
    conn->got_bytes = true;
    if (conn->in_body) {
        body(conn, in);
        return;
    }
    if (conn->pending.len > 0) {
        CHECK(buf_append_slice(&conn->pending, in) == 0);
        in = buf_slice(&conn->pending);
    }
    int err;
    while ((err = http_response_parse(&c->head, in.at, in.len, false, &http_limits_default)) == 0 &&
           c->head.status < 200)
        in = slice_skip(in, c->head.bytes);
    if (err == ERR_AGAIN) {
        if (conn->pending.len == 0)
            CHECK(buf_append_slice(&conn->pending, in) == 0);
        else
            buf_consume(&conn->pending, conn->pending.len - in.len);
        return;
    }
    if (err != 0) {
        broken(conn, "bad_head");
        return;
    }
    head_read(conn, &c->head);
    body(conn, slice_skip(in, c->head.bytes));
    /* `body` may have begun the next exchange on this very connection, but no byte of that answer
     * can have arrived yet. */
    buf_clear(&conn->pending);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct connection *conn = handle->data;
    *out = uv_buf_init(conn->client->read, CLIENT_READ_BYTES);
}

static void idle_forget(struct connection *conn)
{
    struct connection **at = &conn->client->targets[conn->target].idle;
    while (*at != NULL && *at != conn)
        at = &(*at)->idle_next;
    if (*at == conn)
        *at = conn->idle_next;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct connection *conn = stream->data;
    if (n == 0)
        return;
    if (conn->ex == NULL) { /* idle: the other side closed, or sends unasked */
        idle_forget(conn);
        connection_close(conn);
        return;
    }
    if (n > 0) {
        received(conn, slice_of(buf->base, (size_t)n));
        return;
    }
    if (n == UV_EOF && conn->in_body && conn->framing == HTTP_BODY_UNTIL_CLOSE) {
        conn->keep_alive = false;
        complete(conn);
        return;
    }
    broken(conn, n == UV_EOF ? "closed_early" : "reset");
}

static void on_written(uv_write_t *write, int status)
{
    struct connection *conn = write->data;
    conn->writing = false;
    if (status != 0 && status != UV_ECANCELED && conn->ex != NULL && conn->got_bytes == false)
        broken(conn, "reset");
}

static void request_write(struct connection *conn)
{
    struct exchange *ex = conn->ex;
    size_t body_bytes = 0;
    uv_buf_t parts[CLIENT_BODY_PARTS + 1];
    for (unsigned i = 0; i < ex->body_count; i++) {
        parts[i + 1] = ex->body[i];
        body_bytes += ex->body[i].len;
    }
    int n = snprintf(conn->request, sizeof conn->request,
                     "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\n"
                     "User-Agent: grapevine-replay\r\nContent-Type: application/json\r\n"
                     "Content-Length: %zu\r\n%s%s%s\r\n",
                     conn->client->targets[conn->target].name, body_bytes,
                     ex->session != NULL ? "X-Session-Id: " : "",
                     ex->session != NULL ? ex->session : "", ex->session != NULL ? "\r\n" : "");
    CHECK(n > 0 && (size_t)n < sizeof conn->request);
    parts[0] = uv_buf_init(conn->request, (unsigned)n);
    conn->write.data = conn;
    conn->writing = true;
    conn->got_bytes = conn->in_body = false;
    if (uv_write(&conn->write, (uv_stream_t *)&conn->tcp, parts, ex->body_count + 1, on_written) !=
        0) {
        conn->writing = false;
        broken(conn, "reset");
    }
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct connection *conn = connect->data;
    if (conn->ex == NULL)
        return;
    if (status != 0) {
        broken(conn, status == UV_ECONNREFUSED ? "refused" : "connect");
        return;
    }
    (void)uv_tcp_nodelay(&conn->tcp, 1);
    if (uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read) != 0) {
        broken(conn, "connect");
        return;
    }
    request_write(conn);
}

static struct connection *idle_take(struct client *c, size_t target)
{
    struct client_target *t = &c->targets[target];
    struct connection *conn = t->idle;
    if (conn == NULL)
        return NULL;
    if ((double)(uv_hrtime() - conn->idle_since_ns) / 1e9 < c->idle_max_s) {
        t->idle = conn->idle_next;
        return conn;
    }
    while ((conn = t->idle) != NULL) { /* the newest is too old, so all are */
        t->idle = conn->idle_next;
        connection_close(conn);
    }
    return NULL;
}

static void start(struct client *c, struct exchange *ex, bool fresh)
{
    active_add(c, ex);
    struct connection *conn = fresh ? NULL : idle_take(c, ex->target);
    if (conn != NULL) {
        conn->reused = true;
        conn->ex = ex;
        ex->connection = conn;
        request_write(conn);
        return;
    }
    conn = calloc(1, sizeof *conn);
    CHECK(conn != NULL);
    conn->client = c;
    conn->ex = ex;
    conn->target = ex->target;
    ex->connection = conn;
    CHECK(uv_tcp_init(c->loop, &conn->tcp) == 0);
    conn->tcp.data = conn->connect.data = conn;
    c->connections_made++;
    if (uv_tcp_connect(&conn->connect, &conn->tcp,
                       (const struct sockaddr *)&c->targets[ex->target].address, on_connected) != 0)
        broken(conn, "connect");
}

void client_send(struct client *c, struct exchange *ex, size_t target)
{
    CHECK(target < c->target_count);
    ex->target = target;
    ex->failure[0] = '\0';
    ex->status = 0;
    ex->retried = false;
    ex->first_ns = ex->end_ns = 0;
    ex->start_ns = uv_hrtime();
    (void)snprintf(ex->replica, sizeof ex->replica, "%.60s", c->targets[target].name);
    answer_start(&ex->answer, false);
    start(c, ex, false);
}

void client_sweep(struct client *c)
{
    uint64_t now = uv_hrtime();
    struct exchange *next;
    for (struct exchange *ex = c->active; ex != NULL; ex = next) {
        next = ex->next;
        if ((double)(now - ex->start_ns) / 1e9 < c->timeout_s)
            continue;
        ex->retried = true; /* a timeout is not a stale connection */
        broken(ex->connection, "timeout");
    }
}

void client_close(struct client *c)
{
    for (size_t i = 0; i < c->target_count; i++) {
        struct connection *conn;
        while ((conn = c->targets[i].idle) != NULL) {
            c->targets[i].idle = conn->idle_next;
            connection_close(conn);
        }
    }
}

void exchange_free(struct exchange *ex)
{
    answer_free(&ex->answer);
}
