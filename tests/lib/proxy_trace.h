/* The actions of a proxy as text, for people to read. */
#ifndef TESTS_LIB_PROXY_TRACE_H
#define TESTS_LIB_PROXY_TRACE_H

#include "base/buf.h"
#include "node/proxy/stats.h"

/* Written bytes: the first line and the framing headers of a head; a body as it is, or the
 * beginning of a long body. Characters other than printable ASCII are \r, \n, \" or \xHH. */
void proxy_trace_message(struct buf *out, struct slice bytes);

/* The details of a log line, shown in a trace after the event's name: a request's result and
 * reason, if bad; the dead replicas. Empty for other lines. */
void proxy_trace_log_end(char out[128], struct slice event, struct slice line);

/* A line of the counters other than 0. */
void proxy_trace_counters(struct buf *out, const struct proxy_stats *t);

#endif
