/* All replicas: this folder's part of struct proxy. */
#ifndef NODE_PROXY_ENGINE_ENGINES_H
#define NODE_PROXY_ENGINE_ENGINES_H

#include "base/deadline.h"
#include "http/head.h"
#include "node/proxy/net.h"

enum {
    PROXY_ENGINE_HEAD_BYTES_MAX = 64 * 1024, /* an answer with a longer head is malformed */
    PROXY_QUICK_MS = 500,                    /* connect timeout of probes of a down replica */
};

/* The state of a kind of shortage (node/proxy/engine/shortage.h). */
struct proxy_shortage {
    uint64_t met;      /* connections that failed for this shortage, since the start */
    uint64_t since_ms; /* start of the present shortage; 0: none */
    uint64_t last_ms;  /* time of the last failed connection */
    uint64_t told_ms;  /* time of the last log line */
    uint64_t began_at; /* `met` at the start of the present shortage */
};

struct proxy_engines {
    struct pool *pools;  /* NODE_REPLICAS_MAX of them, by replica; unused pages stay untouched */
    unsigned pool_count; /* highest index ever used, plus 1 */
    bool pools_missing;  /* a pool could not be opened, for lack of memory */
    struct http_limits limits; /* for the heads of engines' answers */
    struct prober *prober;
    struct feeds *feeds; /* feeds of KV events; NULL: no KV events are read */
    /* Engines connected to publish events; NULL if `feeds` is NULL. */
    struct publishers *publishers;
    struct proxy_shortage shortages[NET_SHORTAGES];
    unsigned without_place; /* number of pools with `no_place` */
    uint64_t place_ms;      /* files or memory are short: no connection opens before this time */
    uint64_t place_wait_ms; /* length of the wait until `place_ms`, doubled after each failure */
    /* Functions of proxy.c: events of streams to replicas, and the end of the streams' time
     * limits. */
    const struct net_events *events;
    void (*expired)(struct deadline *d);
};

#endif
