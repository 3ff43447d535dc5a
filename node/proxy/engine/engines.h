/* All replicas: this room's part of struct proxy. */
#ifndef NODE_PROXY_ENGINE_ENGINES_H
#define NODE_PROXY_ENGINE_ENGINES_H

#include "base/deadline.h"
#include "http/head.h"
#include "node/proxy/net.h"

enum {
    PROXY_ENGINE_HEAD_BYTES_MAX = 64 * 1024, /* of an answer; a longer head is malformed */
    PROXY_QUICK_MS = 500,                    /* for connecting to a down replica */
};

/* A shortage of one kind (node/proxy/engine/shortage.h). */
struct proxy_shortage {
    uint64_t met;      /* failed connections */
    uint64_t since_ms; /* 0: no shortage now */
    uint64_t last_ms;  /* the last time, */
    uint64_t told_ms;  /* and the last log line */
    uint64_t began_at; /* `met` at the start */
};

struct proxy_engines {
    struct pool *pools;        /* by replica; NODE_REPLICAS_MAX, touched when needed */
    unsigned pool_count;       /* one more than the last index ever used */
    bool pools_missing;        /* memory was short for a pool */
    struct http_limits limits; /* of the heads of answers */
    struct prober *prober;
    struct feeds *feeds;           /* of KV events; NULL: not read */
    struct publishers *publishers; /* engines that connect to publish events; NULL with `feeds` */
    struct proxy_shortage shortages[NET_SHORTAGES];
    unsigned without_place; /* pools that may open no connection now */
    uint64_t place_ms;      /* files or memory are short: no connection opens before this time */
    uint64_t place_wait_ms; /* length of the wait; grows */
    /* Functions of proxy.c for streams to replicas. */
    const struct net_events *events;
    void (*expired)(struct deadline *d);
};

#endif
