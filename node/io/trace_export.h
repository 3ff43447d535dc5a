/* Sends traces to their collector (OTLP/HTTP): a POST at a time, by libcurl in the loop.
 * node/trace/trace.h handles batches, retries and drops. libcurl handles proxies (HTTPS_PROXY,
 * NO_PROXY), and the CAs of https. */
#ifndef NODE_IO_TRACE_EXPORT_H
#define NODE_IO_TRACE_EXPORT_H

#include <uv.h>

#include "base/err.h"
#include "base/log.h"
#include "node/settings/options.h"
#include "node/trace/trace.h"

struct trace_export;

/* `t` and `log` are borrowed until trace_export_free(). ERR_NOMEM; free `*out` even then. */
MUST_USE int trace_export_open(struct trace_export **out, uv_loop_t *loop,
                               const struct node_options *options, struct trace *t,
                               struct log *log);
/* The rest accepts NULL. Called once in each turn of the loop: sends what is due. */
void trace_export_run(struct trace_export *e);
/* Sends waiting spans, for TRACE_FLUSH_MS at most, then calls `done`; at once if nothing waits. */
void trace_export_flush(struct trace_export *e, void (*done)(void *context), void *context);
/* Stops sending; the loop has to run once more. */
void trace_export_stop(struct trace_export *e);
void trace_export_free(struct trace_export *e);

#endif
