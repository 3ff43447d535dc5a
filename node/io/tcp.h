/* TCP streams for the proxy (node/proxy/net.h), with libuv. */
#ifndef NODE_IO_TCP_H
#define NODE_IO_TCP_H

#include <uv.h>

#include "base/err.h"
#include "node/proxy/net.h"
#include "node/proxy/proxy.h"

struct shell;

/* A port that clients connect to. */
struct tcp_listener {
    uv_tcp_t tcp;
    uv_tcp_t spare; /* takes a connection that there is no memory for, to close it */
    bool spare_busy;
    bool waiting; /* one more of those, until the spare is free */
    struct shell *shell;
    enum proxy_port port;
    struct node_address bound; /* with the port that the kernel chose */
};

/* Actions of struct net_actions. */
MUST_USE int tcp_connect(void *shell, struct net_host *host, unsigned address,
                         struct net_stream **out);
ptrdiff_t tcp_write(struct net_stream *stream, const struct slice *pieces, unsigned count);
MUST_USE int tcp_queue(struct net_stream *stream, const struct slice *pieces, unsigned count);
void tcp_read(struct net_stream *stream, bool on);
void tcp_finish(struct net_stream *stream);
void tcp_close(struct net_stream *stream, bool reset);

/* Takes the connection that waits at the listener. Without memory it is taken and closed, because
 * libuv does not listen while one waits. */
void tcp_accept(struct tcp_listener *l);
/* Takes all connections that the system has set up and libuv has not reported. Call it before the
 * listener is closed: that would reset them. */
void tcp_accept_waiting(struct tcp_listener *l);

#endif
