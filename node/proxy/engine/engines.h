/* All replicas together: what struct proxy holds of them. */
#ifndef NODE_PROXY_ENGINE_ENGINES_H
#define NODE_PROXY_ENGINE_ENGINES_H

#include "base/deadline.h"
#include "http/head.h"
#include "node/proxy/net.h"

enum {
    PROXY_ENGINE_HEAD_BYTES_MAX = 64 * 1024, /* of an answer; then it is malformed */
    PROXY_QUICK_MS = 500,                    /* connecting to a replica that is down */
};

struct proxy_engines {
    struct pool *pools;        /* by replica; NODE_REPLICAS_MAX, touched as they come */
    unsigned pool_count;       /* behind the last one that was ever in use */
    bool pools_missing;        /* there was no memory for one */
    struct http_limits limits; /* of the heads of their answers */
    struct prober *prober;
    /* What proxy.c has for the streams to them. */
    const struct net_events *events;
    void (*expired)(struct deadline *d);
};

#endif
