#include "node/io/client.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/exchange.h"

/* A body that comes in pieces of at least this size is read straight into its segments. */
enum { DIRECT_READ_MIN = 4096 };

static void pump(struct client *c, struct slice in);
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes);

/* --- closing -------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct client *c = handle->data;
    struct shell *shell = c->shell;
    while (c->out_first != NULL) {
        struct segment *s = c->out_first;
        c->out_first = s->next;
        segment_release(&shell->segments, s);
    }
    buf_free(&c->in);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        shell->clients = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    shell->stats.connections_open--;
    shell->stats.clients_open -= c->port == SHELL_PORT_CLIENT;
    free(c);
    shell_drain_check(shell);
}

static void end(struct client *c, bool with_reset, enum client_end why)
{
    if (c->state == CLIENT_CLOSING)
        return;
    c->state = CLIENT_CLOSING;
    deadline_clear(&c->deadline);
    struct exchange *x = c->exchange;
    c->exchange = NULL;
    if (!with_reset || uv_tcp_close_reset(&c->tcp, on_closed) != 0)
        uv_close((uv_handle_t *)&c->tcp, on_closed);
    if (x != NULL)
        exchange_on_cut(x, why);
}

void client_close(struct client *c, enum client_end why)
{
    end(c, false, why);
}

void client_reset(struct client *c, enum client_end why)
{
    end(c, true, why);
}

/* FIN after what is queued, then the peer may finish talking: closing with unread bytes would be
 * answered by a reset that can overtake our answer (RFC 9112, section 9.6). */
static void linger(struct client *c)
{
    c->state = CLIENT_LINGER;
    c->in.len = 0;
    (void)uv_shutdown(&c->shutdown, (uv_stream_t *)&c->tcp, NULL);
    if (!c->reading) {
        c->reading = true;
        (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    }
    deadline_set(&c->shell->client_linger, &c->deadline, shell_now_ms(c->shell));
}

static void on_deadline(struct deadline *d)
{
    struct client *c = CONTAINER_OF(d, struct client, deadline);
    if (c->broken != CLIENT_END_DONE) {
        client_reset(c, c->broken);
        return;
    }
    bool slow = c->state == CLIENT_BODY || (c->state == CLIENT_HEAD && c->in.len > 0);
    if (slow && c->out_bytes == 0) {
        c->shell->stats.client_timeouts++;
        exchange_refuse(c, 408, "request_timeout", "The request did not arrive in time.");
        return;
    }
    if (c->out_bytes > 0)
        c->shell->stats.client_timeouts++;
    client_close(c, CLIENT_END_SLOW);
}

/* Arms the limit that the present state asks for. */
static void arm(struct client *c)
{
    struct shell *shell = c->shell;
    struct deadline_queue *q = NULL;
    if (c->out_bytes > 0)
        q = &shell->client_write;
    else if (c->state == CLIENT_BODY)
        q = c->reading ? &shell->client_body : NULL;
    else if (c->state == CLIENT_HEAD)
        q = c->in.len > 0 ? &shell->client_head : &shell->client_idle;
    else
        return;
    if (q == NULL)
        deadline_clear(&c->deadline);
    else
        deadline_set(q, &c->deadline, shell_now_ms(shell));
}

/* --- writing -------------------------------------------------------------------------------- */

static void flush_queue(struct client *c);

/* All of an ended answer is with the kernel: on to the next request, or close. */
static void after_answer(struct client *c)
{
    c->ended = false;
    if (c->reset_at_end) {
        client_reset(c, CLIENT_END_DONE);
        return;
    }
    if (c->last) {
        if (c->lingering || c->in.len > 0) /* a pipeline that will not be answered: more may come */
            linger(c);
        else
            client_close(c, CLIENT_END_DONE);
        return;
    }
    c->state = CLIENT_HEAD;
    if (!c->reading) {
        c->reading = true;
        (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    }
    if (c->in.len > 0) {
        if (!c->pumping)
            pump(c, slice_of(NULL, 0));
    } else {
        arm(c);
    }
}

static void on_written(uv_write_t *request, int status)
{
    struct client *c = CONTAINER_OF(request, struct client, write);
    c->writing = false;
    if (c->state == CLIENT_CLOSING)
        return;
    if (status != 0) {
        client_close(c, CLIENT_END_GONE);
        return;
    }
    if (c->broken != CLIENT_END_DONE) {
        client_reset(c, c->broken);
        return;
    }
    struct segment *s = c->out_first;
    c->out_bytes -= s->len - c->out_offset;
    c->out_offset = 0;
    c->out_first = s->next;
    if (c->out_first == NULL)
        c->out_last = NULL;
    segment_release(&c->shell->segments, s);
    deadline_clear(&c->deadline);
    arm(c); /* a body may still be on its way */
    if (c->out_bytes > 0)
        flush_queue(c);
    if (c->state == CLIENT_CLOSING)
        return;
    if (c->exchange != NULL && !client_congested(c))
        exchange_on_client_drained(c->exchange);
    else if (c->ended && c->out_bytes == 0)
        after_answer(c);
}

/* The read side hears of it next and closes, or the write under way does; if nothing is read now (a
 * long pipeline), the time limit does. */
static void broke(struct client *c, enum client_end why)
{
    c->broken = why;
    deadline_set(&c->shell->client_linger, &c->deadline, shell_now_ms(c->shell));
}

/* One queued segment at a time is with libuv. */
static void flush_queue(struct client *c)
{
    if (c->writing || c->out_first == NULL)
        return;
    struct segment *s = c->out_first;
    uv_buf_t iov = uv_buf_init(s->data + c->out_offset, s->len - (unsigned)c->out_offset);
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &iov, 1, on_written) != 0) {
        broke(c, CLIENT_END_GONE);
        return;
    }
    c->writing = true;
}

/* Copies what the socket did not take behind the queue. A segment under way is not appended to. */
static int queue_bytes(struct client *c, struct slice bytes)
{
    while (bytes.len > 0) {
        struct segment *s = c->out_last;
        if (s == NULL || s->len == s->cap || (c->writing && s == c->out_first)) {
            s = segment_new(&c->shell->segments, bytes.len);
            if (s == NULL)
                return ERR_FULL;
            if (c->out_last != NULL)
                c->out_last->next = s;
            else
                c->out_first = s;
            c->out_last = s;
        }
        size_t n = s->cap - s->len;
        if (n > bytes.len)
            n = bytes.len;
        memcpy(s->data + s->len, bytes.at, n);
        s->len += (uint32_t)n;
        c->out_bytes += n;
        bytes = slice_skip(bytes, n);
    }
    return 0;
}

void client_write(struct client *c, const uv_buf_t *iov, unsigned count)
{
    if (c->state == CLIENT_CLOSING || c->broken != CLIENT_END_DONE)
        return;
    size_t skip = 0;
    if (c->out_first == NULL) {
        int wrote = uv_try_write((uv_stream_t *)&c->tcp, iov, count);
        if (wrote < 0 && wrote != UV_EAGAIN) {
            broke(c, CLIENT_END_GONE);
            return;
        }
        skip = wrote > 0 ? (size_t)wrote : 0;
    }
    c->shell->stats.bytes_out += skip;
    for (unsigned i = 0; i < count; i++) {
        if (skip >= iov[i].len) {
            skip -= iov[i].len;
            continue;
        }
        struct slice rest = slice_of(iov[i].base + skip, iov[i].len - skip);
        skip = 0;
        c->shell->stats.bytes_out += rest.len;
        if (queue_bytes(c, rest) != 0) {
            broke(c,
                  CLIENT_END_NO_MEMORY); /* no memory for a slow reader: it loses its connection */
            return;
        }
    }
    if (c->out_bytes > 0 && !c->writing) {
        arm(c);
        flush_queue(c);
    }
}

void client_answered(struct client *c)
{
    c->exchange = NULL;
    if (c->state == CLIENT_CLOSING)
        return;
    if (c->broken != CLIENT_END_DONE) { /* what the client has must not pass for an answer */
        client_reset(c, c->broken);
        return;
    }
    if (c->state == CLIENT_BODY) { /* answered before its body was read: no way to go on */
        c->last = true;
        c->lingering = true;
    }
    c->state = CLIENT_ANSWER;
    c->ended = true;
    if (c->out_bytes == 0)
        after_answer(c);
}

void client_answer_cut(struct client *c, bool by_reset)
{
    c->last = true;
    c->reset_at_end = by_reset;
    client_answered(c);
}

/* --- reading -------------------------------------------------------------------------------- */

void client_hold_body(struct client *c)
{
    if (c->state != CLIENT_BODY || !c->reading)
        return;
    c->reading = false;
    (void)uv_read_stop((uv_stream_t *)&c->tcp);
    arm(c);
}

void client_resume_body(struct client *c)
{
    if (c->state != CLIENT_BODY || c->reading)
        return;
    c->reading = true;
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    arm(c);
}

static void body_ended(struct client *c)
{
    c->state = CLIENT_ANSWER;
    deadline_clear(&c->deadline);
    exchange_on_body_end(c->exchange);
}

/* Takes the part of `in` that belongs to the present body; returns how much that was. */
static size_t take_body(struct client *c, struct slice in)
{
    struct exchange *x = c->exchange;
    if (c->framing == HTTP_BODY_LENGTH) {
        size_t n = in.len < c->remaining ? in.len : (size_t)c->remaining;
        c->remaining -= n;
        exchange_on_body(x, slice_of(in.at, n));
        if (c->exchange == x && c->state == CLIENT_BODY && c->remaining == 0)
            body_ended(c);
        return n;
    }
    size_t taken = 0;
    while (taken < in.len && !c->chunked.done) {
        size_t used = 0;
        struct slice data;
        if (http_chunked_next(&c->chunked, slice_skip(in, taken), &used, &data) != 0) {
            exchange_refuse(c, 400, "invalid_request_error", "The chunked body is malformed.");
            return in.len;
        }
        taken += used;
        if (data.len > 0)
            exchange_on_body(x, data);
        if (c->exchange != x || c->state != CLIENT_BODY)
            return taken;
    }
    if (c->chunked.done)
        body_ended(c);
    return taken;
}

/* Parses one head at the front of `in`. Returns its length, 0 when more is needed or the client was
 * refused. */
static size_t take_head(struct client *c, struct slice in)
{
    struct http_head *head = &c->shell->head;
    if (c->parsed_once && !http_head_progress(&c->progress, in.at, in.len, &c->shell->limits))
        return 0;
    int err = http_request_parse(head, in.at, in.len, &c->shell->limits);
    c->parsed_once = err == ERR_AGAIN;
    if (err == ERR_AGAIN)
        return 0;
    c->progress = (struct http_progress){0};
    c->asked = true;
    if (err != 0) {
        exchange_refuse(c, head->refusal, "invalid_request_error", head->refusal_text);
        return 0;
    }
    c->framing = head->framing;
    c->remaining = head->framing == HTTP_BODY_LENGTH ? head->content_length : 0;
    http_chunked_init(&c->chunked);
    bool has_body = c->framing == HTTP_BODY_CHUNKED || c->remaining > 0;
    c->state = has_body ? CLIENT_BODY : CLIENT_ANSWER;
    c->last = !head->keep_alive || (c->shell->draining && c->port == SHELL_PORT_CLIENT);
    deadline_clear(&c->deadline);
    size_t bytes = head->bytes;
    exchange_begin(c, head, has_body);
    if (!has_body && c->exchange != NULL)
        exchange_on_body_end(c->exchange);
    return bytes;
}

/* Works through `c->in` followed by `in`, request after request, as far as their order allows. */
static void pump(struct client *c, struct slice in)
{
    CHECK(!c->pumping);
    c->pumping = true;
    bool begun = c->in.len > 0; /* the head limit runs from its first byte, not from its last */
    struct buf held = c->in;
    if (held.len > 0) {
        c->in = (struct buf){.max = held.max};
        if (buf_append_slice(&held, in) != 0) {
            c->pumping = false;
            buf_free(&held);
            exchange_refuse(c, 431, "invalid_request_error", "The request head is too large.");
            return;
        }
        in = buf_slice(&held);
    }
    while (in.len > 0) {
        size_t used = 0;
        if (c->state == CLIENT_HEAD)
            used = take_head(c, in);
        else if (c->state == CLIENT_BODY && c->exchange != NULL)
            used = take_body(c, in);
        if (used == 0)
            break;
        in = slice_skip(in, used);
        begun = false;
    }
    c->pumping = false;
    if (c->state != CLIENT_CLOSING && c->state != CLIENT_LINGER && in.len > 0) {
        if (buf_append_slice(&c->in, in) != 0) { /* cannot be: limits leave room for a read */
            buf_free(&held);
            client_close(c, CLIENT_END_NO_MEMORY);
            return;
        }
        if (c->state != CLIENT_HEAD && c->in.len > c->shell->limits.head_bytes_max && c->reading) {
            c->reading = false; /* a pipeline long enough: the kernel keeps the rest */
            (void)uv_read_stop((uv_stream_t *)&c->tcp);
        }
    }
    buf_free(&held);
    if (c->state == CLIENT_HEAD && !c->ended) {
        if (!begun || c->deadline.next == NULL)
            arm(c);
    } else if (c->state == CLIENT_BODY) {
        arm(c);
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct client *c = handle->data;
    if (c->state == CLIENT_BODY && c->framing == HTTP_BODY_LENGTH &&
        c->remaining >= DIRECT_READ_MIN && c->exchange != NULL) {
        struct slice room = exchange_body_room(c->exchange, c->remaining);
        if (room.len > 0) {
            *out = uv_buf_init((char *)room.at, (unsigned)room.len);
            return;
        }
    }
    *out = uv_buf_init(c->shell->read_buffer, SHELL_READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct client *c = stream->data;
    if (n == 0 || c->state == CLIENT_CLOSING)
        return;
    if (n < 0) {
        client_close(c, c->broken != CLIENT_END_DONE ? c->broken : CLIENT_END_GONE);
        return;
    }
    if (c->state == CLIENT_LINGER)
        return;
    if (bytes->base != c->shell->read_buffer) { /* straight into the body */
        struct exchange *x = c->exchange;
        c->remaining -= (uint64_t)n;
        exchange_on_body_read(x, (size_t)n);
        if (c->exchange == x && c->state == CLIENT_BODY) {
            if (c->remaining == 0)
                body_ended(c);
            else
                arm(c);
        }
        return;
    }
    bool first = c->state == CLIENT_HEAD && c->in.len == 0;
    if (first)
        deadline_clear(&c->deadline);
    pump(c, slice_of(bytes->base, (size_t)n));
}

/* --- opening -------------------------------------------------------------------------------- */

void client_drain(struct client *c)
{
    if (c->port == SHELL_PORT_ADMIN)
        return;
    c->last = true;
    if (c->state != CLIENT_HEAD || c->in.len > 0 || c->out_bytes > 0)
        return;
    if (c->asked)
        client_close(c, CLIENT_END_DONE);
    else
        deadline_set(&c->shell->client_fresh, &c->deadline, shell_now_ms(c->shell));
}

static void on_spare_closed(uv_handle_t *handle)
{
    struct shell_listener *l = CONTAINER_OF((uv_tcp_t *)handle, struct shell_listener, spare);
    l->spare_busy = false;
    if (l->waiting) {
        l->waiting = false;
        client_accept(l->tcp.data, l);
    }
}

static void turn_away(struct shell *shell, struct shell_listener *l)
{
    shell->stats.accept_failures++;
    if (uv_is_closing((uv_handle_t *)&l->tcp))
        return;
    if (l->spare_busy) {
        l->waiting = true;
        return;
    }
    CHECK(uv_tcp_init(shell->loop, &l->spare) == 0); /* takes no memory */
    l->spare_busy = true;
    (void)uv_accept((uv_stream_t *)&l->tcp, (uv_stream_t *)&l->spare);
    uv_close((uv_handle_t *)&l->spare, on_spare_closed);
}

/* `fd`: a connection that the system has handed over already, or -1: the next one of libuv. */
static void client_open(struct shell *shell, struct shell_listener *listener, int fd)
{
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL) {
        if (fd >= 0)
            (void)close(fd);
        else
            turn_away(shell, listener);
        return;
    }
    CHECK(uv_tcp_init(shell->loop, &c->tcp) == 0);
    c->tcp.data = c;
    c->shell = shell;
    c->port = listener->port;
    c->deadline.expired = on_deadline;
    buf_init(&c->in, shell->limits.head_bytes_max + 2 * SHELL_READ_BYTES);
    c->next = shell->clients;
    if (c->next != NULL)
        c->next->prev = c;
    shell->clients = c;
    shell->stats.connections_open++;
    shell->stats.clients_open += c->port == SHELL_PORT_CLIENT;
    if ((fd >= 0 ? uv_tcp_open(&c->tcp, fd)
                 : uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&c->tcp)) != 0) {
        if (fd >= 0)
            (void)close(fd);
        client_close(c, CLIENT_END_GONE);
        return;
    }
    shell->stats.connections_accepted++;
    (void)uv_tcp_nodelay(&c->tcp, 1);
    struct sockaddr_storage from;
    int len = sizeof from;
    if (uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&from, &len) == 0)
        (void)uv_ip_name((const struct sockaddr *)&from, c->peer, sizeof c->peer);
    c->reading = true;
    (void)uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
    if (listener->port == SHELL_PORT_CLIENT &&
        shell->stats.clients_open > shell->options->connections_max) {
        shell->stats.connections_refused++;
        c->surplus = true;
        exchange_refuse(c, 503, "overloaded_error", "Too many connections, try again later.");
        return;
    }
    arm(c);
}

void client_accept(struct shell *shell, struct shell_listener *listener)
{
    client_open(shell, listener, -1);
}

void client_accept_waiting(struct shell *shell, struct shell_listener *listener)
{
    uv_os_fd_t listening;
    if (uv_fileno((const uv_handle_t *)&listener->tcp, &listening) != 0)
        return;
    int fd;
    while ((fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
        client_open(shell, listener, fd);
}
