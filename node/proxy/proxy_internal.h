/* The proxy's shared parts: its state, and scratch memory for one event. */
#ifndef NODE_PROXY_PROXY_INTERNAL_H
#define NODE_PROXY_PROXY_INTERNAL_H

#include "base/body.h"
#include "base/deadline.h"
#include "base/segment.h"
#include "http/head.h"
#include "node/admission/admission.h"
#include "node/proxy/client/clients.h"
#include "node/proxy/engine/engines.h"
#include "node/proxy/exchange/exchanges.h"
#include "node/proxy/proxy.h"
#include "node/proxy/timing.h"
#include "node/settings/aliases.h"

enum {
    PROXY_PAUSE_MS = 1000,     /* a longer gap between two ticks: the process was stopped */
    PROXY_LOOP_LOG_MS = 60000, /* between two log lines about loops */
    PROXY_JOIN_BYTES = 16384,  /* up to this size copying is cheaper than a list of pieces */
};

_Static_assert(PROXY_TICK_IDLE_MS + PROXY_TICK_MS < PROXY_PAUSE_MS, "an idle router is no pause");

/* Time limits; each is one queue. */
enum proxy_limit {
    PROXY_CLIENT_HEAD,
    PROXY_CLIENT_IDLE, /* on the client port, the longest idle first */
    /* Limits of the admin port and the probe port, by the awaited event: */
    PROXY_ADMIN_IDLE, /* a whole head, or the peer's end */
    PROXY_ADMIN_BODY,
    PROXY_ADMIN_WRITE,
    PROXY_CLIENT_BODY,
    PROXY_CLIENT_BODY_TOTAL, /* also the list of all uploads (node/proxy/client/upload.h) */
    PROXY_CLIENT_WRITE,
    PROXY_CLIENT_LINGER, /* all connections in state LINGER, and no others */
    /* The connection cannot be written to and shows no end, or may linger only for a moment. */
    PROXY_CLIENT_SHORT,
    PROXY_CLIENT_FRESH,   /* the port is closed: the first request of a new connection */
    PROXY_CLIENT_PARTING, /* the port is closed: the next request of a used connection */
    PROXY_UPSTREAM_CONNECT,
    PROXY_UPSTREAM_FIRST_TOKEN,
    PROXY_UPSTREAM_AGAIN,      /* "auto": the minimum is over, checked again and again */
    PROXY_UPSTREAM_FIRST_BYTE, /* of requests without tokens */
    PROXY_UPSTREAM_WHOLE_ANSWER,
    PROXY_UPSTREAM_IDLE,
    PROXY_UPSTREAM_KEEPALIVE,
    PROXY_UNPACK, /* an answer is decoded in parts: until the next part */
    PROXY_STREAM_HOLD,
    PROXY_RETRY_FIRST, /* PROXY_RETRY_WAITS of them: before another attempt */
    PROXY_RETRY_LAST = PROXY_RETRY_FIRST + 3,
    PROXY_REQUEST, /* the whole request */
    PROXY_QUEUE,
    PROXY_QUEUE_ALONE, /* waits behind a suspect */
    PROXY_QUEUE_APART,
    PROXY_LISTS,         /* a request for a model without a known replica */
    PROXY_FETCH,         /* probes of replicas */
    PROXY_FETCH_SGLANG,  /* with a health check that costs a token */
    PROXY_FETCH_CONNECT, /* to a down replica */
    PROXY_FETCH_PATIENT, /* control requests (node/proxy/own/control.h) */
    PROXY_FETCH_FAILED,  /* fails at once, but not within the call */
    PROXY_LIMITS,
};

struct proxy {
    struct proxy_config config;
    uint64_t now_ms; /* of the present event */
    uint64_t due_ms; /* no time limit ends earlier */
    uint64_t started_ms;
    uint64_t ticked_ms;
    uint64_t resumed_ms; /* end of the last pause; 0: none yet */
    uint64_t watched_ms; /* node/proxy/guard/watch.h */
    bool paused;         /* the loop was stopped before the last tick */
    bool draining;       /* not ready; answers close their connections */
    bool closed;         /* the client port accepts nothing new */
    struct segment_pool segments;
    struct proxy_stats stats;
    struct proxy_timing timing;
    struct http_limits limits; /* of clients' heads */
    struct deadline_queue limit[PROXY_LIMITS];

    struct proxy_clients clients;
    struct proxy_engines engines;
    struct proxy_exchanges exchanges;
    struct admission admission;
    unsigned model_asks;         /* clients waiting for replicas' model lists, */
    unsigned control_asks;       /* and clients with a control request to all replicas */
    struct node_aliases aliases; /* of the present settings */
    struct model_merge *models;  /* of all replicas; NULL: not made yet */
    uint64_t models_version;     /* of the merged lists */

    char via[32];                        /* this router in Via: HTTP_VIA_ROUTER and random digits */
    char identity[PROXY_IDENTITY_BYTES]; /* the same, and the name in the cluster: for probes */

    /* Scratch for the duration of one event. */
    struct http_head head;
    struct http_head local_head; /* of a request that the router answers */
    struct buf scratch;
    char joined[PROXY_JOIN_BYTES];
};

/* proxy_limits.c: reads the limits from the settings; ends due deadlines, and finds the next. */
void proxy_limits_begin(struct proxy *p);
void proxy_limits_run(struct proxy *p);

/* Call for each armed deadline, so the tick comes in time. */
static inline void proxy_armed(struct proxy *p, const struct deadline *d)
{
    if (d->next != NULL && d->at_ms < p->due_ms)
        p->due_ms = d->at_ms;
}

static inline void proxy_arm(struct proxy *p, enum proxy_limit limit, struct deadline *d)
{
    deadline_set(&p->limit[limit], d, p->now_ms);
    proxy_armed(p, d);
}

#endif
