/* Engines that connect to the router and publish their KV events there (kv-events-listen), instead
 * of listening on a port (feeds.h). The connection's address and the topic (the first part of each
 * message) identify the replica:
 *
 *   a topic     the replica with the label kv-events=listen?topic=TEXT
 *   no topic    the replica at this address, if there is exactly one
 *
 * Other messages are dropped and counted, and logged once with advice. The router with an engine's
 * connection reads the events, and goes before all others in the order of readers
 * (node/replica/turn.h).
 *
 * Peers are not authenticated, so connections, their memory and their bytes per second are limited.
 * A replica's second connection is not read while the first is open. */
#ifndef NODE_PROXY_ENGINE_PUBLISHERS_H
#define NODE_PROXY_ENGINE_PUBLISHERS_H

#include "base/err.h"
#include "node/proxy/proxy_internal.h"

enum {
    PUBLISHERS_MAX = 192,             /* most connections: 1 per feed, and closing ones */
    PUBLISHERS_HANDSHAKE_MS = 10000,  /* longest time until the peer has completed the handshake */
    PUBLISHERS_BYTES_S = 32 << 20,    /* bytes read per second from a connection */
    PUBLISHERS_MEMORY_MAX = 64 << 20, /* bytes of incomplete messages of all connections */
    PUBLISHERS_LOG_MS = 10000,        /* shortest time between two log lines about dropped messages,
                                       * or about refused connections */
};

/* Makes the state of the publishers, if this router reads KV events. ERR_NOMEM. */
MUST_USE int publishers_open(struct proxy *p);
void publishers_close(struct proxy *p);
/* Takes the stream over. `peer`: the peer's IP address. Nothing is read while this router joins a
 * cluster. ERR_NOMEM. */
MUST_USE int publishers_accept(struct proxy *p, struct net_stream *stream, const char *peer);
/* Called by each tick. */
void publishers_tick(struct proxy *p);
/* Called when the replica's name is forgotten. The next message on the connection identifies the
 * replica anew. */
void publishers_forget(struct proxy *p, unsigned replica);
/* Closes all connections. */
void publishers_stop(struct proxy *p);
void publishers_metrics(const struct proxy *p, struct prometheus *out);
void publishers_check(const struct proxy *p);

#endif
