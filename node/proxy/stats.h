/* Counters of the data path, and gauges, which are counted as they change. All are exported as
 * metrics. */
#ifndef NODE_PROXY_STATS_H
#define NODE_PROXY_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/coding.h"
#include "node/admission/refusal.h"
#include "node/proxy/limit/verdict.h"
#include "node/route/result.h"

/* The end of a connection, or of an answer. */
enum client_end {
    CLIENT_END_DONE,      /* nothing is cut */
    CLIENT_END_GONE,      /* the client closed or reset the connection */
    CLIENT_END_SLOW,      /* the client did not send or read in time */
    CLIENT_END_ENGINE,    /* the replica broke off the answer */
    CLIENT_END_NO_MEMORY, /* of the router, for an unread answer */
    CLIENT_END_REFUSED,   /* the rest of the request was refused during the answer */
    CLIENT_END_STOPPED,   /* the daemon ends */
    CLIENT_END_LATE,      /* request-timeout */
    CLIENT_ENDS,
};
/* The name for logs and metrics: "whole", "client_gone", ... */
const char *client_end_name(enum client_end why);

struct proxy_stats {
    uint64_t connections_accepted;
    uint64_t connections_open;
    uint64_t clients_open;               /* the part on the client port */
    uint64_t connections_refused;        /* beyond connections-max, or the admin port's limit */
    uint64_t client_connections_refused; /* beyond connections-per-client-max */
    uint64_t connections_evicted;        /* closed for newcomers there: guard/door.h */
    uint64_t proxy_headers_refused;      /* connections without the required PROXY header */
    uint64_t accept_failures;            /* counted by the network, like the next */
    uint64_t accept_pauses;              /* times a port stopped accepting for a while */
    uint64_t requests;
    uint64_t requests_open;
    uint64_t requests_refused[REFUSALS];
    uint64_t responses[6];          /* by class: 1xx..5xx, index 0 unused */
    uint64_t results[NODE_RESULTS]; /* of ended requests */
    uint64_t unauthorized;          /* those that ended with 401: no key, or a wrong one */
    uint64_t hidden;                /* those with NODE_RESULT_OK after a failed attempt */
    uint64_t client_gone;
    uint64_t answers_cut[CLIENT_ENDS]; /* begun and unfinished */
    uint64_t client_timeouts;          /* slow heads, bodies, readers */
    uint64_t retries[RETRY_REASONS];
    uint64_t retry_budget_exhausted;
    uint64_t suspects; /* attempts without a token at a replica that died */
    uint64_t upstream_connects;
    uint64_t upstream_connect_failures;
    uint64_t upstream_timeouts;
    uint64_t upstream_broken; /* connections broken during an answer */
    uint64_t upstream_reused;
    uint64_t upstream_stale;   /* those closed by the engine; sent again on a fresh connection */
    uint64_t upstream_full;    /* times upstream-connections-max blocked a replica */
    uint64_t probes_too_large; /* answers to probes not fully used */
    uint64_t probes_vetoed;    /* late health checks not counted, because other bytes came */
    uint64_t controls;         /* control requests, each to one of several replicas */
    uint64_t cache_resets;     /* replicas that confirmed an empty cache */
    uint64_t watchdog_moved;   /* requests moved away from stalled or sleeping replicas */
    uint64_t bytes_in;         /* request bodies */
    uint64_t bytes_out;        /* answers */
    uint64_t decoded[HTTP_CODINGS];  /* request bodies, by coding, */
    uint64_t unpacked[HTTP_CODINGS]; /* and answers */
    uint64_t unpack_waits;           /* times the rest of an answer waited for the next event */
    uint64_t not_understood;         /* prompt bodies the skimmer could not read: routed by load */
    uint64_t ids_asked;              /* prompts with a request for tokens to an engine, */
    uint64_t ids_asked_bytes;        /* and their bytes */
    uint64_t backpressure;           /* times an engine was held back for a slow client */
};

#endif
