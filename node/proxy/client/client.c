#include "node/proxy/client/client.h"

#include <stdlib.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "http/proxy_header.h"

/* If at least this many bytes of a body are yet to come, they are read straight into the body's
 * segments. */
enum { DIRECT_READ_MIN = 4096 };

/* --- life ----------------------------------------------------------------------------------- */

/* Stores the peer's address. A port on [::] sees IPv4 clients as IPv4-mapped addresses (RFC 4291,
 * 2.5.5.2). X-Forwarded-For, logs, limits and allow lists must have plain IPv4 addresses, as on a
 * port on 0.0.0.0. */
static void set_peer(struct client *c, const char *peer)
{
    uint8_t ip[IP_BYTES];
    _Static_assert(sizeof c->peer == IP_TEXT_BYTES, "it fits");
    if (ip_parse(peer, ip) && ip_is_v4(ip))
        ip_format(ip, c->peer);
    else
        (void)slice_to_cstr(slice_of_cstr(peer), c->peer, sizeof c->peer);
}

struct client *client_new(struct proxy *p, struct net_stream *stream, enum proxy_port port,
                          const char *peer)
{
    struct client *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->proxy = p;
    c->stream = stream;
    c->port = port;
    c->reading = true;
    set_peer(c, peer);
    buf_init(&c->in, p->limits.head_bytes_max + 2 * PROXY_READ_BYTES);
    c->next = p->clients.all;
    if (c->next != NULL)
        c->next->prev = c;
    p->clients.all = c;
    p->stats.connections_open++;
    p->stats.clients_open += port == PROXY_PORT_CLIENT;
    return c;
}

static void start_waiting(struct client *c)
{
    struct proxy *p = c->proxy;
    c->waiting = true;
    c->waiting_prev = NULL;
    c->waiting_next = p->clients.waiting;
    if (c->waiting_next != NULL)
        c->waiting_next->waiting_prev = c;
    p->clients.waiting = c;
}

void client_stop_waiting(struct client *c)
{
    if (!c->waiting)
        return;
    if (c->waiting_prev != NULL)
        c->waiting_prev->waiting_next = c->waiting_next;
    else
        c->proxy->clients.waiting = c->waiting_next;
    if (c->waiting_next != NULL)
        c->waiting_next->waiting_prev = c->waiting_prev;
    c->waiting = false;
}

void client_free(struct client *c)
{
    struct proxy *p = c->proxy;
    CHECK(c->exchange == NULL && !c->taking);
    while (c->out_first != NULL) {
        struct segment *s = c->out_first;
        c->out_first = s->next;
        segment_release(&p->segments, s);
    }
    buf_free(&c->in);
    client_stop_waiting(c);
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        p->clients.all = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    p->stats.connections_open--;
    p->stats.clients_open -= c->port == PROXY_PORT_CLIENT;
    free(c);
}

static void set_reading(struct client *c, bool on)
{
    if (c->reading == on)
        return;
    c->reading = on;
    c->proxy->config.net->read(c->stream, on);
}

void client_close(struct client *c, bool reset)
{
    CHECK(c->exchange == NULL);
    if (c->state == CLIENT_CLOSING)
        return;
    c->state = CLIENT_CLOSING;
    deadline_clear(&c->deadline);
    upload_end(&c->upload);
    c->proxy->clients.door.standing[c->standing]--;
    c->standing = CLIENT_OUTSIDE;
    c->proxy->clients.door.standing[CLIENT_OUTSIDE]++;
    if (c->from != NULL)
        peers_leave(&c->proxy->clients.door.peers, c->from);
    c->from = NULL;
    c->proxy->config.net->close(c->stream, reset);
}

/* Returns the limit to use on the admin port and the probe port in place of `limit`. */
static enum proxy_limit admin_limit(enum proxy_limit limit)
{
    switch (limit) {
    case PROXY_CLIENT_SHORT:
        return limit;
    case PROXY_CLIENT_WRITE:
        return PROXY_ADMIN_WRITE;
    case PROXY_CLIENT_BODY:
        return PROXY_ADMIN_BODY;
    default:
        return PROXY_ADMIN_IDLE;
    }
}

static void arm(struct client *c, enum proxy_limit limit)
{
    c->armed = limit;
    proxy_arm(c->proxy, c->port == PROXY_PORT_CLIENT ? limit : admin_limit(limit), &c->deadline);
}

/* Sends FIN after the queued bytes, then lets the peer finish sending. Closing with unread bytes
 * would cause a reset, which can overtake the answer (RFC 9112, section 9.6). Many clients read
 * nothing before they have sent their whole body. */
static void linger(struct client *c)
{
    if (c->half_closed) { /* the peer has finished sending */
        client_close(c, false);
        return;
    }
    bool hurry = c->standing == CLIENT_SURPLUS || c->proxy->closed;
    c->state = CLIENT_LINGER;
    c->in.len = 0;
    c->proxy->config.net->finish(c->stream);
    set_reading(c, true);
    arm(c, hurry ? PROXY_CLIENT_SHORT : PROXY_CLIENT_LINGER);
}

bool client_linger(struct client *c, size_t bytes)
{
    c->lingered += bytes;
    return c->lingered <= PROXY_LINGER_BYTES_MAX;
}

/* Returns the limit of a connection without a request under way. If the port is closed, a request
 * may still arrive, sent before the peer saw the close. */
static enum proxy_limit idle_limit(const struct client *c)
{
    if (!c->proxy->closed)
        return PROXY_CLIENT_IDLE;
    return c->asked ? PROXY_CLIENT_PARTING : PROXY_CLIENT_FRESH;
}

/* The time limit for queued output runs from the time of queueing, whatever the peer sends
 * meanwhile. */
void client_arm(struct client *c)
{
    bool waits = c->deadline.next != NULL;
    enum proxy_limit limit;
    if (waits &&
        (c->broken != CLIENT_END_DONE || (c->out_bytes > 0 && c->armed == PROXY_CLIENT_WRITE)))
        return;
    if (c->out_bytes > 0)
        limit = BUG(SLOW_READER_KEPT) ? PROXY_LIMITS : PROXY_CLIENT_WRITE;
    else if (c->state == CLIENT_BODY)
        limit = c->reading ? PROXY_CLIENT_BODY : PROXY_LIMITS;
    else if (c->state == CLIENT_HEAD)
        limit = c->in.len > 0 ? PROXY_CLIENT_HEAD : idle_limit(c);
    else
        return;
    if (limit == PROXY_LIMITS)
        deadline_clear(&c->deadline);
    else
        arm(c, limit);
}

void client_drain(struct client *c)
{
    if (c->state == CLIENT_HEAD && c->in.len == 0 && c->out_bytes == 0)
        arm(c, idle_limit(c));
    else if (c->state == CLIENT_LINGER)
        arm(c, PROXY_CLIENT_SHORT);
}

/* --- requests from the client's bytes -------------------------------------------------------- */

void client_feed(struct client *c, struct slice bytes)
{
    CHECK(!c->taking);
    c->taking = true;
    c->window = bytes;
    c->begun = c->in.len > 0; /* the head's limit runs from the first byte, not from the last */
    if (!c->begun)
        return;
    c->held = c->in;
    c->in = (struct buf){.max = c->held.max};
    c->too_large = buf_append_slice(&c->held, bytes) != 0;
    c->window = c->too_large ? slice_of(NULL, 0) : buf_slice(&c->held);
}

static bool refuse(struct client *c, struct client_input *out, unsigned status, const char *text)
{
    c->window.len = 0;
    out->refused = status;
    out->refusal = text;
    return true;
}

static void advance(struct client *c, size_t bytes)
{
    c->window = slice_skip(c->window, bytes);
    c->begun = false;
}

/* Takes a PROXY header. Returns false if more bytes are needed. */
static bool take_header(struct client *c, struct client_input *out)
{
    struct http_proxy_header h;
    int err = http_proxy_header_parse(c->window, &h);
    if (err == ERR_AGAIN)
        return false;
    c->awaits_header = false;
    if (err != 0) {
        c->window.len = 0;
        out->stranger = true;
        return true;
    }
    advance(c, h.bytes);
    if (h.known)
        ip_format(h.ip, c->peer);
    out->identified = h.known;
    out->header = true;
    return true;
}

/* Takes a head. Returns false if more bytes are needed. */
static bool take_head(struct client *c, struct client_input *out)
{
    struct proxy *p = c->proxy;
    struct http_head *head = &p->head;
    struct slice in = c->window;
    if (c->parsed_once && !http_head_progress(&c->progress, in.at, in.len, &p->limits))
        return false;
    int err = http_request_parse(head, in.at, in.len, &p->limits);
    c->parsed_once = err == ERR_AGAIN;
    if (err == ERR_AGAIN)
        return false;
    c->progress = (struct http_progress){0};
    c->asked = true;
    if (err != 0) {
        if (head->refusal == 431)
            out->limit = head->fields_exceeded ? "headers-max" : "head-bytes-max";
        return refuse(c, out, head->refusal, head->refusal_text);
    }
    c->framing = head->framing;
    c->remaining = head->framing == HTTP_BODY_LENGTH ? head->content_length : 0;
    http_chunked_init(&c->chunked);
    out->head = head;
    out->has_body = c->framing == HTTP_BODY_CHUNKED || c->remaining > 0;
    out->end = !out->has_body;
    c->state = out->has_body ? CLIENT_BODY : CLIENT_ANSWER;
    c->last = !head->keep_alive || (p->draining && c->port == PROXY_PORT_CLIENT);
    deadline_clear(&c->deadline);
    advance(c, head->bytes);
    return true;
}

/* Takes a piece of the present body. Returns false if there is none. */
static bool take_body(struct client *c, struct client_input *out)
{
    if (c->framing == HTTP_BODY_LENGTH) {
        size_t n = c->window.len < c->remaining ? c->window.len : (size_t)c->remaining;
        out->body = slice_of(c->window.at, n);
        c->remaining -= n;
        out->end = c->remaining == 0;
        advance(c, n);
        return n > 0 || out->end;
    }
    while (c->window.len > 0 && !c->chunked.done && out->body.len == 0) {
        size_t used = 0;
        if (http_chunked_next(&c->chunked, c->window, &used, &out->body) != 0)
            return refuse(c, out, 400, "The chunked body is malformed.");
        advance(c, used);
    }
    out->end = c->chunked.done;
    return out->body.len > 0 || out->end;
}

bool client_next(struct client *c, struct client_input *out)
{
    *out = (struct client_input){0};
    if (c->too_large) {
        c->too_large = false;
        out->limit = "head-bytes-max";
        return refuse(c, out, 431, "The request head is too large.");
    }
    if (c->awaits_header)
        return c->window.len > 0 && take_header(c, out);
    bool new_request = c->state == CLIENT_HEAD && c->window.len > 0 && take_head(c, out);
    if (out->refused != 0)
        return true;
    bool has_body = c->state == CLIENT_BODY && (new_request || c->exchange != NULL);
    bool body = has_body && take_body(c, out);
    return new_request || body;
}

bool client_rest(struct client *c)
{
    int err = 0;
    c->taking = false;
    struct slice rest = c->window;
    c->window = slice_of(NULL, 0);
    if (c->state != CLIENT_CLOSING && c->state != CLIENT_LINGER && rest.len > 0) {
        err = buf_append_slice(&c->in, rest);
        CHECK(err == 0 || err == ERR_NOMEM); /* the limits leave room for a read */
        if (c->state != CLIENT_HEAD && c->in.len > c->proxy->limits.head_bytes_max)
            set_reading(c, false); /* a long pipeline: the rest stays in the kernel's buffer */
    }
    buf_free(&c->held);
    if (c->state == CLIENT_HEAD && !c->ended) {
        if (!c->begun || c->deadline.next == NULL)
            client_arm(c);
    } else if (c->state == CLIENT_BODY) {
        client_arm(c);
    }
    return err == 0;
}

bool client_half_close(struct client *c)
{
    bool waits = c->state == CLIENT_ANSWER && c->broken == CLIENT_END_DONE;
    if (!waits || c->port != PROXY_PORT_CLIENT || c->proxy->config.options->client_half_close == 0)
        return false;
    c->half_closed = true;
    c->last |= c->in.len == 0;
    return true;
}

uint64_t client_direct_bytes(const struct client *c)
{
    bool direct = c->state == CLIENT_BODY && c->framing == HTTP_BODY_LENGTH &&
                  c->remaining >= DIRECT_READ_MIN && c->exchange != NULL;
    return direct ? c->remaining : 0;
}

void client_hold_body(struct client *c)
{
    if (c->state != CLIENT_BODY || !c->reading)
        return;
    set_reading(c, false);
    upload_hold(&c->upload, true, c->proxy->now_ms);
    client_arm(c);
}

void client_resume_body(struct client *c)
{
    if (c->state != CLIENT_BODY || c->reading)
        return;
    set_reading(c, true);
    upload_hold(&c->upload, false, c->proxy->now_ms);
    client_arm(c);
}

/* --- writing -------------------------------------------------------------------------------- */

/* Records that nothing can be written any more, and why. The connection closes at the next read, or
 * when the current write ends. If nothing is read or written, the time limit ends the
 * connection. */
static void broke(struct client *c, enum client_end why)
{
    c->broken = why;
    arm(c, PROXY_CLIENT_SHORT);
}

/* Queues the first segment with the network, which takes a single segment at a time. */
static void send_queued(struct client *c)
{
    if (c->writing || c->out_first == NULL)
        return;
    struct segment *s = c->out_first;
    struct slice piece = slice_of(s->data, s->len);
    if (c->proxy->config.net->queue(c->stream, &piece, 1) != 0) {
        broke(c, CLIENT_END_GONE);
        return;
    }
    c->writing = true;
}

/* Copies bytes not accepted by the kernel to the end of the queue. Does not extend a segment while
 * the network writes it. */
static int queue_bytes(struct client *c, struct slice bytes)
{
    while (bytes.len > 0) {
        struct segment *s = c->out_last;
        if (s == NULL || s->len == s->cap || (c->writing && s == c->out_first)) {
            s = segment_new(&c->proxy->segments, bytes.len);
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

void client_write(struct client *c, const struct slice *pieces, unsigned count)
{
    if (c->state == CLIENT_CLOSING || c->broken != CLIENT_END_DONE)
        return;
    struct proxy_stats *stats = &c->proxy->stats;
    size_t skip = 0;
    if (c->out_first == NULL) {
        ptrdiff_t wrote = c->proxy->config.net->write(c->stream, pieces, count);
        if (wrote < 0) {
            broke(c, CLIENT_END_GONE);
            return;
        }
        skip = (size_t)wrote;
    }
    stats->bytes_out += skip;
    for (unsigned i = 0; i < count; i++) {
        struct slice rest = slice_skip(pieces[i], skip);
        skip -= pieces[i].len - rest.len;
        stats->bytes_out += rest.len;
        if (queue_bytes(c, rest) != 0) { /* no memory for a slow reader: close the connection */
            broke(c, CLIENT_END_NO_MEMORY);
            return;
        }
    }
    if (c->out_bytes > 0 && !c->writing) {
        client_arm(c);
        send_queued(c);
    }
}

/* Called when the kernel has the whole answer: continues with the next request, or closes. */
static void after_answer(struct client *c)
{
    c->ended = false;
    if (c->reset_at_end) {
        client_close(c, true);
        return;
    }
    if (c->last) {
        /* Pipelined requests will not be answered, and more of them may arrive. */
        if (c->lingering || c->in.len > 0 || c->window.len > 0)
            linger(c);
        else
            client_close(c, false);
        return;
    }
    c->state = CLIENT_HEAD;
    set_reading(c, true);
    if (c->taking)
        return; /* client_next() continues */
    if (c->in.len == 0 && c->half_closed) {
        client_close(c, false);
    } else if (c->in.len == 0) {
        client_arm(c);
    } else if (!c->waiting && !BUG(PIPELINE_LOST)) {
        start_waiting(c);
    }
}

void client_written(struct client *c)
{
    c->writing = false;
    struct segment *s = c->out_first;
    c->out_bytes -= s->len;
    c->out_first = s->next;
    if (c->out_first == NULL)
        c->out_last = NULL;
    segment_release(&c->proxy->segments, s);
    deadline_clear(&c->deadline);
    client_arm(c); /* a body may still be arriving */
    if (c->out_bytes > 0)
        send_queued(c);
    else if (c->ended)
        after_answer(c);
}

void client_answered(struct client *c)
{
    c->exchange = NULL;
    upload_end(&c->upload);
    if (c->state == CLIENT_CLOSING)
        return;
    if (c->broken != CLIENT_END_DONE) { /* the client must not take a part for the whole answer */
        client_close(c, true);
        return;
    }
    if (c->state == CLIENT_BODY) { /* answered before the body was read: close after the answer */
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
