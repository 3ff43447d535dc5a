/* Clients that are slow, and what becomes of them: heads, bodies, readers beyond their limits of
 * time, and uploads that hold memory which others need.
 */
#ifndef NODE_PROXY_GUARD_SLOW_H
#define NODE_PROXY_GUARD_SLOW_H

#include "node/proxy/client/client.h"

enum {
    PROXY_SLOW_MS = 10000,     /* an upload that needs longer, at its pace, for what it holds... */
    PROXY_SLOW_FULL_MS = 1000, /* and the same when memory is all but full: docs/http.md, Bodies */
    PROXY_SLOW_LOOK_MS = 100,  /* none was found: not before then is it looked for one again */
    PROXY_SLOW_CUT_MAX = 16,   /* at once */
    PROXY_EVICT_IDLE_MS = 100, /* a connection that is idle for less is about to be used */
    PROXY_EVICT_SILENT_MS = 1000, /* a body of which nothing comes for so long: two lost packets */
    PROXY_EVICT_LOOK_MAX = 1024,  /* connections that are looked at, the oldest first */
};

/* The limit that client_arm() armed has passed. */
void slow_client_expired(struct deadline *d);
/* client-body-total-timeout has passed. */
void slow_upload_expired(struct deadline *d);
/* After `bytes` came: how fast the body arrives, if it is not whole yet. */
void slow_follow(struct client *c, size_t bytes);
/* Before a piece of `newcomer` is taken: if memory for bodies is short, a slow upload goes, and not
 * who sends next. Three quarters full, one that is really slow; all but full, any that is not
 * brand-new. */
void slow_make_room(const struct client *newcomer);
/* There is no room for a newcomer: of the heads that are not whole, else of such bodies, the one
 * goes that has come least far for its age, of the address that has most of them. A head has
 * PROXY_EVICT_IDLE_MS, and a body stays of which something came within PROXY_EVICT_SILENT_MS and
 * that comes at client-body-rate-min. Of a crowd, of heads on an eighth of all connections or of
 * an address that has more of them than the newcomer's, the one goes that stands still the
 * longest. `crowd_alone`: one of a crowd of heads, or of bodies that have stood still for
 * PROXY_EVICT_SILENT_MS, or none. False: there is none to go. */
bool slow_evict(const struct client *newcomer, bool crowd_alone);
/* Nobody ran for so long: no upload is slow for that. */
void slow_shift(struct proxy *p, uint64_t by_ms);

#endif
