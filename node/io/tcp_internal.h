/* A TCP stream, shared by tcp.c and the TLS layer above (tls_stream.c). */
#ifndef NODE_IO_TCP_INTERNAL_H
#define NODE_IO_TCP_INTERNAL_H

#include <uv.h>

#include "base/check.h"
#include "node/io/tcp.h"

struct tls_stream;

struct tcp_stream {
    struct net_stream stream; /* first: the proxy's view */
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct shell *shell;
    struct tls_stream *tls; /* NULL: no TLS */
    bool closing;
};

static inline uv_stream_t *tcp_uv_of(struct tcp_stream *s)
{
    return (uv_stream_t *)&s->tcp;
}

#endif
