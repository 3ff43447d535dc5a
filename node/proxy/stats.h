/* Counters of the data path; gauges are counted as they change. All are exported as metrics. */
#ifndef NODE_PROXY_STATS_H
#define NODE_PROXY_STATS_H

#include <stdbool.h>
#include <stdint.h>

#include "http/coding.h"
#include "node/admission/refusal.h"
#include "node/proxy/limit/verdict.h"
#include "node/route/result.h"

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
    uint64_t requests_refused[REFUSALS];
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
    uint64_t not_understood;  /* prompt bodies that the skimmer could not read: routed by load */
    uint64_t ids_asked;       /* prompts whose tokens an engine was asked for, */
    uint64_t ids_asked_bytes; /* and their bytes */
    uint64_t backpressure;    /* times an engine was held back for a slow client */
};

#endif
