/* How the actions of a proxy are written down, for people to read. */
#ifndef TESTS_LIB_PROXY_TRACE_H
#define TESTS_LIB_PROXY_TRACE_H

#include "base/buf.h"
#include "node/proxy/stats.h"

/* Bytes that were written: a head by its first line and what frames the message, a body as it is,
 * the start of it if it is long. What is no printable ASCII is \r, \n, \" or \xHH. */
void proxy_trace_message(struct buf *out, struct slice bytes);

/* Of a line of the log, what a trace shows behind the name of its event: how a request ended and
 * why, if badly; the replicas that died. Else empty. */
void proxy_trace_log_end(char out[128], struct slice event, struct slice line);

/* A line of the counters that are not 0. */
void proxy_trace_counters(struct buf *out, const struct proxy_stats *t);

#endif
