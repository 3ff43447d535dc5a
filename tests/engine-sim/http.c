#include "tests/engine-sim/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/err.h"
#include "http/answer.h"

enum { READ_BYTES = 64 << 10, NS_PER_MS = 1000000 };

static void serve_all(struct sim_conn *c);
static void forget_later(struct sim_conn *c);
static void conn_write(struct sim_conn *c, const struct slice *pieces, unsigned count);

/* --- life ------------------------------------------------------------------------------------ */

static uint64_t now_ms(const struct sim_server *s)
{
    return s->carrier->now_ns((struct sim_server *)s) / NS_PER_MS;
}

static void on_idle(struct deadline *d)
{
    struct sim_conn *c = CONTAINER_OF(d, struct sim_conn, idle);
    const struct slice timeout = SLICE("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n"
                                       "connection: close\r\n\r\n");
    if (c->server->idle_end == SIM_IDLE_408)
        conn_write(c, &timeout, 1);
    if (c->server->idle_end == SIM_IDLE_RESET)
        sim_conn_reset(c);
    else if (c->writes > 0) /* as asyncio does: written bytes still go out */
        c->ends = true;
    else
        sim_conn_close(c);
}

struct sim_conn *sim_conn_open(struct sim_server *s, void *stream)
{
    struct sim_conn *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    c->server = s;
    c->stream = stream;
    c->idle.expired = on_idle;
    buf_init(&c->in, SIM_BODY_BYTES_MAX + (4u << 20));
    buf_init(&c->body, SIM_BODY_BYTES_MAX);
    c->next = s->conns;
    if (c->next != NULL)
        c->next->prev = c;
    s->conns = c;
    s->conn_count++;
    return c;
}

void sim_conn_free(struct sim_conn *c)
{
    buf_free(&c->in);
    buf_free(&c->body);
    free(c);
}

static void entry_end(struct sim_conn *c, enum sim_how how)
{
    struct sim_server *s = c->server;
    sim_entry_end(&s->journal, &c->entry, s->carrier->now_ns(s), how);
}

static void conn_leave(struct sim_conn *c, bool reset)
{
    if (c->closing)
        return;
    c->closing = true;
    struct sim_server *s = c->server;
    *(c->prev == NULL ? &s->conns : &c->prev->next) = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    s->conn_count--;
    forget_later(c);
    deadline_clear(&c->idle);
    entry_end(c, SIM_FAILED);
    s->carrier->close(c, reset);
}

void sim_conn_close(struct sim_conn *c)
{
    conn_leave(c, false);
}

void sim_conn_reset(struct sim_conn *c)
{
    conn_leave(c, true);
}

void sim_conn_lost(struct sim_conn *c)
{
    if (c->closing)
        return;
    entry_end(c, SIM_LEFT);
    if (c->serving)
        c->server->on_gone(c->server->context, c);
    sim_conn_close(c);
}

void sim_conn_written(struct sim_conn *c, bool well)
{
    c->writes--;
    if (!well)
        sim_conn_lost(c);
    else if (c->ends && c->writes == 0)
        sim_conn_close(c);
}

static void conn_write(struct sim_conn *c, const struct slice *pieces, unsigned count)
{
    if (!c->closing)
        c->server->carrier->write(c, pieces, count);
}

/* --- answers --------------------------------------------------------------------------------- */

static const char *date_line(struct sim_server *s)
{
    static char line[64];
    static time_t at;
    time_t now = (time_t)s->carrier->unix_s(s);
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
    static const char *const codings[] = {[SIM_CODING_NONE] = "",
                                          [SIM_CODING_IDENTITY] = "content-encoding: identity\r\n",
                                          [SIM_CODING_GZIP] = "content-encoding: gzip\r\n"};
    int n = snprintf(out, size,
                     "HTTP/1.1 %u %s\r\n%sserver: uvicorn\r\n%s%s%s%s%svary: Origin\r\n%s%s\r\n",
                     status, http_status_text(status), date_line(c->server), length,
                     *type == '\0' ? "" : "content-type: ", type, *type == '\0' ? "" : "\r\n",
                     extra == NULL ? "" : extra, c->keep_alive ? "" : "connection: close\r\n",
                     codings[c->coding]);
    CHECK(n > 0 && (size_t)n < size);
    return (size_t)n;
}

/* The answer is complete. */
static void request_done(struct sim_conn *c)
{
    entry_end(c, SIM_WHOLE);
    c->serving = false;
    c->streaming = false;
    c->job = NULL;
    c->coding = SIM_CODING_NONE;
    c->gzip = (struct sim_gzip){0};
    c->by_bytes = false;
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
    deadline_set(&c->server->idle, &c->idle, now_ms(c->server));
    serve_all(c); /* pipelined requests */
}

void sim_http_answer(struct sim_conn *c, unsigned status, const char *type, struct slice body,
                     const char *extra)
{
    char head[1024];
    char length[64];
    struct buf coded = {.at = NULL};
    CHECK(c->serving && !c->streaming);
    if (c->coding == SIM_CODING_GZIP && body.len > 0) {
        sim_gzip_write(&c->gzip, body, &coded);
        sim_gzip_end(&c->gzip, &coded);
        body = buf_slice(&coded);
    }
    (void)snprintf(length, sizeof length, "content-length: %zu\r\n", body.len);
    size_t n = head_write(c, head, sizeof head, status, type, length, extra);
    bool no_body = c->head.method == HTTP_METHOD_HEAD || body.len == 0;
    c->entry.status = status;
    if (!no_body)
        sim_entry_body(&c->entry, body);
    const struct slice bufs[] = {slice_of(head, n), body};
    conn_write(c, bufs, no_body ? 1 : 2);
    buf_free(&coded);
    request_done(c);
}

void sim_http_answer_later(struct sim_conn *c, unsigned status, uint64_t after_ms)
{
    c->later_status = status;
    c->later_ns = c->server->carrier->now_ns(c->server) + after_ms * NS_PER_MS;
    c->server->later_count++;
}

/* The next late answer due by `by_ns`; NULL: none. */
static struct sim_conn *next_later(const struct sim_server *s, uint64_t by_ns)
{
    struct sim_conn *first = NULL;
    for (struct sim_conn *c = s->conns; s->later_count > 0 && c != NULL; c = c->next)
        if (c->later_ns != 0 && c->later_ns <= by_ns &&
            (first == NULL || c->later_ns < first->later_ns))
            first = c;
    return first;
}

static void forget_later(struct sim_conn *c)
{
    c->server->later_count -= c->later_ns != 0;
    c->later_ns = 0;
}

void sim_http_stream_begin(struct sim_conn *c, const char *type)
{
    char head[1024];
    CHECK(c->serving && !c->streaming);
    c->streaming = true;
    c->entry.status = 200;
    c->chunks = c->head.minor >= 1;
    c->keep_alive &= c->chunks;
    size_t n = head_write(c, head, sizeof head, 200, type,
                          c->chunks ? "transfer-encoding: chunked\r\n" : "", NULL);
    const struct slice buf = slice_of(head, n);
    conn_write(c, &buf, 1);
}

static void write_piece(struct sim_conn *c, struct slice bytes)
{
    char head[HTTP_CHUNK_HEAD_MAX];
    size_t n = http_chunk_head_write(head, bytes.len);
    sim_entry_body(&c->entry, bytes);
    const struct slice bufs[] = {slice_of(head, n), bytes, SLICE(HTTP_CHUNK_END)};
    if (c->chunks)
        conn_write(c, bufs, 3);
    else
        conn_write(c, bufs + 1, 1);
}

static void write_pieces(struct sim_conn *c, struct slice bytes)
{
    size_t most = c->by_bytes ? 1 : bytes.len;
    for (; bytes.len > 0; bytes = slice_skip(bytes, most))
        write_piece(c, slice_of(bytes.at, most));
}

void sim_http_stream_write(struct sim_conn *c, struct slice bytes)
{
    struct buf coded = {.at = NULL};
    CHECK(c->serving && c->streaming);
    if (bytes.len == 0)
        return;
    if (c->coding == SIM_CODING_GZIP) {
        sim_gzip_write(&c->gzip, bytes, &coded);
        bytes = buf_slice(&coded);
    }
    write_pieces(c, bytes);
    buf_free(&coded);
}

void sim_http_stream_end(struct sim_conn *c)
{
    struct buf coded = {.at = NULL};
    CHECK(c->serving && c->streaming);
    if (c->coding == SIM_CODING_GZIP) {
        sim_gzip_end(&c->gzip, &coded);
        write_pieces(c, buf_slice(&coded));
        buf_free(&coded);
    }
    const struct slice last = SLICE(HTTP_CHUNK_LAST);
    if (c->chunks)
        conn_write(c, &last, 1);
    request_done(c);
}

void sim_http_interim(struct sim_conn *c, unsigned status)
{
    char head[128];
    CHECK(c->serving && !c->streaming);
    int n = snprintf(head, sizeof head, "HTTP/1.1 %u %s\r\nx-engine-sim: interim\r\n\r\n", status,
                     http_status_text(status));
    const struct slice piece = slice_of(head, (size_t)n);
    conn_write(c, &piece, 1);
}

void sim_http_garbage(struct sim_conn *c)
{
    const struct slice bytes = SLICE("\x01\x02 no HTTP \xff\r\n\r\n");
    c->keep_alive = false;
    c->entry.failed = true;
    sim_entry_body(&c->entry, bytes);
    conn_write(c, &bytes, 1);
    request_done(c);
}

void sim_http_failed(struct sim_conn *c)
{
    c->entry.failed = true;
}

void sim_http_refused(struct sim_conn *c)
{
    c->entry.refused = true;
}

void sim_http_first(struct sim_conn *c, uint64_t prompt_tokens, uint64_t cached_tokens)
{
    struct sim_server *s = c->server;
    sim_entry_first(&s->journal, &c->entry, s->carrier->now_ns(s), prompt_tokens, cached_tokens);
}

static void refuse_request(struct sim_conn *c)
{
    c->serving = true;
    c->keep_alive = false;
    c->head.method = HTTP_METHOD_GET;
    sim_http_answer(c, 400, "text/plain; charset=utf-8", SLICE("Invalid HTTP request received."),
                    NULL);
}

/* Answers before the body is read; the body is ignored. */
static bool answered_early(struct sim_conn *c)
{
    struct sim_server *s = c->server;
    c->serving = true;
    c->keep_alive = false;
    if (s->on_head != NULL && s->on_head(s->context, c))
        return true;
    c->serving = false;
    return false;
}

/* 1 if the whole body is there; 0: not yet; an error if the body is malformed. */
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

/* Serves a request, if complete. The head's slices point into `in`, which may move while the body
 * arrives, so the head is parsed again when the body is complete. */
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
        if (answered_early(c))
            return;
        c->reading_body = true;
        c->continued = false;
        c->chunked_at = c->head.bytes;
        http_chunked_init(&c->chunked);
    }
    int err = body_read(c, &body);
    if (err == ERR_AGAIN) {
        const struct slice go_on = SLICE(HTTP_CONTINUE);
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
    deadline_clear(&c->idle);
    sim_entry_request(&c->server->journal, &c->entry, c->server->carrier->now_ns(c->server),
                      &c->head);
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

struct slice sim_conn_room(struct sim_conn *c)
{
    int err = c->in.cap - c->in.len >= READ_BYTES ? 0 : buf_reserve(&c->in, READ_BYTES);
    return err == 0 ? slice_of(c->in.at + c->in.len, c->in.cap - c->in.len) : slice_of(NULL, 0);
}

void sim_conn_received(struct sim_conn *c, size_t n)
{
    c->in.len += n;
    if (n > 0 && !c->serving)
        deadline_clear(&c->idle);
    serve_all(c);
}

/* --- the server ------------------------------------------------------------------------------ */

void sim_server_init(struct sim_server *s)
{
    deadline_queue_init(&s->idle, s->idle_ms > 0 ? s->idle_ms : SIM_IDLE_MS);
}

void sim_server_listen(struct sim_server *s, bool on)
{
    if (s->listening == on)
        return;
    s->listening = on;
    s->carrier->listen(s, on);
}

uint64_t sim_server_due_ns(const struct sim_server *s)
{
    const struct deadline *first = s->idle.head.next;
    uint64_t at_ns = first == &s->idle.head ? UINT64_MAX : first->at_ms * NS_PER_MS;
    const struct sim_conn *later = next_later(s, at_ns);
    return later != NULL ? later->later_ns : at_ns;
}

void sim_server_run(struct sim_server *s)
{
    struct sim_conn *c;
    while ((c = next_later(s, s->carrier->now_ns(s))) != NULL) {
        forget_later(c);
        sim_http_answer(c, c->later_status, "", SLICE(""), NULL);
    }
    deadline_run(&s->idle, now_ms(s));
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
