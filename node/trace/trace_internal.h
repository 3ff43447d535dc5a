/* Shared by the files of this folder. */
#ifndef NODE_TRACE_TRACE_INTERNAL_H
#define NODE_TRACE_TRACE_INTERNAL_H

#include "base/prng.h"
#include "node/trace/trace.h"

enum trace_dropped {
    TRACE_DROPPED_FULL,    /* of the queue, or of one request's spans */
    TRACE_DROPPED_REFUSED, /* by the collector */
    TRACE_DROPPED_TRIES,   /* it could not be reached */
    TRACE_DROPPED_MEMORY,
    TRACE_DROPS
};

/* POSTed as one. The text lacks its last brackets until the batch is sealed. */
struct trace_batch {
    struct trace_batch *next;
    struct buf text;
    unsigned spans;
    unsigned tries;
    bool sealed;
    uint64_t first_ms;
};

struct trace {
    struct prng random;
    uint64_t wall_ahead_ms; /* of the router's clock */
    struct buf front;       /* of each batch: the resource */
    struct trace_batch *first, *last;
    struct buf spare; /* empty; of a batch that is done */
    size_t bytes;     /* of all of them */
    bool under_way, failing, flushing;
    uint64_t again_ms; /* the first is not tried before */
    uint64_t exported, failures, dropped[TRACE_DROPS];
    struct trace_request *free;
    unsigned free_count;
};

struct trace_request {
    struct trace *owner;
    struct trace_request *next_free;
    struct http_traceparent self; /* its own span */
    char parent[HTTP_SPAN_ID_HEX];
    bool has_parent;
    bool open; /* an attempt is under way */
    char attempt[HTTP_SPAN_ID_HEX];
    uint64_t began_ms, attempt_began_ms;
    uint64_t wall_ahead_ms; /* as it was at the start: so times are in order */
    unsigned spans, dropped_spans, dropped_events;
    struct buf attempts, events; /* as JSON, separated by commas */
};

/* Makes one of the free ones, or a new one. */
struct trace_request *trace_request_new(struct trace *t);
void trace_span_id(struct trace *t, char out[HTTP_SPAN_ID_HEX]);
/* Finished spans of one request. */
void trace_put(struct trace *t, struct slice spans, unsigned count, uint64_t now_ms);

#endif
