/* TCP streams for the proxy (node/proxy/net.h), with libuv. */
#ifndef NODE_IO_TCP_H
#define NODE_IO_TCP_H

#include <uv.h>

#include "base/err.h"
#include "node/proxy/net.h"
#include "node/proxy/proxy.h"

struct shell;

/* Actions of struct net_actions. */
MUST_USE int tcp_connect(void *shell, struct net_host *host, unsigned address,
                         struct net_stream **out);
ptrdiff_t tcp_write(struct net_stream *stream, const struct slice *pieces, unsigned count);
MUST_USE int tcp_queue(struct net_stream *stream, const struct slice *pieces, unsigned count);
void tcp_read(struct net_stream *stream, bool on);
void tcp_finish(struct net_stream *stream);
void tcp_close(struct net_stream *stream, bool reset);

/* The system has handed over a connection: the proxy's from now on, or closed. ERR_NOMEM. */
MUST_USE int tcp_accepted(struct shell *shell, int fd, enum proxy_port port);

#endif
