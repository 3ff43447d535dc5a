/* TCP streams for the proxy (node/proxy/net.h), with libuv. */
#ifndef NODE_IO_TCP_H
#define NODE_IO_TCP_H

#include <uv.h>

#include "base/err.h"
#include "node/proxy/net.h"
#include "node/proxy/proxy.h"

struct shell;

/* These are actions of struct net_actions. */
MUST_USE int tcp_connect(void *shell, struct net_host *host, unsigned address,
                         struct net_stream **out);
ptrdiff_t tcp_write(struct net_stream *stream, const struct slice *pieces, unsigned count);
MUST_USE int tcp_queue(struct net_stream *stream, const struct slice *pieces, unsigned count);
void tcp_read(struct net_stream *stream, bool on);
uint64_t tcp_round_trip_us(struct net_stream *stream);
void tcp_finish(struct net_stream *stream);
void tcp_close(struct net_stream *stream, bool reset);

/* Sets options on a listening socket, which the kernel copies to each accepted connection, to
 * notice if a client's machine vanishes. A client may read nothing for `write_timeout_ms`; 0:
 * without limit. */
void tcp_watch_clients(int listener, uint64_t write_timeout_ms);

/* Passes a new connection from `from` to the proxy, or closes it. ERR_NOMEM. */
MUST_USE int tcp_accepted(struct shell *shell, int fd, enum proxy_port port,
                          const struct sockaddr *from);

#endif
