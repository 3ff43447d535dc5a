/* OpenTelemetry traces: a span of kind SERVER for each sampled request, and a span of kind CLIENT
 * for each attempt at a replica, as OTLP/JSON in batches for a collector.
 *
 * Pure: requests write their spans here; the shell (node/io/trace_export.h) asks for the next batch
 * and reports the outcome. Nothing here waits. Spans not taken by the collector in time are dropped
 * and counted.
 *
 *     trace_begin()  trace_event()...  trace_attempt_sent()  trace_attempt_ended()...  trace_end()
 *
 * Invariants:
 *   1. The waiting spans have at most TRACE_QUEUE_BYTES_MAX bytes.
 *   2. Each finished span is counted once: as exported, or as dropped for a reason.
 *   3. At most one batch is under way, from trace_batch() to trace_batch_ended().
 */
#ifndef NODE_TRACE_TRACE_H
#define NODE_TRACE_TRACE_H

#include "base/err.h"
#include "base/prometheus.h"
#include "http/traceparent.h"
#include "node/trace/limits.h"

struct trace;
struct trace_request; /* the record of a sampled request */

struct trace_config {
    const char *router; /* the router's name in the cluster, copied; NULL: no peers */
    uint64_t seed[2];   /* random seed of ids */
};

/* Creates the record of a router's traces. ERR_NOMEM. */
MUST_USE int trace_create(struct trace **out, const struct trace_config *config);
void trace_destroy(struct trace *t);
/* Sets the wall-clock time at `now_ms`. Called every second. */
void trace_wall(struct trace *t, uint64_t wall_ms, uint64_t now_ms);
void trace_check(const struct trace *t);

/* --- a request ------------------------------------------------------------------------------- */

/* True if a new trace is sampled: with the probability `share` (0 to 1). */
bool trace_sample(struct trace *t, double share);
/* Makes random ids for the traceparent of a request that is not sampled. The flag `sampled` is
 * off. */
void trace_unsampled(struct trace *t, struct http_traceparent *out);
/* Begins a span: a child of `parent`, or of a new trace (NULL). NULL: there is no memory. */
struct trace_request *trace_begin(struct trace *t, const struct http_traceparent *parent,
                                  uint64_t now_ms);
/* The traceparent for the head to the engine. trace_attempt_sent() then writes the attempt's span
 * into the head. */
void trace_traceparent(const struct trace_request *r, struct http_traceparent *out);

/* Adds an event to the request's own span; `name` is a plain word. */
void trace_event(struct trace_request *r, struct slice name, uint64_t now_ms);

/* The request is given to a connection, which sends `head`; NULL: the head has no traceparent. A
 * second call before the attempt has ended belongs to the same attempt. */
void trace_attempt_sent(struct trace_request *r, const struct buf *head, uint64_t now_ms);

struct trace_attempt {
    const char *method;
    struct slice replica;
    struct slice server; /* HOST[:PORT] of the replica */
    const char *reason;  /* why the replica was chosen */
    uint64_t cached_predicted;
    int64_t cached_told;     /* -1: unknown */
    unsigned number;         /* number of the attempt, from 1 on */
    unsigned status;         /* 0: no answer */
    const char *error;       /* the error in a word; NULL: none, or only the status */
    uint64_t first_token_ms; /* 0: none */
};
/* Ends the attempt under way, and writes the attempt's span. Does nothing if no attempt was
 * sent. */
void trace_attempt_ended(struct trace_request *r, const struct trace_attempt *a, uint64_t now_ms);

struct trace_usage {
    int64_t prompt_tokens, cached_tokens, completion_tokens; /* as reported by the engine; -1:
                                                              * unknown */
};

struct trace_end {
    const char *method;
    struct slice path, route;      /* route is empty if the path is not known */
    struct slice operation, model; /* operation and model by the conventions for GenAI; empty:
                                    * none */
    struct slice client, key, id;  /* the client's address, the name of the client's key,
                                    * X-Request-Id */
    struct slice replica;          /* replica of the last attempt; empty: there was no attempt */
    struct trace_usage told;
    unsigned attempts;
    bool stream;
    unsigned status;         /* status sent to the client; 0: none */
    const char *reason;      /* why the request was refused or cut; empty: neither */
    const char *how;         /* how the request ended: "done", "client_gone", ... */
    bool failed;             /* failed because of the router or an engine, not of the client */
    uint64_t first_token_ms; /* 0: none */
};
/* Ends the request's span, queues all spans of the request for export, and frees `r`. */
void trace_end(struct trace_request *r, const struct trace_end *e, uint64_t now_ms);

/* Frees `r` without writing the request's spans. */
void trace_drop(struct trace_request *r);

/* --- the export ------------------------------------------------------------------------------ */

/* The outcome of a batch. */
struct trace_answer {
    unsigned status;        /* HTTP status; 0: no answer */
    uint64_t retry_after_s; /* 0: not in the answer */
};

enum trace_news { TRACE_SAME, TRACE_FAILS, TRACE_WORKS };

/* The next batch to POST, whole; empty: there is none now. The text is valid until
 * trace_batch_ended(). */
struct slice trace_batch(struct trace *t, uint64_t now_ms);
/* After a temporary failure (no answer, 429, 502, 503, 504) the batch is tried again; any other
 * failure drops the batch. Returns whether the export began to fail or works again. */
enum trace_news trace_batch_ended(struct trace *t, const struct trace_answer *answer,
                                  uint64_t now_ms);
/* The router stops: batches are sent without delay, and each only once. */
void trace_flush(struct trace *t);
/* True if no span waits. */
bool trace_is_empty(const struct trace *t);
/* Writes the metrics of traces. `t` NULL: traces are off. */
void trace_metrics(const struct trace *t, struct prometheus *p);

#endif
