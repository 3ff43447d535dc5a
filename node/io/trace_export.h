/* The way of traces to their collector (OTLP/HTTP): one POST at a time, by libcurl in the loop. The
 * batches, retries and what is dropped are the business of node/trace/trace.h. Proxies are
 * libcurl's (HTTPS_PROXY, NO_PROXY), and so are the CAs of https.
 */
#ifndef NODE_IO_TRACE_EXPORT_H
#define NODE_IO_TRACE_EXPORT_H

#include <uv.h>

#include "base/err.h"
#include "base/log.h"
#include "node/settings/options.h"
#include "node/trace/trace.h"

struct trace_export;

/* `t` and `log` are borrowed until trace_export_free(). ERR_NOMEM; `*out` is freed all the same. */
MUST_USE int trace_export_open(struct trace_export **out, uv_loop_t *loop,
                               const struct node_options *options, struct trace *t,
                               struct log *log);
/* The rest does nothing for NULL. Once in each turn of the loop: sends what is due. */
void trace_export_run(struct trace_export *e);
/* Sends what waits, for TRACE_FLUSH_MS at most, and calls `done`, at once where nothing waits. */
void trace_export_flush(struct trace_export *e, void (*done)(void *context), void *context);
/* No more sending; the loop has to run once more. */
void trace_export_stop(struct trace_export *e);
void trace_export_free(struct trace_export *e);

#endif
