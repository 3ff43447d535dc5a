/* Ends slow clients: heads, bodies and readers beyond their time limits, and uploads with memory
 * which others need. */
#ifndef NODE_PROXY_GUARD_SLOW_H
#define NODE_PROXY_GUARD_SLOW_H

#include "node/proxy/client/client.h"

enum {
    PROXY_SLOW_MS = 10000,     /* an upload is slow if its stored bytes take longer at its pace; */
    PROXY_SLOW_FULL_MS = 1000, /* the same if memory is almost full: docs/http.md, Bodies */
    PROXY_SLOW_LOOK_MS = 100,  /* after a search without a result, the next starts so much later */
    PROXY_SLOW_CUT_MAX = 16,   /* uploads closed at once */
    PROXY_EVICT_IDLE_MS = 100, /* a connection idle for less is about to be used */
    PROXY_EVICT_SILENT_MS = 1000, /* a body without a byte for so long: two lost packets */
    PROXY_EVICT_LOOK_MAX = 1024,  /* connections examined, the oldest first */
};

/* The limit of client_arm() has passed. */
void slow_client_expired(struct deadline *d);
/* client-body-total-timeout has passed. */
void slow_upload_expired(struct deadline *d);
/* Measures the pace of an incomplete body after `bytes` arrived. */
void slow_follow(struct client *c, size_t bytes);
/* Called before a piece of `newcomer` is accepted: if memory for bodies is short, a slow upload is
 * closed instead of the next sender. At three quarters a really slow upload goes; if memory is
 * almost full, any that is not brand-new. */
void slow_make_room(const struct client *newcomer);
/* Closes a connection for a newcomer: an incomplete head, else an incomplete body. The choice is
 * the address with the most of these, and there the connection with the least progress for its age.
 *
 * Heads younger than PROXY_EVICT_IDLE_MS stay. So do bodies with a pace of client-body-rate-min and
 * a byte within PROXY_EVICT_SILENT_MS.
 *
 * A crowd is heads on an eighth of all connections, or an address with more than the newcomer's. In
 * a crowd, the longest time without progress decides. `crowd_alone`: only a member of a crowd of
 * heads, or of bodies without progress for PROXY_EVICT_SILENT_MS. Returns false if no connection
 * can be closed. */
bool slow_evict(const struct client *newcomer, bool crowd_alone);
/* The process did not run for so long: no upload is slow because of this. */
void slow_shift(struct proxy *p, uint64_t by_ms);

#endif
