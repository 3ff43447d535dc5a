/* What the log says of the KV events that this router reads (feeds.h). */
#ifndef NODE_PROXY_ENGINE_FEEDS_LOG_H
#define NODE_PROXY_ENGINE_FEEDS_LOG_H

#include "node/kv/readers.h"
#include "node/proxy/proxy_internal.h"

/* The replica's events are `now` of use or not; `from`: their endpoint, "" if none is known. */
void feeds_log_reading(const struct proxy *p, unsigned slot, enum kv_reading now, const char *from);

#endif
