/* Counters of the data path; gauges are counted as they change. All are exported as metrics. */
#ifndef NODE_PROXY_STATS_H
#define NODE_PROXY_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/coding.h"
#include "node/proxy/limit/verdict.h"
#include "node/route/result.h"

/* Why the router answered an error of its own. First the mistakes of clients, and their probes for
 * what a server can do: no other router, and no engine, would have served these. */
enum proxy_refusal {
    PROXY_REFUSED_NONE,
    PROXY_REFUSED_MALFORMED,    /* 400, 414, 431, 501, 505 of the parser */
    PROXY_REFUSED_CODING,       /* 415: a body in a coding that is not decoded here */
    PROXY_REFUSED_PATH,         /* 404, 405 */
    PROXY_REFUSED_UPGRADE,      /* 426: a handshake of WebSocket */
    PROXY_REFUSED_ORIGIN,       /* 403: a preflight from an origin that cors-allow-origin lacks */
    PROXY_REFUSED_MODEL,        /* 404 of an unknown model */
    PROXY_REFUSED_API_KEY,      /* 401, 403 of the engines, to a client that asked for the models */
    PROXY_REFUSED_CLIENT_KEY,   /* 401: no key of a client (client-keys-file), */
    PROXY_REFUSED_KEY_MODEL,    /* 403, 404: not for that model, */
    PROXY_REFUSED_KEY_RESPONSE, /* 403, 404: not that stored response */
    /* From here on refusals of the router's: its limits, its replicas. */
    PROXY_REFUSED_BODY_LIMIT,   /* 413 */
    PROXY_REFUSED_KEY_LIMIT,    /* 429, 403: a key of a client may not use so much */
    PROXY_REFUSED_ENGINE_FIELD, /* 400: a field for engines among themselves */
    PROXY_REFUSED_CONTROL,      /* 403: a path that controls an engine, for that client */
    PROXY_REFUSED_NO_REPLICA,   /* 503 */
    PROXY_REFUSED_MEMORY,       /* 503, buffered_bytes_max */
    PROXY_REFUSED_TIMEOUT,      /* 408 */
    PROXY_REFUSED_BAD_GATEWAY,  /* 502, 504: no replica gave an answer */
    PROXY_REFUSED_RETRY_BUDGET, /* 502, 504: no more retries now */
    PROXY_REFUSED_BY_ENGINE,    /* an error that an engine streamed before any token, or
                                   that one of all gave to a control path */
    PROXY_REFUSED_POISON,       /* 502: engines died after it */
    PROXY_REFUSED_SUSPECT,      /* 502: one did, and it is not sent to another */
    PROXY_REFUSED_LOOP,         /* 508: it came through this router before, or through too many */
    PROXY_REFUSED_INTERNAL,     /* 500 */
    PROXY_REFUSED_CONNECTIONS,  /* 503, connections-max; 429, connections-per-client-max: */
    PROXY_REFUSED_CLIENT_CONNECTIONS, /* such a connection counts as no request */
    PROXY_REFUSED_SLOW_UPLOAD,        /* 408 by its rate or time, 503 where memory is short */
    PROXY_REFUSED_QUEUE_FULL,         /* 429: no replica has room, nor has the queue */
    PROXY_REFUSED_QUEUE_TIMEOUT,      /* 504: it waited there for too long */
    PROXY_REFUSED_STOPPING,           /* 503: it waited there when the router stopped */
    /* 504, by the limit of time that passed; each is a setting. */
    PROXY_REFUSED_CONNECT,
    PROXY_REFUSED_FIRST_TOKEN,
    PROXY_REFUSED_IDLE,
    PROXY_REFUSED_WHOLE_ANSWER,
    PROXY_REFUSED_REQUEST_TIMEOUT,
    PROXY_REFUSALS,
    PROXY_REFUSALS_OF_CLIENTS = PROXY_REFUSED_BODY_LIMIT, /* those below */
};
static inline bool proxy_refusal_is_clients(enum proxy_refusal refusal)
{
    return refusal != PROXY_REFUSED_NONE && refusal < PROXY_REFUSALS_OF_CLIENTS;
}
/* In a word, for metrics and for clients (x-grapevine-reason): "no_replica", ... */
const char *proxy_refusal_name(enum proxy_refusal refusal);

/* How a connection, or an answer, ended. */
enum client_end {
    CLIENT_END_DONE,      /* nothing is cut */
    CLIENT_END_GONE,      /* the client closed or reset the connection */
    CLIENT_END_SLOW,      /* it did not send or read in time */
    CLIENT_END_ENGINE,    /* the replica broke off its answer */
    CLIENT_END_NO_MEMORY, /* ours, for what it did not read yet */
    CLIENT_END_REFUSED,   /* the rest of its request was refused while the answer went out */
    CLIENT_END_STOPPED,   /* the daemon ends */
    CLIENT_END_LATE,      /* request-timeout */
    CLIENT_ENDS,
};
/* In a word, for logs and metrics: "whole", "client_gone", ... */
const char *client_end_name(enum client_end why);

struct proxy_stats {
    uint64_t connections_accepted;
    uint64_t connections_open;
    uint64_t clients_open;               /* the part of them that is on the client port */
    uint64_t connections_refused;        /* beyond connections_max, or that of the admin port */
    uint64_t client_connections_refused; /* beyond connections_per_client_max */
    uint64_t connections_evicted;        /* for newcomers there: guard/door.h */
    uint64_t proxy_headers_refused;      /* connections without the PROXY header that must be */
    uint64_t accept_failures;            /* counted by the network, as the next one */
    uint64_t accept_pauses;              /* times that a port stopped to accept for a while */
    uint64_t requests;
    uint64_t requests_open;
    uint64_t requests_refused[PROXY_REFUSALS];
    uint64_t responses[6];          /* by class: 1xx..5xx, index 0 unused */
    uint64_t results[NODE_RESULTS]; /* of requests that ended */
    uint64_t hidden;                /* of those that are NODE_RESULT_OK, after a failed attempt */
    uint64_t client_gone;
    uint64_t answers_cut[CLIENT_ENDS]; /* begun and not finished */
    uint64_t client_timeouts;          /* slow heads, bodies, readers */
    uint64_t retries[RETRY_REASONS];
    uint64_t retry_budget_exhausted;
    uint64_t suspects; /* attempts without a token at a replica that died */
    uint64_t upstream_connects;
    uint64_t upstream_connect_failures;
    uint64_t upstream_timeouts;
    uint64_t upstream_broken; /* connections that broke in the middle of an answer */
    uint64_t upstream_reused;
    uint64_t upstream_stale;   /* of those: closed by the engine, sent again on a fresh one */
    uint64_t upstream_full;    /* a replica not used because of upstream-connections-max */
    uint64_t probes_too_large; /* answers to probes that were not or not wholly used */
    uint64_t probes_vetoed;    /* health checks without an answer in time, while other bytes came */
    uint64_t controls;         /* requests that steer an engine, sent to replicas of several */
    uint64_t cache_resets;   /* replicas whose cache was forgotten, as they said that it is empty */
    uint64_t watchdog_moved; /* requests moved away from replicas that stand still, or sleep */
    uint64_t bytes_in;       /* request bodies */
    uint64_t bytes_out;      /* answers */
    uint64_t decoded[HTTP_CODINGS];  /* request bodies, by coding, */
    uint64_t unpacked[HTTP_CODINGS]; /* and answers */
    uint64_t unpack_waits;           /* times the rest of one waited for the next event */
    uint64_t not_understood; /* prompt bodies that the skimmer could not read: routed by load */
    uint64_t backpressure;   /* times an engine was held back for a slow client */
};

#endif
