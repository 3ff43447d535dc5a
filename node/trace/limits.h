/* The limits of traces that cannot be configured. What happens at each: docs/limits.md. */
#ifndef NODE_TRACE_LIMITS_H
#define NODE_TRACE_LIMITS_H

enum {
    TRACE_BATCH_SPANS = 512,            /* a batch with this number of spans is sent at once, as
                              * OpenTelemetry's SDKs do */
    TRACE_BATCH_MS = 1000,              /* a batch with fewer spans is sent after this time */
    TRACE_QUEUE_BYTES_MAX = 16 << 20,   /* bytes of spans that wait to be sent; more are dropped */
    TRACE_REQUEST_BYTES_MAX = 16 << 10, /* bytes of one request's attempts, and of its events; more
                                         * are dropped */
    TRACE_TRIES_MAX = 5,                /* tries to send a batch; then the batch is dropped */
    TRACE_BACK_OFF_MS = 1000,           /* delay after the first failure; doubles with each further
                                         * one */
    TRACE_BACK_OFF_MAX_MS = 30000,      /* longest delay, also if a Retry-After asks for more */
    TRACE_POST_MS = 10000,              /* limit of a POST and its answer, as OTLP's default */
    TRACE_ANSWER_BYTES_MAX = 64 << 10,  /* bytes of a collector's answer; a longer one is a
                                         * failure */
    TRACE_FLUSH_MS = 2000,              /* time to send the waiting spans when the router stops */
};

#endif
