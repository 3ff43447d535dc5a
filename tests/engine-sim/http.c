#include "tests/engine-sim/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "http/answer.h"

enum { LISTEN_BACKLOG = 1024, READ_BYTES = 64 << 10 };

static void serve_all(struct sim_conn *c);

static void on_closed(uv_handle_t *handle)
{
    struct sim_conn *c = handle->data;
    if (--c->handles > 0)
        return;
    buf_free(&c->in);
    buf_free(&c->body);
    free(c);
}

static bool conn_leave(struct sim_conn *c)
{
    if (c->closing)
        return false;
    c->closing = true;
    struct sim_server *s = c->server;
    *(c->prev == NULL ? &s->conns : &c->prev->next) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    s->conn_count--;
    uv_close((uv_handle_t *)&c->idle, on_closed);
    return true;
}

void sim_conn_close(struct sim_conn *c)
{
    if (conn_leave(c))
        uv_close((uv_handle_t *)&c->tcp, on_closed);
}

void sim_conn_reset(struct sim_conn *c)
{
    if (conn_leave(c) && uv_tcp_close_reset(&c->tcp, on_closed) != 0)
        uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void conn_lost(struct sim_conn *c)
{
    if (c->closing)
        return;
    if (c->serving)
        c->server->on_gone(c->server->context, c);
    sim_conn_close(c);
}

struct pending_write {
    uv_write_t request;
    char bytes[];
};

static void on_written(uv_write_t *request, int status)
{
    struct sim_conn *c = request->handle->data;
    free(request);
    c->writes--;
    if (status != 0)
        conn_lost(c);
    else if (c->ends && c->writes == 0)
        sim_conn_close(c);
}

/* Straight into the socket; what does not fit there is copied and follows. */
static void conn_write(struct sim_conn *c, const uv_buf_t *bufs, unsigned count)
{
    if (c->closing)
        return;
    size_t total = 0;
    for (unsigned i = 0; i < count; i++)
        total += bufs[i].len;
    int written = c->writes > 0 ? 0 : uv_try_write((uv_stream_t *)&c->tcp, bufs, count);
    size_t sent = written > 0 ? (size_t)written : 0;
    if (sent == total)
        return;
    struct pending_write *w = malloc(sizeof *w + total - sent);
    CHECK(w != NULL);
    size_t len = 0;
    for (unsigned i = 0; i < count; i++) {
        size_t skip = sent < bufs[i].len ? sent : bufs[i].len;
        memcpy(w->bytes + len, bufs[i].base + skip, bufs[i].len - skip);
        len += bufs[i].len - skip;
        sent -= skip;
    }
    const uv_buf_t rest = uv_buf_init(w->bytes, (unsigned)len);
    c->writes++;
    if (uv_write(&w->request, (uv_stream_t *)&c->tcp, &rest, 1, on_written) != 0) {
        c->writes--;
        free(w);
        c->ends = true; /* the read side will notice */
    }
}

static uv_buf_t buf_of(struct slice s)
{
    return (uv_buf_t){.base = (char *)s.at, .len = s.len};
}

static const char *date_line(void)
{
    static char line[64];
    static time_t at;
    time_t now = time(NULL);
    if (now != at) {
        struct tm utc;
        at = now;
        (void)gmtime_r(&now, &utc);
        (void)strftime(line, sizeof line, "date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    }
    return line;
}

static size_t head_write(const struct sim_conn *c, char *out, size_t size, unsigned status,
                         const char *type, const char *length, const char *extra)
{
    int n = snprintf(out, size,
                     "HTTP/1.1 %u %s\r\n%sserver: uvicorn\r\n%s%s%s%s%svary: Origin\r\n%s%s\r\n",
                     status, http_status_text(status), date_line(), length,
                     *type == '\0' ? "" : "content-type: ", type, *type == '\0' ? "" : "\r\n",
                     extra == NULL ? "" : extra, c->keep_alive ? "" : "connection: close\r\n", "");
    CHECK(n > 0 && (size_t)n < size);
    return (size_t)n;
}

static void on_idle(uv_timer_t *timer)
{
    sim_conn_close(timer->data);
}

/* The answer is complete. */
static void request_done(struct sim_conn *c)
{
    c->serving = false;
    c->streaming = false;
    c->job = NULL;
    if (c->closing)
        return;
    if (!c->keep_alive) {
        c->ends = true;
        if (c->writes == 0)
            sim_conn_close(c);
        return;
    }
    buf_consume(&c->in, c->request_bytes);
    buf_clear(&c->body);
    c->request_bytes = 0;
    (void)uv_timer_start(&c->idle, on_idle, SIM_IDLE_MS, 0);
    serve_all(c); /* what was pipelined */
}

void sim_http_answer(struct sim_conn *c, unsigned status, const char *type, struct slice body,
                     const char *extra)
{
    char head[1024];
    char length[64];
    CHECK(c->serving && !c->streaming);
    (void)snprintf(length, sizeof length, "content-length: %zu\r\n", body.len);
    size_t n = head_write(c, head, sizeof head, status, type, length, extra);
    bool no_body = c->head.method == HTTP_METHOD_HEAD || body.len == 0;
    const uv_buf_t bufs[] = {buf_of(slice_of(head, n)), buf_of(body)};
    conn_write(c, bufs, no_body ? 1 : 2);
    request_done(c);
}

void sim_http_stream_begin(struct sim_conn *c, const char *type)
{
    char head[1024];
    CHECK(c->serving && !c->streaming);
    c->streaming = true;
    c->chunks = c->head.minor >= 1;
    c->keep_alive &= c->chunks;
    size_t n = head_write(c, head, sizeof head, 200, type,
                          c->chunks ? "transfer-encoding: chunked\r\n" : "", NULL);
    const uv_buf_t buf = buf_of(slice_of(head, n));
    conn_write(c, &buf, 1);
}

void sim_http_stream_write(struct sim_conn *c, struct slice bytes)
{
    char head[HTTP_CHUNK_HEAD_MAX];
    CHECK(c->serving && c->streaming);
    if (bytes.len == 0)
        return;
    size_t n = http_chunk_head_write(head, bytes.len);
    const uv_buf_t bufs[] = {buf_of(slice_of(head, n)), buf_of(bytes),
                             buf_of(SLICE(HTTP_CHUNK_END))};
    if (c->chunks)
        conn_write(c, bufs, 3);
    else
        conn_write(c, bufs + 1, 1);
}

void sim_http_stream_end(struct sim_conn *c)
{
    CHECK(c->serving && c->streaming);
    const uv_buf_t last = buf_of(SLICE(HTTP_CHUNK_LAST));
    if (c->chunks)
        conn_write(c, &last, 1);
    request_done(c);
}

static void refuse_request(struct sim_conn *c)
{
    c->serving = true;
    c->keep_alive = false;
    c->head.method = HTTP_METHOD_GET;
    sim_http_answer(c, 400, "text/plain; charset=utf-8", SLICE("Invalid HTTP request received."),
                    NULL);
}

/* Whether the whole body is there; the error of a broken one. */
static int body_read(struct sim_conn *c, struct slice *body)
{
    if (c->head.framing == HTTP_BODY_LENGTH) {
        if (c->head.content_length > SIM_BODY_BYTES_MAX)
            return ERR_LIMIT;
        size_t len = (size_t)c->head.content_length;
        if (c->in.len - c->head.bytes < len)
            return buf_reserve(&c->in, len) == 0 ? ERR_AGAIN : ERR_LIMIT;
        *body = slice_of(c->in.at + c->head.bytes, len);
        c->request_bytes = c->head.bytes + len;
        return 0;
    }
    c->request_bytes = c->head.bytes;
    *body = slice_of("", 0);
    if (c->head.framing != HTTP_BODY_CHUNKED)
        return 0;
    while (c->chunked_at < c->in.len && !c->chunked.done) {
        size_t used;
        struct slice data;
        int err = http_chunked_next(&c->chunked, slice_skip(buf_slice(&c->in), c->chunked_at),
                                    &used, &data);
        if (err == 0)
            err = buf_append_slice(&c->body, data);
        if (err != 0)
            return err;
        c->chunked_at += used;
    }
    *body = buf_slice(&c->body);
    c->request_bytes = c->chunked_at;
    return c->chunked.done ? 0 : ERR_AGAIN;
}

/* One request, if it is there whole. The head's slices point into `in`, which may move while the
 * body arrives, so the head is parsed again when the body is whole. */
static void serve_next(struct sim_conn *c)
{
    static const struct http_limits limits = {
        .head_bytes_max = 1 << 20, .target_bytes_max = 1 << 16, .fields_max = HTTP_FIELDS_MAX};
    struct slice body;
    if (!c->reading_body) {
        int err = http_request_parse(&c->head, c->in.at, c->in.len, &limits);
        if (err == ERR_AGAIN)
            return;
        if (err != 0) {
            refuse_request(c);
            return;
        }
        c->reading_body = true;
        c->continued = false;
        c->chunked_at = c->head.bytes;
        http_chunked_init(&c->chunked);
    }
    int err = body_read(c, &body);
    if (err == ERR_AGAIN) {
        const uv_buf_t go_on = buf_of(SLICE(HTTP_CONTINUE));
        if (c->head.expect_continue && !c->continued)
            conn_write(c, &go_on, 1);
        c->continued = true;
        return;
    }
    if (err != 0) {
        refuse_request(c);
        return;
    }
    c->reading_body = false;
    CHECK(http_request_parse(&c->head, c->in.at, c->head.bytes, &limits) == 0);
    c->serving = true;
    c->keep_alive = c->head.keep_alive;
    (void)uv_timer_stop(&c->idle);
    c->server->on_request(c->server->context, c, body);
}

static void serve_all(struct sim_conn *c)
{
    size_t before = SIZE_MAX;
    if (c->dispatching)
        return;
    c->dispatching = true;
    while (!c->closing && !c->ends && !c->serving && c->in.len > 0 && c->in.len != before) {
        before = c->in.len;
        serve_next(c);
    }
    c->dispatching = false;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct sim_conn *c = handle->data;
    (void)suggested;
    int err = c->in.cap - c->in.len >= READ_BYTES ? 0 : buf_reserve(&c->in, READ_BYTES);
    *buf = err == 0 ? uv_buf_init(c->in.at + c->in.len, (unsigned)(c->in.cap - c->in.len))
                    : uv_buf_init(NULL, 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct sim_conn *c = stream->data;
    (void)buf;
    if (n < 0) {
        conn_lost(c);
        return;
    }
    c->in.len += (size_t)n;
    if (n > 0 && !c->serving)
        (void)uv_timer_stop(&c->idle);
    serve_all(c);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct sim_server *s = listener->data;
    if (status != 0)
        return;
    struct sim_conn *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->server = s;
    c->handles = 2;
    buf_init(&c->in, SIM_BODY_BYTES_MAX + (4u << 20));
    buf_init(&c->body, SIM_BODY_BYTES_MAX);
    CHECK(uv_tcp_init(s->loop, &c->tcp) == 0 && uv_timer_init(s->loop, &c->idle) == 0);
    c->tcp.data = c;
    c->idle.data = c;
    c->next = s->conns;
    if (c->next != NULL)
        c->next->prev = c;
    s->conns = c;
    s->conn_count++;
    if (uv_accept(listener, (uv_stream_t *)&c->tcp) != 0) {
        sim_conn_close(c);
        return;
    }
    (void)uv_tcp_nodelay(&c->tcp, 1);
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
}

int sim_server_bind(struct sim_server *s, const char *host, unsigned port)
{
    struct sockaddr_in at;
    struct sockaddr_in bound;
    int len = sizeof bound;
    int err = uv_ip4_addr(host, (int)port, &at);
    if (err != 0)
        return err;
    CHECK(uv_tcp_init(s->loop, &s->listener) == 0);
    s->listener.data = s;
    err = uv_tcp_bind(&s->listener, (const struct sockaddr *)&at, 0);
    if (err == 0)
        err = uv_tcp_getsockname(&s->listener, (struct sockaddr *)&bound, &len);
    if (err != 0)
        return err;
    s->bound = true;
    s->port = ntohs(bound.sin_port);
    (void)snprintf(s->address, sizeof s->address, "%s:%u", host, s->port);
    return 0;
}

int sim_server_listen(struct sim_server *s)
{
    int err = uv_listen((uv_stream_t *)&s->listener, LISTEN_BACKLOG, on_connection);
    s->listening = err == 0;
    return err;
}

void sim_server_refuse(struct sim_server *s)
{
    if (s->bound)
        uv_close((uv_handle_t *)&s->listener, NULL);
    s->bound = false;
    s->listening = false;
}

void sim_server_close_idle(struct sim_server *s)
{
    struct sim_conn *next;
    for (struct sim_conn *c = s->conns; c != NULL; c = next) {
        next = c->next;
        if (!c->serving)
            sim_conn_close(c);
    }
}
