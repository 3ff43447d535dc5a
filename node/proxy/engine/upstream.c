#include "node/proxy/engine/upstream_internal.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "node/proxy/engine/shortage.h"

enum { PIECES_MAX = 16, JOIN_BYTES_MAX = 8192 };

static void answer_ended(struct upstream *u);

/* Returns the time since the request was sent. Until the whole request is sent, returns the time
 * since the first byte: a single byte on a closed connection makes the engine report the close. */
static uint64_t age_of_ms(const struct upstream *u)
{
    return u->proxy->now_ms - (u->request_sent ? u->sent_ms : u->began_ms);
}

/* Returns true if the engine is far away and the request may have been in transit when the
 * connection ended. */
static bool has_crossed(const struct upstream *u)
{
    uint64_t trips_us = UPSTREAM_STALE_TRIPS * u->proxy->config.net->round_trip_us(u->stream);
    return trips_us > UPSTREAM_STALE_MS * 1000 && age_of_ms(u) * 1000 <= trips_us;
}

/* Returns true if the engine may not have received the request yet when closing the connection or
 * sending a 408. */
static bool is_stale(const struct upstream *u)
{
    uint64_t age_ms = age_of_ms(u);
    if (!u->reused)
        return false;
    if (BUG(STALE_BY_CLOCK))
        return age_ms <= UPSTREAM_STALE_MS;
    if (age_ms <= UPSTREAM_STALE_MS || age_ms <= UPSTREAM_STALE_TRIPS * pool_round_trip_ms(u->pool))
        return true;
    return age_ms * 1000 <= UPSTREAM_STALE_TRIPS * u->proxy->config.net->round_trip_us(u->stream);
}

enum upstream_failure upstream_fail(struct upstream *u, enum upstream_failure failure)
{
    if (u->state == UPSTREAM_IDLE)
        upstream_leave_pool(u);
    if (failure == UPSTREAM_CONNECT_FAILED)
        pool_address_failed(u->pool, u->address);
    u->crossed = failure == UPSTREAM_BROKEN && !u->any_byte && has_crossed(u);
    if (failure == UPSTREAM_BROKEN && !u->any_byte && is_stale(u))
        failure = UPSTREAM_STALE;
    upstream_close(u);
    return failure;
}

void upstream_abort(struct upstream *u)
{
    if (BUG(STALE_ANSWER) && u->state == UPSTREAM_BUSY && u->request_sent) {
        answer_ended(u);
        return;
    }
    u->exchange = NULL;
    u->request = NULL;
    if (u->state != UPSTREAM_IDLE)
        upstream_close(u);
}

/* --- opening -------------------------------------------------------------------------------- */

static void begin(struct upstream *u, struct exchange *x, const struct upstream_request *request)
{
    u->began_ms = u->active_ms = u->proxy->now_ms;
    u->exchange = x;
    u->request = request;
    u->reused = u->used;
    u->any_byte = false;
    u->head_bytes = 0;
    u->awaits_token =
        request->streams_tokens && u->proxy->limit[PROXY_UPSTREAM_FIRST_TOKEN].wait_ms > 0;
    u->request_sent = false;
    u->head_sent = 0;
    u->body_sent = 0;
    u->segment = NULL;
    u->segment_sent = 0;
    u->in_body = false;
    u->held_back = false;
    if (!BUG(UNASKED_SERVED))
        u->in.len = 0;
}

/* Returns an idle connection to any present address of the name; NULL: none. */
static struct upstream *idle_of(struct pool *pool)
{
    while (pool->idle != NULL && !pool_has_address(pool, pool->idle->address))
        upstream_close_idle(pool->idle);
    return pool->idle;
}

int upstream_start(struct pool *pool, struct exchange *x, const struct upstream_request *request,
                   bool fresh, struct upstream **out)
{
    if (pool->proxy == NULL)
        return ERR_NOMEM; /* there was no memory for the pool */
    struct upstream *u = fresh ? NULL : idle_of(pool);
    if (u != NULL) {
        upstream_leave_pool(u);
        deadline_clear(&u->deadline);
        pool->proxy->stats.upstream_reused++;
        u->state = UPSTREAM_BUSY;
    } else {
        int err = upstream_open(pool, &u);
        if (err != 0)
            return err;
    }
    begin(u, x, request);
    *out = u;
    return 0;
}

void upstream_connected(struct upstream *u)
{
    deadline_clear(&u->deadline);
    u->state = UPSTREAM_BUSY;
    u->reading = true;
    u->pool->accepted_ms = u->proxy->now_ms;
    u->proxy->config.net->read(u->stream, true);
}

/* --- sending -------------------------------------------------------------------------------- */

static unsigned gather(const struct upstream *u, struct slice *pieces, size_t *total)
{
    const struct upstream_request *r = u->request;
    unsigned n = 0;
    *total = 0;
    if (u->head_sent < r->head.len)
        pieces[n++] = slice_skip(buf_slice(&r->head), u->head_sent);
    const struct segment *s = u->segment != NULL ? u->segment : r->body->first;
    size_t offset = u->segment != NULL ? u->segment_sent : 0;
    for (; s != NULL && n < PIECES_MAX; s = s->next, offset = 0) {
        if (s->len > offset)
            pieces[n++] = slice_of(s->data + offset, s->len - offset);
    }
    for (unsigned i = 0; i < n; i++)
        *total += pieces[i].len;
    return n;
}

static void advance(struct upstream *u, size_t bytes)
{
    const struct upstream_request *r = u->request;
    u->sent_ms = u->proxy->now_ms;
    size_t head = r->head.len - u->head_sent;
    if (head > bytes)
        head = bytes;
    u->head_sent += head;
    bytes -= head;
    if (u->segment == NULL && r->body->first != NULL) {
        u->segment = r->body->first;
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
    }
    CHECK(bytes == 0);
}

/* Called if nothing more can be sent. An early answer may still be readable. The wait for an answer
 * ends with the connection, or after the connect timeout, which cannot be turned off. */
static void sending_failed(struct upstream *u)
{
    u->write_failed = true;
    if (!u->in_body)
        proxy_arm(u->proxy, PROXY_UPSTREAM_CONNECT, &u->deadline);
}

static bool all_sent(const struct upstream *u)
{
    const struct upstream_request *r = u->request;
    return u->head_sent == r->head.len && r->body->complete && u->body_sent == r->body->bytes;
}

/* Queues the bytes not accepted by the kernel at once. */
static void queue_rest(struct upstream *u)
{
    struct slice pieces[PIECES_MAX];
    size_t total;
    unsigned n = gather(u, pieces, &total);
    CHECK(n > 0);
    const struct upstream_request *r = u->request;
    if (u->head_sent < r->head.len) { /* a copy: the exchange may end before the write */
        u->write_head = malloc(pieces[0].len);
        if (u->write_head == NULL) {
            sending_failed(u);
            return;
        }
        memcpy(u->write_head, pieces[0].at, pieces[0].len);
        pieces[0].at = u->write_head;
    }
    if (u->proxy->config.net->queue(u->stream, pieces, n) != 0) {
        free(u->write_head);
        u->write_head = NULL;
        sending_failed(u);
        return;
    }
    u->writing = true;
    u->write_bytes = total;
    u->write_body = body_ref(r->body);
}

/* Sends a head and a small body as a single piece, which costs less than a list of pieces. */
static ptrdiff_t write_now(struct upstream *u, const struct slice *pieces, unsigned count,
                           size_t total)
{
    struct proxy *p = u->proxy;
    if (count == 1 || total > JOIN_BYTES_MAX)
        return p->config.net->write(u->stream, pieces, count);
    size_t len = 0;
    for (unsigned i = 0; i < count; i++) {
        memcpy(p->joined + len, pieces[i].at, pieces[i].len);
        len += pieces[i].len;
    }
    struct slice one = slice_of(p->joined, len);
    return p->config.net->write(u->stream, &one, 1);
}

static void await(struct upstream *u, enum proxy_limit limit)
{
    u->silent_ms = u->proxy->now_ms;
    proxy_arm(u->proxy, limit, &u->deadline);
}

/* Starts the time limit on the next token. Bytes without a token (a role, a ping) are a sign of
 * life and start the limit again. */
static void await_token(struct upstream *u)
{
    await(u, PROXY_UPSTREAM_FIRST_TOKEN);
}

/* Starts the time limit on the answer. Until the request is sent, the limit is on the engine's
 * reading, whatever kind of answer will follow. */
static void await_answer(struct upstream *u)
{
    bool whole = u->request->answered_whole && u->request_sent;
    if (u->awaits_token)
        await_token(u);
    else
        await(u, whole ? PROXY_UPSTREAM_WHOLE_ANSWER : PROXY_UPSTREAM_FIRST_BYTE);
}

/* Sends what the kernel accepts now. Returns false if sending failed. */
static bool send_now(struct upstream *u)
{
    for (;;) {
        struct slice pieces[PIECES_MAX];
        size_t total;
        unsigned n = gather(u, pieces, &total);
        if (n == 0)
            return true;
        ptrdiff_t wrote = write_now(u, pieces, n, total);
        if (wrote < 0) {
            sending_failed(u);
            return false;
        }
        advance(u, (size_t)wrote);
        if ((size_t)wrote < total) {
            queue_rest(u);
            return !u->write_failed;
        }
    }
}

void upstream_push(struct upstream *u)
{
    if (u->state != UPSTREAM_BUSY || u->writing || u->write_failed || u->request_sent)
        return;
    if (!send_now(u))
        return;
    if (!u->writing && all_sent(u))
        u->request_sent = true;
    if (!u->in_body && !u->writing && !u->request_sent)
        deadline_clear(&u->deadline); /* the client is slow, not the engine */
    else if (!u->in_body && u->deadline.next == NULL && !BUG(LIMIT_UNARMED))
        await_answer(u);
}

bool upstream_written(struct upstream *u, int err)
{
    u->writing = false;
    struct body *b = u->write_body;
    u->write_body = NULL;
    free(u->write_head);
    u->write_head = NULL;
    bool wanted = u->state == UPSTREAM_BUSY && u->request != NULL;
    if (wanted && err == 0) {
        advance(u, u->write_bytes);
        if (!u->in_body)
            deadline_clear(&u->deadline); /* the request makes progress */
    } else if (wanted) {
        sending_failed(u);
    }
    body_unref(&u->proxy->segments, b);
    return wanted && err == 0;
}

bool upstream_release_sent(struct upstream *u, struct body *b)
{
    if (u->segment == NULL && !u->request_sent)
        return false;
    if (u->request_sent) /* the whole body can be released */
        u->segment = NULL;
    bool any = b->first != u->segment;
    while (b->first != u->segment) {
        struct segment *s = b->first;
        b->first = s->next;
        segment_release(&u->proxy->segments, s);
    }
    if (b->first == NULL)
        b->last = NULL;
    return any;
}

/* --- receiving ------------------------------------------------------------------------------ */

/* Called when a part of the answer came: the time limit is now on the next piece. Incomplete heads
 * and interim heads (1xx) do not extend the limit. */
static void await_more(struct upstream *u)
{
    if (u->awaits_token)
        await_token(u);
    else
        await(u, PROXY_UPSTREAM_IDLE);
}

void upstream_feed(struct upstream *u, struct slice bytes)
{
    struct proxy *p = u->proxy;
    u->any_byte = true;
    u->active_ms = u->pool->heard_ms = u->pool->answer_ms = p->now_ms;
    if (u->in_body)
        await_more(u);
    u->window = bytes;
    if (u->in.len == 0)
        return;
    u->held = u->in;
    u->in = (struct buf){.max = u->held.max};
    u->too_large = buf_append_slice(&u->held, bytes) != 0;
    u->window = buf_slice(&u->held);
}

void upstream_token_came(struct upstream *u)
{
    if (!u->awaits_token)
        return;
    u->awaits_token = false;
    if (u->exchange != NULL) /* NULL: the answer has ended */
        await(u, PROXY_UPSTREAM_IDLE);
}

static void advance_window(struct upstream *u, size_t bytes)
{
    u->window.at += bytes;
    u->window.len -= bytes;
}

/* Takes the head of a final answer. Returns false if more bytes are needed or the head is
 * malformed. */
static bool take_head(struct upstream *u, struct upstream_output *out)
{
    struct http_head *head = &u->proxy->head;
    do {
        int err = http_response_parse(head, u->window.at, u->window.len, u->request->to_head,
                                      &u->proxy->engines.limits);
        if (err == ERR_AGAIN)
            return false;
        u->head_bytes += err == 0 ? head->bytes : 0;
        if (err != 0 || u->head_bytes > PROXY_ENGINE_HEAD_BYTES_MAX) {
            out->malformed = true;
            return false;
        }
        advance_window(u, head->bytes);
        if (BUG(INTERIM_BUYS_TIME) && head->status < 200)
            await_more(u);
    } while (head->status < 200);
    u->in_body = true;
    await_more(u);
    u->framing = head->framing;
    u->remaining = head->framing == HTTP_BODY_LENGTH ? head->content_length : 0;
    out->stale = head->status == 408 && is_stale(u);
    /* A server sends 408 before it closes an idle connection (RFC 9110, 15.5.9). If the connection
     * stayed in use, each later answer would be matched to the wrong request. */
    u->keep_alive = head->keep_alive && head->status != 408;
    u->ends_apart = http_head_has(head, HTTP_CONTENT_ENCODING);
    http_chunked_init(&u->chunked);
    out->head = head;
    return true;
}

static void take_body(struct upstream *u, struct upstream_output *out)
{
    if (u->framing == HTTP_BODY_CHUNKED) {
        while (u->window.len > 0 && !u->chunked.done && out->body.len == 0) {
            size_t used = 0;
            out->malformed = http_chunked_next(&u->chunked, u->window, &used, &out->body) != 0;
            if (out->malformed)
                return;
            advance_window(u, used);
        }
        out->end = u->chunked.done;
        return;
    }
    size_t n = u->window.len;
    if (u->framing != HTTP_BODY_UNTIL_CLOSE && n > u->remaining)
        n = (size_t)u->remaining;
    out->body = slice_of(u->window.at, n);
    advance_window(u, n);
    if (u->framing == HTTP_BODY_UNTIL_CLOSE)
        return;
    u->remaining -= n;
    out->end = u->remaining == 0 && (n == 0 || !u->ends_apart);
}

/* Returns true if only the end of a body is left, with all bytes taken. */
static bool end_is_due(const struct upstream *u)
{
    return u->ends_apart && u->in_body && !u->held_back && u->framing == HTTP_BODY_LENGTH &&
           u->remaining == 0;
}

/* Ends the answer, and keeps the connection if both sides permit. */
static void answer_ended(struct upstream *u)
{
    struct proxy *p = u->proxy;
    u->exchange = NULL;
    u->request = NULL;
    u->used = true;
    bool keep = u->keep_alive && u->window.len == 0 && u->request_sent && !u->writing &&
                u->framing != HTTP_BODY_UNTIL_CLOSE && !p->closed &&
                p->config.options->upstream_keepalive_ms > 0 &&
                pool_has_address(u->pool, u->address);
    if (!keep) {
        upstream_close(u);
        return;
    }
    u->state = UPSTREAM_IDLE;
    u->next = u->pool->idle;
    if (u->next != NULL)
        u->next->prev = u;
    u->pool->idle = u;
    proxy_arm(p, PROXY_UPSTREAM_KEEPALIVE, &u->deadline);
    shortage_room(u->pool);
}

/* Runs once per piece of an answer, so an absent head or end must cost nothing. */
bool upstream_next(struct upstream *u, struct upstream_output *out)
{
    out->malformed = u->too_large;
    out->head = NULL;
    out->body.len = 0;
    out->end = false;
    if (u->exchange == NULL || u->too_large)
        return u->too_large;
    if (u->window.len == 0 ? !end_is_due(u) : !u->in_body && !take_head(u, out))
        return out->malformed;
    take_body(u, out);
    if (out->end)
        answer_ended(u);
    return out->head != NULL || out->body.len > 0 || out->end || out->malformed;
}

int upstream_hold(struct upstream *u, size_t n)
{
    struct slice rest = u->window;
    if (n > 0)
        rest = slice_of(rest.at - n, rest.len + n);
    CHECK(u->in_body && u->ends_apart && !u->held_back && u->in.len == 0);
    if (u->framing == HTTP_BODY_CHUNKED)
        http_chunked_back(&u->chunked, n);
    else if (u->framing == HTTP_BODY_LENGTH)
        u->remaining += n;
    u->held_back = true;
    u->window = slice_of(NULL, 0);
    return rest.len > 0 ? buf_append_slice(&u->in, rest) : ERR_OK;
}

void upstream_again(struct upstream *u)
{
    CHECK(u->held_back && u->window.len == 0);
    u->held_back = false;
    u->held = u->in;
    u->in = (struct buf){.max = u->held.max};
    u->window = buf_slice(&u->held);
}

bool upstream_rest(struct upstream *u)
{
    bool wanted = u->exchange != NULL && !u->in_body;
    bool kept = !wanted || buf_append_slice(&u->in, u->window) == 0;
    u->window = slice_of(NULL, 0);
    u->too_large = false;
    buf_free(&u->held);
    return kept;
}

bool upstream_ended(struct upstream *u)
{
    if (u->state != UPSTREAM_BUSY || !u->in_body || u->framing != HTTP_BODY_UNTIL_CLOSE)
        return false;
    answer_ended(u);
    return true;
}

void upstream_pause(struct upstream *u)
{
    if (!u->reading || u->state != UPSTREAM_BUSY)
        return;
    u->reading = false;
    u->awaits_token = false;
    u->proxy->config.net->read(u->stream, false);
    deadline_clear(&u->deadline); /* the client is slow, not the engine */
}

void upstream_resume(struct upstream *u)
{
    if (u->reading || u->state != UPSTREAM_BUSY || BUG(NEVER_RESUMED))
        return;
    u->reading = true;
    u->active_ms = u->proxy->now_ms; /* during the pause the router was silent, not the engine */
    u->proxy->config.net->read(u->stream, true);
    await(u, PROXY_UPSTREAM_IDLE);
}
