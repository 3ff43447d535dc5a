/* OpenTelemetry traces: one span of kind SERVER for each sampled request, one of kind CLIENT for
 * each attempt at a replica, as OTLP/JSON in batches for a collector.
 *
 * Pure: requests write their spans here; the shell (node/io/trace_export.h) asks for the next batch
 * and says what became of it. Nothing here waits. What the collector does not take in time is
 * dropped and counted.
 *
 *     trace_begin()  trace_event()...  trace_attempt_sent()  trace_attempt_ended()...  trace_end()
 *
 * Invariants:
 *   1. The spans that wait have at most TRACE_QUEUE_BYTES_MAX bytes.
 *   2. Each finished span is counted once: as exported, or as dropped with its reason.
 *   3. One batch at most is under way: trace_batch() gives and trace_batch_ended() ends it.
 */
#ifndef NODE_TRACE_TRACE_H
#define NODE_TRACE_TRACE_H

#include "base/err.h"
#include "base/prometheus.h"
#include "http/traceparent.h"
#include "node/trace/limits.h"

struct trace;
struct trace_request; /* one sampled request's */

struct trace_config {
    const char *router; /* its name in the cluster, copied; NULL: it runs alone */
    uint64_t seed[2];   /* of ids: random */
};

/* ERR_NOMEM. */
MUST_USE int trace_create(struct trace **out, const struct trace_config *config);
void trace_destroy(struct trace *t);
/* The time of the wall, every second. */
void trace_wall(struct trace *t, uint64_t wall_ms, uint64_t now_ms);
void trace_check(const struct trace *t);

/* --- a request ------------------------------------------------------------------------------- */

/* True if a new trace is sampled: `share` (0 to 1) of them are. */
bool trace_sample(struct trace *t, double share);
/* Ids of a trace that is not recorded, for a traceparent that says so. */
void trace_unsampled(struct trace *t, struct http_traceparent *out);
/* Begins a span: a child of `parent`, or of a new trace (NULL). NULL: there is no memory. */
struct trace_request *trace_begin(struct trace *t, const struct http_traceparent *parent,
                                  uint64_t now_ms);
/* The request's head for its engine, before trace_attempt_sent() names a span. */
void trace_traceparent(const struct trace_request *r, struct http_traceparent *out);

/* An event of the request's own span, by a plain word. */
void trace_event(struct trace_request *r, struct slice name, uint64_t now_ms);

/* The request is given to a connection, on which `head` goes out; NULL: it names no trace. Called
 * again before the attempt has ended: the same attempt. */
void trace_attempt_sent(struct trace_request *r, const struct buf *head, uint64_t now_ms);

struct trace_attempt {
    const char *method;
    struct slice replica;
    struct slice server; /* its HOST[:PORT] */
    const char *reason;  /* of the choice */
    uint64_t cached_predicted;
    int64_t cached_told;     /* -1: unknown */
    unsigned number;         /* of the attempt, from 1 on */
    unsigned status;         /* 0: no answer */
    const char *error;       /* in a word; NULL: none, or the status says it */
    uint64_t first_token_ms; /* 0: there was none */
};
/* Nothing happens if none was sent. */
void trace_attempt_ended(struct trace_request *r, const struct trace_attempt *a, uint64_t now_ms);

struct trace_usage {
    int64_t prompt_tokens, cached_tokens, completion_tokens; /* as the engine told; -1: unknown */
};

struct trace_end {
    const char *method;
    struct slice path, route;      /* the latter is empty where the path is not known */
    struct slice operation, model; /* of GenAI; empty: none */
    struct slice client, key, id;  /* address, name of its key, X-Request-Id */
    struct slice replica;          /* of the last attempt; empty: there was none */
    struct trace_usage told;
    unsigned attempts;
    bool stream;
    unsigned status;         /* 0: none was sent */
    const char *reason;      /* why it was refused or cut; empty: neither */
    const char *how;         /* it ended: "done", "client_gone", ... */
    bool failed;             /* by the router or an engine, not by its client */
    uint64_t first_token_ms; /* 0: there was none */
};
/* Frees it. */
void trace_end(struct trace_request *r, const struct trace_end *e, uint64_t now_ms);

/* Frees the request without a record. */
void trace_drop(struct trace_request *r);

/* --- the export ------------------------------------------------------------------------------ */

/* The outcome of a batch. */
struct trace_answer {
    unsigned status;        /* of HTTP; 0: no answer */
    uint64_t retry_after_s; /* 0: none was asked for */
};

enum trace_news { TRACE_SAME, TRACE_FAILS, TRACE_WORKS };

/* The next batch to POST, whole; empty: there is none now. It stays until trace_batch_ended(). */
struct slice trace_batch(struct trace *t, uint64_t now_ms);
/* A failure that may pass (no answer, 429, 502, 503, 504) is tried again; another drops the batch.
 * Tells when the export begins to fail and when it works again. */
enum trace_news trace_batch_ended(struct trace *t, const struct trace_answer *answer,
                                  uint64_t now_ms);
/* The router stops: batches wait for nothing more, and none is tried twice. */
void trace_flush(struct trace *t);
/* True if no span waits. */
bool trace_is_empty(const struct trace *t);
/* NULL: traces are off. */
void trace_metrics(const struct trace *t, struct prometheus *p);

#endif
