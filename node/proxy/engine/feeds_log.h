/* What the log says of the KV events that this router reads (feeds.h). */
#ifndef NODE_PROXY_ENGINE_FEEDS_LOG_H
#define NODE_PROXY_ENGINE_FEEDS_LOG_H

#include "node/kv/readers.h"
#include "node/proxy/proxy_internal.h"

/* The replica's events are `now` of use or not; `from`: their endpoint, "" if none is known. */
void feeds_log_reading(const struct proxy *p, unsigned slot, enum kv_reading now, const char *from);

/* Why nothing comes of a feed that this router is to read. */
enum feeds_trouble {
    FEEDS_TROUBLE_NONE,
    FEEDS_TROUBLE_UNREACHABLE, /* it cannot be subscribed to */
    FEEDS_TROUBLE_SILENT,      /* no message comes, though the engine stores blocks */
};
/* `named`: by a label; otherwise the engine said so itself. `answers` stored blocks meanwhile. */
void feeds_log_trouble(const struct proxy *p, unsigned slot, enum feeds_trouble trouble,
                       const char *from, struct slice topic, bool named, uint64_t answers);

#endif
