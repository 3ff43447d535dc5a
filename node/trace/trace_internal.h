/* Shared by the files of node/trace. */
#ifndef NODE_TRACE_TRACE_INTERNAL_H
#define NODE_TRACE_TRACE_INTERNAL_H

#include "base/prng.h"
#include "node/trace/trace.h"

enum trace_dropped {
    TRACE_DROPPED_FULL,    /* the queue, or the room for a request's spans, is full */
    TRACE_DROPPED_REFUSED, /* the collector refused the spans */
    TRACE_DROPPED_TRIES,   /* the collector could not be reached */
    TRACE_DROPPED_MEMORY,
    TRACE_DROPS
};

/* Spans for a single POST. The text lacks the last brackets until the batch is sealed. */
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
    uint64_t wall_ahead_ms; /* wall-clock time minus the router's clock */
    struct buf front;       /* beginning of each batch: the resource */
    struct trace_batch *first, *last;
    struct buf spare; /* memory of a finished batch, for the next; empty */
    size_t bytes;     /* bytes of all batches */
    bool under_way, failing, flushing;
    uint64_t again_ms; /* the first batch is not sent before this time */
    uint64_t exported, failures, dropped[TRACE_DROPS];
    struct trace_request *free;
    unsigned free_count;
};

struct trace_request {
    struct trace *owner;
    struct trace_request *next_free;
    struct http_traceparent self; /* the request's own span */
    char parent[HTTP_SPAN_ID_HEX];
    bool has_parent;
    bool open; /* an attempt is under way */
    char attempt[HTTP_SPAN_ID_HEX];
    uint64_t began_ms, attempt_began_ms;
    uint64_t wall_ahead_ms; /* wall_ahead_ms at the request's start, to keep the times of the
                             * request in order */
    unsigned spans, dropped_spans, dropped_events;
    struct buf attempts, events; /* as JSON, separated by commas */
};

/* Takes a free record, or makes a new record. */
struct trace_request *trace_request_new(struct trace *t);
void trace_span_id(struct trace *t, char out[HTTP_SPAN_ID_HEX]);
/* Adds the finished spans of a request to the last batch, or to a new batch. Without room or
 * memory, counts the spans as dropped. */
void trace_put(struct trace *t, struct slice spans, unsigned count, uint64_t now_ms);

#endif
