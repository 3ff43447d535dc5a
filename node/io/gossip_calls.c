/* Calls over TCP (gossip/call.h): bytes in, bytes out, and time limits. The server makes the next
 * part of an answer when the last part is written, so a slow reader costs no memory. */
#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "gossip/call.h"
#include "node/io/gossip_internal.h"
#include "node/io/random.h"

enum { BACKLOG = 128 };

struct io_call {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct io_gossip *gossip;
    struct io_call *next, *prev;
    struct deadline deadline;
    struct gossip_call *call;
    struct node_serve *serve; /* on the server: the answer being made */
    struct buf sending;       /* buffer of the write under way */
    uint32_t id;              /* on the client: the call's id */
    bool client;
    bool connected;
    bool writing;
    bool ended; /* on the server: the last part of the answer has been made */
    bool closing;
};

static void on_closed(uv_handle_t *handle)
{
    struct io_call *c = handle->data;
    gossip_call_free(c->call);
    buf_free(&c->sending);
    free(c);
}

static void drop(struct io_call *c)
{
    CHECK(!c->closing);
    struct io_gossip *g = c->gossip;
    c->closing = true;
    deadline_clear(&c->deadline);
    if (c->serve != NULL)
        node_replication_serve_end(c->serve);
    c->serve = NULL;
    if (!c->client)
        g->served--;
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        g->calls = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* Ends a call, with or without an answer. A server closes without giving a reason. */
static void end(struct io_call *c, int err)
{
    struct io_gossip *g = c->gossip;
    bool client = c->client;
    uint32_t id = c->id;
    drop(c);
    if (err != 0 && !client)
        g->stats.calls_refused += err == ERR_DENIED || err == ERR_SYNTAX || err == ERR_LIMIT;
    if (!client)
        return;
    g->stats.calls_failed += err != 0;
    node_replication_answered(g->replication, id, err, io_now_us());
}

static void on_deadline(struct deadline *d)
{
    end(CONTAINER_OF(d, struct io_call, deadline), ERR_TIMEOUT);
}

static struct io_call *new_call(struct io_gossip *g, bool client)
{
    struct io_call *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    CHECK(uv_tcp_init(g->loop, &c->tcp) == 0);
    c->tcp.data = c;
    c->gossip = g;
    c->client = client;
    c->deadline.expired = on_deadline;
    c->next = g->calls;
    if (c->next != NULL)
        c->next->prev = c;
    g->calls = c;
    g->served += !client;
    return c;
}

/* --- writing -------------------------------------------------------------------------------- */

static int pump(struct io_call *c);

static void on_written(uv_write_t *request, int status)
{
    struct io_call *c = CONTAINER_OF(request, struct io_call, write);
    c->writing = false;
    if (c->closing)
        return;
    buf_clear(&c->sending);
    deadline_set(&c->gossip->call_idle, &c->deadline, shell_now_ms(c->gossip->shell));
    int err = status < 0 ? ERR_CLOSED : pump(c);
    if (err != 0)
        end(c, err);
    else if (c->ended && !c->writing)
        end(c, 0);
}

/* Sends the call's output. */
static int flush(struct io_call *c)
{
    struct buf *out = gossip_call_out(c->call);
    if (c->writing || out->len == 0 || (c->client && !c->connected))
        return 0;
    struct buf empty = c->sending;
    empty.max = out->max;
    c->sending = *out;
    *out = empty;
    uv_buf_t iov = uv_buf_init(c->sending.at, (unsigned)c->sending.len);
    if (uv_write(&c->write, (uv_stream_t *)&c->tcp, &iov, 1, on_written) != 0)
        return ERR_CLOSED;
    c->writing = true;
    return 0;
}

/* Makes more of the answer while few bytes wait, then sends. */
static int pump(struct io_call *c)
{
    struct buf *chunk = &c->gossip->call_chunk;
    int err = 0;
    for (unsigned i = 0;
         err == 0 && i < IO_CALL_ROUND_CHUNKS && c->serve != NULL && !c->ended && !c->writing &&
         gossip_call_out(c->call)->len < IO_CALL_ROUND_BYTES && gossip_call_wants(c->call);
         i++) {
        buf_clear(chunk);
        int more = node_replication_serve_next(c->gossip->replication, c->serve, chunk);
        if (more < 0)
            err = more;
        else if (more > 0)
            err = gossip_call_answer(c->call, buf_slice(chunk));
        else
            err = gossip_call_end(c->call);
        c->ended = more == 0;
    }
    if (c->ended)
        buf_free(chunk);
    return err == 0 ? flush(c) : err;
}

/* --- reading -------------------------------------------------------------------------------- */

static int serve(struct io_call *c, uint8_t kind, struct slice request)
{
    if (c->serve != NULL || c->ended)
        return ERR_SYNTAX;
    c->gossip->stats.calls_served++;
    int err = node_replication_serve(c->gossip->replication, kind, request, io_now_us(), &c->serve);
    if (err != ERR_UNSUPPORTED)
        return err;
    c->ended = true;
    return gossip_call_refuse(c->call, err);
}

/* Handles received bytes. Returns an error, 0, or 1 if the client's answer is complete. */
static int step(struct io_call *c)
{
    for (;;) {
        enum gossip_call_step what;
        uint8_t kind = 0;
        struct slice chunk;
        int err = gossip_call_step(c->call, &what, &kind, &chunk);
        if (err != 0)
            return err;
        switch (what) {
        case GOSSIP_CALL_WAIT:
            return 0;
        case GOSSIP_CALL_REQUEST:
            err = serve(c, kind, chunk);
            if (err != 0)
                return err;
            break;
        case GOSSIP_CALL_CHUNK:
            err = node_replication_answer(c->gossip->replication, c->id, chunk, io_now_us());
            if (err != 0)
                return err;
            break;
        case GOSSIP_CALL_REFUSED:
            c->ended = true;
            break;
        case GOSSIP_CALL_DONE:
            return 1;
        }
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct io_call *c = handle->data;
    *out = uv_buf_init(c->gossip->shell->read_buffer, PROXY_READ_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct io_call *c = stream->data;
    struct io_gossip *g = c->gossip;
    if (n == 0 || c->closing)
        return;
    if (n < 0) {
        end(c, ERR_CLOSED);
        return;
    }
    bool asked = c->serve != NULL || c->client;
    int err = gossip_call_feed(c->call, slice_of(bytes->base, (size_t)n));
    if (err == 0)
        err = step(c);
    if (err == 0)
        err = pump(c);
    if (err != 0) {
        end(c, err > 0 ? 0 : err);
        return;
    }
    if (asked || c->serve != NULL) /* before the request is whole, the time limit of the handshake
                                    * applies */
        deadline_set(&g->call_idle, &c->deadline, shell_now_ms(g->shell));
}

static struct gossip_versions speaks(const struct io_gossip *g)
{
    return gossip_speaks(node_replication_gossip(g->replication));
}

/* --- the two sides -------------------------------------------------------------------------- */

/* Closes the oldest connection without a proven key, so that such connections do not keep members
 * out. Returns false if all calls are being answered. */
static bool make_room(struct io_gossip *g)
{
    struct io_call *oldest = NULL;
    for (struct io_call *c = g->calls; c != NULL; c = c->next) {
        if (!c->client && c->serve == NULL && !c->ended)
            oldest = c;
    }
    if (oldest == NULL)
        return false;
    g->stats.calls_refused++;
    drop(oldest);
    return true;
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct io_gossip *g = stream->data;
    if (status < 0)
        return;
    bool room = g->served < IO_CALLS_SERVED_MAX || make_room(g);
    struct io_call *c = new_call(g, false);
    if (c == NULL)
        return; /* no memory: the connection waits, and so does libuv */
    uint8_t random[32];
    io_random_bytes(random, sizeof random);
    if (uv_accept(stream, (uv_stream_t *)&c->tcp) != 0 || !room) {
        g->stats.calls_refused++;
        drop(c);
        return;
    }
    if (gossip_call_accept(&c->call, g->keyring, speaks(g), random) != 0 ||
        uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) != 0) {
        drop(c);
        return;
    }
    deadline_set(&g->call_handshake, &c->deadline, shell_now_ms(g->shell));
}

static void on_connected(uv_connect_t *request, int status)
{
    struct io_call *c = CONTAINER_OF(request, struct io_call, connect);
    if (c->closing)
        return;
    c->connected = status == 0;
    int err = status == 0 ? uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) : status;
    if (err != 0 || flush(c) != 0) {
        end(c, ERR_UNREACHABLE);
        return;
    }
    deadline_set(&c->gossip->call_idle, &c->deadline, shell_now_ms(c->gossip->shell));
}

int io_calls_begin(struct io_gossip *g, uint32_t id, const struct gossip_address *to, uint8_t kind,
                   struct slice request)
{
    struct sockaddr_storage at;
    if (g->stopped || to->port == 0 || !io_address_to(&at, to, g->ipv6))
        return ERR_UNREACHABLE;
    struct io_call *c = new_call(g, true);
    if (c == NULL)
        return ERR_NOMEM;
    c->id = id;
    uint8_t random[32];
    io_random_bytes(random, sizeof random);
    struct gossip_keyring keys;
    node_replication_call_keys(g->replication, id, &keys);
    int err = gossip_call_open(&c->call, &keys, speaks(g), random, kind, request);
    explicit_bzero(&keys, sizeof keys);
    if (err == 0 &&
        uv_tcp_connect(&c->connect, &c->tcp, (const struct sockaddr *)&at, on_connected) != 0)
        err = ERR_UNREACHABLE;
    if (err != 0) {
        drop(c);
        return err;
    }
    g->stats.calls_made++;
    deadline_set(&g->call_connect, &c->deadline, shell_now_ms(g->shell));
    return 0;
}

int io_calls_open(struct io_gossip *g, const struct sockaddr *at)
{
    CHECK(uv_tcp_init(g->loop, &g->tcp) == 0);
    g->tcp.data = g;
    deadline_queue_init(&g->call_connect, IO_CALL_CONNECT_MS);
    deadline_queue_init(&g->call_handshake, IO_CALL_HANDSHAKE_MS);
    deadline_queue_init(&g->call_idle, IO_CALL_IDLE_MS);
    return uv_tcp_bind(&g->tcp, at, 0);
}

int io_calls_start(struct io_gossip *g)
{
    return uv_listen((uv_stream_t *)&g->tcp, BACKLOG, on_connection);
}

void io_calls_tick(struct io_gossip *g, uint64_t now_ms)
{
    deadline_run(&g->call_connect, now_ms);
    deadline_run(&g->call_handshake, now_ms);
    deadline_run(&g->call_idle, now_ms);
}

void io_calls_close(struct io_gossip *g)
{
    while (g->calls != NULL)
        drop(g->calls);
}
