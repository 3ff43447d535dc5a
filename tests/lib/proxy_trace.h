/* How the actions of a proxy are written down, for people to read. */
#ifndef TESTS_LIB_PROXY_TRACE_H
#define TESTS_LIB_PROXY_TRACE_H

#include "base/buf.h"

/* Bytes that were written: a head by its first line and what frames the message, a body as it is,
 * the start of it if it is long. What is no printable ASCII is \r, \n, \" or \xHH. */
void proxy_trace_message(struct buf *out, struct slice bytes);

#endif
