/* Sends traces to a collector (OTLP/HTTP) by libcurl in the loop, with 1 POST at a time.
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

/* `t` and `log` are borrowed until trace_export_free(). After ERR_NOMEM too, `*out` must be
 * freed. */
MUST_USE int trace_export_open(struct trace_export **out, uv_loop_t *loop,
                               const struct node_options *options, struct trace *t,
                               struct log *log);
/* Sends due spans. Called once in each turn of the loop. This and the next functions accept
 * NULL. */
void trace_export_run(struct trace_export *e);
/* Sends waiting spans, for at most TRACE_FLUSH_MS, then calls `done`. If none waits, calls `done`
 * at once. */
void trace_export_flush(struct trace_export *e, void (*done)(void *context), void *context);
/* Stops sending. The loop must run once more afterwards. */
void trace_export_stop(struct trace_export *e);
void trace_export_free(struct trace_export *e);

#endif
