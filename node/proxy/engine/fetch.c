#include "node/proxy/engine/fetch.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "http/chunked.h"
#include "http/coding.h"
#include "node/proxy/engine/probe.h"
#include "node/proxy/engine/shortage.h"

/* A connection outlives the fetch until the network has closed the stream. */
struct fetch_connection {
    struct proxy *proxy;
    struct net_stream *stream;
    struct fetch *fetch; /* NULL: the connection is closing */
    struct buf out;      /* the request, which may have an API key */
    struct buf in;       /* the received head, with body bytes that came along */
    struct buf body;     /* the received body, without chunk headers */
    bool connected;
    bool writing;     /* the network reads `out` */
    uint64_t sent_ms; /* time of the request */
    uint32_t address; /* the address's id in the pool */
    bool in_body;
    bool keep_alive;
    unsigned status;
    enum http_coding coding; /* the body's coding: a proxy may compress though not asked to */
    enum http_framing framing;
    uint64_t remaining;
    struct http_chunked chunked;
};

static void free_connection(struct fetch_connection *c)
{
    buf_free_wiped(&c->out);
    buf_free(&c->in);
    buf_free(&c->body);
    free(c);
}

static void drop(struct fetch *f)
{
    struct fetch_connection *c = f->connection;
    deadline_clear(&f->deadline);
    if (c == NULL)
        return;
    f->connection = NULL;
    c->fetch = NULL;
    if (c->stream != NULL)
        c->proxy->config.net->close(c->stream, false);
    else
        free_connection(c);
}

static void fail(struct fetch *f, int err)
{
    drop(f);
    if (!f->busy)
        return;
    f->busy = false;
    f->pool->fetches--;
    f->done(f->context, err, f->refused, 0, slice_of("", 0));
}

static int decode(struct http_decoder *d, struct slice in, struct buf *out)
{
    enum { ROOM = 16384 };
    size_t n;
    do {
        int err = buf_reserve(out, ROOM);
        if (err != 0)
            return err;
        err = http_decoder_next(d, &in, out->at + out->len, ROOM, &n);
        if (err != 0)
            return err;
        out->len += n;
    } while (in.len > 0 || n == ROOM);
    return http_decoder_end(d);
}

/* Decodes the body, because a proxy before the engine may compress it. An undecodable body stays as
 * received: a health check needs only the status. ERR_LIMIT: too large. */
static int unpack(struct fetch_connection *c)
{
    struct http_decoder *d;
    struct buf out;
    buf_init(&out, FETCH_BODY_MAX);
    if ((c->coding != HTTP_CODING_GZIP && c->coding != HTTP_CODING_ZSTD) ||
        http_decoder_new(&d, c->coding, true) != 0)
        return ERR_OK;
    int err = decode(d, buf_slice(&c->body), &out);
    http_decoder_free(d);
    if (err == ERR_OK) {
        struct buf packed = c->body;
        c->body = out;
        out = packed;
    }
    buf_free(&out);
    return err == ERR_LIMIT ? ERR_LIMIT : ERR_OK;
}

static void succeed(struct fetch_connection *c, bool leftover)
{
    struct fetch *f = c->fetch;
    if (unpack(c) != ERR_OK) {
        fail(f, ERR_LIMIT);
        return;
    }
    struct buf body = c->body;
    unsigned status = c->status;
    buf_init(&c->body, FETCH_BODY_MAX);
    deadline_clear(&f->deadline);
    c->in.len = 0;
    c->in_body = false;
    f->busy = false;
    f->pool->fetches--;
    /* `writing`: the answer came before the whole request was sent. */
    if (!c->keep_alive || leftover || c->writing || c->framing == HTTP_BODY_UNTIL_CLOSE)
        drop(f);
    f->done(f->context, 0, false, status, buf_slice(&body));
    buf_free(&body);
}

static void on_deadline(struct deadline *d)
{
    struct fetch *f = CONTAINER_OF(d, struct fetch, deadline);
    const struct fetch_connection *c = f->connection;
    if (f->failed == 0 && c != NULL && !c->connected)
        pool_address_failed(f->pool, c->address);
    fail(f, f->failed != 0 ? f->failed : ERR_TIMEOUT);
}

static enum proxy_limit limit_of(const struct fetch *f)
{
    bool connected = f->connection->connected;
    if ((f->pace & FETCH_PATIENT) != 0)
        return connected ? PROXY_FETCH_PATIENT : PROXY_UPSTREAM_CONNECT;
    if ((f->pace & FETCH_QUICK) != 0 && !connected)
        return PROXY_FETCH_CONNECT;
    return (f->pace & FETCH_SLOW) != 0 ? PROXY_FETCH_SGLANG : PROXY_FETCH;
}

static void arm(struct fetch *f)
{
    if (BUG(PROBE_UNLIMITED))
        deadline_clear(&f->deadline); /* the connection's limit, too */
    else
        proxy_arm(f->pool->proxy, limit_of(f), &f->deadline);
}

/* --- the answer ----------------------------------------------------------------------------- */

/* Returns 0 if the body is complete (`*leftover`: more bytes follow), ERR_AGAIN if bytes are
 * missing, or an error. */
static int feed_body(struct fetch_connection *c, struct slice in, bool *leftover)
{
    if (c->framing == HTTP_BODY_CHUNKED) {
        while (in.len > 0 && !c->chunked.done) {
            size_t used = 0;
            struct slice data;
            int err = http_chunked_next(&c->chunked, in, &used, &data);
            if (err == 0)
                err = buf_append_slice(&c->body, data);
            if (err != 0)
                return err;
            in = slice_skip(in, used);
        }
        *leftover = in.len > 0;
        return c->chunked.done ? 0 : ERR_AGAIN;
    }
    size_t n = in.len < c->remaining ? in.len : (size_t)c->remaining;
    int err = buf_append(&c->body, in.at, n);
    if (err != 0)
        return err;
    c->remaining -= n;
    *leftover = in.len > n;
    return c->remaining == 0 ? 0 : ERR_AGAIN;
}

/* Notes how long the answer took. If a health check makes the engine compute, the time says nothing
 * about the network. */
static void note_answer(const struct fetch_connection *c)
{
    if ((c->fetch->pace & FETCH_SLOW) == 0)
        pool_answered(c->fetch->pool, c->proxy->now_ms - c->sent_ms);
}

/* Returns what feed_body() returns, or ERR_CLOSED: after a 408 on a reused connection, because the
 * server was about to close the connection (RFC 9110, 15.5.9). */
static int feed(struct fetch_connection *c, struct slice bytes, bool *leftover)
{
    if (c->in_body)
        return feed_body(c, bytes, leftover);
    if (c->in.len == 0)
        note_answer(c);
    int err = buf_append_slice(&c->in, bytes);
    if (err != 0)
        return err;
    struct http_head *head = &c->proxy->head;
    while ((err = http_response_parse(head, c->in.at, c->in.len, false,
                                      &c->proxy->engines.limits)) == 0 &&
           head->status < 200)
        buf_consume(&c->in, head->bytes);
    if (err != 0)
        return err;
    if (head->status == 408 && c->fetch->reused)
        return ERR_CLOSED;
    struct slice router = http_head_find(head, SLICE(PROBE_ROUTER_NAME));
    if (router.at != NULL && !slice_to_cstr(router, c->fetch->router, sizeof c->fetch->router))
        (void)slice_to_cstr(SLICE("?"), c->fetch->router, sizeof c->fetch->router);
    c->in_body = true;
    c->status = head->status;
    c->coding = http_coding_of(head);
    c->framing = head->framing;
    c->remaining = head->framing == HTTP_BODY_UNTIL_CLOSE ? UINT64_MAX
                   : head->framing == HTTP_BODY_LENGTH    ? head->content_length
                                                          : 0;
    c->keep_alive = head->keep_alive && head->status != 408;
    http_chunked_init(&c->chunked);
    return feed_body(c, slice_skip(buf_slice(&c->in), head->bytes), leftover);
}

static void connect_again(struct fetch *f);

static void on_received(void *owner, struct slice bytes, uint64_t now_ms)
{
    struct fetch_connection *c = owner;
    if (c->fetch == NULL)
        return;
    c->proxy->now_ms = c->fetch->pool->heard_ms = now_ms;
    if (!c->fetch->busy) { /* no request is open */
        drop(c->fetch);
        return;
    }
    bool leftover = false;
    int err = feed(c, bytes, &leftover);
    if (err == 0)
        succeed(c, leftover);
    else if (err == ERR_CLOSED)
        connect_again(c->fetch);
    else if (err != ERR_AGAIN)
        fail(c->fetch, err);
}

static void on_ended(void *owner, int err, uint64_t now_ms)
{
    struct fetch_connection *c = owner;
    if (c->fetch == NULL)
        return;
    c->proxy->now_ms = now_ms;
    if (c->fetch->busy && c->fetch->reused && !c->in_body && c->in.len == 0)
        connect_again(c->fetch);
    else if (err == 0 && c->in_body && c->framing == HTTP_BODY_UNTIL_CLOSE)
        succeed(c, true);
    else
        fail(c->fetch, ERR_CLOSED);
}

static void on_closed(void *owner)
{
    free_connection(owner);
}

/* --- the request ---------------------------------------------------------------------------- */

static void send_request(struct fetch_connection *c)
{
    struct slice text = buf_slice(&c->out);
    c->sent_ms = c->proxy->now_ms;
    c->writing = true;
    if (c->proxy->config.net->queue(c->stream, &text, 1) != 0)
        c->writing = false; /* the connection's end follows */
}

static void connect_now(struct fetch *f);

static void on_connected(void *owner, int err, uint64_t now_ms)
{
    struct fetch_connection *c = owner;
    struct fetch *f = c->fetch;
    if (f == NULL)
        return;
    c->proxy->now_ms = now_ms;
    if (err == 0) {
        c->connected = true;
        if ((f->pace & (FETCH_QUICK | FETCH_PATIENT)) != 0)
            arm(f);
        c->proxy->config.net->read(c->stream, true);
        send_request(c);
        return;
    }
    if (net_is_shortage(err)) {
        shortage_met(f->pool, err);
        fail(f, ERR_FULL);
        return;
    }
    /* A name may have several addresses: the replica is unreachable if all of them are. */
    f->refused = err == ERR_CLOSED;
    pool_address_failed(f->pool, c->address);
    if (++f->addresses >= f->pool->address_count) {
        fail(f, err == ERR_CLOSED ? ERR_UNREACHABLE : err);
        return;
    }
    connect_again(f);
}

static void on_written(void *owner, int err, uint64_t now_ms)
{
    struct fetch_connection *c = owner;
    (void)err, (void)now_ms; /* a failed write ends the connection */
    c->writing = false;
}

static const struct net_events events = {.connected = on_connected,
                                         .received = on_received,
                                         .ended = on_ended,
                                         .written = on_written,
                                         .closed = on_closed};

/* Lets the deadline report the failure, because `done` must not be called within fetch_ask(). */
static void fail_later(struct fetch *f, int err, bool refused)
{
    f->failed = err;
    f->refused = refused;
    proxy_arm(f->pool->proxy, PROXY_FETCH_FAILED, &f->deadline);
}

static void connect_now(struct fetch *f)
{
    struct fetch_connection *c = f->connection;
    c->proxy = f->pool->proxy;
    c->fetch = f;
    c->address = pool_address(f->pool);
    f->refused = false;
    size_t most = (f->pace & FETCH_PATIENT) != 0 ? FETCH_CONTROL_BODY_MAX : FETCH_BODY_MAX;
    buf_init(&c->in, most);
    buf_init(&c->body, most);
    int err = pool_connect(f->pool, &c->stream);
    if (err != 0) {
        bool ours = net_is_shortage(err); /* this machine's shortage: the address has not failed */
        if (!ours)
            pool_address_failed(f->pool, c->address);
        fail_later(f, ours ? ERR_FULL : ERR_UNREACHABLE, err == ERR_CLOSED);
        return;
    }
    c->stream->events = &events;
    c->stream->owner = c;
    arm(f);
}

/* Repeats the request on a fresh connection. The request is copied, because the network may read
 * the old buffer until the old connection is closed. */
static void connect_again(struct fetch *f)
{
    struct fetch_connection *c = calloc(1, sizeof *c);
    if (c == NULL || buf_append_slice(&c->out, buf_slice(&f->connection->out)) != 0) {
        if (c != NULL)
            free_connection(c);
        fail(f, ERR_NOMEM);
        return;
    }
    drop(f);
    f->reused = false;
    f->connection = c;
    connect_now(f);
}

void fetch_init(struct fetch *f, struct pool *pool, fetch_done done, void *context)
{
    *f = (struct fetch){.pool = pool, .done = done, .context = context};
    f->deadline.expired = on_deadline;
}

static int write_request(struct fetch *f, const struct fetch_question *q)
{
    struct buf *out = &f->connection->out;
    if (out->at != NULL)
        explicit_bzero(out->at, out->cap);
    out->len = 0;
    int err = buf_printf(out, "%s %.*s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: identity\r\n%.*s",
                         q->method, SLICE_ARG(q->target), f->pool->authority, SLICE_ARG(q->lines));
    if (err == 0 && (q->pace & FETCH_PATIENT) == 0) /* a probe: routers identify themselves */
        err = buf_append_cstr(out, "User-Agent: " PROBE_USER_AGENT "\r\n");
    if (err == 0 && strcmp(q->method, "GET") != 0)
        err = buf_printf(out, "Content-Length: %zu\r\n", q->body.len);
    if (err == 0)
        err = buf_append_cstr(out, "\r\n");
    return err == 0 && q->body.len > 0 ? buf_append_slice(out, q->body) : err;
}

void fetch_ask(struct fetch *f, const struct fetch_question *q)
{
    CHECK(!f->busy);
    f->busy = true;
    f->pool->fetches++;
    f->router[0] = '\0';
    f->pace = q->pace;
    f->addresses = 0;
    f->failed = 0;
    f->refused = false;
    if (f->connection != NULL && !pool_has_address(f->pool, f->connection->address))
        drop(f);
    bool fresh = f->connection == NULL;
    f->reused = !fresh;
    if (fresh)
        f->connection = calloc(1, sizeof *f->connection);
    if (f->connection == NULL || write_request(f, q) != 0) {
        fail_later(f, ERR_NOMEM, false);
    } else if (fresh) {
        connect_now(f);
    } else {
        arm(f);
        send_request(f->connection);
    }
}

void fetch_get(struct fetch *f, struct slice path, struct slice lines, unsigned pace)
{
    const struct fetch_question q = {.method = "GET", .target = path, .lines = lines, .pace = pace};
    fetch_ask(f, &q);
}

void fetch_cancel(struct fetch *f)
{
    if (f->busy)
        f->pool->fetches--;
    f->busy = false;
    drop(f);
}

const char *fetch_error_text(int err)
{
    switch (err) {
    case ERR_DENIED:
        return "its certificate is not trusted (replica-ca-file, replica-tls-name)";
    case ERR_UNSUPPORTED:
        return "its port speaks no TLS (is it http://?)";
    case ERR_VERSION:
        return "TLS with it failed (the log says why: replica_tls_failed)";
    case ERR_SYNTAX:
        return "what it answers is not HTTP (is it https://?)";
    default:
        return err_text(err);
    }
}

void fetch_router_text(const struct fetch *f, char *out, size_t size)
{
    struct slice name = slice_of_cstr(f->router);
    struct slice pseudonym = slice_cut(&name, ' ');
    if (name.len == 0)
        name = pseudonym;
    bool self = slice_equal(pseudonym, slice_of_cstr(f->pool->proxy->via));
    (void)snprintf(out, size, "%.*s%s", SLICE_ARG(name), self ? ", this router itself" : "");
}
