/* Which engines' KV events this router reads (node/kv/readers.h), and where they are.
 *
 * An engine says where it publishes: vLLM by GET /kv_event_sources, SGLang in /server_info. Of that
 * only ports count; a label of the settings stands above it, and may name another host. Of all
 * routers that see the replica up the first one reads and speaks, the second one stands by
 * (node/replica/turn.h). One that is down is followed on, and nothing is said of it.
 *
 * Where the engine connects to the router (publishers.h), the router that has its connection reads
 * it, and no other one can. For a while it keeps what it knows of an engine whose connection ended.
 *
 * Nothing of this is there without proxy_config.kv_readers.
 */
#ifndef NODE_PROXY_ENGINE_FEEDS_H
#define NODE_PROXY_ENGINE_FEEDS_H

#include "base/err.h"
#include "node/kv/source.h"
#include "node/proxy/proxy_internal.h"

/* ERR_NOMEM. */
MUST_USE int feeds_open(struct proxy *p);
void feeds_close(struct proxy *p);
/* Called by each tick. */
void feeds_tick(struct proxy *p);

/* Whether this router is to read the feeds of a process, and does not know by a label where they
 * are: it is asked. */
bool feeds_ask(const struct proxy *p, unsigned replica);
/* It answered. */
void feeds_told(struct proxy *p, unsigned replica, const struct kv_source *sources, unsigned count);
/* Its name is forgotten. */
void feeds_forget(struct proxy *p, unsigned replica);

/* The engine connected to this router, from that IP address; NULL: its connection ended. */
void feeds_held(struct proxy *p, unsigned replica, const char *from);
/* A message over that connection. False: it is not read. */
MUST_USE bool feeds_live(struct proxy *p, unsigned replica, uint64_t number, struct slice payload);
/* This router joins a cluster, and reads nothing yet. */
bool feeds_joins(const struct proxy *p);

void feeds_metrics(const struct proxy *p, struct prometheus *out);

#endif
