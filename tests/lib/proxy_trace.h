/* The actions of a proxy as text, for people to read. */
#ifndef TESTS_LIB_PROXY_TRACE_H
#define TESTS_LIB_PROXY_TRACE_H

#include "base/buf.h"
#include "node/proxy/stats.h"

/* Bytes that were written: a head by its first line and its framing headers, a body as it is, or
 * its beginning if long. Characters other than printable ASCII are \r, \n, \" or \xHH. */
void proxy_trace_message(struct buf *out, struct slice bytes);

/* The details of a log line that a trace shows behind the event's name: a request's result and
 * reason, if bad; the replicas that died. Else empty. */
void proxy_trace_log_end(char out[128], struct slice event, struct slice line);

/* A line of the counters that are not 0. */
void proxy_trace_counters(struct buf *out, const struct proxy_stats *t);

#endif
