/* What the files of the proxy share: its state, and scratch memory for one event. */
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
    PROXY_PAUSE_MS = 1000,     /* between two ticks: the process stood still */
    PROXY_LOOP_LOG_MS = 60000, /* between two lines on loops */
    PROXY_JOIN_BYTES = 16384,  /* up to here copying is cheaper than a list of pieces */
};

_Static_assert(PROXY_TICK_IDLE_MS + PROXY_TICK_MS < PROXY_PAUSE_MS, "an idle router is no pause");

/* Time limits; each is one queue. */
enum proxy_limit {
    PROXY_CLIENT_HEAD,
    PROXY_CLIENT_IDLE, /* on the client port: in order of how long they are idle */
    /* On the admin port and the probe port, by what they keep the router waiting for: */
    PROXY_ADMIN_IDLE, /* a whole head, or their end */
    PROXY_ADMIN_BODY,
    PROXY_ADMIN_WRITE,
    PROXY_CLIENT_BODY,
    PROXY_CLIENT_BODY_TOTAL, /* the list of all uploads too (node/proxy/client/upload.h) */
    PROXY_CLIENT_WRITE,
    PROXY_CLIENT_LINGER,  /* in state LINGER, and nothing else */
    PROXY_CLIENT_SHORT,   /* it cannot be written to and its end is not heard of, or it may linger
                           * for a moment only */
    PROXY_CLIENT_FRESH,   /* the port is closed: the first request of a new connection */
    PROXY_CLIENT_PARTING, /* the same: the next request of one that was used */
    PROXY_UPSTREAM_CONNECT,
    PROXY_UPSTREAM_FIRST_TOKEN,
    PROXY_UPSTREAM_AGAIN,      /* "auto": the least of it is over, looked at again and again */
    PROXY_UPSTREAM_FIRST_BYTE, /* of what has no tokens */
    PROXY_UPSTREAM_WHOLE_ANSWER,
    PROXY_UPSTREAM_IDLE,
    PROXY_UPSTREAM_KEEPALIVE,
    PROXY_UNPACK, /* an answer is decoded by parts: until the next one */
    PROXY_STREAM_HOLD,
    PROXY_RETRY_FIRST, /* PROXY_RETRY_WAITS of them: before another attempt */
    PROXY_RETRY_LAST = PROXY_RETRY_FIRST + 3,
    PROXY_REQUEST, /* in all */
    PROXY_QUEUE,
    PROXY_QUEUE_ALONE, /* of what waits because of one that may be poison */
    PROXY_QUEUE_APART,
    PROXY_LISTS,         /* a request for a model that nobody is known to serve */
    PROXY_FETCH,         /* probes of replicas */
    PROXY_FETCH_SGLANG,  /* whose health check costs a token */
    PROXY_FETCH_CONNECT, /* to one that is down */
    PROXY_FETCH_PATIENT, /* deeds of engines (node/proxy/own/control.h) */
    PROXY_FETCH_FAILED,  /* at once, but not from within the call */
    PROXY_LIMITS,
};

struct proxy {
    struct proxy_config config;
    uint64_t now_ms; /* of the present event */
    uint64_t due_ms; /* no time limit ends sooner */
    uint64_t started_ms;
    uint64_t ticked_ms;
    uint64_t resumed_ms; /* after the last pause; 0: there was none */
    uint64_t watched_ms; /* node/proxy/guard/watch.h */
    bool paused;         /* before the last tick the loop stood still */
    bool draining;       /* not ready; answers close their connections */
    bool closed;         /* nothing new is accepted on the client port */
    struct segment_pool segments;
    struct proxy_stats stats;
    struct proxy_timing timing;
    struct http_limits limits; /* of clients' heads */
    struct deadline_queue limit[PROXY_LIMITS];

    struct proxy_clients clients;
    struct proxy_engines engines;
    struct proxy_exchanges exchanges;
    struct admission admission;
    unsigned model_asks;         /* clients for which replicas are asked for their models, */
    unsigned control_asks;       /* and those whose request goes to all of them */
    struct node_aliases aliases; /* by the settings that are in force */
    struct model_merge *models;  /* of all replicas; NULL: not made yet */
    uint64_t models_version;     /* of the lists that it was made from */

    char via[32];                        /* this router in Via: HTTP_VIA_ROUTER and random digits */
    char identity[PROXY_IDENTITY_BYTES]; /* the same, and its name in the cluster: for probes */

    /* Scratch for the duration of one event. */
    struct http_head head;
    struct http_head local_head; /* of a request that the router answers itself */
    struct buf scratch;
    char joined[PROXY_JOIN_BYTES];
};

/* proxy_limits.c: reads them from the settings; ends what is due, and finds what is due next. */
void proxy_limits_begin(struct proxy *p);
void proxy_limits_run(struct proxy *p);

/* For each deadline that is armed: else the tick comes too late for it. */
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
