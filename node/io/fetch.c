#include "node/io/fetch.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/secret_file.h"
#include "node/io/upstream.h"

/* Outlives its fetch until libuv has closed it. */
struct fetch_connection {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct deadline deadline;
    struct fetch *fetch; /* NULL: closing */
    struct buf out;      /* may hold an API key */
    struct buf in;       /* the head, then the body */
    struct buf body;     /* unchunked */
    bool connected;
    unsigned address; /* of the pool's */
    bool in_body;
    bool keep_alive;
    unsigned status;
    enum http_framing framing;
    uint64_t remaining;
    struct http_chunked chunked;
    int connect_error;
};

static void on_closed(uv_handle_t *handle)
{
    struct fetch_connection *c = handle->data;
    io_secret_free(&c->out);
    buf_free(&c->in);
    buf_free(&c->body);
    free(c);
}

static void drop(struct fetch_connection *c)
{
    c->fetch->connection = NULL;
    c->fetch = NULL;
    deadline_clear(&c->deadline);
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

static void fail(struct fetch_connection *c, int err)
{
    struct fetch *f = c->fetch;
    bool refused = c->connect_error == UV_ECONNREFUSED;
    drop(c);
    if (!f->busy)
        return;
    f->busy = false;
    f->done(f->context, err, refused, 0, slice_of("", 0));
}

static void succeed(struct fetch_connection *c, bool leftover)
{
    struct fetch *f = c->fetch;
    struct buf body = c->body;
    unsigned status = c->status;
    buf_init(&c->body, FETCH_BODY_MAX);
    deadline_clear(&c->deadline);
    c->in.len = 0;
    c->in_body = false;
    f->busy = false;
    if (!c->keep_alive || leftover || c->framing == HTTP_BODY_UNTIL_CLOSE)
        drop(c);
    f->done(f->context, 0, false, status, buf_slice(&body));
    buf_free(&body);
}

static void on_deadline(struct deadline *d)
{
    struct fetch_connection *c = CONTAINER_OF(d, struct fetch_connection, deadline);
    if (!c->connected && c->connect_error == 0)
        upstream_pool_address_failed(c->fetch->pool, c->address);
    fail(c, c->connect_error != 0 ? ERR_UNREACHABLE : ERR_TIMEOUT);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct fetch_connection *c = handle->data;
    struct shell *shell = handle->loop->data;
    (void)c;
    *out = uv_buf_init(shell->read_buffer, SHELL_READ_BYTES);
}

/* Returns ERR_AGAIN, 0 when the body is whole (`*leftover`: bytes behind it), or an error. */
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
    size_t n = in.len;
    if (c->framing != HTTP_BODY_UNTIL_CLOSE && n > c->remaining)
        n = (size_t)c->remaining;
    int err = buf_append(&c->body, in.at, n);
    if (err != 0)
        return err;
    if (c->framing == HTTP_BODY_UNTIL_CLOSE)
        return ERR_AGAIN;
    c->remaining -= n;
    *leftover = in.len > n;
    return c->remaining == 0 ? 0 : ERR_AGAIN;
}

static int feed(struct fetch_connection *c, struct slice bytes, bool *leftover)
{
    if (c->in_body)
        return feed_body(c, bytes, leftover);
    int err = buf_append_slice(&c->in, bytes);
    if (err != 0)
        return err;
    struct shell *shell = c->fetch->shell;
    struct http_head *head = &shell->head;
    err = http_response_parse(head, c->in.at, c->in.len, false, &shell->engine_limits);
    if (err != 0)
        return err;
    struct slice router = http_head_find(head, SLICE(FETCH_ROUTER_NAME));
    if (router.at != NULL && !slice_to_cstr(router, c->fetch->router, sizeof c->fetch->router))
        (void)slice_to_cstr(SLICE("?"), c->fetch->router, sizeof c->fetch->router);
    c->in_body = true;
    c->status = head->status;
    c->framing = head->framing;
    c->remaining = head->framing == HTTP_BODY_LENGTH ? head->content_length : 0;
    c->keep_alive = head->keep_alive;
    http_chunked_init(&c->chunked);
    return feed_body(c, slice_skip(buf_slice(&c->in), head->bytes), leftover);
}

static void send_request(struct fetch_connection *c);

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct fetch_connection *c = stream->data;
    if (n == 0 || c->fetch == NULL)
        return;
    if (n < 0) {
        if (n == UV_EOF && c->in_body && c->framing == HTTP_BODY_UNTIL_CLOSE) {
            succeed(c, true);
            return;
        }
        fail(c, ERR_CLOSED);
        return;
    }
    if (!c->fetch->busy) { /* nobody asked */
        drop(c);
        return;
    }
    bool leftover = false;
    int err = feed(c, slice_of(bytes->base, (size_t)n), &leftover);
    if (err == 0)
        succeed(c, leftover);
    else if (err != ERR_AGAIN)
        fail(c, err);
}

static struct fetch_connection *open_connection(struct fetch *f)
{
    struct fetch_connection *c = calloc(1, sizeof *c);
    CHECK(c != NULL);
    CHECK(uv_tcp_init(f->shell->loop, &c->tcp) == 0);
    c->tcp.data = c;
    c->fetch = f;
    c->deadline.expired = on_deadline;
    buf_init(&c->in, FETCH_BODY_MAX);
    buf_init(&c->body, FETCH_BODY_MAX);
    f->connection = c;
    return c;
}

static void begin_connect(struct fetch *f);

/* A name may have several addresses: the replica is unreachable when all of them are. */
static bool another_address(struct fetch_connection *c)
{
    struct fetch *f = c->fetch;
    upstream_pool_address_failed(f->pool, c->address);
    if (++f->addresses >= f->pool->address_count)
        return false;
    struct buf out = c->out; /* the request goes along */
    buf_init(&c->out, 0);
    drop(c);
    open_connection(f)->out = out;
    begin_connect(f);
    return true;
}

static void on_connect(uv_connect_t *request, int status)
{
    struct fetch_connection *c = CONTAINER_OF(request, struct fetch_connection, connect);
    if (c->fetch == NULL)
        return;
    if (status != 0) {
        c->connect_error = status;
        if (!another_address(c))
            fail(c, ERR_UNREACHABLE);
        return;
    }
    c->connected = true;
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    send_request(c);
}

static void send_request(struct fetch_connection *c)
{
    uv_buf_t iov = uv_buf_init(c->out.at, (unsigned)c->out.len);
    (void)uv_write(&c->write, (uv_stream_t *)&c->tcp, &iov, 1, NULL); /* failure: EOF follows */
}

static void arm(struct fetch *f)
{
    deadline_set(f->slow ? &f->shell->fetch_sglang : &f->shell->fetch, &f->connection->deadline,
                 shell_now_ms(f->shell));
}

static void begin_connect(struct fetch *f)
{
    struct fetch_connection *c = f->connection;
    c->address = f->pool->address_at;
    int err = f->pool->address_count > 0
                  ? uv_tcp_connect(&c->connect, &c->tcp, upstream_pool_address(f->pool), on_connect)
                  : UV_EHOSTUNREACH;
    if (err == 0) {
        arm(f);
        return;
    }
    /* Told by the deadline, never from within this call. */
    c->connect_error = err;
    upstream_pool_address_failed(f->pool, c->address);
    deadline_set(&f->shell->fetch_failed, &c->deadline, shell_now_ms(f->shell));
}

void fetch_init(struct fetch *f, struct upstream_pool *pool, fetch_done done, void *context)
{
    *f = (struct fetch){.shell = pool->shell, .pool = pool, .done = done, .context = context};
}

void fetch_get(struct fetch *f, const char *path, struct slice lines, bool slow)
{
    CHECK(!f->busy);
    f->busy = true;
    struct fetch_connection *c = f->connection != NULL ? f->connection : open_connection(f);
    const struct node_address *to = &f->pool->address;
    bool v6 = strchr(to->host, ':') != NULL;
    if (c->out.at != NULL)
        explicit_bzero(c->out.at, c->out.cap);
    c->out.len = 0;
    CHECK(buf_printf(
              &c->out,
              "GET %s HTTP/1.1\r\nHost: %s%s%s:%u\r\nUser-Agent: " FETCH_USER_AGENT "\r\n%.*s\r\n",
              path, v6 ? "[" : "", to->host, v6 ? "]" : "", to->port, SLICE_ARG(lines)) == 0);
    f->router[0] = '\0';
    f->slow = slow;
    f->addresses = 0;
    if (c->connected) {
        arm(f);
        send_request(c);
    } else {
        begin_connect(f);
    }
}

void fetch_cancel(struct fetch *f)
{
    f->busy = false;
    if (f->connection != NULL)
        drop(f->connection);
}

void fetch_router_text(const struct fetch *f, char *out, size_t size)
{
    struct slice name = slice_of_cstr(f->router);
    struct slice pseudonym = slice_cut(&name, ' ');
    if (name.len == 0)
        name = pseudonym;
    bool self = slice_equal(pseudonym, slice_of_cstr(f->shell->via));
    (void)snprintf(out, size, "%.*s%s", SLICE_ARG(name), self ? ", this router itself" : "");
}
