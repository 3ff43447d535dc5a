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

/* Of one kind (node/proxy/engine/shortage.h). */
struct proxy_shortage {
    uint64_t met;      /* connections that could not be opened */
    uint64_t since_ms; /* 0: there is none now */
    uint64_t last_ms;  /* when it was met last, */
    uint64_t told_ms;  /* and when the log said so */
    uint64_t began_at; /* `met` when it began */
};

struct proxy_engines {
    struct pool *pools;        /* by replica; NODE_REPLICAS_MAX, touched as they come */
    unsigned pool_count;       /* behind the last one that was ever in use */
    bool pools_missing;        /* there was no memory for one */
    struct http_limits limits; /* of the heads of their answers */
    struct prober *prober;
    struct feeds *feeds;           /* of KV events; NULL: none is read */
    struct publishers *publishers; /* engines that connect to publish them; NULL with `feeds` */
    struct proxy_shortage shortages[NET_SHORTAGES];
    unsigned without_place; /* pools to which no connection is opened now */
    uint64_t place_ms;      /* not before then to any: files or memory are short */
    uint64_t place_wait_ms; /* how long that was; grows */
    /* What proxy.c has for the streams to them. */
    const struct net_events *events;
    void (*expired)(struct deadline *d);
};

#endif
