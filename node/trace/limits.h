/* The fixed limits of traces. docs/limits.md says what happens at each. */
#ifndef NODE_TRACE_LIMITS_H
#define NODE_TRACE_LIMITS_H

enum {
    TRACE_BATCH_SPANS = 512,            /* a batch of this number of spans is sent at once, as by
                                         * OpenTelemetry's SDKs */
    TRACE_BATCH_MS = 1000,              /* a batch with fewer spans is sent after this time */
    TRACE_QUEUE_BYTES_MAX = 16 << 20,   /* bytes of spans waiting to be sent; more are dropped */
    TRACE_REQUEST_BYTES_MAX = 16 << 10, /* bytes of a request's attempts, and of the events; more
                                         * are dropped */
    TRACE_TRIES_MAX = 5,                /* tries to send a batch before the batch is dropped */
    TRACE_BACK_OFF_MS = 1000,           /* delay after the first failure; doubles with each further
                                         * failure */
    TRACE_BACK_OFF_MAX_MS = 30000,      /* longest delay, even if a Retry-After asks for more */
    TRACE_POST_MS = 10000,              /* limit of a POST with the answer, as in OTLP's default */
    TRACE_ANSWER_BYTES_MAX = 64 << 10,  /* bytes of a collector's answer; a longer answer is a
                                         * failure */
    TRACE_FLUSH_MS = 2000,              /* time to send the waiting spans when the router stops */
};

#endif
