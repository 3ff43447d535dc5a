/* Counters of the data path, and gauges, which are updated at each change. All are exported as
 * metrics. */
#ifndef NODE_PROXY_STATS_H
#define NODE_PROXY_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/coding.h"
#include "node/admission/refusal.h"
#include "node/proxy/limit/verdict.h"
#include "node/route/result.h"

/* The reason why a connection or an answer ended. */
enum client_end {
    CLIENT_END_DONE,      /* complete: nothing was cut off */
    CLIENT_END_GONE,      /* the client closed or reset the connection */
    CLIENT_END_SLOW,      /* the client did not send or read in time */
    CLIENT_END_ENGINE,    /* the replica broke off the answer */
    CLIENT_END_NO_MEMORY, /* the router had no memory for output not read by the client */
    CLIENT_END_REFUSED,   /* the router refused the rest of the request during the answer */
    CLIENT_END_STOPPED,   /* the router shuts down */
    CLIENT_END_LATE,      /* request-timeout passed */
    CLIENT_ENDS,
};
/* The name for logs and metrics: "whole", "client_gone", ... */
const char *client_end_name(enum client_end why);

struct proxy_stats {
    uint64_t connections_accepted;
    uint64_t connections_open;
    uint64_t clients_open;               /* connections open on the client port */
    uint64_t connections_refused;        /* beyond connections-max, or the admin port's limit */
    uint64_t client_connections_refused; /* beyond connections-per-client-max */
    uint64_t connections_evicted;        /* connections closed to admit new ones (guard/door.h) */
    uint64_t proxy_headers_refused;      /* connections without the required PROXY header */
    uint64_t accept_failures;            /* failed calls of accept(), counted by the network */
    uint64_t accept_pauses;              /* times the network paused a port's accepting */
    uint64_t requests;
    uint64_t requests_open;
    uint64_t requests_refused[REFUSALS];
    uint64_t responses[6];          /* by class: 1xx..5xx, index 0 unused */
    uint64_t results[NODE_RESULTS]; /* number of ended requests, by result */
    uint64_t unauthorized;          /* requests that ended with 401: no key, or a wrong key */
    uint64_t hidden;                /* requests with NODE_RESULT_OK after a failed attempt */
    uint64_t client_gone;
    uint64_t answers_cut[CLIENT_ENDS]; /* answers begun and not finished */
    uint64_t client_timeouts;          /* clients too slow with a head, a body or reading */
    uint64_t retries[RETRY_REASONS];
    uint64_t retry_budget_exhausted;
    uint64_t suspects; /* attempts without a token at a replica that died */
    uint64_t upstream_connects;
    uint64_t upstream_connect_failures;
    uint64_t upstream_timeouts;
    uint64_t upstream_broken; /* connections broken during an answer */
    uint64_t upstream_reused;
    uint64_t upstream_stale;   /* reused connections already closed by the engine */
    uint64_t upstream_full;    /* times upstream-connections-max blocked a replica */
    uint64_t probes_too_large; /* answers to probes that were too large to read whole */
    uint64_t probes_vetoed;    /* health checks timed out but ignored: other bytes came */
    /* Requests to single replicas, made from control requests to all replicas. */
    uint64_t controls;
    uint64_t cache_resets;           /* times a replica confirmed an empty cache */
    uint64_t watchdog_moved;         /* requests moved from stalled, sleeping, or down replicas */
    uint64_t bytes_in;               /* request bodies */
    uint64_t bytes_out;              /* answers */
    uint64_t decoded[HTTP_CODINGS];  /* decoded request bodies, by coding */
    uint64_t unpacked[HTTP_CODINGS]; /* decoded answers, by coding */
    uint64_t unpack_waits;           /* times the rest of an answer waited for the next tick */
    uint64_t not_understood;         /* bodies with an unreadable prompt: routed by load */
    uint64_t ids_asked;              /* prompts for which an engine was asked for token ids */
    uint64_t ids_asked_bytes;        /* bytes of the prompts counted in ids_asked */
    uint64_t backpressure;           /* times reading from an engine paused for a slow client */
};

#endif
