#include "node/io/tcp_internal.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bug.h"
#include "base/check.h"
#include "base/err.h"
#include "node/io/names.h"
#include "node/io/shell.h"
#include "node/io/tls.h"

static struct tcp_stream *of(struct net_stream *stream)
{
    return CONTAINER_OF(stream, struct tcp_stream, stream);
}

/* --- events ---------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct tcp_stream *s = handle->data;
    if (s->stream.events != NULL)
        s->stream.events->closed(s->stream.owner);
    if (s->tls != NULL)
        tls_stream_free(s);
    free(s);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct tcp_stream *s = handle->data;
    struct slice room = slice_of(NULL, 0);
    if (s->stream.events->room != NULL)
        room = s->stream.events->room(s->stream.owner);
    if (room.len > 0)
        *out = uv_buf_init((char *)room.at, (unsigned)room.len);
    else
        *out = uv_buf_init(s->shell->read_buffer, PROXY_READ_BYTES);
}

/* For BUG(READ_MIXED): replaces the stream's bytes by bytes of the last other stream. */
static void mix(struct tcp_stream *s, char *bytes, ssize_t n)
{
    static char held[PROXY_READ_BYTES];
    static const struct tcp_stream *of;
    static ssize_t len;
    if (of != NULL && of != s && n > 0 && n <= len && BUG_RARE(READ_MIXED))
        memcpy(bytes, held, (size_t)n);
    if (n <= 0 || n > PROXY_READ_BYTES)
        return;
    memcpy(held, bytes, (size_t)n);
    of = s;
    len = n;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
    struct tcp_stream *s = stream->data;
    if (n == 0 || s->closing)
        return;
    const struct net_events *events = s->stream.events;
    uint64_t now = shell_now_ms(s->shell);
    if (BUG(READ_MIXED))
        mix(s, bytes->base, n);
    if (n > 0)
        events->received(s->stream.owner, slice_of(bytes->base, (size_t)n), now);
    else
        events->ended(s->stream.owner, n == UV_EOF ? 0 : ERR_CLOSED, now);
}

static void on_written(uv_write_t *request, int status)
{
    struct tcp_stream *s = CONTAINER_OF(request, struct tcp_stream, write);
    if (!s->closing)
        s->stream.events->written(s->stream.owner, status != 0 ? ERR_CLOSED : 0,
                                  shell_now_ms(s->shell));
}

/* Linux returns EADDRNOTAVAIL if no local port is left, and also if this machine has no source
 * address (IPv6 turned off). Only the first is a shortage. A UDP socket shows the difference: it
 * needs a source address too, but UDP has separate ports. Returns true if this machine has a source
 * address for `to`. */
static bool has_source(const struct sockaddr *to)
{
    socklen_t len =
        to->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;
    bool found = connect(fd, to, len) == 0 || errno == EAGAIN; /* no UDP port is left either */
    (void)close(fd);
    return found;
}

/* Converts an error of libuv to an error of struct net_actions. `to` is the address of the failed
 * connection; NULL: not known. */
static int error_of(int err, const struct sockaddr *to)
{
    switch (err) {
    case 0:
        return ERR_OK;
    case UV_ECONNREFUSED:
        return ERR_CLOSED;
    case UV_EADDRNOTAVAIL:
        return to == NULL || has_source(to) ? ERR_FULL : ERR_UNREACHABLE;
    case UV_EAGAIN: /* lack of ports, according to connect(2) */
        return ERR_FULL;
    case UV_EMFILE:
    case UV_ENFILE:
        return ERR_LIMIT;
    case UV_ENOBUFS:
    case UV_ENOMEM:
        return ERR_NOMEM;
    default:
        return ERR_UNREACHABLE;
    }
}

static void on_connect(uv_connect_t *request, int status)
{
    struct tcp_stream *s = CONTAINER_OF(request, struct tcp_stream, connect);
    uv_os_fd_t fd;
    if (BUG(DESCRIPTOR_LEAK) && status != 0 && uv_fileno((uv_handle_t *)&s->tcp, &fd) == 0)
        fd = dup(fd);
    int err = error_of(status, NULL);
    if (!s->closing && err == 0 && s->tls != NULL)
        tls_begin(s, false);
    else if (!s->closing)
        s->stream.events->connected(s->stream.owner, err, shell_now_ms(s->shell));
}

/* --- actions --------------------------------------------------------------------------------- */

static struct tcp_stream *new_stream(struct shell *shell)
{
    struct tcp_stream *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    CHECK(uv_tcp_init(shell->loop, &s->tcp) == 0); /* allocates nothing */
    s->tcp.data = s;
    s->shell = shell;
    return s;
}

/* Detects vanished machines. The kernel counts a peer that reads nothing as silent too, even if the
 * peer answers. So `silent_ms` (0: no limit) must be at least the proxy's limit. */
static void watch_peer(int fd, uint64_t silent_ms)
{
    int on = 1, idle_s = NET_KEEPALIVE_S;
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
#ifdef TCP_KEEPINTVL
    int every_s = NET_KEEPALIVE_EVERY_S, count = NET_SILENT_MS / 1000 / NET_KEEPALIVE_EVERY_S;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof every_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
#endif
#ifdef TCP_USER_TIMEOUT
    unsigned ms = silent_ms < UINT_MAX ? (unsigned)silent_ms : UINT_MAX;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms); /* 0: the system's */
#endif
}

void tcp_close(struct net_stream *stream, bool reset)
{
    struct tcp_stream *s = of(stream);
    CHECK(!s->closing);
    if (s->tls != NULL)
        tls_closing(s, reset);
    s->closing = true;
    if (!reset || uv_tcp_close_reset(&s->tcp, on_closed) != 0)
        uv_close((uv_handle_t *)&s->tcp, on_closed);
}

int tcp_connect(void *context, struct net_host *host, unsigned address, struct net_stream **out)
{
    struct shell *shell = context;
    struct tls_host *tls = names_tls(host);
    struct tcp_stream *s = new_stream(shell);
    if (s == NULL)
        return ERR_NOMEM;
    if (tls != NULL && tls_connects(shell->tls, s, tls) != 0) {
        tcp_close(&s->stream, false);
        return ERR_NOMEM;
    }
    (void)uv_tcp_nodelay(&s->tcp, 1);
    const struct sockaddr *to = names_address(host, address);
    int err = uv_tcp_connect(&s->connect, &s->tcp, to, on_connect);
    if (err == 0) { /* from now on there is a socket */
        uv_os_fd_t fd;
        if (uv_fileno((const uv_handle_t *)&s->tcp, &fd) == 0)
            watch_peer(fd, NET_SILENT_MS);
        *out = &s->stream;
        return 0;
    }
    tcp_close(&s->stream, false);
    return error_of(err, to);
}

static unsigned pieces_of(uv_buf_t *out, const struct slice *pieces, unsigned count)
{
    CHECK(count <= NET_PIECES_MAX);
    for (unsigned i = 0; i < count; i++)
        out[i] = uv_buf_init((char *)pieces[i].at, (unsigned)pieces[i].len);
    return count;
}

ptrdiff_t tcp_write(struct net_stream *stream, const struct slice *pieces, unsigned count)
{
    if (of(stream)->tls != NULL)
        return tls_write(of(stream), pieces, count);
    uv_buf_t bufs[NET_PIECES_MAX];
    int wrote = uv_try_write(tcp_uv_of(of(stream)), bufs, pieces_of(bufs, pieces, count));
    return wrote >= 0 ? wrote : wrote == UV_EAGAIN ? 0 : ERR_CLOSED;
}

int tcp_queue(struct net_stream *stream, const struct slice *pieces, unsigned count)
{
    struct tcp_stream *s = of(stream);
    if (s->tls != NULL)
        return tls_queue(s, pieces, count);
    uv_buf_t bufs[NET_PIECES_MAX];
    int err = uv_write(&s->write, tcp_uv_of(s), bufs, pieces_of(bufs, pieces, count), on_written);
    return err == 0 ? 0 : err == UV_ENOMEM ? ERR_NOMEM : ERR_CLOSED;
}

void tcp_read(struct net_stream *stream, bool on)
{
    struct tcp_stream *s = of(stream);
    if (s->tls != NULL)
        tls_read(s, on);
    else if (on)
        (void)uv_read_start(tcp_uv_of(s), on_alloc, on_read);
    else
        (void)uv_read_stop(tcp_uv_of(s));
}

uint64_t tcp_round_trip_us(struct net_stream *stream)
{
#ifdef TCP_INFO
    uv_os_fd_t fd;
    struct tcp_info info;
    socklen_t len = sizeof info;
    if (uv_fileno((const uv_handle_t *)&of(stream)->tcp, &fd) == 0 &&
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0)
        return info.tcpi_rtt;
#else
    (void)stream;
#endif
    return 0;
}

void tcp_finish(struct net_stream *stream)
{
    struct tcp_stream *s = of(stream);
    if (s->tls != NULL)
        tls_finish(s);
    else
        (void)uv_shutdown(&s->shutdown, tcp_uv_of(s), NULL);
}

/* --- incoming connections --------------------------------------------------------------------- */

int tcp_accepted(struct shell *shell, int fd, enum proxy_port port, const struct sockaddr *from)
{
    struct tcp_stream *s = new_stream(shell);
    if (s == NULL) {
        (void)close(fd);
        return ERR_NOMEM;
    }
    if (uv_tcp_open(&s->tcp, fd) != 0) {
        (void)close(fd);
        tcp_close(&s->stream, false);
        return 0;
    }
    if (tls_on_port(shell->tls, port) && tls_accepted(shell->tls, s, port) != 0) {
        tcp_close(&s->stream, true);
        return ERR_NOMEM;
    }
    (void)uv_tcp_nodelay(&s->tcp, 1);
    char peer[INET6_ADDRSTRLEN] = "";
    (void)uv_ip_name(from, peer, sizeof peer);
    int err = proxy_accept(shell->proxy, &s->stream, port, peer, shell_now_ms(shell));
    if (err != 0)
        tcp_close(&s->stream, false);
    else if (s->tls != NULL && !s->closing)
        tls_begin(s, proxy_header_awaited(&s->stream));
    return err;
}

void tcp_watch_clients(int listener, uint64_t write_timeout_ms)
{
    bool short_wait = write_timeout_ms > 0 && write_timeout_ms < NET_SILENT_MS;
    watch_peer(listener, short_wait ? NET_SILENT_MS : write_timeout_ms);
}
