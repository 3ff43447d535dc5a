#include "tests/engine-sim/tcp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"

enum { LISTEN_BACKLOG = 1024, PIECES_MAX = 4 };

struct stream {
    uv_tcp_t tcp; /* first */
    struct sim_conn *conn;
};

static uv_stream_t *uv_of(const struct sim_conn *c)
{
    return c->stream;
}

/* --- what the server asks for ---------------------------------------------------------------- */

struct pending_write {
    uv_write_t request;
    char bytes[];
};

static void on_written(uv_write_t *request, int status)
{
    struct stream *s = request->handle->data;
    free(request);
    sim_conn_written(s->conn, status == 0);
}

/* Writes straight into the socket; bytes without room there are copied and follow. */
static void do_write(struct sim_conn *c, const struct slice *pieces, unsigned count)
{
    uv_buf_t bufs[PIECES_MAX];
    size_t total = 0;
    CHECK(count <= PIECES_MAX);
    for (unsigned i = 0; i < count; i++) {
        bufs[i] = uv_buf_init((char *)pieces[i].at, (unsigned)pieces[i].len);
        total += bufs[i].len;
    }
    int written = c->writes > 0 ? 0 : uv_try_write(uv_of(c), bufs, count);
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
    if (uv_write(&w->request, uv_of(c), &rest, 1, on_written) != 0) {
        c->writes--;
        free(w);
        c->ends = true; /* the reading side closes the connection */
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *s = handle->data;
    sim_conn_free(s->conn);
    free(s);
}

static void do_close(struct sim_conn *c, bool reset)
{
    if (!reset || uv_tcp_close_reset(c->stream, on_closed) != 0)
        uv_close(c->stream, on_closed);
}

static void do_listen(struct sim_server *server, bool on)
{
    struct sim_tcp *t = server->carrier_context;
    if (on) {
        if (!t->bound)
            CHECK(sim_tcp_bind(t, t->host, t->port) == 0);
        CHECK(sim_tcp_listen(t) == 0);
    } else if (t->bound) {
        uv_close((uv_handle_t *)&t->listener, NULL);
        t->bound = false;
    }
}

static uint64_t do_now_ns(struct sim_server *server)
{
    (void)server;
    return uv_hrtime();
}

static double do_unix_s(struct sim_server *server)
{
    struct timespec now;
    (void)server;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const struct sim_carrier carrier = {.write = do_write,
                                           .close = do_close,
                                           .listen = do_listen,
                                           .now_ns = do_now_ns,
                                           .unix_s = do_unix_s};

/* --- what comes ------------------------------------------------------------------------------ */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct stream *s = handle->data;
    (void)suggested;
    struct slice room = sim_conn_room(s->conn);
    *buf = uv_buf_init((char *)room.at, (unsigned)room.len);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct stream *s = stream->data;
    (void)buf;
    if (n < 0)
        sim_conn_lost(s->conn);
    else
        sim_conn_received(s->conn, (size_t)n);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct sim_tcp *t = listener->data;
    if (status != 0)
        return;
    struct stream *s = calloc(1, sizeof *s);
    CHECK(s != NULL);
    CHECK(uv_tcp_init(t->loop, &s->tcp) == 0);
    s->tcp.data = s;
    s->conn = sim_conn_open(t->server, &s->tcp);
    if (uv_accept(listener, (uv_stream_t *)&s->tcp) != 0) {
        sim_conn_close(s->conn);
        return;
    }
    (void)uv_tcp_nodelay(&s->tcp, 1);
    (void)uv_read_start((uv_stream_t *)&s->tcp, on_alloc, on_read);
}

/* --- life ------------------------------------------------------------------------------------ */

void sim_tcp_init(struct sim_tcp *t, uv_loop_t *loop, struct sim_server *server)
{
    *t = (struct sim_tcp){.loop = loop, .server = server};
    server->carrier = &carrier;
    server->carrier_context = t;
}

int sim_tcp_bind(struct sim_tcp *t, const char *host, unsigned port)
{
    struct sockaddr_in at;
    struct sockaddr_in bound;
    int len = sizeof bound;
    int err = uv_ip4_addr(host, (int)port, &at);
    if (err != 0)
        return err;
    CHECK(uv_tcp_init(t->loop, &t->listener) == 0);
    t->listener.data = t;
    err = uv_tcp_bind(&t->listener, (const struct sockaddr *)&at, 0);
    if (err == 0)
        err = uv_tcp_getsockname(&t->listener, (struct sockaddr *)&bound, &len);
    if (err != 0)
        return err;
    t->bound = true;
    t->port = ntohs(bound.sin_port);
    if (host != t->host)
        (void)snprintf(t->host, sizeof t->host, "%s", host);
    return 0;
}

int sim_tcp_listen(struct sim_tcp *t)
{
    int err = uv_listen((uv_stream_t *)&t->listener, LISTEN_BACKLOG, on_connection);
    t->server->listening = err == 0;
    return err;
}
