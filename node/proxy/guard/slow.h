/* Closes slow clients' connections: heads, bodies and readers beyond their time limits, and slow
 * uploads while memory is scarce. */
#ifndef NODE_PROXY_GUARD_SLOW_H
#define NODE_PROXY_GUARD_SLOW_H

#include "node/proxy/client/client.h"

enum {
    /* An upload is slow if the stored bytes would take longer at the present pace. */
    PROXY_SLOW_MS = 10000,
    /* Replaces PROXY_SLOW_MS if memory is almost full (docs/http.md, Bodies). */
    PROXY_SLOW_FULL_MS = 1000,
    PROXY_SLOW_LOOK_MS = 100, /* wait before the next search, if a search found no slow upload */
    PROXY_SLOW_CUT_MAX = 16,  /* most uploads closed at once */
    PROXY_EVICT_IDLE_MS =
        100, /* a more recently used connection is spared: a request may be in transit */
    PROXY_EVICT_SILENT_MS = 1000, /* a body silent for longer may be closed: two lost packets */
    PROXY_EVICT_LOOK_MAX = 1024,  /* most connections examined, the oldest first */
};

/* Called when a time limit of client_arm() has passed. */
void slow_client_expired(struct deadline *d);
/* Called when client-body-total-timeout has passed. */
void slow_upload_expired(struct deadline *d);
/* Measures the pace of an incomplete body after `bytes` arrived. */
void slow_follow(struct client *c, size_t bytes);
/* Called before bytes of `newcomer` are accepted. If memory for bodies is short, closes slow
 * uploads to make room. With three quarters of the memory in use, an upload is slow by
 * PROXY_SLOW_MS; if memory is almost full, by PROXY_SLOW_FULL_MS. */
void slow_make_room(const struct client *newcomer);
/* Closes a connection to admit a newcomer: an incomplete head, or if there is none an incomplete
 * body. Chooses the address with the most of these, and there the connection with the least
 * progress for its age.
 *
 * Heads younger than PROXY_EVICT_IDLE_MS stay. So do bodies with a pace of client-body-rate-min and
 * a byte within PROXY_EVICT_SILENT_MS.
 *
 * There is a crowd if incomplete heads are on an eighth of connections-max, or if an address has
 * more incomplete heads than the newcomer's address. In a crowd, the longest time without progress
 * decides. `crowd_alone`: closes only a member of a crowd of heads, or of bodies without progress
 * for PROXY_EVICT_SILENT_MS. Returns false if no connection can be closed. */
bool slow_evict(const struct client *newcomer, bool crowd_alone);
/* Called after the process did not run for `by_ms`, so that no upload counts as slow for this. */
void slow_shift(struct proxy *p, uint64_t by_ms);

#endif
