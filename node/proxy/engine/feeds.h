/* The KV-event feeds of this router (node/kv/readers.h), and the feeds' endpoints.
 *
 * Engines report their ports: vLLM by GET /kv_event_sources, SGLang in /server_info. A label of the
 * settings has precedence, and may name another host. Among the routers for which the replica is
 * up, the first reads the feed and reports to the others, and the second reads and stands by
 * (node/replica/turn.h). If the replica is down, the feed is still read, but nothing is reported.
 *
 * If the engine connects to the router (publishers.h), only this router can read the events. After
 * the connection ends, the router keeps the feed's state for a while.
 *
 * All of this requires proxy_config.kv_readers. */
#ifndef NODE_PROXY_ENGINE_FEEDS_H
#define NODE_PROXY_ENGINE_FEEDS_H

#include "base/err.h"
#include "node/kv/source.h"
#include "node/proxy/proxy_internal.h"

/* Makes the state of the feeds, if this router reads KV events. ERR_NOMEM. */
MUST_USE int feeds_open(struct proxy *p);
void feeds_close(struct proxy *p);
/* Called by each tick. */
void feeds_tick(struct proxy *p);

/* Returns true if the engine should be asked for endpoints: this router has a turn to read, and no
 * label names them. */
bool feeds_ask(const struct proxy *p, unsigned replica);
/* The engine reported event endpoints. */
void feeds_told(struct proxy *p, unsigned replica, const struct kv_source *sources, unsigned count);
/* Drops the replica's feed, because the replica's name is forgotten. */
void feeds_forget(struct proxy *p, unsigned replica);

/* The engine connected to this router from the IP address `from`. NULL: the connection ended. */
void feeds_held(struct proxy *p, unsigned replica, const char *from);
/* Passes on a message from the engine's connection. Returns false if the feed is not read. */
MUST_USE bool feeds_live(struct proxy *p, unsigned replica, uint64_t number, struct slice payload);
/* Returns true while this router is joining a cluster, and so reads no feed yet. */
bool feeds_joins(const struct proxy *p);

void feeds_metrics(const struct proxy *p, struct prometheus *out);

#endif
