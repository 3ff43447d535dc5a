/* Log lines about this router's KV-event feeds (feeds.h). */
#ifndef NODE_PROXY_ENGINE_FEEDS_LOG_H
#define NODE_PROXY_ENGINE_FEEDS_LOG_H

#include "node/kv/readers.h"
#include "node/proxy/proxy_internal.h"

/* Logs a replica's new reading state `now`. `from`: the endpoint of the events, "" if unknown. */
void feeds_log_reading(const struct proxy *p, unsigned slot, enum kv_reading now, const char *from);

/* The reason why no events come from a feed. */
enum feeds_trouble {
    FEEDS_TROUBLE_NONE,
    FEEDS_TROUBLE_UNREACHABLE, /* the subscription fails */
    FEEDS_TROUBLE_SILENT,      /* no message comes, though the engine stores blocks */
};
/* Logs the trouble. `named`: the endpoint comes from a label, not from the engine. `answers`: the
 * number of answers with stored blocks but no message. */
void feeds_log_trouble(const struct proxy *p, unsigned slot, enum feeds_trouble trouble,
                       const char *from, struct slice topic, bool named, uint64_t answers);

#endif
