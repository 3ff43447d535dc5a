/* What the files of the proxy share: its state, and scratch memory for one event. */
#ifndef NODE_PROXY_PROXY_INTERNAL_H
#define NODE_PROXY_PROXY_INTERNAL_H

#include "base/body.h"
#include "base/deadline.h"
#include "base/ip.h"
#include "base/segment.h"
#include "http/head.h"
#include "node/proxy/budget.h"
#include "node/proxy/peers.h"
#include "node/proxy/proxy.h"
#include "node/proxy/queue.h"
#include "node/proxy/timing.h"

enum {
    PROXY_OUT_BYTES_HIGH = 256 * 1024,       /* queued to a slow client: stop reading the engine */
    PROXY_PAUSE_MS = 1000,                   /* between two ticks: the process stood still */
    PROXY_ENGINE_HEAD_BYTES_MAX = 64 * 1024, /* of an answer; then it is malformed */
    PROXY_FRESH_MS = 500,      /* a drain waits so long for the first request of a connection */
    PROXY_PARTING_MS = 2000,   /* and so long for the next one of a connection that was used */
    PROXY_QUICK_MS = 500,      /* connecting to a replica that is down */
    PROXY_LOOP_LOG_MS = 60000, /* between two lines on loops */
    PROXY_PIECES_MAX = 59,     /* of an answer, gathered in one read */
    PROXY_RETRY_WAITS = 4,     /* 20 to 200 ms, with the tick */
    PROXY_JOIN_BYTES = 16384,  /* up to here copying is cheaper than a list of pieces */
    PROXY_LINGER_MS = 30000,   /* after an error answer: how long a client may still send */
    PROXY_LINGER_BYTES_MAX = 256 * 1024 * 1024, /* and how much */
    PROXY_LINGER_SHORT_MS = 2000, /* the same where connections are scarce, or the port is closed */
    PROXY_EVICT_IDLE_MS = 100,    /* a connection that is idle for less is about to be used */
    PROXY_SURPLUS_SHARE = 16,  /* beyond connections-max a 16th more get an answer that says so */
    PROXY_SLOW_MS = 10000,     /* an upload that needs longer, at its pace, for what it holds... */
    PROXY_SLOW_FULL_MS = 1000, /* and the same when memory is all but full: docs/http.md, Bodies */
    PROXY_SLOW_LOOK_MS = 100,  /* none was found: not before then is it looked for one again */
    PROXY_SLOW_CUT_MAX = 16,   /* at once */
    PROXY_FIRST_TOKEN_MIN_MS = 30000,  /* of upstream-first-token-timeout "auto" */
    PROXY_FIRST_TOKEN_MAX_MS = 300000, /* or more, where more is predicted (patience.c) */
    SUSPECT_STUCK_KEYS = 8,     /* kinds of requests that are looked at once, of those that wait */
    PROXY_TOKEN_LOOK_MS = 1000, /* between two looks whether the first token may still come */
};

/* Time limits; each is one queue. */
enum proxy_limit {
    PROXY_CLIENT_HEAD,
    PROXY_CLIENT_IDLE, /* on the client port: in order of how long they are idle */
    PROXY_ADMIN_IDLE,
    PROXY_CLIENT_BODY,
    PROXY_CLIENT_BODY_TOTAL, /* the list of all uploads too (node/proxy/upload.h) */
    PROXY_CLIENT_WRITE,
    PROXY_CLIENT_LINGER,  /* in state LINGER, and nothing else */
    PROXY_CLIENT_SHORT,   /* it cannot be written to and its end is not heard of, or it may linger
                           * for a moment only */
    PROXY_CLIENT_FRESH,   /* the port is closed: the first request of a new connection */
    PROXY_CLIENT_PARTING, /* the same: the next request of one that was used */
    PROXY_UPSTREAM_CONNECT,
    PROXY_UPSTREAM_FIRST_TOKEN,
    PROXY_UPSTREAM_FIRST_TOKEN_AGAIN, /* the least of it is over: looked at again and again */
    PROXY_UPSTREAM_FIRST_BYTE,        /* of what has no tokens */
    PROXY_UPSTREAM_WHOLE_ANSWER,
    PROXY_UPSTREAM_IDLE,
    PROXY_UPSTREAM_KEEPALIVE,
    PROXY_STREAM_HOLD,
    PROXY_RETRY_FIRST, /* PROXY_RETRY_WAITS of them: before another attempt */
    PROXY_RETRY_LAST = PROXY_RETRY_FIRST + 3,
    PROXY_REQUEST, /* in all */
    PROXY_QUEUE,
    PROXY_FETCH,         /* probes of replicas */
    PROXY_FETCH_SGLANG,  /* whose health check costs a token */
    PROXY_FETCH_CONNECT, /* to one that is down */
    PROXY_FETCH_FAILED,  /* at once, but not from within the call */
    PROXY_LIMITS,
};

/* Where a connection stands at the door (node/proxy/door.h). */
enum client_standing {
    CLIENT_OUTSIDE, /* it is closed, or on the admin port */
    CLIENT_IN,
    CLIENT_SURPLUS, /* refused, and hears so */
    CLIENT_STANDINGS,
};

struct door {
    unsigned standing[CLIENT_STANDINGS]; /* how many; OUTSIDE means nothing */
    unsigned surplus_max;
    struct peers peers;
    struct ip_net *balancers; /* owned: whose connections begin with a PROXY header */
    unsigned balancer_count;  /* 0: all of them do, if any */
    uint64_t logged_ms;       /* when one was last refused for its PROXY header; 0: never */
    unsigned unlogged;        /* since then */
};

/* What goes to one client within one event, written with one call. The pieces are borrowed: they
 * are flushed before the event ends, and one event belongs to one client. */
struct proxy_gathered {
    const struct client *owner; /* NULL: nothing is gathered */
    bool has_head;              /* in proxy->scratch */
    unsigned count;
    size_t bytes;
    struct slice pieces[PROXY_PIECES_MAX + 1]; /* and one that was held before */
};

/* Requests that wait because of one that may be poison (node/proxy/suspect_wait.h). */
struct suspect_queue {
    struct exchange *first, *last;
    unsigned waiting;
    unsigned waiting_alone;   /* of them, for a replica to itself */
    unsigned kept;            /* the replica that is kept for those, + 1; 0: none */
    uint64_t pause_until_ms;  /* until then none is */
    unsigned placed;          /* have one to themselves, and no token yet */
    uint64_t placed_until_ms; /* others wait until then */
    bool moved;               /* something ended since they were looked at */
    unsigned look;            /* so many are still to be looked at, */
    unsigned stuck_count;     /* but those for which there is none now */
    uint64_t stuck[SUSPECT_STUCK_KEYS];
};

struct proxy {
    struct proxy_config config;
    uint64_t now_ms; /* of the present event */
    uint64_t started_ms;
    uint64_t ticked_ms;
    uint64_t resumed_ms; /* after the last pause; 0: there was none */
    uint64_t watched_ms; /* node/proxy/watch.h */
    bool paused;         /* before the last tick the loop stood still */
    bool draining;       /* not ready; answers close their connections */
    bool closed;         /* nothing new is accepted on the client port */
    struct segment_pool segments;
    struct proxy_stats stats;
    struct proxy_timing timing;
    struct http_limits limits;        /* of clients' heads */
    struct http_limits engine_limits; /* of engines' */
    struct deadline_queue limit[PROXY_LIMITS];

    struct door door;
    struct suspect_queue suspects;
    struct client *clients;         /* all open connections */
    uint64_t slow_looked_ms;        /* when last no slow upload was found, memory being short */
    struct client *waiting;         /* whose next request is here already, last first */
    struct budget budget;           /* of retries */
    uint64_t back_offs;             /* so far */
    struct pool *pools;             /* by replica; NODE_REPLICAS_MAX, touched as they come */
    unsigned pool_count;            /* behind the last one that was ever in use */
    bool pools_missing;             /* there was no memory for one */
    struct exchange *exchange_free; /* for the next requests */
    unsigned exchange_free_count;
    struct queue queue; /* requests that wait for room at a replica */
    bool queue_due;     /* there may be some now */
    struct prober *prober;
    unsigned model_asks;        /* clients for which replicas are asked for their models */
    struct model_merge *models; /* of all replicas; NULL: not made yet */
    uint64_t models_version;    /* of the lists that it was made from */
    /* What proxy.c has for the streams to replicas. */
    const struct net_events *upstream_events;
    void (*upstream_expired)(struct deadline *d);
    void (*request_expired)(struct deadline *d);

    char via[32];                        /* this router in Via: HTTP_VIA_ROUTER and random digits */
    char identity[PROXY_IDENTITY_BYTES]; /* the same, and its name in the cluster: for probes */
    uint64_t loop_logged_ms;             /* 0: never */
    unsigned loops_unlogged;             /* since then */
    uint64_t request_id_high;            /* random; ids are high + counter */
    uint64_t request_id_low;

    /* Scratch for the duration of one event. */
    struct http_head head;
    struct http_head local_head; /* of a request that the router answers itself */
    struct buf scratch;
    struct proxy_gathered gathered;
    char joined[PROXY_JOIN_BYTES];
};

static inline void proxy_arm(struct proxy *p, enum proxy_limit limit, struct deadline *d)
{
    deadline_set(&p->limit[limit], d, p->now_ms);
}

#endif
