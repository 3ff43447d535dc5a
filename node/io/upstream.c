#include "node/io/upstream.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/exchange.h"

enum { IOV_MAX_SEND = 16, JOIN_BYTES_MAX = 8192, KEEPALIVE_S = 60 };

static void on_closed(uv_handle_t *handle)
{
    struct upstream *u = handle->data;
    if (u->write_body != NULL)
        body_unref(&u->shell->segments, u->write_body);
    free(u->write_head);
    buf_free(&u->in);
    free(u);
}

static void close_connection(struct upstream *u)
{
    if (u->state == UPSTREAM_CLOSING)
        return;
    u->state = UPSTREAM_CLOSING;
    u->exchange = NULL;
    deadline_clear(&u->deadline);
    CHECK(u->pool->open_count > 0);
    u->pool->open_count--;
    if (u->all_prev != NULL)
        u->all_prev->all_next = u->all_next;
    else
        u->pool->all = u->all_next;
    if (u->all_next != NULL)
        u->all_next->all_prev = u->all_prev;
    uv_close((uv_handle_t *)&u->tcp, on_closed);
}

static void idle_remove(struct upstream *u)
{
    struct upstream **link = &u->pool->idle;
    while (*link != u) {
        CHECK(*link != NULL);
        link = &(*link)->next;
    }
    *link = u->next;
    u->next = NULL;
    u->pool->idle_count--;
}

static void close_idle(struct upstream *u)
{
    idle_remove(u);
    close_connection(u);
}

/* Closes, then tells the exchange, which may start another attempt at once. */
static void fail(struct upstream *u, enum upstream_failure failure)
{
    struct exchange *x = u->exchange;
    if (failure == UPSTREAM_CONNECT_FAILED)
        upstream_pool_address_failed(u->pool, u->address);
    if (failure == UPSTREAM_BROKEN && !u->any_byte && u->served > 0)
        failure = UPSTREAM_STALE;
    close_connection(u);
    if (x != NULL)
        exchange_on_failure(x, failure);
}

static void on_deadline(struct deadline *d)
{
    struct upstream *u = CONTAINER_OF(d, struct upstream, deadline);
    switch (u->state) {
    case UPSTREAM_IDLE:
        close_idle(u);
        return;
    case UPSTREAM_CONNECTING:
        u->shell->stats.upstream_timeouts++;
        fail(u, UPSTREAM_CONNECT_FAILED);
        return;
    case UPSTREAM_BUSY:
        if (u->write_failed && !u->any_byte) {
            fail(u, UPSTREAM_BROKEN);
            return;
        }
        u->shell->stats.upstream_timeouts++;
        fail(u, UPSTREAM_TIMEOUT);
        return;
    case UPSTREAM_CLOSING:
        return;
    }
}

/* --- sending -------------------------------------------------------------------------------- */

static unsigned gather(struct upstream *u, uv_buf_t *iov, size_t *total)
{
    struct exchange *x = u->exchange;
    unsigned n = 0;
    *total = 0;
    if (u->head_sent < x->head.len)
        iov[n++] = uv_buf_init(x->head.at + u->head_sent, (unsigned)(x->head.len - u->head_sent));
    struct segment *s = u->segment != NULL ? u->segment : x->body->first;
    size_t offset = u->segment != NULL ? u->segment_sent : 0;
    for (; s != NULL && n < IOV_MAX_SEND; s = s->next, offset = 0) {
        if (s->len > offset)
            iov[n++] = uv_buf_init(s->data + offset, (unsigned)(s->len - offset));
    }
    for (unsigned i = 0; i < n; i++)
        *total += iov[i].len;
    return n;
}

static void advance(struct upstream *u, size_t bytes)
{
    struct exchange *x = u->exchange;
    size_t head = x->head.len - u->head_sent;
    if (head > bytes)
        head = bytes;
    u->head_sent += head;
    bytes -= head;
    if (u->segment == NULL && x->body->first != NULL) {
        u->segment = x->body->first;
        u->segment_sent = 0;
    }
    while (u->segment != NULL) {
        size_t n = u->segment->len - u->segment_sent;
        if (n > bytes)
            n = bytes;
        u->segment_sent += n;
        u->body_sent += n;
        bytes -= n;
        if (u->segment_sent < u->segment->len || u->segment->next == NULL)
            break;
        u->segment = u->segment->next;
        u->segment_sent = 0;
        exchange_on_body_sent(x);
    }
    CHECK(bytes == 0);
}

static void on_written(uv_write_t *request, int status);

/* No more can be sent. An early answer may still be readable; else EOF follows, or at last the
 * time limit, one that cannot be turned off. */
static void sending_failed(struct upstream *u)
{
    u->write_failed = true;
    if (!u->any_byte)
        deadline_set(&u->shell->upstream_connect, &u->deadline, shell_now_ms(u->shell));
}

static bool all_sent(const struct upstream *u)
{
    const struct exchange *x = u->exchange;
    return u->head_sent == x->head.len && x->body->complete && u->body_sent == x->body->bytes;
}

/* Queues what try_write left; libuv then tells when the kernel has taken it. */
static void queue_rest(struct upstream *u)
{
    uv_buf_t iov[IOV_MAX_SEND];
    size_t total;
    unsigned n = gather(u, iov, &total);
    CHECK(n > 0);
    struct exchange *x = u->exchange;
    size_t head = x->head.len - u->head_sent;
    if (head > 0) { /* the exchange may end before the write does: give the write its own copy */
        u->write_head = malloc(head);
        if (u->write_head == NULL) {
            sending_failed(u);
            return;
        }
        memcpy(u->write_head, x->head.at + u->head_sent, head);
        iov[0].base = u->write_head;
    }
    if (uv_write(&u->write, (uv_stream_t *)&u->tcp, iov, n, on_written) != 0) {
        free(u->write_head);
        u->write_head = NULL;
        sending_failed(u);
        return;
    }
    u->writing = true;
    u->write_bytes = total;
    u->write_body = body_ref(x->body);
}

/* A head and a small body leave as one piece: copying them is cheaper than a list for the kernel.
 */
static int try_write(struct upstream *u, const uv_buf_t *iov, unsigned count, size_t total)
{
    static char joined[JOIN_BYTES_MAX];
    if (count == 1 || total > sizeof joined)
        return uv_try_write((uv_stream_t *)&u->tcp, iov, count);
    size_t len = 0;
    for (unsigned i = 0; i < count; i++) {
        memcpy(joined + len, iov[i].base, iov[i].len);
        len += iov[i].len;
    }
    uv_buf_t one = uv_buf_init(joined, (unsigned)len);
    return uv_try_write((uv_stream_t *)&u->tcp, &one, 1);
}

/* Until the request is sent the engine is the one who is slow, whatever it will answer. */
static void await_answer(struct upstream *u)
{
    struct shell *shell = u->shell;
    bool whole = u->exchange->answer_whole && u->request_sent;
    deadline_set(whole ? &shell->upstream_whole_answer : &shell->upstream_first_byte, &u->deadline,
                 shell_now_ms(shell));
}

void upstream_push(struct upstream *u)
{
    if (u->state != UPSTREAM_BUSY || u->writing || u->write_failed || u->request_sent)
        return;
    for (;;) {
        uv_buf_t iov[IOV_MAX_SEND];
        size_t total;
        unsigned n = gather(u, iov, &total);
        if (n == 0)
            break;
        int wrote = try_write(u, iov, n, total);
        if (wrote < 0 && wrote != UV_EAGAIN) {
            sending_failed(u);
            return;
        }
        if (wrote > 0)
            advance(u, (size_t)wrote);
        if (wrote < 0 || (size_t)wrote < total) {
            queue_rest(u);
            if (u->write_failed)
                return;
            break;
        }
    }
    if (!u->writing && all_sent(u)) {
        u->request_sent = true;
        exchange_on_body_sent(u->exchange);
    }
    if (!u->any_byte && !u->writing && !u->request_sent)
        deadline_clear(&u->deadline); /* the client is slow, not the engine */
    else if (!u->any_byte && u->deadline.next == NULL)
        await_answer(u);
    exchange_on_request_drained(u->exchange);
}

static void on_written(uv_write_t *request, int status)
{
    struct upstream *u = CONTAINER_OF(request, struct upstream, write);
    u->writing = false;
    struct body *b = u->write_body;
    u->write_body = NULL;
    free(u->write_head);
    u->write_head = NULL;
    if (u->state == UPSTREAM_BUSY && u->exchange != NULL) {
        if (status == 0) {
            advance(u, u->write_bytes);
            if (!u->any_byte)
                deadline_clear(&u->deadline); /* it moves */
            upstream_push(u);
        } else {
            sending_failed(u);
        }
    }
    body_unref(&u->shell->segments, b);
}

/* --- receiving ------------------------------------------------------------------------------ */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct upstream *u = handle->data;
    *out = uv_buf_init(u->shell->read_buffer, SHELL_READ_BYTES);
}

/* The answer is over: keep the connection if both sides may, and tell the exchange. */
static void answer_ended(struct upstream *u, bool leftover)
{
    struct exchange *x = u->exchange;
    u->exchange = NULL;
    u->served++;
    bool keep = u->keep_alive && !leftover && u->request_sent && !u->writing &&
                u->framing != HTTP_BODY_UNTIL_CLOSE && !u->shell->closed &&
                u->shell->options->upstream_keepalive_ms > 0;
    if (keep) {
        u->state = UPSTREAM_IDLE;
        u->next = u->pool->idle;
        u->pool->idle = u;
        u->pool->idle_count++;
        buf_free(&u->in);
        deadline_set(&u->shell->upstream_keepalive, &u->deadline, shell_now_ms(u->shell));
    } else {
        close_connection(u);
    }
    exchange_on_end(x);
}

static void feed_body(struct upstream *u, struct slice in)
{
    struct exchange *x = u->exchange;
    if (u->framing == HTTP_BODY_CHUNKED) {
        while (in.len > 0 && !u->chunked.done) {
            size_t used = 0;
            struct slice data;
            if (http_chunked_next(&u->chunked, in, &used, &data) != 0) {
                fail(u, UPSTREAM_MALFORMED);
                return;
            }
            in = slice_skip(in, used);
            if (data.len > 0)
                exchange_on_data(x, data);
            if (u->exchange != x)
                return;
        }
        if (u->chunked.done)
            answer_ended(u, in.len > 0);
        return;
    }
    size_t n = in.len;
    if (u->framing == HTTP_BODY_LENGTH && n > u->remaining)
        n = (size_t)u->remaining;
    if (n > 0 && u->framing != HTTP_BODY_NONE) {
        exchange_on_data(x, slice_of(in.at, n));
        if (u->exchange != x)
            return;
    }
    if (u->framing == HTTP_BODY_UNTIL_CLOSE)
        return;
    u->remaining -= n;
    if (u->remaining == 0)
        answer_ended(u, in.len > n);
}

/* Returns the bytes of heads that were used, or -1 when the connection was given up. */
static ssize_t feed_head(struct upstream *u, struct slice in)
{
    struct http_head *head = &u->shell->head;
    struct exchange *x = u->exchange;
    size_t used = 0;
    for (;;) {
        struct slice rest = slice_skip(in, used);
        int err =
            http_response_parse(head, rest.at, rest.len, x->head_request, &u->shell->engine_limits);
        if (err == ERR_AGAIN)
            return (ssize_t)used;
        if (err != 0 || head->status == 101) {
            fail(u, UPSTREAM_MALFORMED);
            return -1;
        }
        used += head->bytes;
        if (head->status >= 200)
            break;
    }
    u->in_body = true;
    u->framing = head->framing;
    u->remaining = head->framing == HTTP_BODY_LENGTH ? head->content_length : 0;
    u->keep_alive = head->keep_alive;
    http_chunked_init(&u->chunked);
    exchange_on_head(x, head);
    if (u->exchange != x)
        return -1; /* it tries elsewhere, or its client is gone */
    return (ssize_t)used;
}

static void feed(struct upstream *u, struct slice in)
{
    if (u->in_body) {
        feed_body(u, in);
        return;
    }
    bool stashed = u->in.len > 0;
    if (stashed) {
        if (buf_append_slice(&u->in, in) != 0) {
            fail(u, UPSTREAM_MALFORMED);
            return;
        }
        in = buf_slice(&u->in);
    }
    ssize_t used = feed_head(u, in);
    if (used < 0)
        return;
    if (u->in_body) {
        struct exchange *x = u->exchange;
        struct buf held = u->in; /* the body part of `in` may live in it: it goes out first */
        u->in = (struct buf){.max = held.max};
        feed_body(u, slice_skip(in, (size_t)used));
        if (u->exchange == x)
            exchange_flush(x);
        buf_free(&held);
        return;
    }
    if (stashed) {
        buf_consume(&u->in, (size_t)used);
    } else if (buf_append_slice(&u->in, slice_skip(in, (size_t)used)) != 0) {
        fail(u, UPSTREAM_MALFORMED);
    }
}

static void on_eof(struct upstream *u)
{
    if (u->state == UPSTREAM_IDLE) {
        close_idle(u);
        return;
    }
    if (u->in_body && u->framing == HTTP_BODY_UNTIL_CLOSE) {
        answer_ended(u, false);
        return;
    }
    fail(u, UPSTREAM_BROKEN);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct upstream *u = stream->data;
    if (n == 0 || u->state == UPSTREAM_CLOSING)
        return;
    struct exchange *x = u->exchange;
    if (n == UV_EOF) {
        on_eof(u);
    } else if (n < 0) {
        if (u->state == UPSTREAM_IDLE)
            close_idle(u);
        else
            fail(u, UPSTREAM_BROKEN);
    } else if (u->state != UPSTREAM_BUSY) {
        close_idle(u); /* an answer that nobody asked for */
    } else {
        u->any_byte = true;
        u->active_ms = shell_now_ms(u->shell);
        deadline_set(&u->shell->upstream_idle, &u->deadline, shell_now_ms(u->shell));
        feed(u, slice_of(bytes->base, (size_t)n));
        if (u->exchange == x) /* still on the same answer: what came goes out now */
            exchange_flush(x);
    }
}

void upstream_pause(struct upstream *u)
{
    if (!u->reading || u->state != UPSTREAM_BUSY)
        return;
    u->reading = false;
    (void)uv_read_stop((uv_stream_t *)&u->tcp);
    deadline_clear(&u->deadline); /* the client is slow, not the engine */
}

void upstream_resume(struct upstream *u)
{
    if (u->reading || u->state != UPSTREAM_BUSY)
        return;
    u->reading = true;
    (void)uv_read_start((uv_stream_t *)&u->tcp, on_alloc, on_read);
    deadline_set(&u->shell->upstream_idle, &u->deadline, shell_now_ms(u->shell));
}

void upstream_abort(struct upstream *u)
{
    u->exchange = NULL;
    if (u->state != UPSTREAM_IDLE)
        close_connection(u);
}

/* --- opening -------------------------------------------------------------------------------- */

static void on_connect(uv_connect_t *request, int status)
{
    struct upstream *u = CONTAINER_OF(request, struct upstream, connect);
    if (u->state != UPSTREAM_CONNECTING)
        return;
    deadline_clear(&u->deadline);
    if (status != 0) {
        fail(u, UPSTREAM_CONNECT_FAILED);
        return;
    }
    u->state = UPSTREAM_BUSY;
    u->reading = true;
    (void)uv_read_start((uv_stream_t *)&u->tcp, on_alloc, on_read);
    upstream_push(u);
}

static void begin(struct upstream *u, struct exchange *x)
{
    u->active_ms = shell_now_ms(u->shell);
    u->exchange = x;
    u->any_byte = false;
    u->request_sent = false;
    u->head_sent = 0;
    u->body_sent = 0;
    u->segment = NULL;
    u->segment_sent = 0;
    u->in_body = false;
    u->in.len = 0;
}

static int open_connection(struct upstream_pool *pool, struct exchange *x, struct upstream **out)
{
    struct shell *shell = pool->shell;
    if (pool->address_count == 0)
        return ERR_UNREACHABLE;
    if (pool->open_count >= shell->options->upstream_connections_max) {
        shell->stats.upstream_full++;
        return ERR_FULL;
    }
    struct upstream *u = calloc(1, sizeof *u);
    if (u == NULL)
        return ERR_NOMEM;
    if (uv_tcp_init(shell->loop, &u->tcp) != 0) {
        free(u);
        return ERR_UNREACHABLE;
    }
    u->tcp.data = u;
    u->shell = shell;
    u->pool = pool;
    u->address = pool->address_at;
    u->deadline.expired = on_deadline;
    buf_init(&u->in, shell->engine_limits.head_bytes_max + SHELL_READ_BYTES);
    pool->open_count++;
    u->all_next = pool->all;
    if (u->all_next != NULL)
        u->all_next->all_prev = u;
    pool->all = u;
    begin(u, x);
    u->state = UPSTREAM_CONNECTING;
    shell->stats.upstream_connects++;
    (void)uv_tcp_nodelay(&u->tcp, 1);
    /* A machine that vanishes closes nothing, and a whole answer may be awaited without a limit. */
    (void)uv_tcp_keepalive(&u->tcp, 1, KEEPALIVE_S);
    int err = uv_tcp_connect(&u->connect, &u->tcp, upstream_pool_address(pool), on_connect);
    if (err != 0) {
        upstream_pool_address_failed(pool, u->address);
        close_connection(u);
        bool ours = err == UV_EMFILE || err == UV_ENFILE || err == UV_ENOBUFS || err == UV_ENOMEM;
        return ours ? ERR_FULL : ERR_UNREACHABLE;
    }
    deadline_set(&shell->upstream_connect, &u->deadline, shell_now_ms(shell));
    *out = u;
    return 0;
}

int upstream_start(struct upstream_pool *pool, struct exchange *x, bool fresh,
                   struct upstream **out)
{
    struct upstream *u = fresh ? NULL : pool->idle;
    if (u == NULL)
        return open_connection(pool, x, out);
    idle_remove(u);
    deadline_clear(&u->deadline);
    pool->shell->stats.upstream_reused++;
    begin(u, x);
    u->state = UPSTREAM_BUSY;
    *out = u;
    return 0;
}

/* --- the pool ------------------------------------------------------------------------------- */

void upstream_pool_init(struct upstream_pool *pool, struct shell *shell, unsigned replica,
                        const struct node_address *address)
{
    *pool = (struct upstream_pool){.shell = shell, .replica = replica, .address = *address};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&pool->addresses[0];
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&pool->addresses[0];
    if (uv_ip4_addr(address->host, address->port, v4) == 0 ||
        uv_ip6_addr(address->host, address->port, v6) == 0) {
        pool->address_count = 1;
        return;
    }
    pool->is_name = true;
    upstream_pool_resolve(pool, 0);
}

const struct sockaddr *upstream_pool_address(const struct upstream_pool *pool)
{
    return (const struct sockaddr *)&pool->addresses[pool->address_at];
}

void upstream_pool_address_failed(struct upstream_pool *pool, unsigned address)
{
    if (address == pool->address_at && pool->address_count > 0)
        pool->address_at = (address + 1) % pool->address_count;
}

/* Takes the addresses over; the one in use stays in use if it is among them. */
static void keep_addresses(struct upstream_pool *pool, const struct addrinfo *found)
{
    struct sockaddr_storage used = pool->addresses[pool->address_at];
    memset(pool->addresses, 0, sizeof pool->addresses);
    pool->address_count = 0;
    pool->address_at = 0;
    for (const struct addrinfo *a = found;
         a != NULL && pool->address_count < UPSTREAM_ADDRESSES_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof used)
            continue;
        struct sockaddr_storage *to = &pool->addresses[pool->address_count];
        memcpy(to, a->ai_addr, a->ai_addrlen);
        if (memcmp(to, &used, sizeof used) == 0)
            pool->address_at = pool->address_count;
        pool->address_count++;
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct upstream_pool *pool = CONTAINER_OF(request, struct upstream_pool, resolver);
    pool->resolving = false;
    pool->resolved_ms = shell_now_ms(pool->shell);
    if (status == 0 && found != NULL) {
        keep_addresses(pool, found);
    } else if (pool->address_count == 0 && status != UV_ECANCELED) {
        log_event(pool->shell->log, LOG_WARN, "replica_unresolved",
                  LOG_CSTR("host", pool->address.host),
                  LOG_CSTR("error", status != 0 ? uv_strerror(status) : "no address"));
    }
    if (found != NULL)
        uv_freeaddrinfo(found);
}

void upstream_pool_resolve(struct upstream_pool *pool, uint64_t age_ms)
{
    uint64_t now = shell_now_ms(pool->shell);
    if (!pool->is_name || pool->resolving ||
        (pool->resolved_ms != 0 && now - pool->resolved_ms < age_ms))
        return;
    char port[8];
    (void)snprintf(port, sizeof port, "%u", pool->address.port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    pool->resolving = uv_getaddrinfo(pool->shell->loop, &pool->resolver, on_resolved,
                                     pool->address.host, port, &hints) == 0;
}

void upstream_pool_flush(struct upstream_pool *pool)
{
    while (pool->idle != NULL)
        close_idle(pool->idle);
}

void upstream_pool_fail_silent(struct upstream_pool *pool, uint64_t silent_ms)
{
    uint64_t now = shell_now_ms(pool->shell);
    bool found = true;
    while (found) { /* failing one may close others or open new ones elsewhere: start over */
        found = false;
        for (struct upstream *u = pool->all; u != NULL && !found; u = u->all_next) {
            if (u->state == UPSTREAM_BUSY && u->reading && now - u->active_ms >= silent_ms) {
                found = true;
                u->any_byte = true; /* not a stale connection: the engine is gone */
                fail(u, UPSTREAM_BROKEN);
            }
        }
    }
}
