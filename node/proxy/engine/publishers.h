/* Engines that connect to the router and publish their KV events there (kv-events-listen), in place
 * of waiting at a port of their own (feeds.h). Each sends over one connection, of which the first
 * part of each message, the topic, and the address say whose it is:
 *
 *   a topic     the replica whose label is kv-events=listen?topic=TEXT
 *   no topic    the replica that has this address, if one alone has
 *
 * Others' messages are dropped and counted, and the log says once what to do. The router that has
 * the connection reads it, and goes before all others in their order (node/replica/turn.h).
 *
 * Who connects is not known: connections, their memory and their bytes a second are bounded, and a
 * replica's second connection is not read while it has a first one.
 */
#ifndef NODE_PROXY_ENGINE_PUBLISHERS_H
#define NODE_PROXY_ENGINE_PUBLISHERS_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

enum {
    PUBLISHERS_MAX = 192,             /* connections: one for each feed, and some that end */
    PUBLISHERS_HANDSHAKE_MS = 10000,  /* until the peer has said what it is */
    PUBLISHERS_BYTES_S = 32 << 20,    /* of one connection; then it is not read for a while */
    PUBLISHERS_MEMORY_MAX = 64 << 20, /* of messages that have not come whole, all together */
    PUBLISHERS_LOG_MS = 10000,        /* between two lines on what is dropped, or finds no room */
};

/* ERR_NOMEM. */
MUST_USE int publishers_open(struct proxy *p);
void publishers_close(struct proxy *p);
/* Takes the stream over; `peer`: its IP address. While this router joins a cluster nothing is read.
 * ERR_NOMEM. */
MUST_USE int publishers_accept(struct proxy *p, struct net_stream *stream, const char *peer);
/* Called by each tick. */
void publishers_tick(struct proxy *p);
/* The replica's name is forgotten: whose its connection is shows with the next message. */
void publishers_forget(struct proxy *p, unsigned replica);
/* Closes all connections. */
void publishers_stop(struct proxy *p);
void publishers_metrics(const struct proxy *p, struct prometheus *out);
void publishers_check(const struct proxy *p);

#endif
