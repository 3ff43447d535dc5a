/* Shared by the proxy's files: the proxy's state, and scratch memory for an event. */
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
    PROXY_LOOP_LOG_MS = 60000, /* shortest time between two log lines about requests in a circle of
                                * routers */
    PROXY_JOIN_BYTES = 16384,  /* up to this size copying is cheaper than a list of pieces */
};

_Static_assert(PROXY_TICK_IDLE_MS + PROXY_TICK_MS < PROXY_PAUSE_MS, "an idle router is no pause");

/* Time limits. Each has a queue of deadlines. */
enum proxy_limit {
    PROXY_CLIENT_HEAD,
    PROXY_CLIENT_IDLE, /* idle connections of the client port, the longest idle first */
    /* Connections of the admin port and the probe port: */
    PROXY_ADMIN_IDLE,  /* until a whole head has come, or the peer's FIN */
    PROXY_ADMIN_BODY,  /* until the body has come */
    PROXY_ADMIN_WRITE, /* until the peer has read the answer */
    PROXY_CLIENT_BODY,
    PROXY_CLIENT_BODY_TOTAL, /* also the list of all uploads (node/proxy/client/upload.h) */
    PROXY_CLIENT_WRITE,
    PROXY_CLIENT_LINGER, /* all connections in state LINGER, and no others */
    /* A connection that cannot be written to but is not known as closed, or that may linger only
     * briefly. */
    PROXY_CLIENT_SHORT,
    PROXY_CLIENT_FRESH,   /* the port is closed: the first request of a new connection */
    PROXY_CLIENT_PARTING, /* the port is closed: the next request of a used connection */
    PROXY_UPSTREAM_CONNECT,
    PROXY_UPSTREAM_FIRST_TOKEN,
    PROXY_UPSTREAM_AGAIN,      /* first-token-timeout=auto: to the next check, after the minimum */
    PROXY_UPSTREAM_FIRST_BYTE, /* for requests to be answered without tokens */
    PROXY_UPSTREAM_WHOLE_ANSWER,
    PROXY_UPSTREAM_IDLE,
    PROXY_UPSTREAM_KEEPALIVE,
    PROXY_UNPACK, /* an answer is decoded in parts: until the next part */
    PROXY_STREAM_HOLD,
    PROXY_RETRY_FIRST, /* waits before another attempt: a queue for each of PROXY_RETRY_WAITS */
    PROXY_RETRY_LAST = PROXY_RETRY_FIRST + 3,
    PROXY_REQUEST, /* the whole request */
    PROXY_QUEUE,
    PROXY_QUEUE_ALONE,   /* a suspect waits for a replica without other requests */
    PROXY_QUEUE_APART,   /* a request waits for a replica without a suspect */
    PROXY_LISTS,         /* a request for an unknown model waits for the replicas' model lists */
    PROXY_FETCH,         /* probes of replicas */
    PROXY_FETCH_SGLANG,  /* SGLang's health check, which generates a token */
    PROXY_FETCH_CONNECT, /* a probe connects to a down replica */
    PROXY_FETCH_PATIENT, /* control requests (node/proxy/own/control.h) */
    PROXY_FETCH_FAILED,  /* the probe has failed, but `done` must not be called within
                          * fetch_ask() */
    PROXY_LIMITS,
};

struct proxy {
    struct proxy_config config;
    uint64_t now_ms; /* time of the present event */
    uint64_t due_ms; /* no armed time limit ends before this time */
    uint64_t started_ms;
    uint64_t ticked_ms;
    uint64_t resumed_ms; /* end of the last pause of the process; 0: none yet */
    uint64_t watched_ms; /* last run of the watchdog (node/proxy/guard/watch.h) */
    bool paused;         /* the loop was stopped before the last tick */
    bool draining;       /* not ready; answers close their connections */
    bool closed;         /* the client port accepts nothing new */
    struct segment_pool segments;
    struct proxy_stats stats;
    struct proxy_timing timing;
    struct http_limits limits; /* for the heads of clients' requests */
    struct deadline_queue limit[PROXY_LIMITS];

    struct proxy_clients clients;
    struct proxy_engines engines;
    struct proxy_exchanges exchanges;
    struct admission admission;
    unsigned model_asks;         /* clients that wait for replicas' model lists */
    unsigned control_asks;       /* clients with a control request to all replicas */
    struct node_aliases aliases; /* model aliases of the present settings */
    struct model_merge *models;  /* the replicas' model lists, merged; NULL: not made yet */
    uint64_t models_version;     /* prober_models_version() when `models` was made */

    char via[32];                        /* this router in Via: HTTP_VIA_ROUTER and random digits */
    char identity[PROXY_IDENTITY_BYTES]; /* `via` and the name in the cluster, for probes */

    /* Scratch for the duration of an event. */
    struct http_head head;
    struct http_head local_head; /* head of a request that the router answers */
    struct buf scratch;
    char joined[PROXY_JOIN_BYTES];
};

/* proxy_limits.c. proxy_limits_begin() reads the limits from the settings. proxy_limits_run() ends
 * due deadlines and finds the next one. */
void proxy_limits_begin(struct proxy *p);
void proxy_limits_run(struct proxy *p);

/* Must be called for each armed deadline, so that the next tick comes in time. */
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
