/* The limits of traces that cannot be configured. What happens at each: docs/limits.md. */
#ifndef NODE_TRACE_LIMITS_H
#define NODE_TRACE_LIMITS_H

enum {
    TRACE_BATCH_SPANS = 512, /* a batch with so many goes out at once, as OpenTelemetry's SDKs do */
    TRACE_BATCH_MS = 1000,   /* one with fewer waits so long for more */
    TRACE_QUEUE_BYTES_MAX = 16 << 20,   /* of spans that wait; more are dropped */
    TRACE_REQUEST_BYTES_MAX = 16 << 10, /* of one request's attempts, and of its events; more are
                                           dropped */
    TRACE_TRIES_MAX = 5,                /* of a batch; then it is dropped */
    TRACE_BACK_OFF_MS = 1000,           /* after the first failure; then twice as long each time */
    TRACE_BACK_OFF_MAX_MS = 30000,      /* also of what a Retry-After asks for */
    TRACE_POST_MS = 10000,              /* for a POST and its answer, as OTLP's default */
    TRACE_ANSWER_BYTES_MAX = 64 << 10,  /* of a collector's answer; a longer one is a failure */
    TRACE_FLUSH_MS = 2000,              /* for what waits when the router stops */
};

#endif
