#include <stdlib.h>

#include "base/check.h"
#include "base/err.h"
#include "node/io/gossip_internal.h"

enum { CHUNK_BYTES = 65536 }; /* libuv gives each datagram this part of the receive buffer */

/* --- addresses ------------------------------------------------------------------------------ */

bool io_address_from(struct gossip_address *out, const struct sockaddr *from)
{
    memset(out, 0, sizeof *out);
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;
        memcpy(out->ip, &v4->sin_addr, 4);
        out->port = ntohs(v4->sin_port);
        out->family = 4;
        return true;
    }
    if (from->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *v6 = (const void *)from;
    out->port = ntohs(v6->sin6_port);
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
        memcpy(out->ip, (const char *)&v6->sin6_addr + 12, 4);
        out->family = 4;
    } else {
        memcpy(out->ip, &v6->sin6_addr, 16);
        out->family = 6;
    }
    return true;
}

bool io_address_to(struct sockaddr_storage *out, const struct gossip_address *to, bool ipv6)
{
    memset(out, 0, sizeof *out);
    if (!ipv6) {
        struct sockaddr_in *v4 = (void *)out;
        v4->sin_family = AF_INET;
        v4->sin_port = htons(to->port);
        memcpy(&v4->sin_addr, to->ip, 4);
        return to->family == 4;
    }
    struct sockaddr_in6 *v6 = (void *)out;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(to->port);
    char *ip = (char *)&v6->sin6_addr;
    if (to->family == 4) {
        ip[10] = ip[11] = (char)0xff;
        memcpy(ip + 12, to->ip, 4);
    } else {
        memcpy(ip, to->ip, 16);
    }
    return true;
}

/* --- sending -------------------------------------------------------------------------------- */

struct queued {
    uv_udp_send_t request;
    struct io_gossip *gossip;
    size_t len;
    uint8_t bytes[];
};

static void on_sent(uv_udp_send_t *request, int status)
{
    struct queued *q = CONTAINER_OF(request, struct queued, request);
    if (status < 0 && status != UV_ECANCELED)
        q->gossip->stats.send_errors++;
    q->gossip->queue_bytes -= q->len;
    free(q);
}

/* Lets libuv send a copy later, because the kernel's buffer is full. Gossip repairs dropped
 * datagrams. */
static void enqueue(struct io_gossip *g, const struct sockaddr *to, const uint8_t *bytes,
                    size_t len)
{
    struct queued *q = NULL;
    if (g->queue_bytes + len <= IO_UDP_QUEUE_BYTES)
        q = malloc(sizeof *q + len);
    if (q == NULL) {
        g->stats.send_dropped++;
        return;
    }
    q->gossip = g;
    q->len = len;
    memcpy(q->bytes, bytes, len);
    uv_buf_t iov = uv_buf_init((char *)q->bytes, (unsigned)len);
    if (uv_udp_send(&q->request, &g->udp, &iov, 1, to, on_sent) != 0) {
        g->stats.send_errors++;
        free(q);
        return;
    }
    g->stats.send_queued++;
    g->queue_bytes += len;
}

void io_udp_send(struct io_gossip *g, const struct gossip_address *to, const uint8_t *bytes,
                 size_t len)
{
    struct sockaddr_storage at;
    if (to->port == 0 || g->stopped || !io_address_to(&at, to, g->ipv6)) {
        g->stats.send_errors++;
        return;
    }
    uv_buf_t iov = uv_buf_init((char *)bytes, (unsigned)len);
    int n = uv_udp_try_send(&g->udp, &iov, 1, (const struct sockaddr *)&at);
    if (n == UV_EAGAIN)
        enqueue(g, (const struct sockaddr *)&at, bytes, len);
    else if (n < 0)
        g->stats.send_errors++;
}

static void on_knocked(uv_handle_t *handle)
{
    free(handle);
}

void io_udp_knock(struct io_gossip *g, const struct gossip_address *to, const uint8_t *bytes,
                  size_t len)
{
    struct sockaddr_storage at, from;
    int name_len = sizeof from;
    if (g->stopped || !io_address_to(&at, to, g->ipv6) ||
        uv_udp_getsockname(&g->udp, (struct sockaddr *)&from, &name_len) != 0)
        return;
    /* Sends from this router's listening IP address, so that peers then dial the router there. */
    if (from.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&from)->sin6_port = 0;
    else
        ((struct sockaddr_in *)&from)->sin_port = 0;
    uv_udp_t *udp = malloc(sizeof *udp);
    if (udp == NULL)
        return;
    CHECK(uv_udp_init(g->loop, udp) == 0);
    uv_buf_t iov = uv_buf_init((char *)bytes, (unsigned)len);
    if (uv_udp_bind(udp, (struct sockaddr *)&from, 0) != 0 ||
        uv_udp_try_send(udp, &iov, 1, (const struct sockaddr *)&at) < 0)
        g->stats.send_errors++;
    uv_close((uv_handle_t *)udp, on_knocked);
}

/* --- receiving ------------------------------------------------------------------------------ */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct io_gossip *g = handle->data;
    *out = uv_buf_init(g->datagrams, IO_UDP_DATAGRAMS * CHUNK_BYTES);
}

static void on_datagram(uv_udp_t *udp, ssize_t n, const uv_buf_t *bytes,
                        const struct sockaddr *from, unsigned flags)
{
    struct io_gossip *g = udp->data;
    struct gossip_address address;
    if (n < 0)
        g->stats.receive_errors++;
    if (n <= 0 || from == NULL || (flags & UV_UDP_PARTIAL) != 0 || !io_address_from(&address, from))
        return; /* `n` is 0 at the end of a batch, too */
    node_replication_datagram(g->replication, &address, (const uint8_t *)bytes->base, (size_t)n,
                              io_now_us());
}

/* Enlarges a socket buffer, so that datagrams of many peers at once fit and need no repair. */
static void enlarge(struct io_gossip *g, bool receive)
{
    int wanted = IO_UDP_BUFFER_BYTES;
    int got = 0;
    int (*size_of)(uv_handle_t *, int *) = receive ? uv_recv_buffer_size : uv_send_buffer_size;
    (void)size_of((uv_handle_t *)&g->udp, &wanted);
    if (size_of((uv_handle_t *)&g->udp, &got) == 0 && got < IO_UDP_BUFFER_BYTES)
        log_event(g->log, LOG_INFO, "gossip_buffer_small",
                  LOG_CSTR("limit", receive ? "net.core.rmem_max" : "net.core.wmem_max"),
                  LOG_INT("bytes", got), LOG_INT("wanted", IO_UDP_BUFFER_BYTES));
}

int io_udp_open(struct io_gossip *g, const struct sockaddr *at)
{
    int err = uv_udp_init_ex(g->loop, &g->udp, AF_UNSPEC | UV_UDP_RECVMMSG);
    CHECK(err == 0);
    g->udp.data = g;
    g->ipv6 = at->sa_family == AF_INET6;
    return uv_udp_bind(&g->udp, at, 0);
}

int io_udp_start(struct io_gossip *g)
{
    enlarge(g, true);
    enlarge(g, false);
    g->datagrams = malloc((size_t)IO_UDP_DATAGRAMS * CHUNK_BYTES);
    return g->datagrams == NULL ? UV_ENOMEM : uv_udp_recv_start(&g->udp, on_alloc, on_datagram);
}
